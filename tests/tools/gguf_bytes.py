"""GGUF files as bytes, with every field open to be wrong."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

F32, Q4_K, Q8_0 = 0, 12, 8
UINT8, UINT16, UINT32, INT32, STRING, ARRAY = 0, 2, 4, 5, 8, 9


def string(text: str | bytes) -> bytes:
    data = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(data)) + data


def key(name: str, kind: int, value: bytes) -> bytes:
    return string(name) + struct.pack("<I", kind) + value


def uint16(name: str, value: int) -> bytes:
    return key(name, UINT16, struct.pack("<H", value))


def uint32(name: str, value: int) -> bytes:
    return key(name, UINT32, struct.pack("<I", value))


def int32(name: str, value: int) -> bytes:
    return key(name, INT32, struct.pack("<i", value))


def text(name: str, value: str) -> bytes:
    return key(name, STRING, string(value))


def array(name: str, element: int, count: int, elements: bytes) -> bytes:
    return key(name, ARRAY, struct.pack("<IQ", element, count) + elements)


def tensor(name: str | bytes, shape: tuple[int, ...], kind: int = F32, offset: int = 0) -> bytes:
    return string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


@dataclass
class Gguf:
    """A file's parts; counts are those of the lists unless given."""

    keys: list[bytes] = field(default_factory=lambda: [text("general.architecture", "llama")])
    tensors: list[bytes] = field(default_factory=list)
    data: bytes = b""
    magic: bytes = b"GGUF"
    version: bytes = struct.pack("<I", 3)
    tensor_count: int | None = None
    key_count: int | None = None
    alignment: int = 32

    def bytes(self) -> bytes:
        tensor_count = len(self.tensors) if self.tensor_count is None else self.tensor_count
        key_count = len(self.keys) if self.key_count is None else self.key_count
        header = self.magic + self.version + struct.pack("<QQ", tensor_count, key_count) + b"".join(self.keys) + b"".join(self.tensors)
        return header + b"\0" * (-len(header) % self.alignment) + self.data


def small() -> Gguf:
    """A sound file with each kind of metadata and three tensors."""
    return Gguf(
        keys=[
            text("general.architecture", "llama"),
            uint32("general.alignment", 32),
            array("tokens", STRING, 3, string("a") + string("bc") + string("")),
            array("numbers", INT32, 4, struct.pack("<4i", 1, -2, 3, 4)),
            array("nested", ARRAY, 2, struct.pack("<IQ2B", UINT8, 2, 7, 8) + struct.pack("<IQ", UINT8, 0)),
        ],
        tensors=[tensor("norm", (8,)), tensor("blk.0.attn_q.weight", (256, 2), Q4_K, 32), tensor("blk.0.attn_k.weight", (32, 3), Q8_0, 32 + 288)],
        data=bytes(range(256)) * 2,
    )
