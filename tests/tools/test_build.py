"""Building, with a stand-in for llama.cpp that compiles in a second; the real one is in test_build_real.py."""

from __future__ import annotations

import errno
import json
import os
import shutil
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import fake_llama
import fake_rocm
import pytest
from click.testing import CliRunner
from wavesmith import build, build_plan, cmake_file_api, patching, source
from wavesmith.commands.build import command
from wavesmith.errors import BadInput, BuildFailed, CannotBuild, PatchRefused
from wavesmith.progress import Steps


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A cache of its own and a stand-in tree; `fetches` counts how often the tree was asked for."""
    tree = fake_llama.write(tmp_path / "tree")
    state = SimpleNamespace(tree=tree, fetches=0, cache=tmp_path / "cache")

    def fetch(plan: build_plan.Plan, via: str, step) -> Path:
        state.fetches += 1
        return tree

    monkeypatch.setenv("WAVESMITH_CACHE", str(state.cache))
    monkeypatch.setattr(source, "resolve", lambda llama: source.Identity("1.0", "1.0", "abcdef123456"))
    monkeypatch.setattr(build, "_fetch", fetch)
    monkeypatch.setattr(patching, "apply", lambda folder: (folder / "patched").touch())
    monkeypatch.setattr(patching, "refuse_other_patches", lambda folder: None)
    return state


def quiet() -> Steps:
    return Steps("build", quiet=True)


def prefix(fake: SimpleNamespace) -> Path:
    return build_plan.resolve().prefix


def test_build_from_nothing(fake) -> None:
    assert build.find() is None
    made = build.ensure(steps=quiet())
    assert made == build.find()
    assert (made.llama_version, made.commit, made.target) == ("1.0", "abcdef123456", "host")
    assert set(made.programs) == set(build_plan.PROGRAMS)
    assert all(os.access(path, os.X_OK) for path in made.programs.values())
    assert made.program("llama-bench").parent == made.bin_dir
    assert (made.lib_dir / "libggml-base.so").is_file()
    assert made.prefix.parent == fake.cache / "builds"


def test_second_time_builds_nothing(fake, monkeypatch: pytest.MonkeyPatch) -> None:
    first = build.ensure(steps=quiet())
    monkeypatch.setattr(build.process, "run", lambda *a, **k: pytest.fail("a finished build was built again"))
    assert build.ensure(steps=quiet()) == first
    assert fake.fetches == 1


def test_the_source_tree_stays_as_it_was(fake) -> None:
    before = {path.relative_to(fake.tree): path.read_bytes() for path in fake.tree.rglob("*") if path.is_file()}
    build.ensure(steps=quiet())
    assert {path.relative_to(fake.tree): path.read_bytes() for path in fake.tree.rglob("*") if path.is_file()} == before


def test_copy_leaves_out_what_no_build_needs(fake) -> None:
    copy = build.ensure(steps=quiet()).prefix / "src"
    assert (copy / "patched").is_file()
    assert not (copy / ".git").exists()
    assert not (copy / "models").exists()


def test_manifest_tells_the_whole_plan(fake) -> None:
    made = build.ensure(steps=quiet())
    manifest = json.loads((made.prefix / build.MANIFEST).read_text())
    assert manifest["version"] == build.MANIFEST_VERSION
    assert manifest["plan"] == build_plan.resolve().as_json()
    assert manifest["programs"]["llama-bench"] == "build/bin/llama-bench"
    assert "CXX" in manifest["compilers"]


def test_a_repository_around_the_build_is_not_read(fake) -> None:
    fake.cache.mkdir()
    for arguments in (["init", "-q"], ["-c", "user.name=n", "-c", "user.email=e@x", "commit", "-q", "--allow-empty", "-m", "surrounding"]):
        build.process.run(["git", "-C", str(fake.cache), *arguments], fake.cache.parent / "git.log")
    made = build.ensure(steps=quiet())
    assert (made.prefix / "build" / "commit.txt").read_text() == ""


def test_flags_of_the_users_shell_do_not_reach_the_compiler(fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXXFLAGS", "--no-such-option")
    build.ensure(steps=quiet())


def test_compile_error_is_one_line_and_leaves_no_finished_build(fake) -> None:
    (fake.tree / "module.cpp").write_text("int module() { return missing; }\n")
    with pytest.raises(BuildFailed, match=r"the build failed with exit code 1: .*module.cpp:1:.*error: .*missing.* \(log: .*compile.log\)"):
        build.ensure(steps=quiet())
    assert build.find() is None


def test_interrupted_build_goes_on_without_fetching_again(fake, monkeypatch: pytest.MonkeyPatch) -> None:
    real = build.process.run

    def interrupt(arguments, *rest, **options):
        if "-j1" in arguments:
            raise KeyboardInterrupt
        return real(arguments, *rest, **options)

    monkeypatch.setattr(build.process, "run", interrupt)
    with pytest.raises(KeyboardInterrupt):
        build.ensure(jobs=1, steps=quiet())
    assert build.find() is None
    monkeypatch.setattr(build.process, "run", real)
    assert build.ensure(jobs=2, steps=quiet()) == build.find()
    assert fake.fetches == 1


def test_interrupted_copy_leaves_nothing_half(fake, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(folder: Path) -> None:
        raise PatchRefused("the anchor is missing")

    monkeypatch.setattr(patching, "apply", refuse)
    with pytest.raises(PatchRefused):
        build.ensure(steps=quiet())
    assert sorted(path.name for path in prefix(fake).iterdir()) == ["plan.json"]


def test_full_disk_while_copying_leaves_nothing_half(fake, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source, destination, *_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(destination))

    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(CannotBuild, match="no space left on the disk while writing"):
        build.ensure(steps=quiet())
    assert sorted(path.name for path in prefix(fake).iterdir()) == ["plan.json"]
    assert build.find() is None


def test_full_disk_at_the_last_step_leaves_no_manifest(fake, monkeypatch: pytest.MonkeyPatch) -> None:
    real = build.write_json

    def full(path: Path, content: dict) -> None:
        if path.name == build.MANIFEST:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        real(path, content)

    monkeypatch.setattr(build, "write_json", full)
    with pytest.raises(OSError, match="No space left"):
        build.ensure(steps=quiet())
    assert build.find() is None


def test_too_little_disk_space_stops_before_anything_is_fetched(fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build.build_checks, "NEEDED_BYTES", 10**18)
    monkeypatch.setattr(build.build_checks.check_disk, "__defaults__", (10**18,))
    with pytest.raises(CannotBuild, match="free disk space"):
        build.ensure(steps=quiet())
    assert fake.fetches == 0


def test_module_that_does_not_show_its_device_is_refused(fake) -> None:
    (fake.tree / "main.cpp").write_text("int main() { return 0; }\n")
    with pytest.raises(BuildFailed, match="does not list the device WAVESMITH"):
        build.ensure(steps=quiet())
    assert build.find() is None


def test_module_that_cannot_be_switched_off_is_refused(fake) -> None:
    (fake.tree / "main.cpp").write_text('#include <cstdio>\nint main() { std::puts("WAVESMITH"); }\n')
    with pytest.raises(BuildFailed, match="WAVESMITH=0 does not switch"):
        build.ensure(steps=quiet())


def test_programs_that_vanished_are_built_again(fake) -> None:
    made = build.ensure(steps=quiet())
    made.program("llama-bench").unlink()
    assert build.find() is None
    assert build.ensure(steps=quiet()).program("llama-bench").is_file()


def test_broken_manifest_is_no_build(fake) -> None:
    made = build.ensure(steps=quiet())
    (made.prefix / build.MANIFEST).write_text("{")
    assert build.find() is None


def test_two_at_once_build_once(fake) -> None:
    results = []
    threads = [threading.Thread(target=lambda: results.append(build.ensure(steps=quiet()))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert fake.fetches == 1
    assert len(results) == 2 and results[0] == results[1]


def test_out_folder(fake, tmp_path: Path) -> None:
    made = build.ensure(out=tmp_path / "mine", steps=quiet())
    assert made.prefix == tmp_path / "mine"
    assert build.find(out=tmp_path / "mine") == made
    assert build.find() is None


def test_out_folder_of_another_plan_is_made_anew(fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build.ensure(out=tmp_path / "mine", steps=quiet())
    monkeypatch.setattr(source, "resolve", lambda llama: source.Identity("2.0", "2.0", "fedcba"))
    assert build.find(out=tmp_path / "mine") is None
    assert build.ensure(out=tmp_path / "mine", steps=quiet()).llama_version == "2.0"
    assert fake.fetches == 2


@pytest.mark.parametrize("kind", ["folder with files", "file"])
def test_out_folder_of_somebody_else_is_refused(fake, tmp_path: Path, kind: str) -> None:
    out = tmp_path / "theirs"
    if kind == "file":
        out.write_text("theirs")
    else:
        out.mkdir()
        (out / "thesis.txt").write_text("theirs")
    with pytest.raises(BadInput, match="theirs is not"):
        build.ensure(out=out, steps=quiet())
    assert out.read_text() == "theirs" if kind == "file" else (out / "thesis.txt").read_text() == "theirs"


def test_environment_of_the_two_sides(fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAVESMITH", "0")
    monkeypatch.setenv("GGML_BACKEND_PATH", "/some/module.so")
    made = build.ensure(steps=quiet())
    ours, stock = made.environment("rdna4"), made.environment(stock=True)
    assert "WAVESMITH" not in ours and stock["WAVESMITH"] == "0"
    assert ours["WAVESMITH_HOST_FAMILY"] == "rdna4"
    assert "GGML_BACKEND_PATH" not in ours and "GGML_BACKEND_PATH" not in stock
    assert ours["OMP_WAIT_POLICY"] == stock["OMP_WAIT_POLICY"] == "passive"


def test_plan_option_prints_and_does_nothing(fake) -> None:
    result = CliRunner().invoke(command, ["--plan"])
    assert result.exit_code == 0
    rows = dict(line.split(None, 1) for line in result.stdout.splitlines())
    assert rows["llama.cpp"] == "1.0 (abcdef123456)"
    assert rows["prefix"] == str(prefix(fake))
    assert "-DGGML_CUSTOM_KERNELS=wavesmith" in rows["options"]
    assert fake.fetches == 0
    assert not fake.cache.exists()


def test_command_prints_the_programs_folder_last(fake) -> None:
    result = CliRunner().invoke(command, ["--jobs", "2"])
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1] == str(build.find().bin_dir)


def test_each_step_has_a_log(fake) -> None:
    steps = quiet()
    build.ensure(steps=steps)
    logs = sorted(path.name for path in steps.folder.iterdir())
    assert logs == ["03-configure.log", "04-compile.log", "05-check-the-build.log"]


def test_file_api_names_targets_cache_and_compilers(fake) -> None:
    made = build.ensure(steps=quiet())
    reply = cmake_file_api.read(made.prefix / "build")
    assert reply.targets["ggml-base"].kind == "SHARED_LIBRARY"
    assert reply.artifact("llama-bench") == made.program("llama-bench")
    assert reply.cache["GGML_BACKEND_DL"] == "OFF"
    assert reply.compilers["CXX"]
    with pytest.raises(BuildFailed, match="no target nonesuch"):
        reply.artifact("nonesuch")


def test_file_api_without_a_reply(tmp_path: Path) -> None:
    with pytest.raises(BuildFailed, match="no file API reply"):
        cmake_file_api.read(tmp_path)


def test_another_kernel_patch_is_named_before_anything_is_copied(fake, monkeypatch: pytest.MonkeyPatch) -> None:
    import mini_tree

    mini_tree.write(fake.tree)
    (fake.tree / "ggml/src/ggml-cuda/smithy-config.h").write_text("#pragma once\n")
    monkeypatch.undo()
    monkeypatch.setenv("WAVESMITH_CACHE", str(fake.cache))
    with pytest.raises(PatchRefused, match="the tree already has kernel-anvil .*smithy-config.h.*nothing was changed"):
        build.ensure(llama=str(fake.tree), steps=quiet())
    assert [path.name for path in build_plan.resolve(llama=str(fake.tree)).prefix.iterdir()] == ["plan.json"]


def test_option_that_cmake_ignored_is_an_error(fake) -> None:
    """Else a llama.cpp without the option would give a build for the CPU, and say nothing."""
    text = (fake.tree / "CMakeLists.txt").read_text()
    (fake.tree / "CMakeLists.txt").write_text(text.replace('NOT GGML_CUSTOM_KERNELS STREQUAL "wavesmith" OR ', ""))
    with pytest.raises(BuildFailed, match="did not use GGML_CUSTOM_KERNELS: the build would silently be without a GPU or our kernels .*configure.log"):
        build.ensure(steps=quiet())
    assert build.find() is None


def test_uncommitted_changes_of_a_users_tree_are_said(tmp_path: Path) -> None:
    import mini_tree

    tree = mini_tree.write(tmp_path / "tree")
    build.process.run(["git", "-C", str(tree), "init", "-q"], tmp_path / "log")
    assert build_plan.resolve(llama=str(tree)).notes == (f"{tree} has {len(list(tree.iterdir())) - 1} uncommitted change(s), which are part of this build",)


@pytest.mark.parametrize("words", ["gfx1100,gfx1030", "gfx1100,host"])
def test_gpu_build_from_plan_to_manifest(fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    """Everything around the compiler: a ROCm root of stand-ins, and CMake's word that it knows the HIP compiler."""
    root = fake_rocm.write(tmp_path / "my rocm")
    compiler = fake_rocm.compiler(root / "llvm/bin/clang++")
    monkeypatch.setenv("ROCM_PATH", str(root))
    monkeypatch.setenv("HIPFLAGS", "-march=native")
    real = cmake_file_api.read
    monkeypatch.setattr(cmake_file_api, "read", lambda tree: replace(real(tree), compilers={**real(tree).compilers, "HIP": "Clang 22.0.0"}))
    made = build.ensure(words, steps=quiet())
    assert made.target == words and made.has_host == words.endswith("host")
    assert (made.prefix / "build/hip.txt").read_text() == f"{root}\n{words.removesuffix(',host').replace(',', ';')}\n{compiler}\n\n"
    manifest = json.loads((made.prefix / build.MANIFEST).read_text())
    assert manifest["plan"]["rocm"]["root"] == manifest["environment"]["ROCM_PATH"] == str(root)
    assert manifest["module"].endswith("libggml-wavesmith.so" if made.has_host else "libggml-hip.so")
    assert made.rocm_libraries == (f"{root}/lib",)
    trials = len(fake_rocm.calls(compiler))
    assert build.ensure(words, steps=quiet()) == made
    assert len(fake_rocm.calls(compiler)) == trials


def test_gpu_build_that_cmake_makes_for_the_cpu_is_refused(fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = fake_rocm.write(tmp_path / "rocm")
    fake_rocm.compiler(root / "llvm/bin/clang++")
    monkeypatch.setenv("ROCM_PATH", str(root))
    text = (fake.tree / "CMakeLists.txt").read_text()
    (fake.tree / "CMakeLists.txt").write_text(
        text.replace("if (GGML_HIP AND GPU_TARGETS)", "if (FALSE)").replace("if (NOT GGML_HIP OR GGML_CUSTOM_KERNELS_HOST)", "if (TRUE)")
    )
    with pytest.raises(BuildFailed, match="did not use .*GGML_HIP.*would silently be without a GPU"):
        build.ensure("gfx1100", steps=quiet())
    assert build.find("gfx1100") is None
