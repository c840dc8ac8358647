"""Runs a program of a build in place of wavesmith itself, so that signals and the exit status are the program's own."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from . import extra_programs
from .built import Build
from .errors import BadInput, CannotRun
from .progress import Steps


def program(build: Build, name: str, steps: Steps) -> Path:
    """Path of a program of the build by name; one of extra_programs.OPTIONS is built when it is not there. BadInput for others."""
    path = build.bin_dir / name
    if os.sep not in name and path.is_file() and os.access(path, os.X_OK) and ".so" not in name:
        return path
    if name in extra_programs.OPTIONS:
        return extra_programs.ensure(build, name, steps)
    import difflib

    there = sorted({*build.programs, *extra_programs.OPTIONS})
    close = difflib.get_close_matches(name, there, n=2)
    raise BadInput(f"{build.prefix.name} has no program {name}; {'did you mean ' + ' or '.join(close) + '?' if close else 'it has ' + ', '.join(there)}")


def environment(build: Build) -> dict[str, str]:
    """The user's environment with the build's own libraries in front and those of its ROCm behind everything else."""
    variables = dict(os.environ)
    present = [folder for folder in variables.get("LD_LIBRARY_PATH", "").split(os.pathsep) if folder]
    variables["LD_LIBRARY_PATH"] = os.pathsep.join(dict.fromkeys([str(build.lib_dir), *present, *build.rocm_libraries]))
    return variables


def replace_process(path: Path, arguments: Sequence[str], variables: Mapping[str, str]) -> NoReturn:
    """Become the program; returns only by CannotRun."""
    sys.stdout.flush()
    sys.stderr.flush()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and a program started by exec would inherit that
    try:
        os.execve(path, [str(path), *arguments], dict(variables))
    except OSError as error:
        raise CannotRun(f"cannot start {path}: {error.strerror}") from None
