"""Compares stock and wavesmith in one run: llama-bench of one build, with the module off and on, taking turns.

Both sides are the same programs with the same threads, so the module is the only difference. They alternate, and which
of them goes first alternates too, so that a machine that slows down or speeds up meanwhile hits both.
"""

from __future__ import annotations

import json
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path

from . import process
from .build import Build
from .errors import CannotRun
from .progress import Steps

SCHEMA_VERSION = 1
HOST_NOTE = "CPU model of the kernels: not a speed of any GPU"
SIDES = ("stock", "wavesmith")
_TIMEOUT = 1800.0


@dataclass
class Phase:
    """One of `prompt` or `generate`: tokens and, per side, the tokens per second of every repetition."""

    name: str
    tokens: int
    rates: dict[str, list[float]] = field(default_factory=lambda: {side: [] for side in SIDES})

    def median(self, side: str) -> float:
        return statistics.median(self.rates[side])

    @property
    def ratio(self) -> float:
        """Median of wavesmith over median of stock; above 1 is faster than stock."""
        return self.median("wavesmith") / self.median("stock")

    def as_json(self) -> dict:
        sides = {side: {"median": self.median(side), "min": min(rates), "max": max(rates), "all": rates} for side, rates in self.rates.items()}
        return {"phase": self.name, "tokens": self.tokens, "unit": "tokens/s", "ratio": self.ratio, **sides}


@dataclass
class Comparison:
    model: str
    target: str
    llama_version: str
    commit: str
    threads: int
    family: str
    phases: list[Phase]
    seconds: float  # wall time of the whole comparison, loading included
    measured: str  # local date and time

    def side_seconds(self, side: str) -> float:
        """Time that `side` needs for all the tokens once, from the medians."""
        return sum(phase.tokens / phase.median(side) for phase in self.phases)

    @property
    def note(self) -> str:
        return HOST_NOTE if self.target == "host" else ""

    def as_json(self) -> dict:
        """`wavesmith bench --json`, schema version 1 (docs/getting-started.md)."""
        return {
            "version": SCHEMA_VERSION,
            "measured": self.measured,
            "model": self.model,
            "target": self.target,
            "family": self.family,
            "llama": {"version": self.llama_version, "commit": self.commit},
            "threads": self.threads,
            "note": self.note,
            "phases": [phase.as_json() for phase in self.phases],
            "seconds": self.seconds,
        }


def compare(
    build: Build,
    model: Path,
    *,
    prompt: int = 32,
    generate: int = 8,
    threads: int,
    repetitions: int = 2,
    family: str | None = None,
    steps: Steps | None = None,
) -> Comparison:
    """Run llama-bench `repetitions` times per side; every run loads the model anew.

    prompt, generate: tokens (0 leaves the phase out). Raises CannotRun when llama-bench fails or reports something else
    than what was asked for.
    """
    from . import settings

    steps = steps or Steps("bench")
    started = time.monotonic()
    phases = [Phase(name, tokens) for name, tokens in (("prompt", prompt), ("generate", generate)) if tokens]
    with steps.step("bench stock and wavesmith") as step:
        done = 0
        for repetition in range(repetitions):
            for side in SIDES if repetition % 2 == 0 else SIDES[::-1]:
                environment = build.environment(family, stock=side == "stock")
                for phase, rate in zip(phases, _run(build, model, phases, threads, environment, step.log), strict=True):
                    phase.rates[side].append(rate)
                done += 1
                step.update(done, repetitions * len(SIDES))
    return Comparison(
        model=model.name,
        target=build.target,
        llama_version=build.llama_version,
        commit=build.commit,
        threads=threads,
        family=family or settings.get("WAVESMITH_HOST_FAMILY"),
        phases=phases,
        seconds=time.monotonic() - started,
        measured=time.strftime("%Y-%m-%d %H:%M"),
    )


def _run(build: Build, model: Path, phases: list[Phase], threads: int, environment: dict[str, str], log: Path) -> list[float]:
    tokens = {phase.name: phase.tokens for phase in phases}
    command = [build.program("llama-bench"), "-m", model, "-p", tokens.get("prompt", 0), "-n", tokens.get("generate", 0)]
    command += ["-t", threads, "-r", 1, "--no-warmup", "-o", "json"]
    output = process.capture([str(part) for part in command], log, environment=environment, timeout=_TIMEOUT)
    return parse_rates(output, phases)


def parse_rates(output: str, phases: list[Phase]) -> list[float]:
    """Tokens per second of each phase, from llama-bench's JSON; CannotRun when a phase is missing or not a number above 0."""
    try:
        records = json.loads(output)
        rates = {(record["n_prompt"], record["n_gen"]): float(record["avg_ts"]) for record in records}
    except (ValueError, KeyError, TypeError) as error:
        raise CannotRun(f"llama-bench printed no result that can be read: {error}") from error
    wanted = [(phase.tokens, 0) if phase.name == "prompt" else (0, phase.tokens) for phase in phases]
    for phase, key in zip(phases, wanted, strict=True):
        if not rates.get(key, 0.0) > 0.0:
            raise CannotRun(f"llama-bench reported no speed for {phase.tokens} tokens of phase {phase.name}")
    return [rates[key] for key in wanted]


def print_comparison(comparison: Comparison) -> None:
    """The comparison as a table on stdout, with what the figures are not."""
    from rich.table import Table

    from .progress import print_table

    title = f"{comparison.model}, {comparison.target} target ({comparison.family}), {comparison.threads} thread(s)"
    table = Table("phase", "tokens", "stock, tokens/s", "wavesmith, tokens/s", "wavesmith / stock", title=title, title_justify="left", box=None)
    for phase in comparison.phases:
        table.add_row(phase.name, str(phase.tokens), _spread(phase.rates["stock"]), _spread(phase.rates["wavesmith"]), f"{phase.ratio:.3g}x")
    print_table(table)
    tokens = " + ".join(f"{phase.tokens} {phase.name}" for phase in comparison.phases)
    print(f"{tokens} tokens: wavesmith {comparison.side_seconds('wavesmith'):.1f} s, stock {comparison.side_seconds('stock'):.1f} s")
    print(f"the whole comparison: {comparison.seconds:.1f} s, {comparison.measured}")
    if comparison.note:
        print(f"note: {comparison.note}")


def _spread(rates: list[float]) -> str:
    return f"{statistics.median(rates):.4g} ({min(rates):.4g} to {max(rates):.4g}, {len(rates)} runs)"


def default_threads() -> int:
    """At most two: the host target is measured for comparison, not for the machine's top speed."""
    from . import build_checks

    return min(2, build_checks.usable_cpus())
