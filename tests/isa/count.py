"""python -m tests.isa.count: counts the instructions of the tiles of mmq on the emulator; writes tests/evidence/counts.json and docs/counts.md."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import click
from wavesmith.errors import BadInput, CheckFailed, WavesmithError
from wavesmith.kernels import compile as kernels_compile
from wavesmith.kernels import definitions, manifest
from wavesmith.kernels.device_source import Kernel, Unit
from wavesmith.targets import resolve

from . import cases, emulator, evidence, figures, record, sources
from .emulator import CodeObject, EmulationFailed, Outcome
from .problems import Mismatch

FILE = evidence.FOLDER / "counts.json"
STOCK = evidence.FOLDER / "stock-counts.json"
PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "counts.md"
BEGIN, END = "<!-- counts: begin -->", "<!-- counts: end -->"
MAIN_TYPES, MAIN_TARGETS = ("q4_K", "q2_K", "q6_K", "q8_0"), ("gfx1100", "gfx1151", "gfx1201", "gfx942")
OTHER_TARGETS = ("gfx1100", "gfx942")


@click.command()
@click.option("--target", "targets", multiple=True, type=click.Choice(MAIN_TARGETS), help="only this target; again for more")
@click.option("--type", "types", multiple=True, help="only this type, such as q4_K; again for more")
@click.option("--max-seconds", type=float, default=float("inf"), help="start no type after this time")
@click.option("--table", "table_only", is_flag=True, help="only write docs/counts.md again")
def command(targets: tuple[str, ...], types: tuple[str, ...], max_seconds: float, table_only: bool) -> None:
    """Count what is not counted yet, or has changed since."""
    if not table_only:
        emulator.require()
        _count(targets, {name.casefold() for name in types}, time.monotonic() + max_seconds)
    PAGE.write_text(page(), encoding="utf-8")


def wanted() -> Iterator[tuple[str, Unit, list[Kernel]]]:
    """(target, unit, its kernels) of every pair that is counted."""
    names = [quant.name for quant in definitions.quants()]
    pairs = [(target, name) for name in MAIN_TYPES for target in MAIN_TARGETS]
    pairs += [(target, name) for name in names if name not in MAIN_TYPES for target in OTHER_TARGETS]
    for target, name in pairs:
        kernels = [(unit, kernel) for unit, kernel in evidence.kernels_of(target) if kernel.plan and kernel.type == name]
        if kernels:
            yield target, kernels[0][0], [kernel for _, kernel in kernels]


def read(file: Path = FILE) -> dict[tuple[str, str], dict]:
    """Rows of counts.json by (target, symbol); no file is no counts."""
    if not file.is_file():
        return {}
    try:
        rows = json.loads(file.read_text(encoding="utf-8"))["kernels"]
        return {(row["target"], row["symbol"]): {**row, "issue": row["figures"]["issue"], "sources": str(row["sources"])} for row in rows}
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{file.name}: malformed ({error!r})") from None


def _write(rows: dict[tuple[str, str], dict]) -> None:
    lines = ",\n".join(json.dumps({name: value for name, value in row.items() if name != "issue"}) for _, row in sorted(rows.items()))
    partial = FILE.with_suffix(".json.part")
    partial.write_text(f'{{"schema": 1, "by": {json.dumps(emulator.DESCRIPTION)}, "kernels": [\n{lines}\n]}}\n', encoding="utf-8")
    partial.replace(FILE)


def fresh(row: dict | None, unit: Unit, kernel: Kernel) -> bool:
    return row is not None and row["sources"] == sources.source_hash(unit, kernel)


def _count(targets: tuple[str, ...], types: set[str], deadline: float) -> None:
    rows = read()
    there = {(target, kernel.symbol) for target, _, kernels in wanted() for kernel in kernels}
    rows = {key: row for key, row in rows.items() if key in there}
    for target, unit, kernels in wanted():
        left = [kernel for kernel in kernels if not fresh(rows.get((target, kernel.symbol)), unit, kernel)]
        if not left or time.monotonic() > deadline or targets and target not in targets or types and kernels[0].type.casefold() not in types:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "kernels"
            kernels_compile.compile_targets(resolve([target], []), folder, jobs=1, only=unit.name)
            data = manifest.read(folder)
            for entry in data["kernels"]:
                own = [kernel for kernel in left if kernel.symbol == entry["symbol"]]
                if own:
                    rows[target, entry["symbol"]] = _row(entry, folder, data["compiler"], sources.source_hash(unit, own[0]))
                    _write(rows)
                    click.echo(f"{target} {entry['symbol']}: {rows[target, entry['symbol']]['issue']:.0f}", err=True)


def _row(kernel: dict, folder: Path, compiler: str, source_hash: str) -> dict:
    code = CodeObject(folder / kernel["file"])
    make = cases.maker_of(kernel, evidence.family_of(kernel["target"]))

    def run(k: int) -> Outcome:
        case = cases.Case("counted", None, lambda: make.plain(kernel["plan"]["tile_m"], kernel["plan"]["tile_n"], k))
        try:
            return record.run_case(kernel, code, case)[0]
        except (EmulationFailed, Mismatch) as error:
            raise CheckFailed(f"{kernel['target']} {kernel['symbol']}: not counted, K = {k}: {error}") from None

    step = 2 * cases.full_tile_k(kernel)
    found = figures.per_million(kernel, run, (step, 2 * step))
    return {"target": kernel["target"], "symbol": kernel["symbol"], "type": kernel["type"], "sources": source_hash, "compiler": compiler, "plan": kernel["plan"],
            "vgprs": kernel["vgprs"], "lds_bytes": kernel["static_lds_bytes"], "figures": found, "issue": found["issue"]}  # fmt: skip


# The page ------------------------------------------------------------------------------------------------------------

_COLUMNS = {"VALU (dual)": lambda f: f"{f['valu']:.0f} ({f['dual']:.0f})", "matrix": lambda f: f"{f['matrix']:.0f}",
            "matrix work / needed": lambda f: f"{f['matrix_ratio']:.2f}", "LDS rd/wr": lambda f: f"{f['lds_read']:.0f}/{f['lds_write']:.0f}",
            "LDS conflicts": lambda f: f"{f['lds_conflicts']:.0f}", "global load": lambda f: f"{f['global_load']:.0f}",
            "waitcnt": lambda f: f"{f['waitcnt']:.0f}", "barriers per K step": lambda f: f"{f['barriers_per_step']:.1f}",
            "weights loaded": lambda f: f"{f['weights_loaded']:.2f}x"}  # fmt: skip


def table() -> str:
    """Markdown: for each pair the tile with the fewest issued instructions, beside stock's."""
    rows = read()
    stock = {(row["target"], row["type"]): row["issue"] for row in json.loads(STOCK.read_text(encoding="utf-8"))["kernels"]}
    lines = ["| target | type | tile | VGPR | LDS B | issue | stock's issue | " + " | ".join(_COLUMNS) + " | sources |", "|---" * (8 + len(_COLUMNS)) + "|"]
    for target, unit, kernels in wanted():
        counted = [(rows[target, kernel.symbol], kernel) for kernel in kernels if (target, kernel.symbol) in rows]
        if not counted:
            continue
        best, kernel = min(counted, key=lambda pair: pair[0]["issue"])
        state = "as counted" if fresh(best, unit, kernel) and len(counted) == len(kernels) else "changed since"
        plan, found = best["plan"], best["figures"]
        cells = [target, best["type"], f"{plan['tile_m']}x{plan['tile_n']}", best["vgprs"], best["lds_bytes"], f"{best['issue']:.0f}",
                 stock.get((target, best["type"]), "-"), *(show(found) for show in _COLUMNS.values()), state]  # fmt: skip
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def page() -> str:
    """docs/counts.md as it must be now."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    try:
        command.main(standalone_mode=False)
    except (WavesmithError, click.ClickException) as error:
        sys.exit(f"error: {error}")
