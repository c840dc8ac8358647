"""model_generator, random_weights and census: models of every type, and what products they need."""

from __future__ import annotations

import numpy as np
import pytest
from gguf_bytes import F32, Gguf, tensor, text
from wavesmith import census, model_generator, reference
from wavesmith.gguf_file import Model
from wavesmith.model_generator import MIXES, PRESETS, Shape, generate
from wavesmith.random_weights import TYPES, random_weights


@pytest.mark.parametrize("name", TYPES)
def test_random_weights_look_trained(name):
    rows = random_weights(name, 256, 512, np.random.default_rng(0))
    values = reference.dequantize(name, rows).astype(np.float64) * 512**0.5
    assert values.shape == (256, 512)
    assert np.isfinite(values).all()
    assert abs(values.mean()) < 0.15
    assert 0.9 < values.std() < 1.1


def test_random_weights_refuse():
    with pytest.raises(ValueError, match="cannot generate weights of type Q8_K"):
        random_weights("Q8_K", 1, 256, np.random.default_rng(0))
    with pytest.raises(ValueError, match="rows of 100 values are not a multiple of Q4_K's block of 256"):
        random_weights("Q4_K", 1, 100, np.random.default_rng(0))


@pytest.mark.parametrize("mix", MIXES)
def test_mixes(tmp_path, mix):
    model = Model.open(generate(tmp_path / "m.gguf", "tiny", mix))
    types = {tensor.type_name for tensor in model.tensors}
    assert MIXES[mix].base in types
    assert {MIXES[mix].output or MIXES[mix].base} == {model.by_name["output.weight"].type_name}


def test_pure_and_single_type(tmp_path):
    for options, name in (({"mix": "Q4_K_M", "pure": True}, "Q4_K"), ({"mix": "Q4_K"}, "Q4_K"), ({"mix": "IQ2_XS"}, "IQ2_XS"), ({"mix": "Q2_0"}, "Q2_0")):
        model = Model.open(generate(tmp_path / "m.gguf", "tiny", **options))
        assert {tensor.type_name for tensor in model.tensors if tensor.dimensions > 1} == {name}


def test_narrow_rows_fall_back(tmp_path):
    model = Model.open(generate(tmp_path / "m.gguf", Shape(96, 160, 1, 2, 1, 64), "Q4_K_M"))
    types = {tensor.name.split(".")[-2]: tensor.type_name for tensor in model.tensors}
    assert (types["attn_q"], types["ffn_down"], types["output"]) == ("Q5_0", "Q8_0", "Q8_0")
    assert model_generator.fitting_type("Q2_K", 100) == "F16"


def test_same_seed_same_bytes(tmp_path):
    a, b, c = (generate(tmp_path / f"{i}.gguf", "tiny", "Q2_K", seed=seed).read_bytes() for i, seed in enumerate((5, 5, 6)))
    assert a == b
    assert a != c


@pytest.mark.parametrize("size", [64, 300, 512])
def test_vocabulary(tmp_path, size):
    model = Model.open(generate(tmp_path / "m.gguf", Shape(64, 64, 1, 1, 1, size), "F32"))
    tokens = model.get("tokenizer.ggml.tokens")
    assert len(tokens) == len(set(tokens)) == len(model.get("tokenizer.ggml.scores")) == len(model.get("tokenizer.ggml.token_type")) == size
    bare = Model.open(generate(tmp_path / "n.gguf", "tiny", "F32", vocabulary="none"))
    assert bare.get("tokenizer.ggml.model") == "no_vocab"


@pytest.mark.parametrize(
    ("options", "expected"),
    [({"shape": "huge"}, "unknown preset 'huge'"), ({"mix": "Q9"}, "unknown quantisation mix 'Q9'"), ({"vocabulary": "bpe"}, "unknown vocabulary 'bpe'")],
)
def test_unknown_names(tmp_path, options, expected):
    with pytest.raises(ValueError, match=expected):
        generate(tmp_path / "m.gguf", **options)
    assert list(tmp_path.iterdir()) == []


def test_a_failure_leaves_no_file(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(model_generator, "_data", fail)
    with pytest.raises(OSError, match="No space left"):
        generate(tmp_path / "m.gguf", "tiny", "Q4_0")
    assert list(tmp_path.iterdir()) == []


# Census --------------------------------------------------------------------------------------------------------------


def of(model: Model) -> dict[tuple, int]:
    return {(p.op, p.type_name, p.m, p.k, p.experts): len(p.tensors) for p in census.products(model)}


def test_census_of_a_dense_model(tmp_path):
    shape = PRESETS["tiny"]
    found = of(Model.open(generate(tmp_path / "m.gguf", shape, "Q4_0")))
    assert found == {
        ("MUL_MAT", "Q4_0", 512, 256, 0): 1,  # output; token_embd is only looked up
        ("MUL_MAT", "Q4_0", 256, 256, 0): 4,
        ("MUL_MAT", "Q4_0", 128, 256, 0): 4,
        ("MUL_MAT", "Q4_0", 768, 256, 0): 4,
        ("MUL_MAT", "Q4_0", 256, 768, 0): 2,
    }


def test_census_of_a_tied_model(tmp_path):
    found = census.products(Model.open(generate(tmp_path / "m.gguf", Shape(64, 64, 1, 1, 1, 100, tied=True), "Q8_0")))
    assert (found[0].m, found[0].tensors[0].name) == (100, "token_embd.weight")


def test_census_of_experts(tmp_path):
    found = of(Model.open(generate(tmp_path / "m.gguf", "tiny-moe", "Q4_0")))
    assert found[("MUL_MAT_ID", "Q4_0", 512, 256, 4)] == 4
    assert found[("MUL_MAT_ID", "Q4_0", 256, 512, 4)] == 2
    assert found[("MUL_MAT", "F32", 4, 256, 0)] == 2


def test_census_leaves_out_what_is_not_multiplied(tmp_path):
    names = ("blk.0.attn_norm.weight", "position_embd.weight", "token_types.weight", "blk.0.ssm_conv1d.weight", "blk.0.ssm_a", "per_layer_token_embd.weight")
    infos = [tensor(name, (8, 4), F32, 128 * i) for i, name in enumerate((*names, "blk.0.ssm_in.weight", "output.weight", "token_embd.weight"))]
    path = tmp_path / "m.gguf"
    path.write_bytes(Gguf(keys=[text("general.architecture", "mamba")], tensors=infos, data=b"\0" * 128 * 9).bytes())
    (product,) = census.products(Model.open(path))
    assert [item.name for item in product.tensors] == ["blk.0.ssm_in.weight", "output.weight"]
