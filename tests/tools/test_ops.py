"""ops: the kernels' results against the numpy reference, and every refusal."""

from __future__ import annotations

import numpy as np
import pytest
import wavesmith
from gguf import GGMLQuantizationType
from wavesmith import host_library, ops, reference
from wavesmith.errors import CannotRun
from wavesmith.gguf_types import gguf_type
from wavesmith.random_weights import random_weights

FAMILIES = host_library.FAMILIES
INTEGER_TYPES = reference.INTEGER_TYPES


def x_of(n: int, k: int, seed: int = 1) -> np.ndarray:
    x = np.random.default_rng(seed).standard_normal((n, k)).astype(np.float32)
    if x.size:
        x[:, :: max(1, k // 3)] *= 12
    return x


def w_of(name: str, m: int, k: int, seed: int = 2) -> np.ndarray:
    return random_weights(name, m, k, np.random.default_rng(seed))


def nmse(out: np.ndarray, expected: np.ndarray) -> float:
    return float(np.square(out - expected).sum() / np.square(expected).sum())


def quantized_product(name: str, w: np.ndarray, x: np.ndarray) -> np.ndarray:
    """float64 product with the activations as the kernels quantise them: what is left to them is f32 rounding."""
    return reference.quantize_activations(x, name).values[:, : x.shape[1]] @ reference.dequantize(name, w).astype(np.float64).T


# quantize_q8_1 -------------------------------------------------------------------------------------------------------


def assert_same_blocks(ours: np.ndarray, expected: np.ndarray, layout: str) -> None:
    """Equal bytes, but any NaN equals any other in a header."""
    assert ours.shape == expected.shape
    assert np.array_equal(ours[..., 16:], expected[..., 16:])
    dtype = np.float32 if layout == "d4" else np.float16
    a, b = (np.ascontiguousarray(blocks[..., :16]).view(dtype) for blocks in (ours, expected))
    nan = np.isnan(b)
    assert np.array_equal(np.isnan(a), nan)
    bits = np.uint32 if layout == "d4" else np.uint16
    assert np.array_equal(a.view(bits)[~nan], b.view(bits)[~nan])


@pytest.mark.parametrize("layout", ops.LAYOUTS)
@pytest.mark.parametrize("k", [1, 3, 4, 31, 32, 33, 63, 65, 96, 127, 128, 129, 500, 1024, 1155])
def test_quantize_is_bit_exact_for_any_k(layout, k):
    x = x_of(5, k)
    assert_same_blocks(ops.quantize_q8_1(x, layout), reference.quantize_q8_1(x, layout), layout)


def special_rows() -> np.ndarray:
    rng = np.random.default_rng(9)
    rows = np.zeros((12, 256), np.float32)
    rows[1] = rng.standard_normal(256) * 1e30
    rows[2] = rng.standard_normal(256) * 1e-30
    rows[3] = rng.standard_normal(256) * 1e-42  # subnormal
    rows[4] = 60000.0  # sums past float16
    rows[5] = -60000.0
    rows[6, ::2] = 127.0
    rows[6, 1::2] = np.tile([0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 126.5, -126.5], 16)  # halves round away from zero
    rows[7, 0] = 1.0
    rows[8] = rng.standard_normal(256)
    rows[8, [5, 70, 200]] = np.nan
    rows[9] = 1.0
    rows[9, 130] = np.inf
    rows[9, 10] = -np.inf
    rows[10] = np.finfo(np.float32).max
    rows[11] = -0.0
    return rows


@pytest.mark.parametrize("layout", ops.LAYOUTS)
def test_quantize_is_bit_exact_for_special_values(layout):
    rows = special_rows()
    for row in range(len(rows)):
        x = rows[row : row + 1]
        assert_same_blocks(ops.quantize_q8_1(x, layout), reference.quantize_q8_1(x, layout), layout)


@pytest.mark.parametrize("layout", ops.LAYOUTS)
def test_quantize_many_rows_and_strides(layout):
    x = x_of(70, 2 * 200)
    assert_same_blocks(ops.quantize_q8_1(x[:, ::2], layout), reference.quantize_q8_1(np.ascontiguousarray(x[:, ::2]), layout), layout)


def test_quantize_nothing():
    assert ops.quantize_q8_1(np.zeros((0, 200), np.float32), "d4").shape == (2, 0, 144)


# mul_mat -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", INTEGER_TYPES)
def test_mul_mat_of_every_type_and_family(name, family):
    w, x = w_of(name, 70, 512), x_of(37, 512)
    out = ops.mul_mat(name, w, x, family=family)
    assert (out.dtype, out.shape) == (np.float32, (37, 70))
    assert nmse(out, quantized_product(name, w, x)) < 1e-12
    assert nmse(out, reference.mul_mat(name, w, x)) < 5e-4


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", ["F32", "F16", "BF16"])
def test_mul_mat_of_float_types(name, family):
    w, x = w_of(name, 19, 101), x_of(6, 101)
    assert nmse(ops.mul_mat(name, w, x, family=family), reference.mul_mat(name, w, x)) < 1e-12


@pytest.mark.parametrize("m", [1, 2, 15, 17, 63, 65, 129])
@pytest.mark.parametrize("n", [1, 2, 7, 33, 65])
def test_mul_mat_of_odd_sizes(m, n):
    w, x = w_of("Q4_0", m, 32 * 5), x_of(n, 32 * 5)
    assert nmse(ops.mul_mat("q4_0", w, x), quantized_product("Q4_0", w, x)) < 1e-12


@pytest.mark.parametrize("name", ["Q4_K", "q4_k", GGMLQuantizationType.Q4_K])
def test_type_names(name):
    w, x = w_of("Q4_K", 3, 256), x_of(2, 256)
    assert np.array_equal(ops.mul_mat(name, w, x), ops.mul_mat("Q4_K", w, x))


def test_results_do_not_depend_on_the_other_columns():
    w, x = w_of("Q5_K", 40, 512), x_of(70, 512)
    whole = ops.mul_mat("Q5_K", w, x)
    for n in (1, 7, 16, 33):
        assert ops.mul_mat("Q5_K", w, x[:n]).tobytes() == whole[:n].tobytes()


def test_every_variant_gives_the_same_bits():
    w, x = w_of("Q6_K", 130, 512), x_of(70, 512)
    names = host_library.variants(int(GGMLQuantizationType.Q6_K), "rdna3")
    assert names
    expected = ops.mul_mat("Q6_K", w, x).tobytes()
    for name in names:
        assert ops.mul_mat("Q6_K", w, x, variant=name).tobytes() == expected


def test_nan_stays_in_its_column():
    w, x = w_of("Q4_K", 20, 256), x_of(5, 256)
    x[2, 100] = np.nan
    out = ops.mul_mat("Q4_K", w, x)
    assert np.isnan(out[2]).all()
    assert np.isfinite(out[[0, 1, 3, 4]]).all()


def test_activations_need_not_be_contiguous():
    w, x = w_of("Q8_0", 9, 64), x_of(6, 128)
    assert np.array_equal(ops.mul_mat("Q8_0", w, x[::2, ::2]), ops.mul_mat("Q8_0", w, x[::2, ::2].copy()))
    assert np.array_equal(ops.mul_mat("Q8_0", w, np.asfortranarray(x[:, :64])), ops.mul_mat("Q8_0", w, x[:, :64].copy()))


@pytest.mark.parametrize(("m", "n"), [(0, 3), (3, 0), (0, 0)])
def test_mul_mat_of_nothing(m, n):
    assert ops.mul_mat("Q8_0", np.zeros((m, 34), np.uint8), np.zeros((n, 32), np.float32)).shape == (n, m)


@pytest.mark.parametrize("name", INTEGER_TYPES)
def test_integer_sums_are_exact(name):
    w, x = w_of(name, 70, 768), x_of(37, 768)
    out, sums = checked(name, w, x, "rdna3")
    assert np.array_equal(sums, reference.integer_sums(name, w, reference.quantize_activations(x, name).q))
    assert out.tobytes() == ops.mul_mat(name, w, x).tobytes()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", INTEGER_TYPES)
def test_integer_sums_are_exact_on_every_family(name, family):
    w, x = w_of(name, 33, 256), x_of(18, 256)
    sums = checked(name, w, x, family)[1]
    assert np.array_equal(sums, reference.integer_sums(name, w, reference.quantize_activations(x, name).q))


@pytest.mark.parametrize("blocks", [1, 2, 3, 5])
@pytest.mark.parametrize("name", INTEGER_TYPES)
def test_k_of_any_number_of_blocks(name, blocks):
    k = blocks * gguf_type(name).block_values
    w, x = w_of(name, 21, k), x_of(9, k)
    out, sums = checked(name, w, x, "rdna3")
    assert np.array_equal(sums, reference.integer_sums(name, w, reference.quantize_activations(x, name).q))
    assert nmse(out, quantized_product(name, w, x)) < 1e-12


@pytest.mark.parametrize(("name", "entries"), [("IQ1_S", 2048), ("IQ2_XXS", 256), ("IQ2_XS", 512), ("IQ2_S", 1024), ("IQ3_XXS", 256), ("IQ3_S", 512)])
def test_every_entry_of_a_codebook(name, entries):
    """So many random blocks that each entry is met, with a few activations each."""
    w, x = w_of(name, 256, 1024), x_of(3, 1024)
    runs = np.abs(reference.unpack_integers(name, w).astype(int)).reshape(-1, 4 if name.startswith("IQ3") else 8)
    if name == "IQ1_S":
        runs = np.round(reference.unpack_integers(name, w) / 8).reshape(-1, 8)
    assert len(np.unique(runs, axis=0)) == entries
    sums = checked(name, w, x, "rdna3")[1]
    assert np.array_equal(sums, reference.integer_sums(name, w, reference.quantize_activations(x, name).q))


def mxfp4_rows(exponents: np.ndarray) -> np.ndarray:
    """uint8 [M, blocks * 17] with these E8M0 bytes [M, blocks] and random weights."""
    codes = np.random.default_rng(4).integers(0, 256, (*exponents.shape, 16), np.uint8)
    return np.concatenate((exponents[..., None].astype(np.uint8), codes), axis=-1).reshape(len(exponents), -1)


def test_every_scale_of_mxfp4():
    """From subnormal scales to the largest: right, or infinite where f32 ends."""
    w, x = mxfp4_rows(np.arange(256)[:, None]), x_of(5, 32)
    out = ops.mul_mat("MXFP4", w, x)
    integers = reference.unpack_integers("MXFP4", w).astype(np.float64)
    expected = np.ldexp(reference.quantize_activations(x, "MXFP4").values[:, :32] @ integers.T, np.arange(256) - 128)
    over = np.abs(expected) > float(np.finfo(np.float32).max)
    assert 0 < over.sum() < over.size
    assert np.array_equal(np.isinf(out), over)
    assert np.array_equal(np.sign(out), np.sign(expected))
    assert np.allclose(out[~over], expected[~over], rtol=1e-6, atol=2.0**-148)


@pytest.mark.parametrize(("centre", "size"), [(4, 1.0), (4, 1e30), (60, 1e-20), (128, 1e-30), (128, 1e30), (200, 1e3), (246, 1e-3), (246, 1e-30)])
def test_mxfp4_far_from_one(centre, size):
    """Scales and activations of any size whose product is an f32: nothing overflows on the way."""
    w = mxfp4_rows(np.random.default_rng(5).integers(centre - 4, centre + 4, (20, 8)))
    x = x_of(5, 256) * np.float32(size)
    expected = quantized_product("MXFP4", w, x)
    assert np.abs(expected).max() < 1e38
    assert np.allclose(ops.mul_mat("MXFP4", w, x), expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max() + 2.0**-145)


def test_every_scale_of_nvfp4():
    codes = np.random.default_rng(6).integers(0, 256, (64, 32), np.uint8)
    w = np.concatenate((np.arange(256, dtype=np.uint8).reshape(64, 4), codes), axis=1)
    x = x_of(5, 64)
    assert np.allclose(ops.mul_mat("NVFP4", w, x), quantized_product("NVFP4", w, x), rtol=1e-6, atol=1e-3)
    w[:] = 0x7F  # a NaN of E4M3, which ggml takes for 0
    assert not ops.mul_mat("NVFP4", w, x).any()


def checked(name: str, w: np.ndarray, x: np.ndarray, family: str) -> tuple[np.ndarray, np.ndarray]:
    """Result and integer sums of the checked kernels."""
    kind = gguf_type(name)
    (m, row), (n, k) = w.shape, x.shape
    out, sums = np.empty((n, m), np.float32), np.full((n, m, k // reference.scale_group(name)), 1 << 30, np.int32)
    host_library.mul_mat_raw(
        host_library.Operand(kind.number, w.reshape(-1), (k, m, 1, 1), (kind.block_bytes, row, row * m, row * m)),
        host_library.Operand(0, x.view(np.uint8).reshape(-1), (k, n, 1, 1), (4, 4 * k, 4 * k * n, 4 * k * n)),
        host_library.Operand(0, out.view(np.uint8).reshape(-1), (m, n, 1, 1), (4, 4 * m, 4 * m * n, 4 * m * n)),
        family=family,
        integer_sums=sums,
    )
    return out, sums


@pytest.mark.parametrize("name", [*INTEGER_TYPES, "F16", "BF16", "F32", "IQ1_M", "Q8_1"])
def test_scale_groups_agree(name):
    assert host_library.scale_group(gguf_type(name).number) == reference.scale_group(name)


# mul_mat_id ----------------------------------------------------------------------------------------------------------


def by_expert(name: str, w: np.ndarray, x: np.ndarray, ids: np.ndarray) -> np.ndarray:
    return np.stack([[reference.mul_mat(name, w[e], x[i : i + 1])[0] for e in row] for i, row in enumerate(ids)])


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", ["Q4_K", "Q2_K", "Q8_0", "IQ4_NL", "IQ2_XS", "MXFP4", "NVFP4", "F16"])
def test_mul_mat_id(name, family):
    experts, m, k, n, used = 5, 37, 256, 20, 3
    w = w_of(name, experts * m, k).reshape(experts, m, -1)
    ids = np.random.default_rng(7).integers(0, experts - 1, (n, used)).astype(np.int32)  # the last expert has no token
    ids[3] = 1  # one expert three times
    out = ops.mul_mat_id(name, w, x_of(n, k), ids, family=family)
    assert (out.dtype, out.shape) == (np.float32, (n, used, m))
    assert nmse(out, by_expert(name, w, x_of(n, k), ids)) < 5e-4


def test_mul_mat_id_equals_mul_mat_of_the_expert():
    w, x = w_of("Q6_K", 4 * 20, 256).reshape(4, 20, -1), x_of(9, 256)
    ids = np.array([[i % 4] for i in range(9)], np.int32)
    out = ops.mul_mat_id("Q6_K", w, x, ids)
    for expert in range(4):
        tokens = ids[:, 0] == expert
        assert out[tokens, 0].tobytes() == ops.mul_mat("Q6_K", w[expert], x[tokens]).tobytes()


@pytest.mark.parametrize(("experts", "m", "n", "used"), [(2, 0, 3, 1), (2, 4, 0, 1), (2, 4, 3, 0), (0, 4, 3, 0), (0, 4, 0, 2)])
def test_mul_mat_id_of_nothing(experts, m, n, used):
    out = ops.mul_mat_id("Q8_0", np.zeros((experts, m, 34), np.uint8), np.zeros((n, 32), np.float32), np.zeros((n, used), np.int32))
    assert out.shape == (n, used, m)


# Refusals ------------------------------------------------------------------------------------------------------------

X = np.zeros((2, 256), np.float32)
W = np.zeros((3, 144), np.uint8)
EXPERTS = np.zeros((2, 3, 144), np.uint8)
IDS = np.zeros((2, 1), np.int32)

REFUSED = {
    "unknown type": (lambda: ops.mul_mat("Q9_Z", W, X), "wtype to be one of Q2_K.*got 'Q9_Z'"),
    "type without kernel": (lambda: ops.mul_mat(GGMLQuantizationType.IQ1_M, W, X), "wtype to be one of.*IQ1_M"),
    "type number": (lambda: ops.mul_mat(12, W, X), "wtype to be one of.*got 12"),
    "family": (lambda: ops.mul_mat("Q4_K", W, X, family="rdna9"), "family to be one of gcn.*got 'rdna9'"),
    "variant": (lambda: ops.mul_mat("Q4_K", W, X, variant="nope"), "variant to be None or one of.*got 'nope'"),
    "x a list": (lambda: ops.mul_mat("Q4_K", W, [[0.0] * 256]), "x to be a numpy array float32 .* got list"),
    "x float64": (lambda: ops.mul_mat("Q4_K", W, X.astype(np.float64)), "x of dtype float32, got float64"),
    "x big-endian": (lambda: ops.mul_mat("Q4_K", W, X.astype(">f4")), "x of dtype float32, got >f4"),
    "x one-dimensional": (lambda: ops.mul_mat("Q4_K", W, X[0]), r"x to have 2 dimensions \[N, K\], got shape \[256\]"),
    "x without K": (lambda: ops.mul_mat("Q4_K", W, X[:, :0]), r"K of at least 1, got shape \[2, 0\]"),
    "w float": (lambda: ops.mul_mat("Q4_K", W.astype(np.float32), X), "w of dtype uint8, got float32"),
    "w three-dimensional": (lambda: ops.mul_mat("Q4_K", EXPERTS, X), "w to have 2 dimensions"),
    "row bytes": (lambda: ops.mul_mat("Q4_K", W[:, :100], X), r"row_bytes = 144 \(256 values of Q4_K\), got shape \[3, 100\]"),
    "K of x": (lambda: ops.mul_mat("Q4_K", np.zeros((3, 288), np.uint8), X), "row_bytes = 144"),
    "K no multiple": (lambda: ops.mul_mat("Q4_K", W, X[:, :200]), "K to be a multiple of Q4_K's block of 256, got x with K = 200"),
    "layout": (lambda: ops.quantize_q8_1(X, "d8"), "layout to be one of d4, ds4, d2s6, got 'd8'"),
    "layout None": (lambda: ops.quantize_q8_1(X, None), "layout to be one of"),
    "quantize rank": (lambda: ops.quantize_q8_1(X[0], "d4"), "x to have 2 dimensions"),
    "quantize dtype": (lambda: ops.quantize_q8_1(X.astype(np.float16), "d4"), "x of dtype float32, got float16"),
    "quantize K=0": (lambda: ops.quantize_q8_1(X[:, :0], "d4"), "K of at least 1"),
    "ids dtype": (lambda: ops.mul_mat_id("Q4_K", EXPERTS, X, IDS.astype(np.int64)), "ids of dtype int32, got int64"),
    "ids rank": (lambda: ops.mul_mat_id("Q4_K", EXPERTS, X, IDS[:, 0]), "ids to have 2 dimensions"),
    "ids too many": (lambda: ops.mul_mat_id("Q4_K", EXPERTS, X, np.zeros((3, 1), np.int32)), "with n = 2 as in x"),
    "ids negative": (lambda: ops.mul_mat_id("Q4_K", EXPERTS, X, IDS - 1), "ids from 0 to 1 .*got -1"),
    "ids too large": (lambda: ops.mul_mat_id("Q4_K", EXPERTS, X, IDS + 2), "ids from 0 to 1 .*got 2"),
    "no experts": (lambda: ops.mul_mat_id("Q4_K", EXPERTS[:0], X, IDS), "0 experts"),
    "experts two-dimensional": (lambda: ops.mul_mat_id("Q4_K", W, X, IDS), "w to have 3 dimensions"),
    "experts' family": (lambda: ops.mul_mat_id("Q4_K", EXPERTS, X, IDS, family="gfx1100"), "family to be one of"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    call, expected = REFUSED[name]
    with pytest.raises(ValueError, match=expected) as caught:
        call()
    assert str(caught.value).startswith("expected ")
    assert "\n" not in str(caught.value)


def test_ops_is_an_attribute_of_the_package():
    assert wavesmith.ops is ops
    with pytest.raises(AttributeError, match="nonsense"):
        _ = wavesmith.nonsense


def test_missing_library(monkeypatch, tmp_path):
    monkeypatch.setenv("WAVESMITH_HOST_LIBRARY", str(tmp_path / "none.so"))
    with pytest.raises(CannotRun, match="none.so does not exist"):
        ops.mul_mat("Q4_K", W, X)


def test_file_that_is_no_library(monkeypatch, tmp_path):
    (tmp_path / "text.so").write_text("no library")
    monkeypatch.setenv("WAVESMITH_HOST_LIBRARY", str(tmp_path / "text.so"))
    with pytest.raises(CannotRun, match="cannot load the host library"):
        ops.mul_mat("Q4_K", W, X)
