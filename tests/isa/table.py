"""python -m tests.isa.table: writes the support table of docs/support.md from the sources and the recorded evidence."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from wavesmith.targets import KERNEL_TARGETS

from . import evidence
from .emulator import TARGETS
from .evidence import State, kernels_of

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "support.md"
BEGIN, END = "<!-- support table: begin -->", "<!-- support table: end -->"


def table() -> str:
    """Markdown: a row per operation and type, a column per target."""
    states: dict[tuple[str, str, str], list[State]] = {}
    for state in evidence.states(evidence.read()):
        states.setdefault((state.kernel.operation, state.kernel.type, state.target), []).append(state)
    rows = list(dict.fromkeys((kernel.operation, kernel.type) for target in KERNEL_TARGETS for _, kernel in kernels_of(target)))
    lines = ["| operation | type | " + " | ".join(KERNEL_TARGETS) + " |", "|---" * (len(KERNEL_TARGETS) + 2) + "|"]
    for operation, kind in rows:
        cells = [_cell(target, operation, kind, states.get((operation, kind, target), [])) for target in KERNEL_TARGETS]
        lines.append(f"| {operation} | {kind} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(target: str, operation: str, kind: str, states: list[State]) -> str:
    if not any((kernel.operation, kernel.type) == (operation, kind) for _, kernel in kernels_of(target)):
        return ""
    if target not in TARGETS:
        return "host, compiled"
    counts = Counter(state.state for state in states)
    if counts["fresh"] == len(states):
        return "host, compiled, isa"
    if counts["failed"]:
        return f"host, compiled, isa failed for {counts['failed']} of {len(states)}"
    if counts["fresh"]:
        return f"host, compiled, isa for {counts['fresh']} of {len(states)} plans"
    return "host, compiled, isa stale" if counts["stale"] else "host, compiled"


def page() -> str:
    """The page as it must be now."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
