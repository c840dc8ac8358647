"""What a build needs before it starts: compilers that work, cmake and ninja, disk space. Missing things are CannotBuild, with the command that helps."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from . import settings
from .errors import CannotBuild

NEEDED_BYTES = 1_500_000_000

_INSTALL = (  # package manager -> command that brings a C and C++ compiler
    ("apt-get", "sudo apt-get install -y g++"),
    ("dnf", "sudo dnf install -y gcc-c++"),
    ("pacman", "sudo pacman -S --needed gcc"),
    ("zypper", "sudo zypper install -y gcc-c++"),
    ("apk", "sudo apk add g++ linux-headers"),
)

_PROBE = """
#include <charconv>
#include <string_view>
#include <thread>
int main() { std::string_view text = "17"; int value = 0; std::from_chars(text.begin(), text.end(), value); std::thread([]{}).join(); return value - 17; }
"""


@dataclass(frozen=True)
class Compiler:
    """A compiler by absolute path, with the first line of its `--version`."""

    path: str
    version: str


@functools.cache
def compilers() -> tuple[Compiler, Compiler]:
    """The C and the C++ compiler: $CC and $CXX when set, else the first pair of gcc, clang, cc that is there."""
    chosen = settings.get("CC"), settings.get("CXX")
    pairs = [("gcc", "g++"), ("clang", "clang++"), ("cc", "c++")]
    if any(chosen):
        c, cxx = chosen
        pairs = [(c or _partner(cxx, to_cxx=False), cxx or _partner(c, to_cxx=True))]
    for c, cxx in pairs:
        c_path, cxx_path = shutil.which(c), shutil.which(cxx)
        if c_path and cxx_path:
            return Compiler(c_path, _version(c_path)), Compiler(cxx_path, _version(cxx_path))
    missing = " or ".join(cxx for _, cxx in pairs)
    raise CannotBuild(f"no C++ compiler ({missing}) found; install one with: {install_command()}")


def install_command() -> str:
    """The command that installs a C++ compiler with this machine's package manager."""
    for manager, command in _INSTALL:
        if shutil.which(manager):
            return command
    return "; ".join(command for _, command in _INSTALL[:3])


def check_compiler(cxx: Compiler) -> None:
    """Compile and link a small C++17 program; CannotBuild with the compiler's own first line when that fails."""
    with tempfile.TemporaryDirectory(prefix="wavesmith-") as folder:
        source = Path(folder) / "probe.cpp"
        source.write_text(_PROBE)
        command = [cxx.path, "-std=c++17", "-pthread", str(source), "-o", str(source.with_suffix(""))]
        result = subprocess.run(command, check=False, capture_output=True, text=True, errors="replace")
    if result.returncode != 0:
        reason = next((line for line in result.stderr.splitlines() if "error" in line), result.stderr.strip() or "no output")
        raise CannotBuild(f"{cxx.path} cannot build a C++17 program: {reason}; a complete compiler comes with: {install_command()}")


def check_disk(folder: Path, needed: int = NEEDED_BYTES) -> None:
    """CannotBuild unless the file system of `folder` (or of its nearest existing parent) has `needed` bytes free."""
    place = folder
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    if free < needed:
        raise CannotBuild(f"a build needs {needed / 1e9:.1f} GB of free disk space in {place}; there is {free / 1e9:.1f} GB")


def program(name: str) -> str:
    """Path of `cmake` or `ninja`: the one that pip installed beside this Python, else the one on PATH."""
    for candidate in _pip_programs(name):
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return str(candidate)
    found = shutil.which(name)
    if not found:
        raise CannotBuild(f"no {name} found; install it with: {sys.executable} -m pip install {name}")
    return found


def _pip_programs(name: str) -> list[Path]:
    import importlib
    import sysconfig

    try:
        module = importlib.import_module(name)
    except ImportError:
        return []
    folder = getattr(module, "CMAKE_BIN_DIR", None) or getattr(module, "BIN_DIR", None)
    folders = [folder] if folder else []
    return [Path(place) / name for place in (*folders, sysconfig.get_path("scripts"))]


def ccache() -> str | None:
    """Path of ccache, or None; it is used when present and never needed."""
    return shutil.which("ccache")


def usable_cpus() -> int:
    """CPUs that this process may use (its affinity, not the machine's count)."""
    return len(os.sched_getaffinity(0))


def _partner(compiler: str, *, to_cxx: bool) -> str:
    """`g++-13` for `gcc-13` and back; `clang` likewise."""
    folder, name = os.path.split(compiler)
    for c, cxx in (("gcc", "g++"), ("clang", "clang++")):
        old, new = (c, cxx) if to_cxx else (cxx, c)
        if name == old or name.startswith(f"{old}-"):
            return os.path.join(folder, new + name[len(old) :])
    return "c++" if to_cxx else "cc"


def _version(path: str) -> str:
    result = subprocess.run([path, "--version"], check=False, capture_output=True, text=True, errors="replace")
    lines = result.stdout.splitlines()
    if result.returncode != 0 or not lines:
        raise CannotBuild(f"{path} --version failed; install a working compiler with: {install_command()}")
    return lines[0].strip()
