"""python -m tests.isa.record: runs the kernels' machine code on the emulator and records what came of it in tests/evidence/isa.json.

Kernels whose evidence is fresh are left out, and the file is saved after every kernel, so a run can be stopped and continued.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click
from wavesmith.errors import WavesmithError
from wavesmith.kernels import compile as kernels_compile
from wavesmith.kernels import manifest
from wavesmith.kernels.device_source import Unit
from wavesmith.targets import resolve

from . import cases, emulator, evidence, launch, sources
from .emulator import CodeObject, EmulationFailed, Outcome
from .evidence import Entry
from .problems import Mismatch


class Failed(Exception):
    """One line that says which case failed and how."""


@click.command()
@click.option("--target", "targets", multiple=True, type=click.Choice(emulator.TARGETS), help="only this target; again for more")
@click.option("--type", "types", multiple=True, help="only kernels of this type or layout, such as q4_K; again for more")
@click.option("--symbol", help="only kernels whose symbol contains this text")
@click.option("--max-seconds", type=float, default=float("inf"), help="start no kernel after this time")
@click.option("--again", is_flag=True, help="also those whose evidence is fresh")
@click.option("--dry-run", is_flag=True, help="only say what would run")
def command(targets: tuple[str, ...], types: tuple[str, ...], symbol: str | None, max_seconds: float, again: bool, dry_run: bool) -> None:
    """Run kernels on the ISA emulator and record the evidence."""
    entries = evidence.read()
    work = list(_work(entries, targets or emulator.TARGETS, types, symbol, again))
    click.echo(f"{sum(len(symbols) for _, _, symbols in work)} kernels to run", err=True)
    if dry_run:
        return
    emulator.require()
    _forget_removed(entries)
    deadline, results = time.monotonic() + max_seconds, Counter()
    with tempfile.TemporaryDirectory() as scratch:
        for target, unit, symbols in work:
            if time.monotonic() > deadline:
                break
            folder = Path(scratch) / f"{target}-{unit.name}"
            kernels_compile.compile_targets(resolve([target], []), folder, jobs=1, only=unit.name)
            _record_unit(entries, target, unit, symbols, folder, deadline, results)
    click.echo(", ".join(f"{count} {what}" for what, count in sorted(results.items())) or "nothing ran", err=True)
    sys.exit(1 if results["failed"] else 0)


def _work(
    entries: dict[tuple[str, str], Entry], targets: tuple[str, ...], types: tuple[str, ...], symbol: str | None, again: bool
) -> Iterator[tuple[str, Unit, list[str]]]:
    """(target, unit, symbols to run), the same unit of all targets one after the other."""
    wanted: dict[tuple[str, str], tuple[Unit, list[str]]] = {}
    for state in evidence.states(entries, tuple(targets)):
        kernel = state.kernel
        if types and kernel.type.casefold() not in {name.casefold() for name in types} or symbol and symbol not in kernel.symbol:
            continue
        if again or state.state != "fresh":
            unit = next(unit for unit, other in evidence.kernels_of(state.target) if other.symbol == kernel.symbol)
            wanted.setdefault((unit.name, state.target), (unit, []))[1].append(kernel.symbol)
    order = {target: place for place, target in enumerate(targets)}
    for (name, target), (unit, symbols) in sorted(wanted.items(), key=lambda item: (item[0][0] != "common", item[0][0], order[item[0][1]])):
        assert name == unit.name
        yield target, unit, symbols


def _forget_removed(entries: dict[tuple[str, str], Entry]) -> None:
    """Drops entries of kernels that the checkout has no more."""
    there = {(target, kernel.symbol) for target in emulator.TARGETS for _, kernel in evidence.kernels_of(target)}
    for key in [key for key in entries if key not in there]:
        del entries[key]


def _record_unit(
    entries: dict[tuple[str, str], Entry], target: str, unit: Unit, symbols: list[str], folder: Path, deadline: float, results: Counter[str]
) -> None:
    data = manifest.read(folder)
    hashes = {kernel.symbol: sources.source_hash(unit, kernel) for kernel in unit.kernels}
    for kernel in data["kernels"]:
        symbol = kernel["symbol"]
        if symbol not in symbols or time.monotonic() > deadline:
            continue
        started = time.monotonic()
        entry = _evidence(kernel, folder, data["compiler"], hashes[symbol], entries.get((target, symbol)))
        entries[target, symbol] = entry
        evidence.write(entries)
        what = "passed" if entry.passed else "failed"
        results[what] += 1
        note = f"{len(entry.cases)} cases, NMSE {entry.nmse:.1e}" if entry.passed else entry.result
        click.echo(f"{target} {symbol}: {what} in {time.monotonic() - started:.1f} s, {note}", err=True)


def _evidence(kernel: dict, folder: Path, compiler: str, source_hash: str, before: Entry | None) -> Entry:
    """Runs the kernel, unless the very same machine code has passed the very same cases."""
    code = sources.code_hash(folder / kernel["file"], kernel["symbol"])
    planned = cases.cases(kernel, evidence.family_of(kernel["target"]))
    titles = [case.title for case in planned]
    made = Entry(kernel["target"], kernel["symbol"], kernel["op"], kernel["type"], source_hash, code, compiler, [], "pass", 0.0)
    if before and before.passed and (before.code, before.cases, before.compiler) == (code, titles, compiler):
        made.cases, made.nmse, made.instructions = titles, before.nmse, before.instructions
        return made
    try:
        run_cases(kernel, folder, planned, made)
    except Failed as error:
        made.result = str(error)
    return made


def run_cases(kernel: dict, folder: Path, planned: list[cases.Case], entry: Entry) -> None:
    """Runs every case and notes it in `entry`; Failed at the first that does not hold."""
    try:
        code = CodeObject(folder / kernel["file"])
        uncovered = code.uncovered(kernel["symbol"])
        if uncovered:
            raise Failed(f"{len(uncovered)} instructions cannot be emulated, the first {uncovered[0]}")
    except EmulationFailed as error:
        raise Failed(_one_line(error)) from None
    for case in planned:
        try:
            outcome, error = run_case(kernel, code, case)
        except (EmulationFailed, Mismatch, launch.NotLaunchable) as problem:
            raise Failed(f"{case.title}: {_one_line(problem)}") from None
        if outcome.warnings:
            raise Failed(f"{case.title}: {', '.join(outcome.warnings)}")
        entry.cases.append(case.title)
        entry.nmse = max(entry.nmse, error or 0.0)
        if not entry.instructions:
            entry.instructions = dict(sorted(outcome.classes.items()))


def run_case(kernel: dict, code: CodeObject, case: cases.Case) -> tuple[Outcome, float | None]:
    """Launches the kernel as its manifest entry says and checks the result; the NMSE against float64, where there is one."""
    problem = case.problem()
    args = launch.arguments(kernel, problem.values)
    grid = launch.grid(kernel, problem.values)
    outcome = code.run(kernel["symbol"], grid, tuple(kernel["block"]), args, kernel["dynamic_lds_bytes"], case.seed)
    return outcome, problem.check()


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


if __name__ == "__main__":
    try:
        command.main(standalone_mode=False)
    except (WavesmithError, click.ClickException) as error:
        sys.exit(f"error: {error}")
