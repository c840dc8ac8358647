"""GGUF's tensor types by name and number, with those that the installed gguf package does not know yet (ggml/include/ggml.h)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class GgufType:
    """A type: its name in GGUF, ggml's number, and the size of its blocks in values and in bytes."""

    name: str
    number: int
    block_values: int
    block_bytes: int


_NEWER = (GgufType("MXFP4", 39, 32, 17), GgufType("NVFP4", 40, 64, 36), GgufType("Q1_0", 41, 128, 18), GgufType("Q2_0", 42, 64, 18))


@cache
def _by_name() -> dict[str, GgufType]:
    from gguf.constants import GGML_QUANT_SIZES

    known = {kind.name: GgufType(kind.name, int(kind), *size) for kind, size in GGML_QUANT_SIZES.items()}
    return {**{kind.name: kind for kind in _NEWER}, **known}


def all_types() -> list[GgufType]:
    """Every known type."""
    return list(_by_name().values())


def gguf_type(name: str) -> GgufType:
    """The type of that name, in upper case. KeyError for an unknown name."""
    return _by_name()[name]
