"""What a failed build's output means: `known-failures.toml`, a table of patterns with cause and fix."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path

from . import errors, toml
from .errors import WavesmithError


@dataclass(frozen=True)
class KnownFailure:
    name: str
    pattern: str
    error: type[WavesmithError]
    cause: str
    fix: str
    unless_root: str = ""


@dataclass(frozen=True)
class Explanation:
    """`error` is the class to raise; `text` the cause and the fix in one line; `line` the line of the output that tells it."""

    name: str
    error: type[WavesmithError]
    text: str
    line: str


@functools.cache
def load() -> tuple[KnownFailure, ...]:
    rows = toml.loads(Path(__file__).with_name("known-failures.toml").read_text(encoding="utf-8"))["failure"]
    return tuple(KnownFailure(**{**row, "error": getattr(errors, row["error"])}) for row in rows)


def explain(output: str, *, jobs: int = 1, root: str = "") -> Explanation | None:
    """The first known failure of the table whose pattern is in the output of a failed build; None where none is.

    jobs: compilers that ran at once. root: the ROCm root of the build, "" where it has none.
    """
    for row in load():
        found = None if _excluded(row, root) else re.search(row.pattern, output, re.MULTILINE)
        if found:
            line = output[output.rfind("\n", 0, found.start()) + 1 :].partition("\n")[0].strip()
            return Explanation(row.name, row.error, _fill_in(f"{row.cause}; to mend it: {row.fix}", jobs, root), line)
    return None


def _excluded(row: KnownFailure, root: str) -> bool:
    return bool(row.unless_root) and row.unless_root == root


def _fill_in(text: str, jobs: int, root: str) -> str:
    text = text.replace("{fewer_jobs}", str(max(1, jobs // 2))).replace("{root}", root or "the ROCm root")
    return re.sub(r"\{install_(\w+)\}", lambda found: _install(found[1], root), text)


def _install(need: str, root: str) -> str:
    """The command of this machine's package manager; of AMD's own packages where the root is one of theirs."""
    from .doctor import packages
    from .doctor.probe import SystemProbe

    probe = SystemProbe()
    try:
        layout = "opt" if root.startswith("/opt/rocm") else "pip" if "_rocm_sdk_" in root else "distribution"
        return packages.install(probe, need, layout=layout) or packages.PIP_SDK
    finally:
        probe.close()
