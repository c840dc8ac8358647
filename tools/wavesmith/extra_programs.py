"""Programs that not everybody needs, added to a finished build when they are first asked for."""

from __future__ import annotations

import json
import re
from pathlib import Path

from . import build_checks, build_environment, build_lock, cmake_file_api, known_failures, process
from .build_plan import MANIFEST
from .built import Build
from .errors import BuildFailed, CannotBuild
from .progress import Steps

# Program -> CMake options that bring it.
OPTIONS = {"llama-server": {"LLAMA_BUILD_SERVER": "ON"}, "llama-cli": {"LLAMA_BUILD_SERVER": "ON"}}


def ensure(build: Build, name: str, steps: Steps, jobs: int | None = None) -> Path:
    """Path of the program, compiled in the build's own tree when it is not there. What is there stays as it is.

    CannotBuild where the tree is gone or was moved, BuildFailed where CMake or the compiler fails.
    """
    with build_lock.held(build.prefix, steps):
        known = _manifest(build)["programs"].get(name)
        if known and (build.prefix / known).is_file():
            return build.prefix / known
        _check_place(build, name)
        path = _compile(build, name, jobs or build_checks.usable_cpus(), steps)
        _record(build, name, path)
    return path


def _manifest(build: Build) -> dict:
    return json.loads((build.prefix / MANIFEST).read_text(encoding="utf-8"))


def _check_place(build: Build, name: str) -> None:
    """CMake's tree names its folders, so nothing can be added to it elsewhere."""
    try:
        cache = (build.prefix / "build" / "CMakeCache.txt").read_text(encoding="utf-8", errors="replace")
    except OSError:
        raise CannotBuild(f"{name} cannot be added to {build.prefix}: it has no CMake tree; make a new build with: wavesmith build") from None
    folder = re.search(r"^CMAKE_CACHEFILE_DIR:INTERNAL=(.*)$", cache, re.MULTILINE)
    if not folder or Path(folder[1]).resolve() != (build.prefix / "build").resolve():
        raise CannotBuild(f"{name} cannot be added to {build.prefix}: the build was moved; make a new one with: wavesmith build")


def _compile(build: Build, name: str, jobs: int, steps: Steps) -> Path:
    tree = build.prefix / "build"
    manifest = _manifest(build)
    environment = build_environment.variables(build.prefix, manifest.get("environment", {}))
    explain = lambda output: known_failures.explain(output, jobs=jobs, root=manifest.get("environment", {}).get("ROCM_PATH", ""))
    definitions = [f"-D{option}={value}" for option, value in OPTIONS[name].items()]
    with steps.step(f"configure {name}") as step:
        command = [build_checks.program("cmake"), "-S", build.prefix / "src", "-B", tree, *definitions]
        process.run(command, step.log, environment=environment, what="cmake", explain=explain)
    with steps.step(f"compile {name}") as step:
        command = [build_checks.program("ninja"), "-C", tree, f"-j{jobs}", name]
        process.run(command, step.log, environment=environment, on_progress=step.update, what="the build", explain=explain)
    path = cmake_file_api.read(tree).artifact(name)
    if not path.is_file():
        raise BuildFailed(f"{name} was not built: {path} is missing")
    return path


def _record(build: Build, name: str, path: Path) -> None:
    from .build import write_json

    manifest = _manifest(build)
    manifest["programs"][name] = str(path.relative_to(build.prefix))
    write_json(build.prefix / MANIFEST, manifest)
