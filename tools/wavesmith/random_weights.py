"""Random weights of any GGUF type that look like a trained model's: mean near 0, a chosen standard deviation, finite scales."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

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
    "IQ2_XXS": (0, None),
    "IQ2_XS": (0, None),
    "IQ2_S": (0, None),
    "IQ3_XXS": (0, None),
    "IQ3_S": (0, None),
}

TYPES = (*FLOAT_TYPES, *_FIELDS)


def _put_half(blocks: np.ndarray, offset: int, values: np.ndarray) -> None:
    import numpy as np

    blocks[:, offset : offset + 2] = values.astype(np.float16).view(np.uint8).reshape(-1, 2)


def _random_blocks(name: str, count: int, rng: np.random.Generator) -> np.ndarray:
    import numpy as np
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

    return rng.integers(0, 256, size=(count, GGML_QUANT_SIZES[GGMLQuantizationType[name]][1]), dtype=np.uint8)


@cache
def _unit(name: str) -> tuple[float, float]:
    """(minimum per unit of scale that centres random blocks on 0, standard deviation per unit of scale), found by dequantising some."""
    import numpy as np
    from gguf import quants
    from gguf.constants import GGMLQuantizationType

    scale, minimum = _FIELDS[name]
    blocks = _random_blocks(name, 512, np.random.default_rng(1))
    count = len(blocks)
    _put_half(blocks, scale, np.ones(count))
    ratio = 0.0
    if minimum is not None:
        _put_half(blocks, minimum, np.zeros(count))
        above = float(quants.dequantize(blocks, GGMLQuantizationType[name]).mean())
        _put_half(blocks, scale, np.zeros(count))
        _put_half(blocks, minimum, np.ones(count))
        ratio = -above / float(quants.dequantize(blocks, GGMLQuantizationType[name]).mean())
        _put_half(blocks, scale, np.ones(count))
        _put_half(blocks, minimum, np.full(count, ratio))
    return ratio, float(quants.dequantize(blocks, GGMLQuantizationType[name]).std())


def random_weights(name: str, rows: int, k: int, rng: np.random.Generator, deviation: float | None = None) -> np.ndarray:
    """uint8 [rows, row_bytes]: `rows` rows of `k` values of type `name` with standard deviation `deviation` (default k**-0.5).

    ValueError for a type that cannot be generated or a `k` that is no multiple of its block.
    """
    import numpy as np
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

    if name not in TYPES:
        raise ValueError(f"cannot generate weights of type {name}; known: {', '.join(TYPES)}")
    deviation = k**-0.5 if deviation is None else deviation
    if name in FLOAT_TYPES:
        values = rng.standard_normal((rows, k), dtype=np.float32) * np.float32(deviation)
        if name == "BF16":
            # Dropping the low half truncates towards zero: good enough for random values.
            return np.ascontiguousarray((values.view(np.uint32) >> 16).astype(np.uint16)).view(np.uint8)
        return values.astype(np.float16 if name == "F16" else np.float32).view(np.uint8)
    block, size = GGML_QUANT_SIZES[GGMLQuantizationType[name]]
    if k % block:
        raise ValueError(f"rows of {k} values are not a multiple of {name}'s block of {block}")
    blocks = _random_blocks(name, rows * (k // block), rng)
    ratio, unit = _unit(name)
    scale, minimum = _FIELDS[name]
    scales = deviation / unit * (0.75 + 0.5 * rng.random(len(blocks)))
    _put_half(blocks, scale, scales)
    if minimum is not None:
        _put_half(blocks, minimum, scales * ratio)
    return blocks.reshape(rows, k // block * size)


def scale_offset(name: str) -> int | None:
    """Byte offset of the f16 scale in a block of type `name`; None for a type without one."""
    return _FIELDS[name][0] if name in _FIELDS else None
