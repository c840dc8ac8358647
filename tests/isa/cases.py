"""The cases that a kernel's machine code must pass, made from its manifest entry."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from wavesmith import host_library
from wavesmith.gguf_types import gguf_type
from wavesmith.random_weights import random_weights, scale_offset

from .problems import Problem, Product, Quantization, Slots

FLOAT_TYPES = ("F32", "F16", "BF16")
FULL_TILE = "full tile"  # in order: the case whose instructions are recorded


@dataclass(frozen=True)
class Case:
    """seed: of the random wave schedule; None for waves in order."""

    name: str
    seed: int | None
    problem: Callable[[], Problem]

    @property
    def title(self) -> str:
        return f"{self.name}, {'in order' if self.seed is None else f'schedule {self.seed}'}"


def cases(kernel: Mapping[str, Any], family: str) -> list[Case]:
    """In the order in which they are to run, the plainest first."""
    make = {"MUL_MAT": _products, "QUANTIZE_Q8_1": _quantizations, "EXPERT_SLOTS": _slots}[kernel["op"]]
    return [Case(name, seed, problem) for (name, problem), seed in make(kernel, family)]


Named = tuple[tuple[str, Callable[[], Problem]], int | None]


# Activations ---------------------------------------------------------------------------------------------------------


def ordinary(*shape: int) -> np.ndarray:
    """Normal values with some large ones, as activations are."""
    x = np.random.default_rng(shape).standard_normal(shape).astype(np.float32)
    x[..., :: max(1, shape[-1] // 3)] *= 12
    return x


def extreme(rows: int, k: int) -> np.ndarray:
    """Rows of zeros, NaN, infinity, one sign past f16's range, the largest floats, alternating signs of one magnitude, tiny and ordinary ones."""
    x = ordinary(rows, k)
    special: list[Callable[[np.ndarray], None]] = [
        lambda row: row.fill(0),
        lambda row: row.put(k // 2, np.nan),
        lambda row: row.put(k - 1, np.inf),
        lambda row: row.fill(6e4),
        lambda row: row.fill(-3e38),
        lambda row: row.__imul__(1e30),
        lambda row: row.__imul__(1e-30),
        lambda row: row.__setitem__(slice(None), np.where(np.arange(k) % 2, 1, -1)),
        lambda row: row.__setitem__(slice(1, None), 0),
    ]
    for row, change in zip(x, special, strict=False):
        change(row)
    return x


def _quantizations(kernel: Mapping[str, Any], family: str) -> Iterator[Named]:
    def problem(x: np.ndarray, spread: int = 1) -> Problem:
        return Quantization(x, kernel["type"], family, spread)

    yield ("whole blocks 1x1x5x512", partial(problem, ordinary(1, 1, 5, 512))), None
    for seed, k in enumerate((1, 3, 31, 33, 64, 97, 129, 500, 1155), 1):
        yield (f"tail in K 1x1x2x{k}", partial(problem, ordinary(1, 1, 2, k))), seed
    yield ("special rows 1x1x12x300", partial(problem, extreme(12, 300)[None, None])), 10
    yield ("batches and strides 2x3x2x200", partial(problem, ordinary(2, 3, 2, 200), 2)), 11


# Experts -------------------------------------------------------------------------------------------------------------


def chosen(tokens: int, used: int, experts: int) -> np.ndarray:
    return np.random.default_rng((tokens, used, experts)).integers(0, experts, (tokens, used)).astype(np.int32)


def _slots(kernel: Mapping[str, Any], family: str) -> Iterator[Named]:
    shapes = ((1, 1, 1), (2, 2, 3), (64, 2, 8), (129, 1, 5), (300, 3, 16))
    for seed, (tokens, used, experts) in enumerate(shapes, 1):
        yield (f"{tokens} tokens, {used} of {experts} experts", partial(Slots, chosen(tokens, used, experts), experts)), seed
    beyond = chosen(40, 4, 6)
    beyond[::7, 1], beyond[3:5, 2] = 6, -1
    yield ("ids outside the experts", partial(Slots, beyond, 6)), 6
    yield ("one expert for all", partial(Slots, np.full((50, 2), 3, np.int32), 5)), None


# Products ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Maker:
    """Makes products for one kernel."""

    type_name: str
    family: str
    layout: str | None
    variant: str | None

    def weights(self, entries: int, rows: int, k: int) -> np.ndarray:
        """uint8 [1, entries, rows, row_bytes]."""
        rng = np.random.default_rng((entries, rows, k))
        return random_weights(self.type_name, entries * rows, k, rng).view(np.uint8).reshape(1, entries, rows, -1).copy()

    def product(self, w: np.ndarray, x: np.ndarray, ids: np.ndarray | None = None) -> Problem:
        return Product(self.type_name, w, x, ids, family=self.family, layout=self.layout, variant=self.variant)

    def plain(self, m: int, n: int, k: int) -> Problem:
        return self.product(self.weights(1, m, k), ordinary(1, 1, n, k))

    def special(self, m: int, k: int) -> Problem:
        """Special rows of activations, and a row of weights whose scale (or value) is NaN, one where it is subnormal, one where it is large."""
        w = self.weights(1, m, k)
        for row, value in ((1, np.nan), (2, 6e-8), (3, 6e4)):
            _set_scale(self.type_name, w[0, 0, row % m], value)
        return self.product(w, extreme(12, k)[None, None])

    def batches(self, m: int, n: int, k: int) -> Problem:
        w = np.concatenate([self.weights(2, m, k), self.weights(2, m, k)[:, ::-1]])
        return self.product(w, ordinary(4, 4, n, k))

    def experts(self, m: int, k: int, tokens: int, columns: int) -> Problem:
        return self.product(self.weights(4, m, k), ordinary(1, tokens, columns, k), chosen(tokens, 2, 3))  # the last expert has no token


def _set_scale(type_name: str, row: np.ndarray, value: float) -> None:
    """The first block's scale, or the first value of a float type."""
    if type_name == "F32":
        row[:4] = np.frombuffer(np.float32(value).tobytes(), np.uint8)
    elif type_name == "BF16":
        row[:2] = np.frombuffer(np.float32(value).tobytes(), np.uint8)[2:]
    else:
        offset = 0 if type_name == "F16" else scale_offset(type_name)
        if offset is not None:
            row[offset : offset + 2] = np.frombuffer(np.float16(value).tobytes(), np.uint8)


def layout_of(kernel: Mapping[str, Any]) -> str | None:
    """The layout of quantised activations that a product reads, from the meaning of its argument; None for float32."""
    meaning = next(argument["meaning"] for argument in kernel["args"] if argument["name"] == "activations")
    found = re.match(r"(d\w+) blocks", meaning)
    return found[1] if found else None


def _host_variant(kernel: Mapping[str, Any], type_name: str, family: str) -> str | None:
    name = kernel["symbol"].removeprefix(f"mmq_{kernel['type'].lower()}_")
    return name if kernel["plan"] and name in host_library.variants(gguf_type(type_name).number, family) else None


def maker_of(kernel: Mapping[str, Any], family: str) -> _Maker:
    type_name = kernel["type"].upper()
    return _Maker(type_name, family, layout_of(kernel), _host_variant(kernel, type_name, family))


def full_tile_k(kernel: Mapping[str, Any]) -> int:
    """Two tiles of K at least, in whole blocks."""
    block = gguf_type(kernel["type"].upper()).block_values
    return -(-2 * kernel["plan"]["tile_k"] // block) * block if kernel["plan"] else 128


def _products(kernel: Mapping[str, Any], family: str) -> Iterator[Named]:
    make = maker_of(kernel, family)
    block = gguf_type(make.type_name).block_values
    plan = kernel["plan"] or {"tile_m": 4, "tile_n": 4, "tile_k": 64}
    m, n, whole = plan["tile_m"], plan["tile_n"], full_tile_k(kernel)
    tail = plan["tile_k"] + block if block < plan["tile_k"] else 3 * block

    yield (f"{FULL_TILE} {m}x{n}x{whole}", partial(make.plain, m, n, whole)), None
    for seed in (1, 2, 3):
        yield (f"{FULL_TILE} {m}x{n}x{whole}", partial(make.plain, m, n, whole)), seed
    yield (f"tails in M and N {m + 5}x{n + 3}x{whole}", partial(make.plain, m + 5, n + 3, whole)), 4
    yield (f"one row and column 1x1x{block}", partial(make.plain, 1, 1, block)), 5
    yield (f"{'tail in K' if tail % plan['tile_k'] else 'odd number of blocks'} {m - 1}x{n - 1}x{tail}", partial(make.plain, m - 1, n - 1, tail)), 6
    yield (f"special values 24x12x{whole}", partial(make.special, 24, whole)), 7
    yield (f"batches 4x4 over 2x2 9x3x{block}", partial(make.batches, 9, 3, block)), 8
    yield (f"experts, shared rows 20x7x{whole}", partial(make.experts, 20, whole, 7, 1)), 9
    yield (f"experts, own rows 20x5x{whole}", partial(make.experts, 20, whole, 5, 2)), 10
