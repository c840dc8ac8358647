"""The recorded evidence: what was run, on which sources, with what result. One line per kernel, so that changes read well."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

from wavesmith.errors import BadInput
from wavesmith.kernels.device_source import Kernel, Unit, units
from wavesmith.targets import ARCHITECTURES

from . import sources
from .emulator import DESCRIPTION, TARGETS

SCHEMA = 1
FOLDER = Path(__file__).resolve().parent.parent / "evidence"
FILE = FOLDER / "isa.json"


@dataclass
class Entry:
    """Evidence for one kernel on one target. `result` is "pass" or why not; `instructions` by class, of the full tile in order."""

    target: str
    symbol: str
    op: str
    type: str
    sources: str
    code: str
    compiler: str
    cases: list[str]
    result: str
    nmse: float
    instructions: dict[str, int] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return self.result == "pass"


_KINDS = {"target": str, "symbol": str, "op": str, "type": str, "sources": str, "code": str, "compiler": str, "cases": list, "result": str,
          "nmse": (int, float), "instructions": dict}  # fmt: skip


def read(file: Path = FILE) -> dict[tuple[str, str], Entry]:
    """By (target, symbol). BadInput when the file is malformed or claims a pass without cases; no file is no evidence."""
    if not file.is_file():
        return {}
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadInput(f"{file.name}: not JSON ({error})") from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA or not isinstance(data.get("kernels"), list):
        raise BadInput(f"{file.name}: not evidence of schema {SCHEMA}")
    entries: dict[tuple[str, str], Entry] = {}
    for number, row in enumerate(data["kernels"]):
        entry = _entry(f"{file.name}: kernel {number}", row)
        if (entry.target, entry.symbol) in entries:
            raise BadInput(f"{file.name}: {entry.symbol} of {entry.target} is there twice")
        entries[entry.target, entry.symbol] = entry
    return entries


def _entry(where: str, row: object) -> Entry:
    if not isinstance(row, dict) or row.keys() != _KINDS.keys():
        raise BadInput(f"{where}: not the fields {', '.join(_KINDS)}")
    wrong = [name for name, kind in _KINDS.items() if not isinstance(row[name], kind)]
    if wrong:
        raise BadInput(f"{where}: '{wrong[0]}' is of the wrong kind")
    entry = Entry(**row)
    if entry.passed and not (entry.cases and all(isinstance(case, str) and case for case in entry.cases) and entry.instructions):
        raise BadInput(f"{where}: {entry.symbol} of {entry.target} passes without cases")
    if not entry.result or len(entry.sources) != 64 or entry.target not in TARGETS:
        raise BadInput(f"{where}: no result, no hash of the sources, or a target that the emulator has not")
    return entry


def write(entries: dict[tuple[str, str], Entry], file: Path = FILE) -> None:
    """Atomically, in order of target and symbol."""
    rows = ",\n".join(json.dumps(asdict(entry)) for _, entry in sorted(entries.items()))
    partial = file.with_suffix(".json.part")
    partial.write_text(f'{{"schema": {SCHEMA}, "by": {json.dumps(DESCRIPTION)}, "kernels": [\n{rows}\n]}}\n', encoding="utf-8")
    partial.replace(file)


def family_of(target: str) -> str:
    return ARCHITECTURES[target].family or ""


def kernels_of(target: str) -> Iterator[tuple[Unit, Kernel]]:
    """Every kernel that the checkout defines for a target."""
    for unit in _units(family_of(target)):
        for kernel in unit.kernels:
            yield unit, kernel


@cache
def _units(family: str) -> list[Unit]:
    return units(family)


@dataclass(frozen=True)
class State:
    """Of one kernel in the checkout: "fresh", "failed", "stale" (the sources have changed since) or "missing"."""

    target: str
    kernel: Kernel
    state: str


def states(entries: dict[tuple[str, str], Entry], targets: tuple[str, ...] = TARGETS) -> list[State]:
    """Of every kernel of the checkout, on every target that the emulator has."""
    return [State(target, kernel, _state(entries.get((target, kernel.symbol)), unit, kernel)) for target in targets for unit, kernel in kernels_of(target)]


def _state(entry: Entry | None, unit: Unit, kernel: Kernel) -> str:
    if entry is None:
        return "missing"
    if entry.sources != sources.source_hash(unit, kernel):
        return "stale"
    return "fresh" if entry.passed else "failed"
