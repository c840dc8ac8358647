"""What a tile costs, in whole-wave instructions per million multiply-adds at K = 4096, from two emulated runs of one block.

The loop over K does the same in every turn, so a count is a + b * K exactly, and two short runs give a and b.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from wavesmith.gguf_types import gguf_type

from .emulator import Outcome

K = 4096
NOT_ISSUED = ("S_DELAY_ALU", "S_CLAUSE")  # hints, of which the issue rate does not depend
ACTIVATION_BYTES = 160 / 128  # per value, as our own layouts store them
_CLASSES = {"matrix": "matrix", "lds_read": "lds_read", "lds_write": "lds_write", "global_load": "global_load", "waitcnt": "waitcnt", "barrier": "barrier"}


def totals(outcome: Outcome) -> dict[str, float]:
    """Counts of one run. A dual-issued pair counts as one instruction of `issue` and `valu`; `matrix_work`: multiply-adds of matrix instructions."""
    issue = sum(count for opcode, count in outcome.opcodes.items() if opcode.upper() not in NOT_ISSUED)
    dual = outcome.classes.get("valu_dual", 0)
    classes = {name: outcome.classes.get(kind, 0) for name, kind in _CLASSES.items()}
    work = sum(count * _multiply_adds(opcode) for opcode, count in outcome.opcodes.items())
    signals = sum(count for opcode, count in outcome.opcodes.items() if opcode.upper().startswith("S_BARRIER_SIGNAL"))  # gfx12: half a barrier
    classes["whole_barriers"] = classes["barrier"] - signals
    return {"issue": issue, "valu": outcome.classes.get("valu", 0) + dual, "dual": dual, **classes, "matrix_work": work, **outcome.memory}


def _multiply_adds(opcode: str) -> int:
    shape = re.search(r"^V_(?:WMMA|MFMA)_.*?(\d+)X(\d+)X(\d+)", opcode.upper())
    return int(shape[1]) * int(shape[2]) * int(shape[3]) if shape else 0


def per_million(kernel: Mapping[str, Any], run: Callable[[int], Outcome], lengths: tuple[int, int]) -> dict[str, float]:
    """run(k) runs one full tile of K = k; `lengths` are two such k with the same remainder of everything that the loop unrolls.

    Besides the counts of `totals`, per million: matrix_ratio (multiply-adds of matrix instructions over those needed), conflicts_in_loop
    (LDS conflict cycles per million), barriers_per_step (of a wave, per tile of K), weights_loaded (bytes loaded beyond the activations, over
    the bytes of the weights).
    """
    short, long = (totals(run(length)) for length in lengths)
    plan = kernel["plan"]
    slope = {name: (long[name] - short[name]) / (lengths[1] - lengths[0]) for name in long}
    at_k = {name: short[name] + slope[name] * (K - lengths[0]) for name in long}
    millions = plan["tile_m"] * plan["tile_n"] * K / 1e6
    kind = gguf_type(kernel["type"].upper())
    made = {name: value / millions for name, value in at_k.items() if name not in ("matrix_work", "whole_barriers")}
    made["matrix_ratio"] = at_k["matrix_work"] / (millions * 1e6)
    made["conflicts_in_loop"] = slope["lds_conflicts"] * K / millions
    made["barriers_per_step"] = slope["whole_barriers"] * plan["tile_k"] / plan["waves"]
    made["weights_loaded"] = (slope["global_bytes"] - plan["tile_n"] * ACTIVATION_BYTES) / (plan["tile_m"] * kind.block_bytes / kind.block_values)
    return {name: round(value, 3) for name, value in made.items()}
