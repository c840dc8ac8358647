"""What the kernels must compute, in numpy: float64 products, exact integer sums, and the Q8_1 quantisation of activations.

Everything here is written from the formats' definitions (ggml/src/ggml-common.h, ggml/src/ggml-cuda/quantize.cu), not from the
kernels, so that the two check each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .gguf_types import gguf_type

if TYPE_CHECKING:
    import numpy as np

LAYOUTS = ("d4", "ds4", "d2s6")
BLOCK_VALUES = 128
OWN_LAYOUTS = ("d4s8", "d2s8")  # of our own matrix product (backend/kernels/q8_1_blocks.h)
_HALF_MAX = 65504.0


# Activations ---------------------------------------------------------------------------------------------------------


def _round_half_away(values: np.ndarray) -> np.ndarray:
    import numpy as np

    magnitude = np.abs(values)
    whole = np.floor(magnitude)
    return np.copysign(whole + (magnitude - whole >= 0.5), values)


def pad_columns(x: np.ndarray) -> np.ndarray:
    """float32 [N, K] with zeros appended until K is a multiple of 128."""
    import numpy as np

    n, k = x.shape
    padded = np.zeros((n, -(-k // BLOCK_VALUES) * BLOCK_VALUES), np.float32)
    padded[:, :k] = x
    return padded


def quantize_groups(x: np.ndarray, group: int) -> tuple[np.ndarray, np.ndarray]:
    """Quantises every `group` values of K to int8: q = round(x * (127 / max|x|)) with halves away from zero, d = 1 / (127 / max|x|).

    x: float32 [N, K], K a multiple of `group`. Returns q int8 [N, K] and d float32 [N, K / group]. A group of zeros gives q = 0 and
    d = 0, so does one so small that 127 / max|x| overflows; a group with a NaN gives q = 0 and d = NaN.
    """
    import numpy as np

    groups = x.reshape(len(x), -1, group)
    with np.errstate(all="ignore"):
        largest = np.abs(groups).max(axis=-1, keepdims=True) if groups.size else np.zeros((*groups.shape[:2], 1), np.float32)
        inverse = np.float32(127) / largest
        scaled = groups * inverse
        usable = np.abs(scaled) <= 128
        q = np.where(usable, _round_half_away(np.where(usable, scaled, np.float32(0))), 0).astype(np.int8)
        d = np.float32(1) / inverse
    return q.reshape(x.shape), d[..., 0]


@dataclass(frozen=True)
class QuantizedActivations:
    """What mmq multiplies with. q: int8 [N, K padded to 128]; d: float32 [N, K / group]; sums: int32 [N, K / 16] of the q."""

    q: np.ndarray
    d: np.ndarray
    sums: np.ndarray

    @property
    def values(self) -> np.ndarray:
        """float64 [N, K padded]: the activations that the integers stand for."""
        import numpy as np

        return self.q.astype(np.float64) * np.repeat(self.d.astype(np.float64), self.q.shape[1] // self.d.shape[1], axis=1)


def quantize_activations(x: np.ndarray, type_name: str = "Q8_0") -> QuantizedActivations:
    """float32 [N, K] as the matrix kernels quantise it for weights of a type: groups of 32 (Q2_K: 64), K padded with zeros to a multiple of 128."""
    import numpy as np

    q, d = quantize_groups(pad_columns(x), 64 if type_name == "Q2_K" else 32)
    return QuantizedActivations(q, d, q.reshape(len(q), -1, 16).sum(axis=-1, dtype=np.int32))


def _group_sums(x: np.ndarray, group: int) -> np.ndarray:
    """float32 sums of `group` values in stock's order: four neighbours left to right, then halves added pairwise."""
    import numpy as np

    fours = x.reshape(len(x), -1, group // 4, 4)
    with np.errstate(all="ignore"):
        sums = fours[..., 0] + fours[..., 1] + fours[..., 2] + fours[..., 3]
        while sums.shape[-1] > 1:
            half = sums.shape[-1] // 2
            sums = sums[..., :half] + sums[..., half:]
    return sums[..., 0]


def _half(values: np.ndarray) -> np.ndarray:
    import numpy as np

    with np.errstate(over="ignore"):
        return values.astype(np.float16)


def _finite_half(values: np.ndarray) -> np.ndarray:
    """f16, what lies past its range clamped to the largest finite value (NaN stays NaN)."""
    import numpy as np

    return np.clip(values, -_HALF_MAX, _HALF_MAX).astype(np.float16)


def _header(x: np.ndarray, q: np.ndarray, d: np.ndarray, layout: str) -> np.ndarray:
    """uint8 [N, blocks, 16 or 32]: scales and sums in front of a block's integers."""
    import numpy as np

    n, blocks = len(x), x.shape[1] // BLOCK_VALUES
    if layout == "d4":
        return d.reshape(n, blocks, 4).view(np.uint8)
    if layout in OWN_LAYOUTS:
        scales = d.repeat(x.shape[1] // 32 // d.shape[1], axis=1).reshape(n, blocks, 4).view(np.uint8)
        sums = q.reshape(n, blocks, 8, 16).sum(axis=-1, dtype=np.int16).view(np.uint8)
        return np.concatenate((scales, sums), axis=-1)
    if layout == "ds4":
        pairs = np.stack((_half(d), _finite_half(_group_sums(x, 32))), axis=-1)
        return pairs.reshape(n, blocks, 8).view(np.uint8)
    sums = _finite_half(_group_sums(x, 16)).reshape(n, blocks, 8)[..., :6]
    return np.ascontiguousarray(np.concatenate((_half(d).reshape(n, blocks, 2), sums), axis=-1)).view(np.uint8)


def block_bytes(layout: str) -> int:
    """Bytes of a block of 128 activations."""
    return 160 if layout in OWN_LAYOUTS else 144


def quantize_q8_1(x: np.ndarray, layout: str) -> np.ndarray:
    """float32 [N, K] -> uint8 [ceil(K / 128), N, block bytes]: 144 in stock's byte order (block_q8_1_mmq in ggml/src/ggml-cuda/mmq.cuh).

    Our own layouts have 160: four float32 scales, eight int16 sums of 16 quantised values, then the integers.
    """
    import numpy as np

    padded = pad_columns(x)
    n, blocks = len(padded), padded.shape[1] // BLOCK_VALUES
    q, d = quantize_groups(padded, 64 if layout in ("d2s6", "d2s8") else 32)
    out = np.concatenate((_header(padded, q, d, layout), q.reshape(n, blocks, BLOCK_VALUES).view(np.uint8)), axis=-1)
    return np.ascontiguousarray(out.transpose(1, 0, 2))


# Weights -------------------------------------------------------------------------------------------------------------

_IQ4_VALUES = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
_FP4_VALUES = (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)  # E2M1, doubled


def _nibbles(packed: np.ndarray) -> np.ndarray:
    """[B, bytes] -> [B, 2 * bytes]: all the low halves, then all the high halves."""
    import numpy as np

    return np.concatenate((packed & 15, packed >> 4), axis=1)


def _fifth_bits(packed: np.ndarray) -> np.ndarray:
    """[B, 4] little-endian bits -> [B, 32] of 0 or 16."""
    return _bits(packed) << 4


def _bits(packed: np.ndarray) -> np.ndarray:
    """[B, bytes] -> [B, 8 * bytes] of 0 or 1, lowest bit first."""
    import numpy as np

    return np.unpackbits(packed, axis=1, bitorder="little")


def _crumbs(packed: np.ndarray, run: int) -> np.ndarray:
    """[B, bytes] -> [B, 4 * bytes]: for every `run` bytes the lowest two bits of each, then the next two, and so on."""
    import numpy as np

    runs = packed.reshape(len(packed), -1, 1, run)
    shifts = np.array([0, 2, 4, 6], np.uint8).reshape(1, 1, 4, 1)
    return (runs >> shifts & 3).reshape(len(packed), -1)


def _paired_nibbles(packed: np.ndarray, run: int) -> np.ndarray:
    """[B, bytes] -> [B, 2 * bytes]: for every `run` bytes the low halves, then the high halves."""
    import numpy as np

    runs = packed.reshape(len(packed), -1, 1, run)
    return (runs >> np.array([0, 4], np.uint8).reshape(1, 1, 2, 1) & 15).reshape(len(packed), -1)


def _bit_planes(packed: np.ndarray) -> np.ndarray:
    """[B, 32] -> [B, 256]: bit 0 of all the bytes, then bit 1, and so on."""
    import numpy as np

    return (packed[:, None, :] >> np.arange(8, dtype=np.uint8).reshape(1, 8, 1) & 1).reshape(len(packed), -1)


def _signed(values: np.ndarray, offset: int = 0) -> np.ndarray:
    import numpy as np

    return (values.astype(np.int16) - offset).astype(np.int8)


def _iq4(indices: np.ndarray) -> np.ndarray:
    import numpy as np

    return np.array(_IQ4_VALUES, np.int8)[indices]


def _q6_k(b: np.ndarray) -> np.ndarray:
    return _signed(_paired_nibbles(b[:, :128], 64) | _crumbs(b[:, 128:192], 32) << 4, 32)


def _q2_k(b: np.ndarray) -> np.ndarray:
    """Weight (0 ... 3) times the 4-bit scale of its 16 values."""
    return _signed(_crumbs(b[:, 16:80], 32) * (b[:, :16] & 15).repeat(16, axis=1))


def _q3_k(b: np.ndarray) -> np.ndarray:
    """(4 - weight) times (6-bit scale of its 16 values - 32): the negated product is the one that always fits a signed byte."""
    import numpy as np

    weights = (_crumbs(b[:, 32:96], 32) | _bit_planes(b[:, :32]) << 2).astype(np.int16)
    low = np.concatenate((b[:, 96:104] & 15, b[:, 96:104] >> 4), axis=1)
    high = np.concatenate([b[:, 104:108] >> shift & 3 for shift in (0, 2, 4, 6)], axis=1)
    scales = (low | high << 4).astype(np.int16) - 32
    return ((4 - weights) * scales.repeat(16, axis=1)).astype(np.int8)


def _words(b: np.ndarray, dtype: str) -> np.ndarray:
    """[B, bytes] as little-endian numbers."""
    import numpy as np

    return np.ascontiguousarray(b).view(np.dtype(dtype).newbyteorder("<"))


def _fields(words: np.ndarray, bits: int) -> np.ndarray:
    """[B, n] -> [B, 4 * n]: the lowest four fields of `bits` bits of each number."""
    import numpy as np

    return (words[:, :, None] >> (bits * np.arange(4)).astype(words.dtype) & (1 << bits) - 1).reshape(len(words), -1)


def _codebook(type_name: str, indices: np.ndarray) -> np.ndarray:
    """[B, runs] -> int8 [B, values]: runs of the codebook, from the gguf package."""
    import numpy as np
    from gguf import quants

    kind = getattr(quants, type_name)
    kind.init_grid()
    return kind.grid.reshape(kind.grid_shape).astype(np.int8)[indices].reshape(len(indices), -1)


def _eighth_sign(seven: np.ndarray) -> np.ndarray:
    """[B, n] of seven sign bits -> the eight bits of which an even number is set."""
    import numpy as np

    seven = seven.astype(np.uint8)
    return seven | np.unpackbits(seven[..., None], axis=-1).sum(axis=-1, dtype=np.uint8) % 2 << 7


def _with_signs(values: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """int8 [B, values] negated where a bit of `signs` uint8 [B, values / 8] is set."""
    import numpy as np

    return np.where(_bits(signs), -values, values)


def _iq1_s(b: np.ndarray) -> np.ndarray:
    """Eight times (codebook value +- 1/8)."""
    import numpy as np

    high = _words(b[:, 34:], "u2")
    offset = np.where(high >> 15, -1, 1).repeat(32, axis=1)
    return (8 * _codebook("IQ1_S", b[:, 2:34] | _fields(high, 3) << 8) + offset).astype(np.int8)


def _iq2_xxs(b: np.ndarray) -> np.ndarray:
    import numpy as np

    words = _words(b[:, 2:], "u4")
    return _with_signs(_codebook("IQ2_XXS", np.ascontiguousarray(words[:, ::2]).view(np.uint8)), _eighth_sign(_fields(words[:, 1::2], 7)))


def _iq2_xs(b: np.ndarray) -> np.ndarray:
    words = _words(b[:, 2:66], "u2")
    return _with_signs(_codebook("IQ2_XS", words & 511), _eighth_sign(words >> 9))


def _iq2_s(b: np.ndarray) -> np.ndarray:
    return _with_signs(_codebook("IQ2_S", b[:, 2:34] | _fields(b[:, 66:74].astype("u2"), 2) << 8), b[:, 34:66])


def _iq3_xxs(b: np.ndarray) -> np.ndarray:
    return _with_signs(_codebook("IQ3_XXS", b[:, 2:66]), _eighth_sign(_fields(_words(b[:, 66:], "u4"), 7)))


def _iq3_s(b: np.ndarray) -> np.ndarray:
    return _with_signs(_codebook("IQ3_S", b[:, 2:66] | _bits(b[:, 66:74]).astype("u2") << 8), b[:, 74:106])


def _fp4(codes: np.ndarray) -> np.ndarray:
    import numpy as np

    return np.array(_FP4_VALUES, np.int8)[codes]


def _half_scales(b: np.ndarray) -> np.ndarray:
    return b[:, :2].copy().view("float16").astype("float32")


def _mxfp4_scales(b: np.ndarray) -> np.ndarray:
    """2^(byte - 128), half the scale that the byte stands for: the integers are the doubled weights."""
    import numpy as np

    return np.ldexp(np.float32(1), b[:, :1].astype(np.int32) - 128)


def _nvfp4_scales(b: np.ndarray) -> np.ndarray:
    """Half of the E4M3 scales, without their sign bit; 0x7F counts as 0."""
    import numpy as np

    scales = b[:, :4]
    exponent, mantissa = (scales >> 3 & 15).astype(np.int32), (scales & 7).astype(np.float32)
    values = np.where(exponent == 0, np.ldexp(mantissa, -10), np.ldexp(1 + mantissa / 8, exponent - 8))
    return np.where(scales == 0x7F, 0, values).astype(np.float32)


@dataclass(frozen=True)
class _IntegerFormat:
    """How a block's integers lie: values that share a sum, and the unpacking of blocks uint8 [B, bytes] to int8 [B, values].

    scales: float32 [B, any number of scales] of blocks, for types that not every gguf package dequantises.
    """

    group: int
    unpack: Callable[[np.ndarray], np.ndarray]
    scales: Callable[[np.ndarray], np.ndarray] | None = None


_FORMATS = {
    "Q4_0": _IntegerFormat(32, lambda b: _signed(_nibbles(b[:, 2:]), 8)),
    "Q4_1": _IntegerFormat(32, lambda b: _signed(_nibbles(b[:, 4:]))),
    "Q5_0": _IntegerFormat(32, lambda b: _signed(_nibbles(b[:, 6:]) | _fifth_bits(b[:, 2:6]), 16)),
    "Q5_1": _IntegerFormat(32, lambda b: _signed(_nibbles(b[:, 8:]) | _fifth_bits(b[:, 4:8]))),
    "Q8_0": _IntegerFormat(32, lambda b: b[:, 2:].view("int8")),
    "Q2_K": _IntegerFormat(64, _q2_k),
    "Q3_K": _IntegerFormat(32, _q3_k),
    "Q4_K": _IntegerFormat(32, lambda b: _signed(_paired_nibbles(b[:, 16:], 32))),
    "Q5_K": _IntegerFormat(32, lambda b: _signed(_paired_nibbles(b[:, 48:], 32) | _bit_planes(b[:, 16:48]) << 4)),
    "Q6_K": _IntegerFormat(16, _q6_k),
    "Q1_0": _IntegerFormat(32, lambda b: _signed(2 * _bits(b[:, 2:]), 1), _half_scales),
    "Q2_0": _IntegerFormat(32, lambda b: _signed(_fields(b[:, 2:], 2), 1), _half_scales),
    "IQ1_S": _IntegerFormat(32, _iq1_s),
    "IQ2_XXS": _IntegerFormat(32, _iq2_xxs),
    "IQ2_XS": _IntegerFormat(16, _iq2_xs),
    "IQ2_S": _IntegerFormat(16, _iq2_s),
    "IQ3_XXS": _IntegerFormat(32, _iq3_xxs),
    "IQ3_S": _IntegerFormat(32, _iq3_s),
    "IQ4_NL": _IntegerFormat(32, lambda b: _iq4(_nibbles(b[:, 2:]))),
    "IQ4_XS": _IntegerFormat(32, lambda b: _iq4(_paired_nibbles(b[:, 8:], 16))),
    "MXFP4": _IntegerFormat(32, lambda b: _fp4(_nibbles(b[:, 1:])), _mxfp4_scales),
    "NVFP4": _IntegerFormat(16, lambda b: _fp4(_paired_nibbles(b[:, 4:], 8)), _nvfp4_scales),
}

INTEGER_TYPES = tuple(_FORMATS)


def scale_group(type_name: str) -> int:
    """Values that share one integer sum (16, 32 or 64); 0 for a type without integers here (F32, F16, BF16 and those that stock keeps)."""
    return _FORMATS[type_name].group if type_name in _FORMATS else 0


def unpack_integers(type_name: str, rows: np.ndarray) -> np.ndarray:
    """uint8 [M, row_bytes] -> int8 [M, K]: the quantised integers as the kernels multiply them (Q4_0: q - 8, IQ4_NL: table value, Q2_K: q * scale)."""
    import numpy as np

    blocks = np.ascontiguousarray(rows).reshape(-1, gguf_type(type_name).block_bytes)
    return _FORMATS[type_name].unpack(blocks).reshape(len(rows), -1)


def integer_sums(type_name: str, rows: np.ndarray, q: np.ndarray) -> np.ndarray:
    """int32 [N, M, K / group]: sum over each group of weight integer * activation integer.

    rows: uint8 [M, row_bytes]; q: int8 [N, at least K]. Computed in float32, where it is exact: no partial sum exceeds
    64 * 128 * 127 < 2^24.
    """
    import numpy as np

    group = scale_group(type_name)
    weights = unpack_integers(type_name, rows)
    m, k = weights.shape
    left = q[:, :k].astype(np.float32).reshape(len(q), k // group, group).transpose(1, 0, 2)
    right = weights.astype(np.float32).reshape(m, k // group, group).transpose(1, 2, 0)
    return np.ascontiguousarray((left @ right).transpose(1, 2, 0).astype(np.int32))


def dequantize(type_name: str, rows: np.ndarray) -> np.ndarray:
    """uint8 [M, row_bytes] -> float32 [M, K], by the gguf package where any version of it can."""
    import numpy as np
    from gguf import quants
    from gguf.constants import GGMLQuantizationType

    known = _FORMATS.get(type_name)
    if known and known.scales:
        blocks = np.ascontiguousarray(rows).reshape(-1, gguf_type(type_name).block_bytes)
        scales = known.scales(blocks)
        with np.errstate(all="ignore"):
            return (known.unpack(blocks).reshape(*scales.shape, -1) * scales[..., None]).reshape(len(rows), -1)
    with np.errstate(all="ignore"):
        return quants.dequantize(np.ascontiguousarray(rows), GGMLQuantizationType[type_name])


def mul_mat(type_name: str, rows: np.ndarray, x: np.ndarray, squares: np.ndarray | None = None, chunk_values: int = 1 << 22) -> np.ndarray:
    """float64 [N, M] = x [N, K] times the dequantised rows, in chunks of about `chunk_values` weights to bound memory.

    squares: float64 [M], filled with the sum of squares of each row when given.
    """
    import numpy as np

    out = np.empty((len(x), len(rows)))
    step = max(1, chunk_values // max(1, x.shape[1]))
    columns = x.astype(np.float64)
    with np.errstate(all="ignore"):
        for start in range(0, len(rows), step):
            weights = dequantize(type_name, rows[start : start + step]).astype(np.float64)
            np.matmul(columns, weights.T, out=out[:, start : start + step])
            if squares is not None:
                np.einsum("mk,mk->m", weights, weights, out=squares[start : start + step])
    return out
