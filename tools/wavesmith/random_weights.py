"""Random weights of any GGUF type that look like a trained model's: mean near 0, a chosen standard deviation, finite scales."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from .gguf_types import gguf_type
from .reference import dequantize

if TYPE_CHECKING:
    import numpy as np

FLOAT_TYPES = ("F32", "F16", "BF16")

# Byte offset in a block of the f16 scale, and of the f16 minimum or None (ggml/src/ggml-common.h). Every other byte may be random.
_FIELDS: dict[str, tuple[int, int | None]] = {
    "Q4_0": (0, None),
    "Q4_1": (0, 2),
    "Q5_0": (0, None),
    "Q5_1": (0, 2),
    "Q8_0": (0, None),
    "Q2_K": (80, 82),
    "Q3_K": (108, None),
    "Q4_K": (0, 2),
    "Q5_K": (0, 2),
    "Q6_K": (208, None),
    "IQ4_NL": (0, None),
    "IQ4_XS": (0, None),
    "Q1_0": (0, None),
    "Q2_0": (0, None),
    "IQ1_S": (0, None),
    "IQ2_XXS": (0, None),
    "IQ2_XS": (0, None),
    "IQ2_S": (0, None),
    "IQ3_XXS": (0, None),
    "IQ3_S": (0, None),
}

# Types whose scales are 8-bit floats.
_SMALL_FLOATS = ("MXFP4", "NVFP4")

TYPES = (*FLOAT_TYPES, *_FIELDS, *_SMALL_FLOATS)


def _put_half(blocks: np.ndarray, offset: int, values: np.ndarray) -> None:
    import numpy as np

    blocks[:, offset : offset + 2] = values.astype(np.float16).view(np.uint8).reshape(-1, 2)


def _random_blocks(name: str, count: int, rng: np.random.Generator) -> np.ndarray:
    import numpy as np

    blocks = rng.integers(0, 256, size=(count, gguf_type(name).block_bytes), dtype=np.uint8)
    if name == "Q2_0":
        # Evenly spread codes would stand for 1/2 on average; ten chances for -1, 0, 1 and 2 that give 0.
        codes = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2, 3], np.uint8)[rng.integers(0, 10, size=(count, 16, 4))]
        blocks[:, 2:] = (codes << np.array([0, 2, 4, 6], np.uint8)).sum(axis=-1, dtype=np.uint8)
    return blocks


def _put_exponents(blocks: np.ndarray, scales: np.ndarray, rng: np.random.Generator) -> None:
    """E8M0 scales of MXFP4: of the powers of two below and above, chosen so often that the mean square is that of `scales`."""
    import numpy as np

    below = np.floor(np.log2(scales))
    above = rng.random(len(scales)) < ((scales / 2**below) ** 2 - 1) / 3
    blocks[:, 0] = np.clip(below + above + 128, 0, 254).astype(np.uint8)


def _put_e4m3(blocks: np.ndarray, scales: np.ndarray) -> None:
    """E4M3 scales of NVFP4: the nearest that is not 0."""
    import numpy as np

    codes = np.arange(1, 127)
    exponents = np.maximum(codes >> 3, 1)
    values = np.where(codes < 8, codes & 7, 8 | codes & 7) * 2.0 ** (exponents - 11)
    nearest = 1 + np.abs(scales[:, None] - values).argmin(axis=1)
    blocks[:, :4] = nearest.astype(np.uint8)[:, None]


def _put_scales(name: str, blocks: np.ndarray, scales: np.ndarray, minimums: np.ndarray, rng: np.random.Generator) -> None:
    """Writes the scales (of NVFP4: the same for all groups of a block), and the minimums of a type that has them."""
    if name == "MXFP4":
        _put_exponents(blocks, scales, rng)
    elif name == "NVFP4":
        _put_e4m3(blocks, scales)
    else:
        scale, minimum = _FIELDS[name]
        _put_half(blocks, scale, scales)
        if minimum is not None:
            _put_half(blocks, minimum, minimums)


@cache
def _unit(name: str) -> tuple[float, float]:
    """(minimum per unit of scale that centres random blocks on 0, standard deviation per unit of scale), found by dequantising some."""
    import numpy as np

    rng = np.random.default_rng(1)
    blocks = _random_blocks(name, 512, rng)
    zeros, ones = np.zeros(len(blocks)), np.ones(len(blocks))

    def values(scales: np.ndarray, minimums: np.ndarray) -> np.ndarray:
        _put_scales(name, blocks, scales, minimums, rng)
        return dequantize(name, blocks)

    ratio = 0.0
    if name in _FIELDS and _FIELDS[name][1] is not None:
        ratio = -float(values(ones, zeros).mean()) / float(values(zeros, ones).mean())
    return ratio, float(values(ones, ratio * ones).std())


def random_weights(name: str, rows: int, k: int, rng: np.random.Generator, deviation: float | None = None) -> np.ndarray:
    """uint8 [rows, row_bytes]: `rows` rows of `k` values of type `name` with standard deviation `deviation` (default k**-0.5).

    ValueError for a type that cannot be generated or a `k` that is no multiple of its block.
    """
    import numpy as np

    if name not in TYPES:
        raise ValueError(f"cannot generate weights of type {name}; known: {', '.join(TYPES)}")
    deviation = k**-0.5 if deviation is None else deviation
    if name in FLOAT_TYPES:
        values = rng.standard_normal((rows, k), dtype=np.float32) * np.float32(deviation)
        if name == "BF16":
            # Dropping the low half truncates towards zero: good enough for random values.
            return np.ascontiguousarray((values.view(np.uint32) >> 16).astype(np.uint16)).view(np.uint8)
        return values.astype(np.float16 if name == "F16" else np.float32).view(np.uint8)
    kind = gguf_type(name)
    if k % kind.block_values:
        raise ValueError(f"rows of {k} values are not a multiple of {name}'s block of {kind.block_values}")
    blocks = _random_blocks(name, rows * (k // kind.block_values), rng)
    ratio, unit = _unit(name)
    scales = deviation / unit * (0.75 + 0.5 * rng.random(len(blocks)))
    _put_scales(name, blocks, scales, scales * ratio, rng)
    return blocks.reshape(rows, k // kind.block_values * kind.block_bytes)


def scale_offset(name: str) -> int | None:
    """Byte offset of the f16 scale in a block of type `name`; None for a type without one."""
    return _FIELDS[name][0] if name in _FIELDS else None
