"""Writes GGUF models with random but sane weights: any llama-like shape, dense or with experts, in any quantisation mix.

They load and run in llama.cpp like a real model of that shape (the text they produce is noise), so they stand in for one where no
registry can be reached, and they are the tests' source of small models of every type.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from .gguf_types import gguf_type
from .random_weights import random_weights

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Shape:
    """Sizes of a llama-like model, in GGUF's words. `expert_count` 0 means dense; `tied` leaves out the output tensor."""

    embedding_length: int
    feed_forward_length: int
    block_count: int
    head_count: int
    head_count_kv: int
    vocabulary_size: int
    expert_count: int = 0
    expert_used_count: int = 0
    tied: bool = False
    context_length: int = 2048
    rope_base: float = 10000.0

    @property
    def head_length(self) -> int:
        return self.embedding_length // self.head_count


PRESETS = {
    "tiny": Shape(256, 768, 2, 4, 2, 512),
    "tiny-moe": Shape(256, 512, 2, 4, 2, 512, expert_count=4, expert_used_count=2),
    "small": Shape(1024, 2816, 8, 16, 4, 4096),
    # The sizes of SmolLM2-135M.
    "135m": Shape(576, 1536, 30, 9, 3, 49152, tied=True),
}


@dataclass(frozen=True)
class Mix:
    """Which type each kind of weight gets; `value_and_down` is for those that llama.cpp's mixes keep more precise in some layers."""

    base: str
    file_type: str
    output: str | None = None
    value_and_down: str | None = None


MIXES = {
    "F32": Mix("F32", "ALL_F32"),
    "F16": Mix("F16", "MOSTLY_F16"),
    "BF16": Mix("BF16", "MOSTLY_BF16"),
    "Q4_0": Mix("Q4_0", "MOSTLY_Q4_0"),
    "Q4_1": Mix("Q4_1", "MOSTLY_Q4_1", output="Q8_0"),
    "Q5_0": Mix("Q5_0", "MOSTLY_Q5_0"),
    "Q5_1": Mix("Q5_1", "MOSTLY_Q5_1"),
    "Q8_0": Mix("Q8_0", "MOSTLY_Q8_0"),
    "Q2_K": Mix("Q2_K", "MOSTLY_Q2_K", output="Q6_K", value_and_down="Q3_K"),
    "Q3_K_M": Mix("Q3_K", "MOSTLY_Q3_K_M", output="Q6_K", value_and_down="Q5_K"),
    "Q4_K_M": Mix("Q4_K", "MOSTLY_Q4_K_M", output="Q6_K", value_and_down="Q6_K"),
    "Q5_K_M": Mix("Q5_K", "MOSTLY_Q5_K_M", output="Q6_K", value_and_down="Q6_K"),
    "Q6_K": Mix("Q6_K", "MOSTLY_Q6_K"),
    "IQ4_NL": Mix("IQ4_NL", "MOSTLY_IQ4_NL", output="Q6_K"),
    "IQ4_XS": Mix("IQ4_XS", "MOSTLY_IQ4_XS", output="Q6_K", value_and_down="Q5_K"),
}

# What llama.cpp's quantiser takes where a row is no multiple of 256.
_NARROW = {"Q2_K": "IQ4_NL", "Q3_K": "IQ4_NL", "IQ4_XS": "IQ4_NL", "Q4_K": "Q5_0", "Q5_K": "Q5_1", "Q6_K": "Q8_0"}


@dataclass(frozen=True)
class Weight:
    """A tensor to write: `shape` in numpy's order (K last), `type_name` None for a vector of ones (a norm)."""

    name: str
    shape: tuple[int, ...]
    type_name: str | None


def fitting_type(name: str, k: int) -> str:
    """`name`, or the type that takes its place when rows of `k` values do not fill its blocks."""
    while k % gguf_type(name).block_values:
        name = _NARROW.get(name, "F16")
    return name


def _block_weights(shape: Shape, mix: Mix, index: int) -> Iterator[Weight]:
    def weight(name: str, *size: int, raised: bool = False) -> Weight:
        return Weight(f"blk.{index}.{name}.weight", size, fitting_type((raised and mix.value_and_down) or mix.base, size[-1]))

    width, hidden, head = shape.embedding_length, shape.feed_forward_length, shape.head_length
    # As in llama.cpp's mixes, only some of the layers keep the more precise type.
    raised = index % 2 == 0
    yield Weight(f"blk.{index}.attn_norm.weight", (width,), None)
    yield weight("attn_q", shape.head_count * head, width)
    yield weight("attn_k", shape.head_count_kv * head, width)
    yield weight("attn_v", shape.head_count_kv * head, width, raised=raised)
    yield weight("attn_output", width, shape.head_count * head)
    yield Weight(f"blk.{index}.ffn_norm.weight", (width,), None)
    if shape.expert_count:
        experts = shape.expert_count
        yield Weight(f"blk.{index}.ffn_gate_inp.weight", (experts, width), "F32")
        yield weight("ffn_gate_exps", experts, hidden, width)
        yield weight("ffn_up_exps", experts, hidden, width)
        yield weight("ffn_down_exps", experts, width, hidden, raised=raised)
    else:
        yield weight("ffn_gate", hidden, width)
        yield weight("ffn_up", hidden, width)
        yield weight("ffn_down", width, hidden, raised=raised)


def weights(shape: Shape, mix: Mix) -> Iterator[Weight]:
    """Every tensor of the model, in file order."""
    width, vocabulary = shape.embedding_length, shape.vocabulary_size
    output = fitting_type(mix.output or mix.base, width)
    yield Weight("token_embd.weight", (vocabulary, width), output if shape.tied else fitting_type(mix.base, width))
    yield Weight("output_norm.weight", (width,), None)
    if not shape.tied:
        yield Weight("output.weight", (vocabulary, width), output)
    for index in range(shape.block_count):
        yield from _block_weights(shape, mix, index)


def _vocabulary(size: int) -> tuple[list[str], list[float], list[int]]:
    """Tokens, scores and types of a SentencePiece-like vocabulary: specials, all bytes, printable ASCII, then made-up words."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581", *map(chr, range(33, 127))]
    tokens = (tokens + [f"\u2581w{i}" for i in range(max(0, size - len(tokens)))])[:size]
    kinds = ([2, 3, 3] + [6] * 256 + [1] * size)[:size]  # unknown, control, byte, normal
    return tokens, [-float(max(0, i - 258)) for i in range(size)], kinds


def _write_metadata(writer, shape: Shape, mix: Mix, name: str, vocabulary: str) -> None:
    from gguf import LlamaFileType

    writer.add_name(name)
    writer.add_context_length(shape.context_length)
    writer.add_embedding_length(shape.embedding_length)
    writer.add_block_count(shape.block_count)
    writer.add_feed_forward_length(shape.feed_forward_length)
    writer.add_head_count(shape.head_count)
    writer.add_head_count_kv(shape.head_count_kv)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(shape.rope_base)
    writer.add_rope_dimension_count(shape.head_length)
    writer.add_vocab_size(shape.vocabulary_size)
    writer.add_file_type(LlamaFileType[mix.file_type])
    writer.add_quantization_version(2)
    if shape.expert_count:
        writer.add_expert_count(shape.expert_count)
        writer.add_expert_used_count(shape.expert_used_count)
    if vocabulary == "none":
        writer.add_tokenizer_model("no_vocab")
        return
    tokens, scores, kinds = _vocabulary(shape.vocabulary_size)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores(scores)
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)


def _data(weight: Weight, rng: np.random.Generator) -> np.ndarray:
    import numpy as np

    if weight.type_name is None:
        return np.ones(weight.shape, np.float32)
    rows = int(np.prod(weight.shape[:-1]))
    return random_weights(weight.type_name, rows, weight.shape[-1], rng)


def _declare(writer, weight: Weight) -> None:
    import numpy as np

    kind = gguf_type(weight.type_name or "F32")
    nbytes = int(np.prod(weight.shape)) // kind.block_values * kind.block_bytes
    writer.add_tensor_info(weight.name, weight.shape, np.dtype(np.float32), nbytes, raw_dtype=kind.number)


def generate(path: Path, shape: Shape | str = "tiny", mix: Mix | str = "Q4_K_M", *, seed: int = 1, vocabulary: str = "spm", pure: bool = False) -> Path:
    """Writes a model to `path` (atomically) and returns it.

    shape: a Shape or a name in PRESETS. mix: a Mix, a name in MIXES, or a type name, which is then used for every weight; `pure` makes
    a named mix use its base type for every weight. vocabulary: "spm" or "none". ValueError for unknown names.
    """
    from gguf import GGUFWriter

    from .random_weights import TYPES

    shape = _lookup(PRESETS, shape, "preset")
    if isinstance(mix, str) and mix not in MIXES and mix in TYPES:
        mix = Mix(mix, "GUESSED")
    mix = _lookup(MIXES, mix, "quantisation mix")
    if pure:
        mix = replace(mix, output=None, value_and_down=None)
    if vocabulary not in ("spm", "none"):
        raise ValueError(f"unknown vocabulary {vocabulary!r}; expected spm or none")
    import numpy as np

    rng = np.random.Generator(np.random.SFC64(seed))
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        writer = GGUFWriter(part, "llama")
        _write_metadata(writer, shape, mix, f"random {shape.embedding_length}x{shape.block_count} {mix.base}", vocabulary)
        tensors = list(weights(shape, mix))
        for weight in tensors:
            _declare(writer, weight)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        for weight in tensors:
            writer.write_tensor_data(_data(weight, rng))
        writer.close()
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    return path


def _lookup(known: dict, wanted, what: str):
    if not isinstance(wanted, str):
        return wanted
    if wanted not in known:
        raise ValueError(f"unknown {what} {wanted!r}; known: {', '.join(known)}")
    return known[wanted]
