"""Host compilers and build tools: what a build for any target, `host` included, needs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from . import packages
from .findings import CANNOT_BUILD, Finding, Fix, commands
from .probe import Probe

OLDEST = {"g++": (9,), "clang++": (10,), "cmake": (3, 21), "ninja": (1, 10)}  # C++17 with <filesystem>; CMake's HIP language
_HOST = ("c++", "g++", "clang++")
_TOOLS = ("cmake", "ninja")


@dataclass(frozen=True)
class Program:
    """A compiler or tool. `kind` is "g++", "clang++" or the tool's name; `version` is None where it says none."""

    name: str
    path: str
    kind: str
    version: str | None

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(int(part) for part in re.findall(r"\d+", self.version or "")[:3])

    @property
    def too_old(self) -> bool:
        return bool(self.numbers) and self.numbers < OLDEST.get(self.kind, (0,))


def start(probe: Probe, extra: tuple[str, ...] = ()) -> None:
    """Starts the version queries of all programs, so that they run side by side."""
    for name in (*_names(probe), *_TOOLS):
        path = probe.which(name)
        if path:
            probe.start(path, "--version")
    for path in extra:
        probe.start(path, "--version")


def _names(probe: Probe) -> list[str]:
    """Host compilers by name, $CXX first as CMake does."""
    chosen = (probe.environ("CXX") or "").split()
    return list(dict.fromkeys([*chosen[:1], *_HOST]))


def query(probe: Probe, name: str, path: str) -> Program | None:
    """Runs `path --version`; None where it does not run or fails."""
    run = probe.run(path, "--version")
    if run is None or run.returncode != 0:
        return None
    return Program(name, path, kind(name, run.stdout), version(run.stdout))


def kind(name: str, text: str) -> str:
    if name in _TOOLS:
        return name
    return "clang++" if "clang" in text.lower() else "g++" if re.search(r"\bg\+\+|\bgcc\b|Free Software Foundation", text) else name


def version(text: str) -> str | None:
    """Version in the first line that has one: the last number with dots of "g++ (Debian 12.2.0-14) 12.2.0", but what
    follows the word "version" where that is said."""
    for line in text.splitlines()[:5]:
        told = re.search(r"version\s+(\d{1,6}(?:\.\d{1,6})+)", line)
        numbers = [told[1]] if told else re.findall(r"(?<![\w.])\d{1,6}(?:\.\d{1,6}){1,3}", line[:400])
        if numbers:
            return numbers[-1]
    return None


def find(probe: Probe) -> tuple[list[Program], list[Program]]:
    """(host compilers that run, tools that run)."""

    def programs(names) -> list[Program]:
        paths = [(name, probe.which(name)) for name in names]
        return [program for name, path in paths if path and (program := query(probe, name, path))]

    return programs(_names(probe)), programs(_TOOLS)


def check(probe: Probe, host: list[Program], tools: list[Program]) -> list[Finding]:
    findings = []
    recent = [program for program in host if not program.too_old]
    fix = commands(packages.install(probe, "compiler"))
    if not host:
        findings.append(Finding("compiler-missing", CANNOT_BUILD, "no C++ compiler found (c++, g++, clang++)", "every build needs one, also for host", fix))
    elif not recent:
        told = ", ".join(f"{program.path} {program.version}" for program in host)
        findings.append(Finding("compiler-too-old", CANNOT_BUILD, f"C++ compiler too old: {told}", "C++17 needs g++ 9 or clang++ 10, or newer", fix))
    for name in _TOOLS:
        program = next((program for program in tools if program.name == name), None)
        if program is None or program.too_old:
            oldest = ".".join(str(part) for part in OLDEST[name])
            what = f"{name} not found" if program is None else f"{program.path} is {name} {program.version}, older than {oldest}"
            findings.append(Finding(f"{name}-missing", CANNOT_BUILD, what, f"builds are made with {name} {oldest} or newer", (_pip_fix(probe, name),)))
    return findings


def _pip_fix(probe: Probe, name: str) -> Fix:
    """Safe inside a virtual environment only: elsewhere pip would write into the user's or the system's Python."""
    safe = probe.fact("virtual environment") is True
    return Fix(f"python3 -m pip install {name}", ("{python}", "-m", "pip", "install", name) if safe else ())
