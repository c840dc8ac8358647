"""reference: integers against gguf's dequantisation, Q8_1 by hand-computed blocks."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from gguf import GGMLQuantizationType, quants
from wavesmith import reference
from wavesmith.gguf_types import gguf_type
from wavesmith.random_weights import random_weights

# Where a block's scales lie, and the bytes that make every scale 1 and every minimum 0.
ONE = np.array([1.0], np.float16).view(np.uint8)


def codebook_unit(name: str, blocks: np.ndarray) -> None:
    """Makes the groups' scales 1 in units of 1/8 (IQ3_XXS: 1/4, IQ3_S: 1), and the block's scale the inverse of that unit."""
    blocks[:, :2] = np.array([{"IQ3_XXS": 4.0, "IQ3_S": 1.0}.get(name, 8.0)], np.float16).view(np.uint8)
    if name == "IQ1_S":
        blocks[:, 35::2] &= 0x8F
    elif name == "IQ2_XXS":
        blocks[:, 9::8] &= 0x0F
    elif name == "IQ3_XXS":
        blocks[:, 69::4] &= 0x0F
    else:
        blocks[:, {"IQ2_XS": 66, "IQ2_S": 74, "IQ3_S": 106}[name] :] = 0


def unit_blocks(name: str, count: int) -> np.ndarray:
    """Random blocks whose dequantised values are the integers themselves (Q3_K: the negated integers)."""
    rng = np.random.default_rng(3)
    blocks = random_weights(name, count, gguf_type(name).block_values, rng)
    if name == "Q2_K":
        blocks[:, 80:84] = (*ONE, 0, 0)
    elif name == "Q3_K":
        blocks[:, 108:110] = ONE
    elif name in ("Q4_K", "Q5_K"):
        blocks[:, :4] = (*ONE, 0, 0)
        blocks[:, 4:8], blocks[:, 8:12], blocks[:, 12:16] = 1, 0, 1
    elif name == "Q6_K":
        blocks[:, 192:208], blocks[:, 208:210] = 1, ONE
    elif name == "IQ4_XS":
        # Scale 33 is 1: low nibble 1, high bits 2.
        blocks[:, :2], blocks[:, 2:4], blocks[:, 4:8] = ONE, 0xAA, 0x11
    elif name == "MXFP4":
        blocks[:, 0] = 128
    elif name == "NVFP4":
        blocks[:, :4] = 0x40
    else:
        blocks[:, :2] = ONE
        if name in ("Q4_1", "Q5_1"):
            blocks[:, 2:4] = 0
        elif name.startswith(("IQ1", "IQ2", "IQ3")):
            codebook_unit(name, blocks)
    return blocks


@pytest.mark.parametrize("name", reference.INTEGER_TYPES)
def test_integers_are_the_values_when_scales_are_one(name):
    blocks = unit_blocks(name, 64)
    values = dequantize(name, blocks)
    integers = reference.unpack_integers(name, blocks)
    assert integers.dtype == np.int8
    assert np.array_equal(-values if name == "Q3_K" else values, integers.astype(np.float32))
    assert len(np.unique(integers)) > (1 if name == "Q1_0" else 3)


def dequantize(name: str, blocks: np.ndarray) -> np.ndarray:
    """By the gguf package if the installed one can, else by the functions that the tests below check by hand."""
    with contextlib.suppress(KeyError, NotImplementedError):
        return quants.dequantize(blocks, GGMLQuantizationType[name])
    return reference.dequantize(name, blocks)


def test_q1_0_by_hand():
    rows = np.array([[*np.array([0.5], np.float16).view(np.uint8), 0b00000101, *[0] * 14, 0x80]], np.uint8)
    values = reference.dequantize("Q1_0", rows)
    assert values.shape == (1, 128)
    assert np.flatnonzero(values[0] == 0.5).tolist() == [0, 2, 127]
    assert (values == -0.5).sum() == 125


def test_q2_0_by_hand():
    rows = np.array([[*np.array([3.0], np.float16).view(np.uint8), 0b11100100, *[0b01010101] * 14, 0b10000000]], np.uint8)
    values = reference.dequantize("Q2_0", rows)
    assert values.shape == (1, 64)
    assert values[0, :4].tolist() == [-3, 0, 3, 6]
    assert values[0, 4:60].tolist() == [0] * 56
    assert values[0, 60:].tolist() == [-3, -3, -3, 3]


def test_mxfp4_by_hand():
    """Byte j holds weights j and j + 16; 2^(e - 127) times 0, 0.5, 1, 1.5, 2, 3, 4, 6."""
    rows = np.array([[130, 0xF1, 0x27, *[0] * 14], [0, 0x72, *[0] * 15], [255, 0x12, *[0] * 15]], np.uint8)
    values = reference.dequantize("MXFP4", rows)
    assert values[0, [0, 1, 16, 17]].tolist() == [4, 48, -48, 8]
    assert not values[0, 2:16].any()
    assert values[1, [0, 16]].tolist() == [2.0**-127, 6 * 2.0**-127]
    assert values[2, [0, 16]].tolist() == [np.inf, 2.0**127]


def test_nvfp4_by_hand():
    """Groups of 16 with scales 1 (0x38), the smallest 2^-9, the largest 448, and the NaN that counts as 0."""
    codes = np.full((4, 8), 0xA2, np.uint8)  # 1 and -1
    codes[0, 0] = 0x57  # 6 and 3
    values = reference.dequantize("NVFP4", np.concatenate((np.array([0x38, 0x01, 0x7E, 0x7F], np.uint8), codes.reshape(-1)))[None])[0]
    assert values[[0, 1, 7, 8, 9, 15]].tolist() == [6, 1, 1, 3, -1, -1]
    assert values[16:32].tolist() == [2.0**-9] * 8 + [-(2.0**-9)] * 8
    assert values[32:48].tolist() == [448] * 8 + [-448] * 8
    assert not values[48:].any()


@pytest.mark.parametrize("name", ["MXFP4", "NVFP4"])
def test_small_floats_agree_with_gguf(name):
    blocks = np.random.default_rng(8).integers(0, 256, (3000, gguf_type(name).block_bytes), np.uint8)
    assert np.array_equal(reference.dequantize(name, blocks), dequantize(name, blocks).astype(np.float32))


@pytest.mark.parametrize("name", reference.INTEGER_TYPES)
def test_integer_sums_are_plain_sums(name):
    rng = np.random.default_rng(4)
    rows = random_weights(name, 5, 512, rng)
    q = rng.integers(-127, 128, (3, 512), dtype=np.int8)
    weights, group = reference.unpack_integers(name, rows).astype(np.int64), reference.scale_group(name)
    expected = np.zeros((3, 5, 512 // group), np.int64)
    for n in range(3):
        for m in range(5):
            for g in range(512 // group):
                span = slice(g * group, (g + 1) * group)
                expected[n, m, g] = int((weights[m, span] * q[n, span].astype(np.int64)).sum())
    assert np.array_equal(reference.integer_sums(name, rows, q), expected)


def test_integer_sums_are_exact_at_the_extreme():
    rows = np.full((1, 34), 0x80, np.uint8)  # 32 times -128
    q = np.full((1, 32), -127, np.int8)
    assert reference.integer_sums("Q8_0", rows, q).tolist() == [[[32 * 128 * 127]]]


def test_groups():
    groups = {"Q6_K": 16, "IQ2_XS": 16, "IQ2_S": 16, "NVFP4": 16, "Q2_K": 64}
    assert all(reference.scale_group(name) == groups.get(name, 32) for name in reference.INTEGER_TYPES)
    assert reference.scale_group("F16") == 0


def block(layout: str, *values: float) -> tuple[np.ndarray, np.ndarray]:
    """Header bytes and integers of the one block of `values` (then zeros)."""
    out = reference.quantize_q8_1(np.array([values], np.float32), layout)
    assert out.shape == (-(-len(values) // 128), 1, 144)
    return out[0, 0, :16], out[0, 0, 16:].view(np.int8)


def test_d4_by_hand():
    header, q = block("d4", *([127.0, -127.0, 1.0, 0.5, -0.5, 1.5, -1.5, 0.49] + [0.0] * 24 + [254.0, 2.0]))
    assert q[:8].tolist() == [127, -127, 1, 1, -1, 2, -2, 0]
    assert q[32:34].tolist() == [127, 1]
    assert header.view(np.float32).tolist() == [1.0, 2.0, 0.0, 0.0]


def test_ds4_by_hand():
    header, _ = block("ds4", *range(1, 33))
    scale, total = header.view(np.float16)[:2]
    assert total == 32 * 33 / 2
    assert scale == np.float16(32 / 127)


def test_d2s6_by_hand():
    header, q = block("d2s6", *([1.0] * 64 + [2.0] * 64))
    halves = header.view(np.float16)
    assert halves[:2].tolist() == [np.float16(1 / 127), np.float16(2 / 127)]
    assert halves[2:].tolist() == [16.0, 16.0, 16.0, 16.0, 32.0, 32.0]
    assert set(q.tolist()) == {127}


def test_sum_order_is_stocks():
    """Four neighbours first: 1e8 + 1 - 1e8 - 1 rounds away the ones, another order would keep them."""
    header, _ = block("ds4", *([1e4, 1e8, -1e8, -1e4] + [0.0] * 28))
    expected = np.float32(np.float32(np.float32(np.float32(1e4) + np.float32(1e8)) + np.float32(-1e8)) + np.float32(-1e4))
    assert header.view(np.float16)[1] == np.float16(expected)


def test_sum_past_half_is_clamped():
    header, _ = block("ds4", *([60000.0] * 32 + [-60000.0] * 32))
    assert header.view(np.float16)[[1, 3]].tolist() == [65504.0, -65504.0]


def test_nan_stays_in_its_group():
    values = [1.0] * 128
    values[40] = float("nan")
    header, q = block("d4", *values)
    scales = header.view(np.float32)
    assert np.isnan(scales).tolist() == [False, True, False, False]
    assert set(q[32:64].tolist()) == {0}


def test_zero_and_subnormal_groups():
    header, q = block("d4", *([0.0] * 32 + [1e-40] * 32 + [1e-30] * 32))
    assert header.view(np.float32)[:2].tolist() == [0.0, 0.0]
    assert q.tolist() == [0] * 64 + [127] * 32 + [0] * 32


def test_tail_is_zero():
    header, q = block("d4", *([1.0] * 33))
    assert q.tolist() == [127] * 33 + [0] * 95
    assert header.view(np.float32)[2:].tolist() == [0.0, 0.0]


def test_quantized_activations_are_close_and_their_sums_exact():
    x = np.random.default_rng(5).standard_normal((3, 200)).astype(np.float32)
    quantized = reference.quantize_activations(x)
    assert quantized.q.shape == (3, 256)
    assert np.abs(quantized.values[:, :200] - x).max() <= np.abs(x).max() / 127 / 2 * 1.001
    assert np.array_equal(quantized.sums, quantized.q.reshape(3, 16, 16).astype(int).sum(axis=2))


@pytest.mark.parametrize("name", ["F32", "F16", "BF16", "Q4_K", "Q8_0"])
def test_mul_mat_in_chunks(name):
    rng = np.random.default_rng(6)
    rows, x = random_weights(name, 37, 256, rng), rng.standard_normal((4, 256)).astype(np.float32)
    squares = np.empty(37)
    out = reference.mul_mat(name, rows, x, squares, chunk_values=256 * 5)
    weights = reference.dequantize(name, rows).astype(np.float64)
    assert np.allclose(out, x.astype(np.float64) @ weights.T, rtol=1e-12, atol=1e-12)
    assert np.allclose(squares, (weights**2).sum(axis=1))
