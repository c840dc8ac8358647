"""What a build will be: its key, the files it takes, what is refused before anything starts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from wavesmith import build_checks, build_plan
from wavesmith.build_checks import Compiler
from wavesmith.errors import BadInput, CannotBuild


@pytest.fixture
def plan() -> build_plan.Plan:
    return build_plan.Plan(
        target="host",
        llama_version="1.0",
        llama_commit="abc",
        source="1.0",
        patch_set="p",
        module_hash="m",
        c_compiler=Compiler("/usr/bin/gcc", "gcc 12"),
        cxx_compiler=Compiler("/usr/bin/g++", "g++ 12"),
        options={"A": "ON"},
        programs=("x",),
        prefix=Path("/a"),
    )


@pytest.mark.parametrize(
    "change",
    [
        {"target": "gfx1100"},
        {"llama_commit": "abd"},
        {"patch_set": "q"},
        {"module_hash": "n"},
        {"c_compiler": Compiler("/usr/bin/gcc", "gcc 13")},
        {"cxx_compiler": Compiler("/opt/g++", "g++ 12")},
        {"options": {"A": "OFF"}},
        {"programs": ("x", "y")},
    ],
    ids=lambda change: next(iter(change)),
)
def test_everything_that_changes_the_result_changes_the_key(plan: build_plan.Plan, change: dict) -> None:
    assert replace(plan, **change).key != plan.key


@pytest.mark.parametrize(
    "change", [{"prefix": Path("/b")}, {"llama_version": "same commit, other name"}, {"source": "elsewhere"}], ids=lambda change: next(iter(change))
)
def test_where_things_lie_does_not_change_the_key(plan: build_plan.Plan, change: dict) -> None:
    assert replace(plan, **change).key == plan.key


def test_unknown_target_is_refused() -> None:
    with pytest.raises(BadInput, match="unknown target 'gfx000'"):
        build_plan.resolve("gfx000")


def test_module_hash_sees_names_and_contents(tmp_path: Path) -> None:
    def module(**files: str) -> str:
        root = tmp_path / str(len(list(tmp_path.iterdir())))
        for name, text in files.items():
            path = root / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return build_plan.module_hash(root)

    base = module(backend__a="1", cmake__b="2")
    assert module(backend__a="1", cmake__b="2") == base
    assert module(backend__a="1", cmake__b="3") != base
    assert module(backend__c="1", cmake__b="2") != base
    assert module(backend__a="12", cmake__b="") != base
    assert module(backend__a="1", cmake__b="2", docs__c="not part of a build") == base


def test_module_files_leave_out_what_builds_leave_behind(tmp_path: Path) -> None:
    for name in ("backend/a.cpp", "backend/build/a.o", "backend/__pycache__/x.pyc", "backend/b.so", "cmake/c.cmake"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert [path.as_posix() for path in build_plan.module_files(tmp_path)] == ["backend/a.cpp", "cmake/c.cmake"]


def test_module_files_hold_the_cmake_entry() -> None:
    assert Path("backend/CMakeLists.txt") in build_plan.module_files()


@pytest.fixture
def path_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Returns a function that makes PATH hold only the given programs, as scripts that print a version."""

    def install(*names: str) -> Path:
        for name in names:
            script = tmp_path / name
            script.write_text(f"#!/bin/sh\necho {name} 1.2.3\n")
            script.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        for name in ("CC", "CXX"):
            monkeypatch.delenv(name, raising=False)
        build_checks.compilers.cache_clear()
        return tmp_path

    yield install
    build_checks.compilers.cache_clear()


@pytest.mark.parametrize(
    ("manager", "command"),
    [("apt-get", "sudo apt-get install -y g++"), ("dnf", "sudo dnf install -y gcc-c++"), ("pacman", "sudo pacman -S --needed gcc")],
)
def test_no_compiler_names_the_command_that_brings_one(path_with, manager: str, command: str) -> None:
    path_with(manager)
    with pytest.raises(CannotBuild) as caught:
        build_checks.compilers()
    assert str(caught.value).endswith(command)
    assert caught.value.exit_code == 3


def test_compilers_in_order_of_preference(path_with) -> None:
    folder = path_with("clang", "clang++", "cc", "c++")
    assert [compiler.path for compiler in build_checks.compilers()] == [f"{folder}/clang", f"{folder}/clang++"]


def test_cxx_variable_chooses_both(path_with, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = path_with("gcc", "g++", "gcc-13", "g++-13")
    monkeypatch.setenv("CXX", "g++-13")
    assert build_checks.compilers() == (Compiler(f"{folder}/gcc-13", "gcc-13 1.2.3"), Compiler(f"{folder}/g++-13", "g++-13 1.2.3"))


def test_a_compiler_that_cannot_link_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "g++"
    script.write_text("#!/bin/sh\necho 'fatal error: charconv: No such file or directory' >&2\nexit 1\n")
    script.chmod(0o755)
    with pytest.raises(CannotBuild, match="cannot build a C\\+\\+17 program: fatal error: charconv"):
        build_checks.check_compiler(Compiler(str(script), "x"))


def test_this_machines_compiler_works() -> None:
    build_checks.check_compiler(build_checks.compilers()[1])


def test_disk_space_is_checked_in_the_nearest_folder_that_exists(tmp_path: Path) -> None:
    build_checks.check_disk(tmp_path / "not" / "there", needed=1)
    with pytest.raises(CannotBuild, match=f"needs 1000000000.0 GB of free disk space in {tmp_path}"):
        build_checks.check_disk(tmp_path / "not" / "there", needed=10**18)


@pytest.mark.parametrize("name", ["cmake", "ninja"])
def test_build_programs_are_found(name: str) -> None:
    assert Path(build_checks.program(name)).is_file()
