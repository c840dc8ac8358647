"""Perplexity of one model over one text, with stock's kernels and with ours: does a whole model still predict as well?"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

from . import process
from .build import Build
from .errors import BadInput, CannotRun
from .progress import Steps

_ESTIMATE = re.compile(r"\bFinal estimate: PPL = (\S+)")  # a log prefix may stand before it


@dataclass(frozen=True)
class Outcome:
    stock: float
    wavesmith: float

    @property
    def difference(self) -> float:
        """Relative: 0.01 means that ours is 1 % higher (worse)."""
        return self.wavesmith / self.stock - 1.0

    def as_json(self) -> dict:
        return {"stock": self.stock, "wavesmith": self.wavesmith, "difference": self.difference}


def compare(
    build: Build,
    model: Path,
    text: Path,
    *,
    context: int = 256,
    chunks: int = 4,
    threads: int = 1,
    family: str | None = None,
    steps: Steps | None = None,
) -> Outcome:
    """Perplexity over the first `chunks` windows of `context` tokens, stock first, then wavesmith.

    Raises BadInput for an unreadable text, CannotRun when llama-perplexity fails (a text of too few tokens, say) or prints
    no finite estimate.
    """
    if not text.is_file():
        raise BadInput(f"{text} is not a file")
    steps = steps or Steps("perplexity")
    values = {}
    for side in ("stock", "wavesmith"):
        with steps.step(f"perplexity, {side}") as step:
            command = [build.program("llama-perplexity"), "-m", model, "-f", text, "-c", context, "--chunks", chunks, "-t", threads]
            environment = build.environment(family, stock=side == "stock")
            process.run([str(part) for part in command], step.log, environment=environment, failure=CannotRun, what=f"llama-perplexity ({side})")
            values[side] = parse_estimate(step.log.read_text(errors="replace"))
    return Outcome(**values)


def parse_estimate(output: str) -> float:
    """The final estimate that llama-perplexity printed; CannotRun when there is none or it is not finite."""
    found = _ESTIMATE.search(output)
    if not found:
        raise CannotRun("llama-perplexity printed no final estimate")
    value = float(found[1])
    if not math.isfinite(value):
        raise CannotRun(f"llama-perplexity's estimate is {found[1]}")
    return value
