"""`wavesmith export`: a folder that runs by itself."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from wavesmith import build_plan, builds, export, export_texts
from wavesmith.built import Build
from wavesmith.commands.export import command
from wavesmith.errors import BadInput, BuildFailed

BARE = {"PATH": os.defpath}


@pytest.fixture
def exported(fake_cache: Path, tmp_path: Path) -> Path:
    """The folder, moved after it was made, with the build that it came from removed."""
    result = CliRunner().invoke(command, [str(tmp_path / "first")], catch_exceptions=False)
    assert result.stdout.splitlines()[-1] == str(tmp_path / "first")
    shutil.rmtree(fake_cache)
    moved = tmp_path / "on another machine"
    (tmp_path / "first").rename(moved)
    return moved


def test_holds_programs_libraries_texts_and_licences(exported: Path) -> None:
    assert {path.name for path in exported.iterdir()} == {"bin", "README.md", "env.sh", "run.sh", "LICENSE.llama.cpp", "LICENSE.wavesmith"}
    assert {path.name for path in (exported / "bin").iterdir()} >= {*build_plan.PROGRAMS, "libggml-base.so", "libggml-wavesmith.so"}
    assert not any(path.is_symlink() for path in exported.rglob("*"))


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_run_script_needs_neither_wavesmith_nor_the_build(exported: Path, shell: str) -> None:
    script = [shell, str(exported / "run.sh")]
    result = subprocess.run([*script, "llama-bench", "--list-devices"], cwd="/", env=BARE, capture_output=True, text=True, check=True)
    assert "WAVESMITH: kernels" in result.stdout
    assert subprocess.run([*script, "llama-bench", "exit", "9"], env=BARE, check=False).returncode == 9
    assert subprocess.run([*script, "llama-bench", "echo", "a b"], env=BARE, capture_output=True, text=True, check=True).stdout == "echo\na b\n"
    wrong = subprocess.run([*script, "nosuch"], env=BARE, capture_output=True, text=True, check=False)
    assert wrong.returncode == 2 and "llama-bench" in wrong.stderr and ".so" not in wrong.stderr


def test_environment_script_is_for_sourcing(exported: Path) -> None:
    line = f"cd / && source '{exported}/env.sh' && llama-bench show LD_LIBRARY_PATH"
    result = subprocess.run(["bash", "-c", line, "x", "y"], env=BARE, capture_output=True, text=True, check=True)
    assert result.stdout == f"{exported}/bin\n"


def test_texts_name_no_place_of_this_machine(exported: Path, tmp_path: Path) -> None:
    for path in (*exported.glob("*.md"), *exported.glob("*.sh")):
        assert str(tmp_path) not in path.read_text() and "wavesmith_h" not in path.read_text()
    readme = (exported / "README.md").read_text()
    assert "commit abcdef123456" in readme and "libc.so.6" in readme and "llama-bench" in readme
    assert re.search(r"\| CXX compiler \| \w+ [\d.]+ \|", readme)


def test_rocm_is_found_by_its_variable_or_where_it_usually_is() -> None:
    assert "${ROCM_PATH:-/opt/rocm}/lib" in export_texts.environment_script("/opt/rocm-7.2.0")
    assert "rocm" not in export_texts.environment_script("").lower()
    assert "home" not in export_texts.environment_script("/home/user/venv/_rocm_sdk_devel")


@pytest.mark.parametrize("kind", ["file", "full folder", "no parent", "in the build"])
def test_bad_destination_changes_nothing(fake_cache: Path, tmp_path: Path, kind: str) -> None:
    build = builds.find()
    destination = {"file": tmp_path / "file", "full folder": tmp_path / "full", "no parent": tmp_path / "no" / "x", "in the build": build.prefix / "x"}[kind]
    if kind == "file":
        destination.write_text("theirs")
    if kind == "full folder":
        destination.mkdir()
        (destination / "thesis.txt").write_text("theirs")
    before = sorted(path for path in tmp_path.rglob("*") if "cache" not in path.parts)
    with pytest.raises(BadInput):
        export.export(build, destination)
    assert sorted(path for path in tmp_path.rglob("*") if "cache" not in path.parts) == before


def test_a_full_disk_or_interrupt_leaves_no_half_folder(fake_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(export_texts, "readme", interrupt)
    with pytest.raises(KeyboardInterrupt):
        export.export(builds.find(), tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


def test_programs_that_would_use_the_builds_folder_are_refused(fake_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = export.linked

    def absolute(program: Path, root: Path) -> export.Linked:
        found = real(program, root)
        return export.Linked({}, found.system, ()) if ".partial" in str(program) else found

    monkeypatch.setattr(export, "linked", absolute)
    with pytest.raises(BuildFailed, match="its run path is not relative"):
        export.export(builds.find(), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_program_that_lost_its_library_is_refused(fake_cache: Path, tmp_path: Path) -> None:
    build: Build = builds.find()
    (build.lib_dir / "libggml-base.so").unlink()
    with pytest.raises(BuildFailed, match=r"does not find libggml-base.so in its own build"):
        export.export(build, tmp_path / "out")
