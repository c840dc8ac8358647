"""Builds of an unpatched ggml, of the module alone, and of the driver program, for the tests of the module."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from wavesmith import build_checks, build_plan, lock, resources, source

NEWEST = lock.load().newest.version
OLDEST = lock.load().versions[-1].version
VERSIONS = tuple(entry.version for entry in lock.load().versions)

# Libraries only, and without the CPU backend: what the module needs of ggml is in libggml-base.
_GGML_OPTIONS = {
    "CMAKE_BUILD_TYPE": "Release",
    "BUILD_SHARED_LIBS": "ON",
    "GGML_CCACHE": "OFF",
    "GGML_CPU": "OFF",
    "GGML_OPENMP": "OFF",
    "LLAMA_BUILD_COMMON": "OFF",
    "LLAMA_BUILD_TESTS": "OFF",
    "LLAMA_BUILD_TOOLS": "OFF",
    "LLAMA_BUILD_EXAMPLES": "OFF",
    "LLAMA_BUILD_SERVER": "OFF",
    "LLAMA_BUILD_APP": "OFF",
    "LLAMA_BUILD_UI": "OFF",
    "LLAMA_OPENSSL": "OFF",
    "GIT_EXE": "",  # else a failing git overrides the commit
}


@dataclass(frozen=True)
class PlainGgml:
    """An unpatched ggml: source tree, libraries, and the driver program linked to them."""

    version: str
    commit: str
    tree: Path
    libraries: Path
    driver: Path

    @property
    def base(self) -> Path:
        return self.libraries / "libggml-base.so"

    @property
    def ggml_version(self) -> str:
        return lock.load().by_version(self.version).ggml


def run(*command, check: bool = True, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program without wavesmith settings of this process; with `check`, its failure is an assertion that shows its output."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("WAVESMITH", "GGML_"))}
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, timeout=900, env={**inherited, **environment})
    assert not check or result.returncode == 0, f"{command[0]} ended with {result.returncode}\n{result.stdout[-4000:]}\n{result.stderr[-4000:]}"
    return result


def configure(sources: Path, folder: Path, options: dict[str, str], check: bool = True) -> subprocess.CompletedProcess[str]:
    c, cxx = build_checks.compilers()
    options = {
        "CMAKE_MAKE_PROGRAM": build_checks.program("ninja"),
        "CMAKE_C_COMPILER": c.path,
        "CMAKE_CXX_COMPILER": cxx.path,
        **build_plan.launchers(build_checks.ccache()),
        **options,
    }
    definitions = [f"-D{name}={value}" for name, value in options.items()]
    return run(build_checks.program("cmake"), "-S", sources, "-B", folder, "-G", "Ninja", *definitions, check=check)


def compile_target(folder: Path, *targets: str) -> None:
    # Compiled files are shared with other builds through ccache, whatever folder they lie in.
    run(build_checks.program("ninja"), "-C", folder, f"-j{build_checks.usable_cpus()}", *targets, CCACHE_BASEDIR=str(folder), CCACHE_NOHASHDIR="1")


def plain_ggml(version: str, cache_folder: Path) -> PlainGgml:
    """ggml of a supported version, unpatched; compiled on first use and kept in the cache."""
    tree = source.get(version)
    folder = cache_folder / "plain" / version
    configure(tree.path, folder, {**_GGML_OPTIONS, "LLAMA_BUILD_COMMIT": tree.commit[:9]})
    compile_target(folder, "ggml")
    libraries = folder / "bin"
    driver = folder / "driver"
    compile_program(driver, [Path(__file__).with_name("module_driver.cpp")], tree.path, libraries, libraries=("ggml", "ggml-base"))
    return PlainGgml(version, tree.commit[:9], tree.path, libraries, driver)


def compile_program(output: Path, sources: list[Path], tree: Path, library_folder: Path, *options: str, libraries: tuple[str, ...]) -> None:
    command = [build_checks.compilers()[1].path, "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", *sources, *options]
    command += [f"-I{tree}/ggml/include", f"-I{tree}/ggml/src", f"-L{library_folder}", *(f"-l{name}" for name in libraries)]
    run(*command, f"-Wl,-rpath,{library_folder}", f"-Wl,-rpath-link,{library_folder}", "-o", output)


def module_for(ggml: PlainGgml, cache_folder: Path) -> Path:
    """The module file built alone for an unpatched ggml."""
    folder = cache_folder / "modules" / ggml.version
    configure(resources.backend(), folder, {"WAVESMITH_GGML_TREE": str(ggml.tree), "WAVESMITH_GGML_LIBRARY": str(ggml.base)})
    compile_target(folder, "ggml-wavesmith")
    return folder / "libggml-wavesmith.so"


def driver_errors(output: str) -> dict[str, float]:
    """The driver's lines "TYPE MxNxK nmse" as {"TYPE MxNxK": nmse}."""
    rows = [line.rsplit(" ", 1) for line in output.splitlines() if ": " not in line]
    return {product: float(error) for product, error in rows}


def read_ledger(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]
