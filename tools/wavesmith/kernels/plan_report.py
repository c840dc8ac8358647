"""The planner's table for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import planner
from .families import by_architecture

if TYPE_CHECKING:
    from rich.table import Table

    from .definitions import Plan


def table(rows: list[Plan]) -> Table:
    """One line per row: what its type of most LDS needs, and how many workgroups a CU or WGP holds."""
    import rich.box
    from rich.table import Table

    shown = Table(box=rich.box.SIMPLE_HEAD)
    for name in ("family", "parts", "tile", "waves", "stages", "host"):
        shown.add_column(name)
    for name in ("LDS bytes", "of", "accumulators", "registers", "workgroups", "waves/SIMD"):
        shown.add_column(name, justify="right")
    for row in rows:
        shown.add_row(*_cells(row))
    return shown


def _cells(row: Plan) -> list[str]:
    family, need = by_architecture(row.architecture), planner.worst_needs(row)
    plan = [family.name, str(row.parts), row.name, f"{row.waves_m}x{row.waves_n}", str(row.stages), "yes" if row.host else ""]
    limits = f"{need.workgroups} per {family.unit}"
    return [*plan, str(need.lds), str(family.lds_bytes), str(need.accumulators), f"~{need.registers}", limits, f"{need.waves_per_simd:.2g}"]
