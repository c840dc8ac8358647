"""What a kernel is given and what must come out: values for the arguments that its manifest names, and the check of its results.

Expected results are those of the host library for the same family, bit for bit, and numpy's (wavesmith.reference) within a bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from wavesmith import host_library, reference
from wavesmith.gguf_types import gguf_type
from wavesmith.host_library import Operand

UNTOUCHED = np.float32(123.25)  # what output buffers hold before the launch
GAP = 3  # values between the columns of an output
BOUND_QUANTIZED = 5e-4  # NMSE against the exact product; the rounding of activations to 8 bits makes nearly all of it
BOUND_FLOAT = 1e-12


class Mismatch(Exception):
    """The kernel computed something else."""


class Problem(Protocol):
    values: dict[str, Any]

    def check(self) -> float | None:
        """Raises Mismatch, else returns the NMSE against float64, None where that says nothing."""


def same_bits(what: str, got: np.ndarray, expected: np.ndarray) -> None:
    """Equal bit patterns; any NaN equals any other."""
    nan = np.isnan(expected)
    if not np.array_equal(np.isnan(got), nan):
        place = np.argwhere(np.isnan(got) != nan)[0].tolist()
        raise Mismatch(f"{what}: {got[tuple(place)]} for {expected[tuple(place)]} at {place}")
    bits = np.dtype(f"u{got.dtype.itemsize}")
    differs = (got.view(bits) != expected.view(bits)) & ~nan
    if differs.any():
        place = np.argwhere(differs)[0].tolist()
        raise Mismatch(f"{what}: {differs.sum()} of {differs.size} values differ, first {got[tuple(place)]!r} for {expected[tuple(place)]!r} at {place}")


def normalized_error(got: np.ndarray, expected: np.ndarray) -> float | None:
    """NMSE; None where it says nothing: NaN, infinity, or so few results that their sum of squares may be small by chance."""
    if expected.size < 64 or not np.isfinite(expected).all() or not expected.any():
        return None
    return float(np.square(got - expected).sum() / np.square(expected).sum())


@dataclass
class Quantization:
    """quantize_q8_1: x float32 [ne3, ne2, ne1, K], a view of a larger array when its values are `spread` apart."""

    x: np.ndarray
    layout: str
    family: str
    spread: int = 1

    def __post_init__(self) -> None:
        ne3, ne2, ne1, k = self.x.shape
        wide = np.full((ne3, ne2, ne1, (k - 1) * self.spread + 1), np.nan, np.float32)
        wide[..., :: self.spread] = self.x
        rows = self.x.reshape(-1, k)
        self.expected = reference.quantize_q8_1(rows, self.layout)
        self.output = np.full(self.expected.shape, 0xA5, np.uint8)
        strides = {f"nb{i}": wide.strides[3 - i] for i in range(1, 4)}
        self.values = {"input": wide, "output": self.output, "k": k, "ne1": ne1, "ne2": ne2, "ne3": ne3, "nb0": 4 * self.spread, **strides}

    def check(self) -> float | None:
        _same_blocks("numpy", self.output, self.expected, self.layout)
        _same_blocks("the host library", self.output, quantized(self.x, self.layout, self.family), self.layout)
        return None


def quantized(x: np.ndarray, layout: str, family: str) -> np.ndarray:
    """The host library's blocks for rows of x."""
    rows = np.ascontiguousarray(x.reshape(-1, x.shape[-1]))
    out = np.empty((-(-rows.shape[1] // 128), len(rows), reference.block_bytes(layout)), np.uint8)
    host_library.quantize_q8_1_raw(rows.view(np.uint8).reshape(-1), rows.shape[1], 4 * rows.shape[1], layout, family, out)
    return out


def _same_blocks(what: str, got: np.ndarray, expected: np.ndarray, layout: str) -> None:
    dtype = np.float16 if layout in ("ds4", "d2s6") else np.float32
    heads = [np.ascontiguousarray(blocks[..., :16]).view(dtype) for blocks in (got, expected)]
    same_bits(f"scales against {what}", *heads)
    if not np.array_equal(got[..., 16:], expected[..., 16:]):
        raise Mismatch(f"integers against {what}: {(got[..., 16:] != expected[..., 16:]).sum()} bytes differ")


@dataclass
class Slots:
    """expert_slots: ids int32 [tokens, used], stored with room between the tokens."""

    ids: np.ndarray
    experts: int

    def __post_init__(self) -> None:
        tokens, used = self.ids.shape
        wide = np.full((tokens, used + 2), -1, np.int32)
        wide[:, :used] = self.ids
        wide = wide.reshape(-1)[: tokens * (used + 2) - 2]
        self.slots, self.bounds = np.full(tokens * used, -1, np.int32), np.full(self.experts + 1, -1, np.int32)
        self.values = {"ids": wide, "slots": self.slots, "slot_bounds": self.bounds, "tokens": tokens, "used": used, "experts": self.experts,
                       "nb0": 4, "nb1": 4 * (used + 2)}  # fmt: skip

    def check(self) -> float | None:
        slots, bounds = slots_by_expert(self.ids, self.experts)
        if not np.array_equal(self.bounds, bounds):
            raise Mismatch(f"bounds {self.bounds.tolist()}, not {bounds.tolist()}")
        if not np.array_equal(self.slots[: len(slots)], slots):
            raise Mismatch("slots are not those of the experts, in order")
        return None


def slots_by_expert(ids: np.ndarray, experts: int) -> tuple[np.ndarray, np.ndarray]:
    """Slots (token * used + place) grouped by expert in order, and where each expert's begin; other ids belong to none."""
    flat = ids.reshape(-1)
    groups = [np.flatnonzero(flat == expert) for expert in range(experts)]
    return np.concatenate(groups).astype(np.int32), np.cumsum([0, *map(len, groups)]).astype(np.int32)


class Product:
    """MUL_MAT, or MUL_MAT_ID with `ids`, as ggml lays it out.

    w: uint8 [ne03, ne02 or experts, M, row_bytes]; x: float32 [ne13, ne12, N, K], with ids [1, tokens, 1 or used, K]; ids: int32 [tokens, used].
    layout: of the quantised activations that the kernel reads; None for one that reads float32. variant: tile plan of the host library.
    """

    def __init__(self, type_name: str, w: np.ndarray, x: np.ndarray, ids: np.ndarray | None = None, *, family: str, layout: str | None, variant: str | None):
        self.type_name, self.w, self.x, self.ids, self.family, self.variant = type_name, w, x, ids, family, variant
        self.bound = BOUND_QUANTIZED if layout else BOUND_FLOAT
        _, ne02, m, _ = w.shape
        self.output = np.full(((x.shape[0], x.shape[1], x.shape[2]) if ids is None else (1, *ids.shape)) + (m + GAP,), UNTOUCHED)
        self.values: dict[str, Any] = {
            "weights": w,
            "activations": quantized(x, layout, family) if layout else x,
            "output": self.output,
            "slots": None,
            "slot_bounds": None,
            "integer_sums": None,
            "m": m,
            "n": x.shape[2],
            "k": x.shape[3],
            "activation_rows": x.shape[0] * x.shape[1] * x.shape[2],
            "used": 1,
            "activation_columns": x.shape[2],
            "ne12": x.shape[1],
            "ratio2": x.shape[1] // ne02,
            "ratio3": x.shape[0] // w.shape[0],
            "nb10": 4,
            "batches": x.shape[0] * x.shape[1],
            **{f"nb0{i}": w.strides[3 - i] for i in range(1, 4)},
            **{f"nb1{i}": x.strides[3 - i] for i in range(1, 4)},
            **{f"nb{i}": self.output.strides[3 - i] for i in range(1, 4)},
        }
        if ids is not None:
            slots, bounds = slots_by_expert(ids, ne02)
            self.values.update(slots=slots, slot_bounds=bounds, n=int(np.diff(bounds).max()), used=ids.shape[1], ratio2=1, ratio3=1, batches=ne02)

    def check(self) -> float | None:
        results, gaps = self.output[..., :-GAP], self.output[..., -GAP:]
        if not (gaps == UNTOUCHED).all():
            raise Mismatch("wrote between the columns of the output")
        same_bits("against the host library", np.ascontiguousarray(results), self._host())
        error = normalized_error(results, self._exact())
        if error is not None and error > self.bound:
            raise Mismatch(f"NMSE {error:.2e} against float64, bound {self.bound:.0e}")
        return error

    def _host(self) -> np.ndarray:
        kind = gguf_type(self.type_name)
        out = np.zeros((*self.output.shape[:3], self.output.shape[3] - GAP), np.float32)
        operands = [
            Operand(kind.number, self.w.reshape(-1), (self.x.shape[3], *self.w.shape[2::-1]), (kind.block_bytes, *self.w.strides[2::-1])),
            *(Operand(0, a.view(np.uint8).reshape(-1), a.shape[::-1], a.strides[::-1]) for a in (self.x, out)),
        ]
        if self.ids is not None:
            tokens, used = self.ids.shape
            strides = (4, 4 * used, 4 * used * tokens, 4 * used * tokens)
            operands.append(Operand(26, self.ids.view(np.uint8).reshape(-1), (used, tokens, 1, 1), strides))
        host_library.mul_mat_raw(*operands, family=self.family, variant=self.variant)
        return out

    def _exact(self) -> np.ndarray:
        exact = np.empty((*self.output.shape[:3], self.output.shape[3] - GAP))
        if self.ids is not None:
            for token, place in np.ndindex(*self.ids.shape):
                row = self.x[0, token, place % self.x.shape[2]][None]
                exact[0, token, place] = reference.mul_mat(self.type_name, self.w[0, self.ids[token, place]], row)[0]
            return exact
        ratio3, ratio2 = self.x.shape[0] // self.w.shape[0], self.x.shape[1] // self.w.shape[1]
        for i3, i2 in np.ndindex(*self.x.shape[:2]):
            exact[i3, i2] = reference.mul_mat(self.type_name, self.w[i3 // ratio3, i2 // ratio2], self.x[i3, i2])
        return exact
