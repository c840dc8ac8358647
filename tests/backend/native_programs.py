"""Builds the small C++ programs beside this file with the machine's C++ compiler, through ccache where it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

TESTS = Path(__file__).resolve().parent
BACKEND = TESTS.parent.parent / "backend"

# As the host kernels are built, but with less optimising: compiling takes longer than running here.
FLAGS = ("-std=c++17", "-O1", "-ffp-contract=off", "-fno-math-errno", "-pthread", "-Wall", "-Wextra", "-I", str(BACKEND))


def compiler() -> str | None:
    """$CXX, g++ or clang++; None if there is none."""
    for name in (os.environ.get("CXX"), "g++", "clang++"):
        if name and shutil.which(name):
            return name
    return None


def build_program(source: str, folder: Path, *flags: str) -> Path:
    """Compiles tests/backend/`source` and the host platform into `folder` and returns the program. AssertionError with the compiler's words."""
    folder.mkdir(parents=True, exist_ok=True)
    launcher = ["ccache"] if shutil.which("ccache") else []
    objects = []
    for path in (TESTS / source, *sorted((BACKEND / "platform" / "host").glob("*.cpp"))):
        objects.append(str(folder / f"{path.stem}.o"))
        _run([*launcher, compiler(), *FLAGS, *flags, "-c", str(path), "-o", objects[-1]])
    program = folder / Path(source).stem
    _run([compiler(), "-pthread", *objects, "-o", str(program)])
    return program


def _run(command: list[str]) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, " ".join(command) + "\n" + done.stderr


def run_program(program: Path, *arguments: str, environment: dict[str, str] | None = None, timeout: float = 120) -> list[str]:
    """The lines the program prints. AssertionError if it fails; the platform's own environment variables are only those given."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("WAVESMITH_HOST_")}
    done = subprocess.run([program, *arguments], check=False, capture_output=True, text=True, timeout=timeout, env=clean | (environment or {}))
    assert done.returncode == 0, f"{program.name} {' '.join(arguments)}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout.splitlines()
