"""The kernels on the host platform with buffers as ggml lays them out: batches, strides, permutations, checks and thread orders."""

import numpy as np
import pytest
from wavesmith import host_library, ops, reference
from wavesmith.errors import KernelFault
from wavesmith.gguf_types import gguf_type
from wavesmith.host_library import FAMILIES, Operand
from wavesmith.random_weights import random_weights
from wavesmith.reference import INTEGER_TYPES


def weights_of(name: str, rows: int, k: int, seed: int = 1) -> np.ndarray:
    return random_weights(name, rows, k, np.random.default_rng(seed)).view(np.uint8).reshape(rows, -1)


def activations_of(*shape: int, seed: int = 2) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def nmse(result: np.ndarray, expected: np.ndarray) -> float:
    return float(((result - expected) ** 2).sum() / (expected**2).sum())


def f32_operand(array: np.ndarray, order: tuple[int, int, int, int] = (3, 2, 1, 0)) -> Operand:
    """A 4-dimensional float32 array whose axes are ggml's dimensions in the given order (default: axis 3 is dimension 0)."""
    base = array
    while base.base is not None:
        base = base.base
    assert base.__array_interface__["data"][0] == array.__array_interface__["data"][0]
    ne = tuple(array.shape[axis] for axis in order)
    nb = tuple(array.strides[axis] for axis in order)
    return Operand(0, base.reshape(-1).view(np.uint8), ne, nb)


def weight_operand(name: str, w: np.ndarray, k: int) -> Operand:
    """uint8 [ne03, ne02, M, row_bytes] as a tensor."""
    kind = gguf_type(name)
    ne = (k, w.shape[2], w.shape[1], w.shape[0])
    return Operand(kind.number, w.reshape(-1), ne, (kind.block_bytes, w.strides[2], w.strides[1], w.strides[0]))


@pytest.mark.parametrize("name", ["Q4_K", "Q5_0", "F16"])
@pytest.mark.parametrize(("ne02", "ne03", "ratio2", "ratio3"), [(1, 1, 3, 2), (2, 1, 2, 3), (3, 2, 1, 1), (2, 2, 2, 2)])
def test_batches_are_broadcast(name, ne02, ne03, ratio2, ratio3):
    m, n, k = 20, 5, 256
    w = weights_of(name, ne03 * ne02 * m, k).reshape(ne03, ne02, m, -1)
    x = activations_of(ne03 * ratio3, ne02 * ratio2, n, k)
    out = np.full((*x.shape[:3], m), np.nan, np.float32)
    host_library.mul_mat_raw(weight_operand(name, w, k), f32_operand(x), f32_operand(out))
    for i3, i2 in np.ndindex(*x.shape[:2]):
        alone = ops.mul_mat(name, w[i3 // ratio3, i2 // ratio2], x[i3, i2])
        assert out[i3, i2].tobytes() == alone.tobytes()


@pytest.mark.parametrize("name", ["Q6_K", "Q8_0", "BF16"])
def test_permuted_activations(name):
    """ggml_permute(x, 0, 2, 1, 3): rows of a batch entry are not neighbours in memory."""
    m, n, k = 17, 6, 256
    w = weights_of(name, m, k)
    x = activations_of(1, n, 4, k)  # memory order; ggml sees ne = [k, n, 4, 1]
    out = np.empty((1, 4, n, m), np.float32)
    host_library.mul_mat_raw(weight_operand(name, w[None, None], k), f32_operand(x, (3, 1, 2, 0)), f32_operand(out))
    for i2 in range(4):
        assert out[0, i2].tobytes() == ops.mul_mat(name, w, np.ascontiguousarray(x[0, :, i2])).tobytes()


@pytest.mark.parametrize("name", ["Q4_0", "F32"])
def test_transposed_activations(name):
    """nb10 is not 4: values of a row are far apart."""
    m, n, k = 9, 7, 96
    w = weights_of(name, m, k)
    x = activations_of(1, 1, k, n)
    out = np.empty((1, 1, n, m), np.float32)
    host_library.mul_mat_raw(weight_operand(name, w[None, None], k), f32_operand(x, (2, 3, 1, 0)), f32_operand(out))
    assert out[0, 0].tobytes() == ops.mul_mat(name, w, np.ascontiguousarray(x[0, 0].T)).tobytes()


def test_output_rows_with_room_between_them():
    """The output may be a view: what lies between its columns stays as it was."""
    m, n, k = 33, 5, 256
    w, x = weights_of("Q4_K", m, k), activations_of(1, 1, n, k)
    wide = np.full((1, 1, n, m + 7), 123.0, np.float32)
    out = Operand(0, wide.reshape(-1).view(np.uint8), (m, n, 1, 1), (4, 4 * (m + 7), 4 * (m + 7) * n, 4 * (m + 7) * n))
    host_library.mul_mat_raw(weight_operand("Q4_K", w[None, None], k), f32_operand(x), out)
    assert wide[0, 0, :, :m].tobytes() == ops.mul_mat("Q4_K", w, x[0, 0]).tobytes()
    assert (wide[0, 0, :, m:] == 123.0).all()


@pytest.mark.parametrize("name", [name for name in INTEGER_TYPES if name not in ("MXFP4", "NVFP4")])  # these have no NaN
def test_scales_that_are_not_finite_stay_in_their_row(name):
    m, k = 19, 512
    w = weights_of(name, m, k)
    x = activations_of(4, k)
    clean = ops.mul_mat(name, w, x)
    offset = {"Q2_K": 80, "Q3_K": 108, "Q6_K": 208}.get(name, 0)
    w[5, offset : offset + 2] = np.frombuffer(np.float16(np.nan).tobytes(), np.uint8)
    out = ops.mul_mat(name, w, x)
    assert np.isnan(out[:, 5]).all()
    rest = np.arange(m) != 5
    assert out[:, rest].tobytes() == clean[:, rest].tobytes()


@pytest.mark.parametrize("name", ["Q4_K", "Q4_1", "Q2_K", "Q5_1"])
@pytest.mark.parametrize("size", [1e4, 1e6, 1e20])
def test_block_sums_past_the_range_of_f16(name, size):
    """32 values of one sign: their sum leaves f16's range, the product must not."""
    w = weights_of(name, 8, 256)
    x = np.full((2, 256), size, np.float32)
    out = ops.mul_mat(name, w, x)
    expected = reference.mul_mat(name, w, x)
    assert np.isfinite(out).all()
    assert nmse(out.astype(np.float64) / size, expected / size) < 1e-5


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", [*INTEGER_TYPES, "F32", "F16", "BF16"])
def test_no_race_and_no_dependence_on_thread_order(name, family, monkeypatch):
    """Every kernel under the race checker, in three random orders of the block's threads, against the plain order."""
    w, x = weights_of(name, 70, 256), activations_of(19, 256)
    plain = ops.mul_mat(name, w, x, family=family)
    monkeypatch.setenv("WAVESMITH_HOST_RACECHECK", "1")
    for seed in ("1", "2", "3"):
        monkeypatch.setenv("WAVESMITH_HOST_ORDER", seed)
        assert ops.mul_mat(name, w, x, family=family).tobytes() == plain.tobytes()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", ["Q4_K", "Q2_K", "F16"])
def test_no_race_with_experts(name, family, monkeypatch):
    experts, m, k, tokens, used = 6, 33, 256, 40, 4
    w = weights_of(name, experts * m, k).reshape(experts, m, -1)
    ids = np.random.default_rng(3).integers(0, experts, (tokens, used)).astype(np.int32)
    x = activations_of(tokens, k)
    plain = ops.mul_mat_id(name, w, x, ids, family=family)
    monkeypatch.setenv("WAVESMITH_HOST_RACECHECK", "1")
    monkeypatch.setenv("WAVESMITH_HOST_ORDER", "11")
    assert ops.mul_mat_id(name, w, x, ids, family=family).tobytes() == plain.tobytes()


@pytest.mark.parametrize("tokens", [1, 2, 127, 128, 129, 300])
def test_expert_slots_for_any_number_of_tokens(tokens):
    """Each slot's row is the product with its own expert, whatever the number of slots per thread."""
    experts, m, k, used = 3, 4, 32, 2
    w = weights_of("Q8_0", experts * m, k).reshape(experts, m, -1)
    ids = np.random.default_rng(tokens).integers(0, experts, (tokens, used)).astype(np.int32)
    x = activations_of(tokens, k)
    out = ops.mul_mat_id("Q8_0", w, x, ids)
    for expert in range(experts):
        alone = ops.mul_mat("Q8_0", w[expert], x)
        for token, place in np.argwhere(ids == expert):
            assert out[token, place].tobytes() == alone[token].tobytes()


def test_experts_with_one_activation_row_per_place():
    """src1 [K, used, tokens]: every place of a token has its own activations (the down projection)."""
    experts, m, k, tokens, used = 4, 10, 256, 9, 2
    w = weights_of("Q4_K", experts * m, k).reshape(1, experts, m, -1)
    ids = np.random.default_rng(5).integers(0, experts, (tokens, used)).astype(np.int32)
    x = activations_of(1, tokens, used, k)
    out = np.empty((1, tokens, used, m), np.float32)
    host_library.mul_mat_raw(
        weight_operand("Q4_K", w, k),
        f32_operand(x),
        f32_operand(out),
        Operand(26, ids.reshape(-1).view(np.uint8), (used, tokens, 1, 1), (4, 4 * used, 4 * used * tokens, 4 * used * tokens)),
    )
    for token, place in np.ndindex(tokens, used):
        alone = ops.mul_mat("Q4_K", w[0, ids[token, place]], x[0, token, place : place + 1])
        assert out[0, token, place].tobytes() == alone.tobytes()


def test_checked_build_names_what_is_out_of_range(monkeypatch):
    """Claims fewer bytes of slots' source than the sizes say: refused before anything runs; a lying size is caught while running."""
    m, n, k = 8, 3, 256
    w, x = weights_of("Q8_0", m, k), activations_of(1, 1, n, k)
    out = np.zeros((1, 1, n, m), np.float32)
    short = weight_operand("Q8_0", w[None, None], k)
    short = Operand(short.type_number, short.buffer[:-1], short.ne, short.nb)
    with pytest.raises(ValueError, match="weights: .* bytes"):
        host_library.mul_mat_raw(short, f32_operand(x), f32_operand(out))
    monkeypatch.setenv("WAVESMITH_HOST_CHECKED", "1")
    sums = np.zeros((n, m, k // 32 - 1), np.int32)  # one group too few
    with pytest.raises(KernelFault, match=r"mmq.*block.*thread") as fault:
        host_library.mul_mat_raw(weight_operand("Q8_0", w[None, None], k), f32_operand(x), f32_operand(out), integer_sums=sums)
    assert "\n" not in str(fault.value)


def test_malformed_order_is_refused(monkeypatch):
    monkeypatch.setenv("WAVESMITH_HOST_ORDER", "seven")
    with pytest.raises(ValueError, match="WAVESMITH_HOST_ORDER"):
        ops.mul_mat("Q8_0", weights_of("Q8_0", 4, 32), activations_of(1, 32))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"nb": (34, 35, 35 * 8, 35 * 8)}, "not rows of whole"),
        ({"type_number": 9}, "weights of ggml type 9"),
        ({"ne": (250, 8, 1, 1)}, "K of weights"),
    ],
)
def test_unsupported_is_refused_with_a_reason(change, reason):
    w, x, out = weights_of("Q8_0", 8, 256), activations_of(1, 1, 2, 256), np.zeros((1, 1, 2, 8), np.float32)
    operand = weight_operand("Q8_0", w[None, None], 256)
    fields = {"type_number": operand.type_number, "ne": operand.ne, "nb": operand.nb, **change}
    with pytest.raises(host_library.Unsupported, match=reason):
        host_library.mul_mat_raw(Operand(buffer=operand.buffer, **fields), f32_operand(x), f32_operand(out))
