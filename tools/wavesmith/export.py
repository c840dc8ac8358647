"""Copies a build's programs and libraries into a folder that works without wavesmith, wherever it is put."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from . import export_texts, resources
from .build_plan import MANIFEST
from .built import Build
from .errors import BadInput, BuildFailed, CannotRun


@dataclass(frozen=True)
class Linked:
    """What the dynamic loader finds for a program: `ours` by name, names of `system` libraries, names that it does not find."""

    ours: dict[str, Path]
    system: tuple[str, ...]
    missing: tuple[str, ...]


def export(build: Build, destination: Path) -> list[str]:
    """Make the folder `destination`, which must be new or empty; return the names of its programs.

    It is whole or absent. BadInput for a folder that cannot be used, BuildFailed where the programs would still use the build's folder.
    """
    destination = destination.absolute()
    _check_destination(build, destination)
    partial = destination.with_name(f".{destination.name}.partial")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        (partial / "bin").mkdir(parents=True)
        system = _copy_programs(build, partial / "bin")
        _check_self_contained(build, partial / "bin")
        _write_texts(build, partial, system)
        if destination.is_dir():
            destination.rmdir()
        partial.rename(destination)
    except PermissionError as error:
        raise BadInput(f"cannot write {destination}: {error.strerror}") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return sorted(build.programs)


def linked(program: Path, root: Path) -> Linked:
    """Asks the dynamic loader, without running the program. Libraries below `root` are ours."""
    variables = {"LD_TRACE_LOADED_OBJECTS": "1", "PATH": os.defpath}
    try:
        result = subprocess.run([program], env=variables, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise CannotRun(f"cannot ask the dynamic loader about {program}: {error.strerror}") from None
    ours, system, missing = {}, [], []
    for name, path in re.findall(r"^\s*(\S+) => (not found|\S.*?)(?: \(0x[0-9a-f]+\))?$", result.stdout, re.MULTILINE):
        if path == "not found":
            missing.append(name)
        elif Path(path).resolve().is_relative_to(root.resolve()):
            ours[name] = Path(path)
        else:
            system.append(name)
    return Linked(ours, tuple(sorted(set(system))), tuple(missing))


def _check_destination(build: Build, destination: Path) -> None:
    if destination.exists() and not destination.is_dir():
        raise BadInput(f"{destination} is not a folder")
    if destination.is_dir() and any(destination.iterdir()):
        raise BadInput(f"{destination} is not empty")
    if not destination.parent.is_dir():
        raise BadInput(f"{destination.parent} is not a folder")
    if destination.resolve().is_relative_to(build.prefix.resolve()):
        raise BadInput(f"{destination} lies in the build itself")


def _copy_programs(build: Build, folder: Path) -> list[str]:
    """Programs and their libraries, side by side; returns the names of the system's libraries that they need."""
    system: set[str] = set()
    for name, path in build.programs.items():
        found = linked(path, build.prefix)
        if any(name.startswith(("libggml", "libllama")) for name in found.missing):
            raise BuildFailed(f"{path} does not find {', '.join(found.missing)} in its own build")
        system |= {*found.system, *found.missing}
        shutil.copy2(path, folder / name)
        for library, source in found.ours.items():
            if not (folder / library).exists():
                shutil.copy2(source, folder / library)
    return sorted(system)


def _check_self_contained(build: Build, folder: Path) -> None:
    for name in build.programs:
        found = linked(folder / name, folder)
        lost = [library for library in linked(build.programs[name], build.prefix).ours if library not in found.ours]
        if lost:
            raise BuildFailed(f"{name} would not take {', '.join(lost)} from its own folder: its run path is not relative")


def _write_texts(build: Build, folder: Path, system: list[str]) -> None:
    manifest = json.loads((build.prefix / MANIFEST).read_text(encoding="utf-8"))
    (folder / "README.md").write_text(export_texts.readme(build, manifest, system), encoding="utf-8")
    (folder / "env.sh").write_text(export_texts.environment_script(manifest.get("environment", {}).get("ROCM_PATH", "")), encoding="utf-8")
    (folder / "run.sh").write_text(export_texts.RUN_SCRIPT, encoding="utf-8")
    (folder / "run.sh").chmod(0o755)
    for source, name in ((build.prefix / "src" / "LICENSE", "LICENSE.llama.cpp"), (resources.data_root() / "LICENSE", "LICENSE.wavesmith")):
        if source.is_file():
            shutil.copyfile(source, folder / name)
