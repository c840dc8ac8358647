"""The builds in the cache folder: list, use, rm; and a build that was moved."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from wavesmith import build_lock, builds
from wavesmith.built import open_folder
from wavesmith.commands.builds import command
from wavesmith.errors import BadInput, CannotRun

NAME = "host-1.0-copy"


def another(cache: Path, name: str, age: float = 100.0) -> Path:
    """A second, older build."""
    prefix = cache / "builds" / name
    shutil.copytree(cache / "builds" / NAME, prefix, symlinks=True)
    os.utime(prefix / "build.json", (time.time() - age,) * 2)
    return prefix


def unfinished(cache: Path, name: str) -> Path:
    prefix = cache / "builds" / name
    prefix.mkdir()
    shutil.copyfile(cache / "builds" / NAME / "plan.json", prefix / "plan.json")
    return prefix


def invoke(*arguments: str):
    return CliRunner().invoke(command, arguments, catch_exceptions=False)


def test_list_shows_every_build_the_newest_first(fake_cache: Path) -> None:
    another(fake_cache, "host-0.9-older")
    unfinished(fake_cache, "gfx1100-1.0-half")
    builds.use("host-0.9")
    rows = {row["name"]: row for row in json.loads(invoke("list", "--json").stdout)}
    assert [rows[name]["state"] for name in (NAME, "host-0.9-older", "gfx1100-1.0-half")] == ["finished", "finished", "unfinished"]
    assert [name for name, row in rows.items() if row["chosen"]] == ["host-0.9-older"]
    assert list(rows)[-1] == "host-0.9-older"
    assert rows[NAME]["target"] == "host" and rows[NAME]["llama_version"] == "1.0"
    assert rows[NAME]["bytes"] > rows["gfx1100-1.0-half"]["bytes"] > 0
    table = invoke("list").stdout
    assert NAME in table and "finished, chosen" in table and time.strftime("%Y-") in table


def test_list_without_any_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAVESMITH_CACHE", str(tmp_path / "none"))
    assert invoke("list").output == "no builds; make one with: wavesmith build\n"
    assert not (tmp_path / "none").exists()


def test_a_damaged_plan_is_listed_and_can_be_removed(fake_cache: Path) -> None:
    (unfinished(fake_cache, "broken") / "plan.json").write_text("[1]")
    assert {entry.name: entry.target for entry in builds.entries()}["broken"] == "?"
    assert invoke("rm", "broken").stdout == "removed broken\n"


def test_without_a_choice_the_newest_finished_one_is_used(fake_cache: Path) -> None:
    another(fake_cache, "host-0.9-older")
    unfinished(fake_cache, "half")
    assert builds.find().prefix.name == NAME


def test_use_chooses_by_name_beginning_or_folder(fake_cache: Path, tmp_path: Path) -> None:
    another(fake_cache, "host-0.9-older")
    for name in ("host-0.9-older", "host-0"):
        assert invoke("use", name).stdout == f"using {fake_cache}/builds/host-0.9-older\n"
        assert builds.find().prefix.name == "host-0.9-older"
    outside = tmp_path / "made with out"
    shutil.copytree(fake_cache / "builds" / NAME, outside, symlinks=True)
    assert builds.use(str(outside)).prefix == outside
    assert builds.find().prefix == outside


def test_a_chosen_build_that_vanished_gives_way_to_the_newest(fake_cache: Path) -> None:
    shutil.rmtree(builds.use(str(another(fake_cache, "gone"))).prefix)
    assert builds.find().prefix.name == NAME


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("nosuch", BadInput, "no build is called nosuch; there are: host-1.0-copy, half"),
        ("h", BadInput, "2 builds begin with h: "),
        ("half", CannotRun, "half holds no finished build; `wavesmith build` finishes one"),
        ("/no/such/folder", CannotRun, "/no/such/folder holds no finished build"),
    ],
)
def test_names_that_fit_nothing(fake_cache: Path, name: str, error: type, message: str) -> None:
    half = unfinished(fake_cache, "half")
    os.utime(half / "plan.json", (0, 0))
    with pytest.raises(error, match=message):
        builds.use(name)


def test_no_build_at_all_names_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAVESMITH_CACHE", str(tmp_path))
    with pytest.raises(CannotRun, match="there is no finished build; make one with: wavesmith build"):
        builds.find()


def test_rm_removes_the_folder_and_the_choice(fake_cache: Path) -> None:
    builds.use(NAME)
    leftover = fake_cache / "builds" / ".removed-1-interrupted"
    leftover.mkdir()
    assert invoke("rm", NAME).stdout == f"removed {NAME}\n"
    assert [path.name for path in (fake_cache / "builds").iterdir() if path.suffix != ".lock"] == []


def test_rm_refuses_a_build_that_is_being_made(fake_cache: Path) -> None:
    with build_lock.tried(fake_cache / "builds" / NAME) as free:
        assert free
        with pytest.raises(BadInput, match="is being made by another process"):
            builds.remove(NAME)
        assert {entry.name: entry.state for entry in builds.entries()}[NAME] == "being made"
    assert open_folder(fake_cache / "builds" / NAME)


def test_rm_refuses_a_build_whose_program_runs(fake_cache: Path) -> None:
    with subprocess.Popen([builds.find().program("llama-bench"), "wait"], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        with pytest.raises(BadInput, match=f"is in use by process {process.pid}"):
            builds.remove(NAME)
        process.kill()
    assert builds.remove(NAME).name == NAME


@pytest.mark.parametrize("name", ["", "..", "../x"])
def test_rm_takes_names_only(fake_cache: Path, name: str) -> None:
    (fake_cache / "x").mkdir()
    with pytest.raises(BadInput, match="no build is called"):
        builds.remove(name)
    assert (fake_cache / "x").is_dir()


def test_rm_leaves_what_a_link_leads_to(fake_cache: Path, tmp_path: Path) -> None:
    real = tmp_path / "real"
    shutil.copytree(fake_cache / "builds" / NAME, real, symlinks=True)
    (fake_cache / "builds" / "link").symlink_to(real)
    with pytest.raises(BadInput, match="is a link"):
        builds.remove("link")
    assert open_folder(real)


def test_a_moved_build_runs_from_its_new_place(fake_build_template, fake_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its run paths are relative: the loader takes the libraries of the copy, not those of the place where it was made."""
    copy = builds.find()
    listing = subprocess.run([copy.program("llama-bench")], env={"LD_TRACE_LOADED_OBJECTS": "1"}, cwd="/", capture_output=True, text=True, check=True).stdout
    assert str(copy.prefix / "build/bin/libggml-base.so") in listing
    assert str(fake_build_template.prefix) not in listing
    assert "WAVESMITH: kernels" in subprocess.run([copy.program("llama-bench"), "--list-devices"], capture_output=True, text=True, check=True).stdout
