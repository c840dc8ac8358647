"""The tile planner of mmq: which tiles a gfx family can run, what they need, and which rows are compiled.

A type is described by its header in backend/quants/ (definitions.py), a family by families.toml. From both follow a tile's LDS bytes
(the layout of MmqLds in backend/kernels/mmq_tile.h), the registers of a lane and the workgroups that a CU or WGP holds at once.
`table` chooses a row for each width of tile, family and number of parts (sums per step) of the types, and `text` is
backend/plan/mmq_plans.inc, which host and device read.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from .. import resources
from ..errors import BadInput
from . import definitions
from .definitions import Plan, Quant
from .families import Family, by_architecture, families

COMMAND = "wavesmith kernels plan --write"
FILE = "plan/mmq_plans.inc"

# Columns of the tiles that every family gets as far as its matrix step allows, each with the heights to choose from, best first.
# With few columns there are few tiles, and low ones are more of them; with many, a weight is unpacked once for all of a tile's columns.
WIDTHS = {16: (64, 128), 32: (64, 128), 48: (64, 128), 64: (64, 128), 128: (128, 64)}
# A lane's share of the results of a tile: more would leave a SIMD fewer waves than it needs to hide LDS reads.
MOST_ACCUMULATORS = 64
MOST_THREADS = 256
WAVE_COUNTS = (1, 2, 3, 4, 8)
# Registers of a lane for addresses, counters and what the compiler keeps at hand, as compiled kernels show them.
OTHER_REGISTERS = 32
# The estimate must leave this many, since compilers need some more where few are left.
REGISTER_MARGIN = 16
# Families of which the host library has every row; of the others it has the narrowest and the widest, which keeps its build short.
HOST_FAMILIES = ("rdna3",)

# To load and unpack the weights of a tile costs about as much as to multiply them with this many columns (mmq_choice.h has the same).
STAGING_COLUMNS = 16


@dataclass(frozen=True)
class Needs:
    """What a plan needs for one type on one family. LDS in bytes, registers of a lane, workgroups of a CU or WGP."""

    lds: int
    accumulators: int
    registers: int
    by_lds: int
    by_registers: int
    by_waves: int
    waves_per_simd: float

    @property
    def workgroups(self) -> int:
        return min(self.by_lds, self.by_registers, self.by_waves)


def lds_bytes(plan: Plan, quant: Quant, family: Family) -> int:
    """MmqLds::bytes (backend/kernels/mmq_tile.h)."""
    tile_k = definitions.tile_k()
    steps = tile_k // quant.step_values
    row_stride = tile_k + 16
    factor_words = (1 + quant.minimums) * family.step.copies
    factor_words = _round_up(factor_words, 4) if factor_words > 4 else factor_words
    weights = plan.tile_m * (row_stride + 4 * steps * (quant.parts + quant.minimums))
    columns = plan.tile_n * (row_stride + 4 * steps * factor_words)
    return plan.stages * (weights + columns)


def fragments(plan: Plan, family: Family) -> tuple[int, int]:
    """Matrix products of a wave's part of the tile: rows of them, columns of them; 0 where the waves do not cover it exactly."""
    rows, rest_m = divmod(plan.tile_m, plan.waves_m * family.step.m)
    columns, rest_n = divmod(plan.tile_n, plan.waves_n * family.step.n)
    return (0, 0) if rest_m or rest_n else (rows, columns)


def registers(plan: Plan, quant: Quant, family: Family) -> tuple[int, int]:
    """Registers of a lane: those of the accumulators, and an estimate of all."""
    step = family.step
    rows, columns = fragments(plan, family)
    accumulators = rows * columns * step.registers
    sums = step.sums * quant.parts * step.registers
    threads = plan.waves * family.wave_size
    working = sums + step.registers + _held(rows, columns, quant, family) + _staging(plan, quant, threads) + OTHER_REGISTERS
    return accumulators, accumulators + working


def _held(rows: int, columns: int, quant: Quant, family: Family) -> int:
    """Registers of a lane for operands, scales and factors: MmqAccumulators keeps those of one side of a wave's products.

    It is the columns' side where a step has at most one minimum, else the rows' without the minimums, which have a pass of their own.
    """
    step = family.step
    operand = step.operand_words * quant.step_values // 32
    factor = step.columns * step.copies
    if not step.held:
        rows_operands = columns_operands = operand
    elif quant.minimums < 2:
        rows_operands, columns_operands = operand, columns * operand
    else:
        rows_operands, columns_operands = rows * operand, operand
    if quant.minimums < 2:
        scales = (quant.parts + quant.minimums) * step.rows + columns * (1 + quant.minimums) * factor
    else:
        scales = max(rows * quant.parts * step.rows + step.sums * factor, quant.minimums * (step.rows + factor))
    return rows_operands + columns_operands + scales


def _staging(plan: Plan, quant: Quant, threads: int) -> int:
    """Registers of a lane that hold the next tile's bytes on their way from memory to LDS, and their addresses."""
    tile_k = definitions.tile_k()
    weight_words = math.ceil(plan.tile_m * tile_k * quant.bits / 32 / threads)
    column_words = math.ceil(plan.tile_n * tile_k / 16 / threads) * 4
    header_words = math.ceil(plan.tile_n / threads) * (8 if quant.minimums else 4)
    return weight_words + column_words + header_words


def needs(plan: Plan, quant: Quant, family: Family, *, vgprs: int | None = None) -> Needs:
    """What `plan` needs; `vgprs` is what a compiler made of it, in place of the estimate."""
    lds = lds_bytes(plan, quant, family)
    accumulators, estimate = registers(plan, quant, family)
    per_wave = _round_up(vgprs or estimate, family.vgpr_granule)
    waves_by_registers = min(family.waves_per_simd, family.vgprs // per_wave) * family.simds
    by_lds = family.lds_shared // _round_up(lds, family.lds_granule)
    by_registers = waves_by_registers // plan.waves
    by_waves = family.waves_per_simd * family.simds // plan.waves
    resident = min(by_lds, by_registers, by_waves) * plan.waves / family.simds
    return Needs(lds, accumulators, vgprs or estimate, by_lds, by_registers, by_waves, resident)


def _round_up(value: int, granule: int) -> int:
    return -(-value // granule) * granule


def faults(plan: Plan, quants: Iterable[Quant], family: Family) -> list[str]:
    """Why `plan` cannot run the types of its number of parts on its family; empty if it can."""
    if not all(fragments(plan, family)):
        return [f"{plan.waves_m} x {plan.waves_n} waves of {family.step.m} x {family.step.n} products do not cover the tile exactly"]
    found = []
    if plan.waves * family.wave_size > MOST_THREADS:
        found.append(f"{plan.waves * family.wave_size} threads, a workgroup has {MOST_THREADS} at most")
    for quant in quants:
        need = needs(plan, quant, family)
        if need.lds > family.lds_bytes:
            found.append(f"{quant.name}: {need.lds} bytes of LDS, a workgroup has {family.lds_bytes}")
        if need.accumulators > MOST_ACCUMULATORS or need.registers + REGISTER_MARGIN > family.vgprs_per_wave:
            found.append(f"{quant.name}: {need.accumulators} accumulators, {need.registers} registers in all")
    return found


def legal(family: Family, parts: int, width: int, quants: list[Quant]) -> Iterator[Plan]:
    """Every plan for tiles of `width` columns that runs all types with `parts` sums per step."""
    for height, waves_m, waves_n, stages in itertools.product(WIDTHS[width], WAVE_COUNTS, WAVE_COUNTS, (1, 2)):
        plan = Plan(family.architecture, parts, height, width, waves_m, waves_n, stages, host=False)
        if not faults(plan, quants, family):
            yield plan


def _preference(plan: Plan, family: Family, quants: list[Quant]) -> tuple:
    """Plans compare by: a wave for every SIMD, the width's best height where tiles are wide, two stages, the best height, waves, LDS reads."""
    all_needs = [needs(plan, quant, family) for quant in quants]
    busy = min(need.waves_per_simd for need in all_needs) >= 1
    heights = WIDTHS[plan.tile_n]
    height = -heights.index(plan.tile_m)
    wide = heights[0] > heights[-1]
    order = (height, plan.stages) if wide else (plan.stages, height)
    return (busy, *order, min(plan.waves, family.simds), -plan.waves, -sum(_lds_words(plan, quant, family) for quant in quants), plan.waves_m)


def _lds_words(plan: Plan, quant: Quant, family: Family) -> float:
    """Words that a lane reads from LDS per matrix product of 32 values of K."""
    step = family.step
    rows, columns = fragments(plan, family)
    operands = (rows + columns if step.held else 2 * rows * columns) * step.operand_words
    factor = step.columns * step.copies
    once = quant.minimums if quant.minimums < 2 else 0  # minimums that are read with the scales
    scales = rows * (quant.parts + once) * step.rows + columns * (1 + once) * factor
    if quant.minimums > once:
        scales += rows * quant.minimums * (step.rows + columns * factor)
    return (operands + scales * 32 / quant.step_values) / (rows * columns)


def choose(family: Family, parts: int, quants: list[Quant]) -> list[Plan]:
    """The rows of a family and number of parts, narrow ones first."""
    rows = []
    for width in WIDTHS:
        plans = list(legal(family, parts, width, quants))
        if plans:
            rows.append(max(plans, key=lambda plan: _preference(plan, family, quants)))
    ends = rows if family.name in HOST_FAMILIES else [*rows[:1], *rows[-1:]]
    return [replace(row, host=row in ends) for row in rows]


@functools.cache
def by_parts() -> dict[int, list[Quant]]:
    """The types by their number of parts."""
    found: dict[int, list[Quant]] = {}
    for quant in sorted(definitions.quants(), key=lambda quant: quant.parts):
        found.setdefault(quant.parts, []).append(quant)
    return found


@functools.cache
def _table() -> tuple[Plan, ...]:
    return tuple(row for family in families().values() for parts, quants in by_parts().items() for row in choose(family, parts, quants))


def table() -> list[Plan]:
    """Every row, by family, parts and width."""
    return list(_table())


def table_of(family: Family, parts: int) -> list[Plan]:
    """The rows of one family and number of parts."""
    return [row for row in _table() if (row.architecture, row.parts) == (family.architecture, parts)]


def cost(plan: Plan, m: int, n: int) -> float:
    """The rule of mmq_choice.h: rows times columns that the tiles compute, the staging of weights counted as columns."""
    rows, tiles = -(-m // plan.tile_m) * plan.tile_m, -(-n // plan.tile_n)
    return float(rows) * (float(tiles) * float(plan.tile_n + STAGING_COLUMNS))


def chosen(rows: list[Plan], m: int, n: int) -> Plan:
    """The row that choose_mmq (backend/plan/mmq_choice.h) takes of `rows`, all of one family and number of parts."""
    return min(rows, key=lambda plan: (cost(plan, m, n), -plan.tile_m * plan.tile_n))


def problems(rows: list[Plan]) -> list[str]:
    """What is wrong with a table: rows that do not fit or can never be chosen, rows that are missing."""
    found = []
    for family, (parts, quants) in itertools.product(families().values(), by_parts().items()):
        here = [row for row in rows if row.architecture == family.architecture and row.parts == parts]
        name = f"{family.name}, {parts} part{'s' * (parts > 1)}"
        found += [f"{name}, {row.name}: {fault}" for row in here for fault in faults(row, quants, family)]
        found += [f"{name}: no row of {width} columns" for width in sorted(_required(family, parts) - {row.tile_n for row in here})]
        for kind, among in (("", here), ("the host's ", [row for row in here if row.host])):
            taken = {chosen(among, m, n) for m in {row.tile_m for row in among} for n in range(1, 1 + 4 * max(WIDTHS))} if among else set()
            found += [f"{name}: {kind}{row.name} is never chosen" for row in among if row not in taken]
        if here and not any(row.host for row in here):
            found.append(f"{name}: no row for the host")
    known = {(family.architecture, parts) for family in families().values() for parts in by_parts()}
    found += [f"{row.architecture}, {row.parts} parts: no such family or type" for row in rows if (row.architecture, row.parts) not in known]
    return found


@functools.cache
def _required(family: Family, parts: int) -> set[int]:
    return {width for width in WIDTHS if any(legal(family, parts, width, by_parts()[parts]))}


HEADER = f"""\
// Tile plans of mmq: MMQ_PLAN(architecture, parts, tile_m, tile_n, waves_m, waves_n, stages, host).
// Written by `{COMMAND}` (tools/wavesmith/kernels/planner.py says how rows are chosen); do not edit.
//
// tile_m x tile_n is the output tile of a block (weight rows x columns), waves_m x waves_n how its waves share it, stages how
// many tiles of K lie in LDS at once. `parts` are the sums per step of the types that the row is for (quants/). Rows with `host`
// are in the host library; a GPU gets every row.
"""


def text(rows: list[Plan]) -> str:
    """The rows as mmq_plans.inc."""
    width = max(len(row.architecture) for row in rows) + 1
    lines = [
        f"MMQ_PLAN({row.architecture + ',':{width}} {row.parts}, {row.tile_m:3}, {row.tile_n:3}, {row.waves_m}, {row.waves_n}, {row.stages}, {int(row.host)})"
        for row in rows
    ]
    return HEADER + "\n".join(lines) + "\n"


def is_current(rows: list[Plan]) -> bool:
    """Whether mmq_plans.inc is what `text` gives."""
    try:
        return (resources.backend() / FILE).read_text(encoding="utf-8") == text(rows)
    except OSError:
        return False


def write(rows: list[Plan]) -> None:
    """Replaces mmq_plans.inc; BadInput where it cannot be written."""
    path = resources.backend() / FILE
    partial = path.with_suffix(".inc.part")
    try:
        partial.write_text(text(rows), encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from None


def worst_needs(plan: Plan) -> Needs:
    """What `plan` needs for the type that needs most LDS."""
    family = by_architecture(plan.architecture)
    return max((needs(plan, quant, family) for quant in by_parts()[plan.parts]), key=lambda need: (need.lds, need.registers))
