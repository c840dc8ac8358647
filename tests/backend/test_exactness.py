"""Exact where it must be: integer sums bit for bit on any shape, the same floats for every tile plan and family, extreme inputs of every type."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from wavesmith import host_library, ops, reference
from wavesmith.gguf_types import gguf_type
from wavesmith.host_library import FAMILIES, Operand
from wavesmith.random_weights import random_weights, scale_offset
from wavesmith.reference import INTEGER_TYPES


def block_of(name: str) -> tuple[int, int, int]:
    """(ggml's number, values and bytes of a block)."""
    kind = gguf_type(name)
    return kind.number, kind.block_values, kind.block_bytes


def weights_of(name: str, rows: int, k: int, seed: int = 1) -> np.ndarray:
    return random_weights(name, rows, k, np.random.default_rng(seed)).view(np.uint8).reshape(rows, -1)


@functools.cache
def variants_of(name: str, family: str) -> tuple[str, ...]:
    return tuple(host_library.variants(block_of(name)[0], family))


def product(name: str, w: np.ndarray, x: np.ndarray, family: str, variant: str | None) -> tuple[np.ndarray, np.ndarray]:
    """float32 [N, M] and the integer sums of the checked kernels, int32 [N, M, K / group]."""
    number, _, block_bytes = block_of(name)
    (m, row), (n, k) = w.shape, x.shape
    out, sums = np.full((n, m), np.nan, np.float32), np.full((n, m, k // reference.scale_group(name)), 1 << 30, np.int32)
    host_library.mul_mat_raw(
        Operand(number, w.reshape(-1), (k, m, 1, 1), (block_bytes, row, row * m, row * m)),
        Operand(0, x.view(np.uint8).reshape(-1), (k, n, 1, 1), (4, 4 * k, 4 * k * n, 4 * k * n)),
        Operand(0, out.view(np.uint8).reshape(-1), (m, n, 1, 1), (4, 4 * m, 4 * m * n, 4 * m * n)),
        family=family,
        variant=variant,
        integer_sums=sums,
    )
    return out, sums


# Any shape -----------------------------------------------------------------------------------------------------------


@st.composite
def shapes(draw) -> tuple[str, str, str | None, int, int, int, int]:
    """(type, family, tile plan, M, N, K, seed): sizes around what tiles make of them."""
    name, family = draw(st.sampled_from(INTEGER_TYPES)), draw(st.sampled_from(FAMILIES))
    variant = draw(st.sampled_from((None, *variants_of(name, family))))
    m, n = draw(st.integers(1, 140)), draw(st.integers(1, 70))
    block = block_of(name)[1]
    return name, family, variant, m, n, block * draw(st.integers(1, max(1, 640 // block))), draw(st.integers(0, 1 << 16))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(shapes())
def test_integer_sums_and_floats_of_any_shape(shape):
    name, family, variant, m, n, k, seed = shape
    w = weights_of(name, m, k, seed)
    x = np.random.default_rng(seed + 1).standard_normal((n, k)).astype(np.float32)
    out, sums = product(name, w, x, family, variant)
    assert np.array_equal(sums, reference.integer_sums(name, w, reference.quantize_activations(x, name).q))
    assert out.tobytes() == ops.mul_mat(name, w, x).tobytes()  # whatever the family, the plan and the checks


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", INTEGER_TYPES)
def test_every_tile_plan_gives_the_same_bits(name, family):
    """Tails in M and N, and more than one tile of the widest plans."""
    w, x = weights_of(name, 133, 512), np.random.default_rng(2).standard_normal((67, 512)).astype(np.float32)
    names = variants_of(name, family)
    assert names
    expected = ops.mul_mat(name, w, x, family="rdna3").tobytes()
    for variant in names:
        assert ops.mul_mat(name, w, x, family=family, variant=variant).tobytes() == expected, variant


# Extreme inputs ------------------------------------------------------------------------------------------------------


@functools.cache
def extreme_rows(name: str) -> np.ndarray:
    """uint8 [M, row_bytes], K = 512: rows of one repeated byte, but for ordinary scales.

    Of the 256 bytes those whose integers have the largest sum, the smallest, and the largest magnitudes, then the plain patterns.
    """
    _, values, size = block_of(name)
    blocks = np.repeat(np.arange(256, dtype=np.uint8)[:, None], size, axis=1)
    template = weights_of(name, 1, values).reshape(-1)
    offset = scale_offset(name)
    if offset is not None:
        length = 4 if name in ("Q4_1", "Q5_1", "Q2_K", "Q4_K", "Q5_K") else 2
        blocks[:, offset : offset + length] = template[offset : offset + length]
    else:
        blocks[:, : size // 9] = template[: size // 9]
    integers = reference.unpack_integers(name, blocks).astype(int)
    chosen = [integers.sum(axis=1).argmax(), integers.sum(axis=1).argmin(), np.abs(integers).sum(axis=1).argmax(), 0x00, 0xFF, 0x80, 0x7F, 0xF0, 0x0F]
    return np.tile(blocks[chosen], 512 // values)


def extreme_activations() -> np.ndarray:
    """float32 [6, 512] that quantise to nothing but 127 and -127 in patterns that add up or cancel."""
    signs = np.ones((6, 512), np.float32)
    signs[1] = -1
    signs[2, ::2] = -1
    signs[3, :256] = -1
    signs[4] = np.resize([1, 1, -1, -1], 512)
    signs[5] = np.random.default_rng(3).choice([-1, 1], 512)
    return signs * np.array([[1], [1e30], [3.4e38], [1e-30], [60000], [2**-100]], np.float32)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", INTEGER_TYPES)
def test_sums_of_the_largest_integers(name, family):
    w, x = extreme_rows(name), extreme_activations()
    q = reference.quantize_activations(x, name).q
    assert set(np.unique(q)) == {-127, 127}
    integers = reference.unpack_integers(name, w)
    usual = reference.unpack_integers(name, weights_of(name, 64, 2048))
    assert integers.max() >= usual.max() or integers.min() <= usual.min()
    for variant in variants_of(name, family):
        sums = product(name, w, x, family, variant)[1]
        assert np.array_equal(sums, reference.integer_sums(name, w, q)), variant


def test_extreme_rows_reach_the_ends_of_a_byte():
    """Over all types together: -128 and 127 both occur, in whole rows."""
    rows = {name: reference.unpack_integers(name, extreme_rows(name)) for name in INTEGER_TYPES}
    assert {int(rows["Q8_0"].min()), int(rows["Q8_0"].max())} == {-128, 127}
    assert (rows["Q8_0"] == -128).all(axis=1).any() and (rows["Q8_0"] == 127).all(axis=1).any()
    assert rows["Q6_K"].min() == -32 and rows["Q6_K"].max() == 31
    assert rows["Q2_K"].max() == 45
    assert rows["IQ4_NL"].min() == -127 and rows["IQ4_NL"].max() == 113


def with_scale(name: str, w: np.ndarray, row: int, value: float) -> None:
    """Sets the f16 scale of a row's first block."""
    offset = scale_offset(name)
    assert offset is not None
    w[row, offset : offset + 2] = np.frombuffer(np.float16(value).tobytes(), np.uint8)


SCALED = [name for name in INTEGER_TYPES if scale_offset(name) is not None]


@pytest.mark.parametrize("name", SCALED)
@pytest.mark.parametrize("value", [6e-8, 5e-6, -6e-8, 65504.0])
def test_subnormal_and_largest_scales(name, value):
    """A scale that is subnormal in f16 counts in full; the largest does not overflow."""
    w, x = weights_of(name, 9, 512), np.random.default_rng(4).standard_normal((5, 512)).astype(np.float32)
    offset, size = scale_offset(name), block_of(name)[2]
    blocks = w.reshape(9, -1, size)
    blocks[..., offset : offset + 2] = np.frombuffer(np.float16(value).tobytes(), np.uint8)
    out = ops.mul_mat(name, w, x)
    expected = reference.quantize_activations(x, name).values @ reference.dequantize(name, w).astype(np.float64).T
    assert np.abs(out - expected).max() <= 2e-6 * np.abs(expected).max()
    for family in FAMILIES:
        assert ops.mul_mat(name, w, x, family=family).tobytes() == out.tobytes()


@pytest.mark.parametrize("name", INTEGER_TYPES)
def test_not_a_number_and_infinity_stay_in_their_column(name):
    w, x = weights_of(name, 20, 512), np.random.default_rng(5).standard_normal((9, 512)).astype(np.float32)
    clean = ops.mul_mat(name, w, x)
    x[2, 100], x[5, 511], x[7, :] = np.nan, np.inf, -np.inf
    for family in FAMILIES:
        out = ops.mul_mat(name, w, x, family=family)
        assert not np.isfinite(out[[2, 5, 7]]).any()
        assert np.isnan(out[2]).all()
        rest = [0, 1, 3, 4, 6, 8]
        assert out[rest].tobytes() == clean[rest].tobytes()


@pytest.mark.parametrize("name", INTEGER_TYPES)
@pytest.mark.parametrize("size", [1.0, 3000.0, 6e4, 1e20, -1e20])
def test_sums_of_activations_past_the_range_of_f16(name, size):
    """All values of one sign: the sum of a block leaves f16's range, the product must not."""
    w, x = weights_of(name, 30, 512), np.full((3, 512), size, np.float32)
    x[1] *= np.float32(0.5)
    out, expected = ops.mul_mat(name, w, x), reference.mul_mat(name, w, x)
    assert np.isfinite(out).all()
    scale = float(np.abs(reference.dequantize(name, w)).sum(axis=1).max()) * abs(size)
    assert np.abs(out - expected).max() <= 1e-5 * scale


@pytest.mark.parametrize("name", INTEGER_TYPES)
def test_tiny_activations(name):
    """Subnormal activations: their scale underflows, so they count as zero, as in stock; the next larger ones do not."""
    w = weights_of(name, 8, 512)
    x = np.full((2, 512), 1e-42, np.float32)
    x[1] = 1e-30
    out = ops.mul_mat(name, w, x)
    assert not out[0].any()
    expected = reference.mul_mat(name, w, x)[1]
    assert np.abs(out[1] - expected).max() <= 1e-5 * float(np.abs(reference.dequantize(name, w)).sum(axis=1).max()) * 1e-30
