"""Strict, bounded reading of GGUF headers (versions 2 and 3, little-endian).

Nothing in a header is believed before the file is known to be large enough for it: a claimed count or length never decides how
much is allocated or how long a loop runs. Every fault is one `BadInput` line that names the file. Format: the GGUF specification
and ggml/src/gguf.cpp; limits are ggml's (GGML_MAX_NAME, GGML_MAX_DIMS) or noted beside the constant.
"""

from __future__ import annotations

import mmap
import os
import re
import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import BadInput
from .gguf_types import all_types

if TYPE_CHECKING:
    import numpy as np

MAGIC = b"GGUF"
VERSIONS = (2, 3)
DEFAULT_ALIGNMENT = 32
MAX_TENSOR_NAME = 63  # GGML_MAX_NAME is 64 and counts the NUL
MAX_DIMENSIONS = 4  # GGML_MAX_DIMS
MAX_ELEMENTS = 2**63 - 1  # ggml counts elements in int64_t
MAX_KEY_BYTES = 65535  # GGUF specification
# Far above any real file; they keep a hostile one from costing minutes.
MAX_KEYS = 1 << 17
MAX_TENSORS = 1 << 20
MAX_STRING_BYTES = 1 << 27
MAX_STRINGS = 1 << 24
MAX_ARRAY_DEPTH = 3

_UINT32, _STRING, _ARRAY = 4, 8, 9
_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_SCALAR_BYTES = {kind: struct.calcsize(code) for kind, code in _SCALARS.items()}
_VALUE_TYPE_NAMES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "bool", "string", "array", "uint64", "int64", "float64")
_MIN_KEY_BYTES = 8 + 1 + 4 + 1
_MIN_TENSOR_BYTES = 8 + 1 + 4 + 4 + 8
_PART_NAME = re.compile(r"^(?P<prefix>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf$", re.DOTALL)


class _Fault(Exception):
    """What is wrong with the file; becomes a BadInput with the file's name in front."""


def printable(text: object) -> str:
    """`text` on one line: characters that would break or hide in a terminal are escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode("ascii") for c in str(text))


@dataclass(frozen=True)
class Value:
    """Where a metadata value lies; decoded when asked for. `count` is None for a scalar."""

    kind: int
    offset: int
    count: int | None = None


@dataclass(frozen=True)
class Tensor:
    """One tensor of a GGUF file. `ne` is in ggml's order (ne[0] = K, ne[1] = rows), always four entries.

    `type_name`, `row_bytes` and `nbytes` are None when the type number is not one that gguf knows.
    """

    name: str
    type_number: int
    type_name: str | None
    ne: tuple[int, int, int, int]
    dimensions: int
    file: GgufFile = field(repr=False)
    offset: int  # from the start of the file, in bytes
    row_bytes: int | None
    nbytes: int | None

    @property
    def rows(self) -> int:
        """Rows of ne[0] values in all of the tensor: ne[1] * ne[2] * ne[3]."""
        return self.ne[1] * self.ne[2] * self.ne[3]

    @property
    def data(self) -> np.ndarray:
        """Raw bytes, uint8 [rows, row_bytes], a read-only view of the mapped file. BadInput for an unknown type."""
        import numpy as np

        if self.row_bytes is None:
            raise BadInput(f"{printable(self.file.path)}: tensor {self.name!r} has the unknown type {self.type_number}, its data has no known size")
        flat = np.frombuffer(self.file.mapping, dtype=np.uint8, count=self.nbytes, offset=self.offset)
        return flat.reshape(self.rows, self.row_bytes)


class _Cursor:
    """Reads little-endian fields from a mapping, checking the end before every read."""

    def __init__(self, data: mmap.mmap):
        self.data = data
        self.size = len(data)
        self.position = 0

    @property
    def left(self) -> int:
        return self.size - self.position

    def skip(self, count: int, what: str) -> int:
        start = self.position
        if count > self.size - start:
            raise _Fault(f"truncated: {what} needs {count} bytes at offset {start}, the file ends at {self.size}")
        self.position = start + count
        return start

    def unpack(self, code: str, what: str) -> Any:
        return struct.unpack_from(code, self.data, self.skip(struct.calcsize(code), what))[0]

    def string_extent(self, what: str, limit: int = MAX_STRING_BYTES) -> tuple[int, int]:
        length = self.unpack("<Q", f"length of {what}")
        if length > limit:
            raise _Fault(f"absurd length of {what}: {length} bytes, at most {limit} are allowed")
        return self.skip(length, what), length

    def text(self, what: str, limit: int) -> str:
        start, length = self.string_extent(what, limit)
        try:
            text = self.data[start : start + length].decode("utf-8")
        except UnicodeDecodeError:
            raise _Fault(f"{what} is not UTF-8") from None
        if not text or "\0" in text:
            raise _Fault(f"{what} is empty or contains a NUL")
        return text


def _skip_value(cursor: _Cursor, kind: int, what: str, depth: int = 0) -> Value:
    """Steps over one value of type `kind` and says where it was."""
    if kind in _SCALARS:
        return Value(kind, cursor.skip(_SCALAR_BYTES[kind], what))
    if kind == _STRING:
        start = cursor.position
        cursor.string_extent(what)
        return Value(kind, start)
    if kind == _ARRAY:
        return _skip_array(cursor, what, depth + 1)
    raise _Fault(f"{what} has the unknown value type {kind}")


def _skip_array(cursor: _Cursor, what: str, depth: int) -> Value:
    if depth > MAX_ARRAY_DEPTH:
        raise _Fault(f"{what} is an array nested more than {MAX_ARRAY_DEPTH} deep")
    start = cursor.position
    element = cursor.unpack("<I", f"element type of {what}")
    count = cursor.unpack("<Q", f"length of {what}")
    if element >= len(_VALUE_TYPE_NAMES):
        raise _Fault(f"{what} has the unknown element type {element}")
    smallest = _SCALAR_BYTES.get(element, 8 if element == _STRING else 12)
    if count > cursor.left // smallest:
        raise _Fault(f"absurd array length of {what}: {count} elements need at least {count * smallest} bytes, the file has {cursor.left} left")
    if element in _SCALARS:
        cursor.skip(count * smallest, what)
        return Value(_ARRAY, start, count)
    if count > MAX_STRINGS:
        raise _Fault(f"absurd array length of {what}: {count} elements, at most {MAX_STRINGS} are allowed")
    for _ in range(count):
        _skip_value(cursor, element, f"an element of {what}", depth)
    return Value(_ARRAY, start, count)


def _decode(cursor: _Cursor, kind: int) -> Any:
    """Reads a value that _skip_value has already found to be sound."""
    if kind in _SCALARS:
        return cursor.unpack(_SCALARS[kind], "value")
    if kind == _STRING:
        start, length = cursor.string_extent("value")
        return cursor.data[start : start + length].decode("utf-8", "replace")
    element, count = cursor.unpack("<I", "value"), cursor.unpack("<Q", "value")
    if element in _SCALARS:
        size = _SCALAR_BYTES[element] * count
        start = cursor.skip(size, "value")
        return [item[0] for item in struct.iter_unpack(_SCALARS[element], cursor.data[start : start + size])]
    return [_decode(cursor, element) for _ in range(count)]


def _map_file(path: Path) -> mmap.mmap:
    """The whole file, mapped read-only. Anything but a readable, non-empty regular file is a _Fault."""
    try:
        # O_NONBLOCK: opening a FIFO must not wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise _Fault("no such file") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise _Fault(f"cannot be opened: {reason}") from None
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise _Fault("is a folder, not a GGUF file")
        if not stat.S_ISREG(status.st_mode):
            raise _Fault("is not a regular file")
        if status.st_size == 0:
            raise _Fault("is empty")
        try:
            return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise _Fault(f"cannot be read: {error}") from None
    finally:
        os.close(descriptor)


def _type_sizes() -> dict[int, tuple[str, int, int]]:
    """ggml type number -> (name, values per block, bytes per block)."""
    return {kind.number: (kind.name, kind.block_values, kind.block_bytes) for kind in all_types()}


class GgufFile:
    """One GGUF file whose header has been checked. Raises BadInput from the constructor.

    version: 2 or 3. alignment: of tensor data, in bytes. tensors: in file order. keys: metadata names to where their values lie.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        try:
            self.mapping = _map_file(self.path)
            self._read_header(_Cursor(self.mapping))
        except _Fault as fault:
            raise BadInput(f"{printable(self.path)}: {printable(fault)}") from None

    def get(self, key: str, default: Any = None) -> Any:
        """Metadata value as int, float, bool, str or list; `default` when there is no such key."""
        value = self.keys.get(key)
        if value is None:
            return default
        cursor = _Cursor(self.mapping)
        cursor.position = value.offset
        return _decode(cursor, value.kind)

    def integer(self, key: str, default: int | None = None) -> int | None:
        """Metadata integer; BadInput when the value is of another type."""
        value = self.get(key, default)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise BadInput(f"{printable(self.path)}: {key} should be an integer")
        return value

    @property
    def architecture(self) -> str:
        value = self.get("general.architecture", "")
        return value if isinstance(value, str) else ""

    def _read_header(self, cursor: _Cursor) -> None:
        self.version = self._read_version(cursor)
        tensor_count = self._read_count(cursor, "tensors", MAX_TENSORS)
        key_count = self._read_count(cursor, "metadata keys", MAX_KEYS)
        # Both counts against what is left, before anything is read by them.
        for count, smallest, what in ((key_count, _MIN_KEY_BYTES, "metadata keys"), (tensor_count, _MIN_TENSOR_BYTES, "tensors")):
            if count > cursor.left // smallest:
                raise _Fault(f"truncated, or an absurd count: {count} {what} need at least {count * smallest} bytes, the file has {cursor.left} left")
        self.keys = self._read_keys(cursor, key_count)
        self.alignment = self._read_alignment()
        claimed = [self._read_tensor(cursor) for _ in range(tensor_count)]
        self.data_offset = -(-cursor.position // self.alignment) * self.alignment
        self.tensors = self._place_tensors(claimed)

    def _read_version(self, cursor: _Cursor) -> int:
        magic = cursor.data[:4]
        if magic != MAGIC:
            raise _Fault(f"is not a GGUF file: it starts with {magic!r}, not {MAGIC!r}")
        cursor.skip(4, "magic")
        version = cursor.unpack("<I", "version")
        if version in VERSIONS:
            return version
        swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
        if swapped in (1, *VERSIONS):
            raise _Fault(f"is a big-endian GGUF file (version {swapped}); only little-endian files are supported")
        raise _Fault(f"has the unknown GGUF version {version}; versions 2 and 3 are supported")

    @staticmethod
    def _read_count(cursor: _Cursor, what: str, limit: int) -> int:
        count = cursor.unpack("<Q", f"number of {what}")
        if count > limit:
            raise _Fault(f"absurd number of {what}: {count}, at most {limit} are allowed")
        return count

    @staticmethod
    def _read_keys(cursor: _Cursor, count: int) -> dict[str, Value]:
        keys: dict[str, Value] = {}
        for index in range(count):
            key = cursor.text(f"name of metadata key {index}", MAX_KEY_BYTES)
            if key in keys:
                raise _Fault(f"has the metadata key {key!r} twice")
            keys[key] = _skip_value(cursor, cursor.unpack("<I", f"value type of {key!r}"), f"value of {key!r}")
        return keys

    def _read_alignment(self) -> int:
        value = self.keys.get("general.alignment")
        if value is None:
            return DEFAULT_ALIGNMENT
        if value.kind != _UINT32:
            raise _Fault(f"general.alignment should be a uint32, it is a {_VALUE_TYPE_NAMES[value.kind]}")
        alignment = self.get("general.alignment")
        if alignment == 0 or alignment & (alignment - 1):
            raise _Fault(f"wrong general.alignment: {alignment} is not a power of two")
        return alignment

    @staticmethod
    def _read_tensor(cursor: _Cursor) -> tuple[str, tuple[int, ...], int, int]:
        """Name, dimensions, type number and offset into the data section, as the file claims them."""
        start, length = cursor.string_extent("a tensor's name", MAX_KEY_BYTES)
        shown = cursor.data[start : start + min(length, MAX_TENSOR_NAME)].decode("utf-8", "backslashreplace")
        if length > MAX_TENSOR_NAME:
            raise _Fault(f"tensor name {shown!r}... has {length} bytes; ggml allows at most {MAX_TENSOR_NAME}")
        cursor.position = start - 8
        name = cursor.text(f"tensor name {shown!r}", MAX_TENSOR_NAME)
        dimensions = cursor.unpack("<I", f"number of dimensions of {name!r}")
        if dimensions > MAX_DIMENSIONS:
            raise _Fault(f"tensor {name!r} has {dimensions} dimensions, at most {MAX_DIMENSIONS} are allowed")
        shape = tuple(cursor.unpack("<Q", f"dimension {i} of {name!r}") for i in range(dimensions))
        return name, shape, cursor.unpack("<I", f"type of {name!r}"), cursor.unpack("<Q", f"offset of {name!r}")

    def _place_tensors(self, claimed: list[tuple[str, tuple[int, ...], int, int]]) -> tuple[Tensor, ...]:
        sizes = _type_sizes()
        tensors: dict[str, Tensor] = {}
        for name, shape, kind, offset in claimed:
            if name in tensors:
                raise _Fault(f"has the tensor name {name!r} twice")
            tensors[name] = self._place_tensor(name, shape, kind, offset, sizes.get(kind))
        self._refuse_overlaps(tensors.values())
        return tuple(tensors.values())

    def _place_tensor(self, name: str, shape: tuple[int, ...], kind: int, offset: int, size: tuple[str, int, int] | None) -> Tensor:
        elements = 1
        for index, extent in enumerate(shape):
            if extent == 0:
                raise _Fault(f"tensor {name!r} has a zero-sized dimension {index}: {list(shape)}")
            elements *= extent
        if elements > MAX_ELEMENTS:
            raise _Fault(f"tensor {name!r} has too many elements for 63 bits: {list(shape)}")
        ne = (*shape, 1, 1, 1, 1)[:4]
        if offset % self.alignment:
            raise _Fault(f"tensor {name!r} lies at the misaligned offset {offset}; general.alignment is {self.alignment}")
        start, end = self.data_offset + offset, len(self.mapping)
        if size is None:
            if start >= end:
                raise _Fault(f"truncated: tensor {name!r} starts at {start}, the file ends at {end}")
            return Tensor(name, kind, None, ne, len(shape), self, start, None, None)
        type_name, block, block_bytes = size
        if ne[0] % block:
            raise _Fault(f"tensor {name!r} has rows of {ne[0]} values, not a multiple of {type_name}'s block of {block}")
        nbytes = elements // block * block_bytes
        if start + nbytes > end:
            raise _Fault(f"truncated: data of tensor {name!r} needs {nbytes} bytes at offset {start}, the file ends at {end}")
        return Tensor(name, kind, type_name, ne, len(shape), self, start, ne[0] // block * block_bytes, nbytes)

    @staticmethod
    def _refuse_overlaps(tensors: Iterator[Tensor] | Any) -> None:
        previous: Tensor | None = None
        for tensor in sorted(tensors, key=lambda t: (t.offset, t.nbytes or 0)):
            if previous is not None and previous.offset + (previous.nbytes or 1) > tensor.offset:
                raise _Fault(f"tensors {previous.name!r} and {tensor.name!r} overlap at offset {tensor.offset}")
            previous = tensor


def _part_path(path: Path, name: re.Match[str], number: int, count: int) -> Path:
    return path.with_name(f"{name['prefix']}-{number:05d}-of-{count:05d}.gguf")


def _open_parts(first: GgufFile) -> list[GgufFile]:
    """All files of the model that `first` belongs to, in order; just `first` when the model is not split."""
    count = first.integer("split.count", 1)
    shown = printable(first.path)
    if count is None or count <= 1:
        _check_named_siblings(first)
        return [first]
    number = first.integer("split.no", 0)
    if number is None or not 0 <= number < count:
        raise BadInput(f"{shown}: split.no is {number}, but split.count is {count}")
    name = _PART_NAME.match(first.path.name)
    if name is None or int(name["count"]) != count or int(name["number"]) != number + 1:
        raise BadInput(f"{shown}: is part {number + 1} of {count}, so its name should end in -{number + 1:05d}-of-{count:05d}.gguf")
    paths = [_part_path(first.path, name, i + 1, count) for i in range(count)]
    missing = [path.name for path in paths if not path.exists()]
    if missing:
        others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise BadInput(f"{shown}: is part {number + 1} of {count}, but {printable(missing[0])}{others} is missing beside it")
    return [_check_part(first if i == number else GgufFile(path), i, count) for i, path in enumerate(paths)]


def _check_named_siblings(only: GgufFile) -> None:
    """BadInput where the name of a file that does not say that it is split says so, and other parts are missing."""
    name = _PART_NAME.match(only.path.name)
    number, count = (int(name["number"]), int(name["count"])) if name else (1, 1)
    if count > 1 and not 0 < number <= count:
        raise BadInput(f"{printable(only.path)}: has the name of part {number} of {count}")
    for sibling in (_part_path(only.path, name, i + 1, count) for i in range(count) if count > 1):
        if not sibling.exists():
            raise BadInput(f"{printable(only.path)}: has the name of part {number} of {count}, but {printable(sibling.name)} is missing beside it")


def _check_part(part: GgufFile, number: int, count: int) -> GgufFile:
    found = (part.integer("split.no"), part.integer("split.count"))
    if found != (number, count):
        raise BadInput(f"{printable(part.path)}: should be split.no {number} of {count}, but says {found[0]} of {found[1]}")
    return part


class Model:
    """A model: one GGUF file, or all parts of a split one. Metadata is that of the first part."""

    def __init__(self, parts: list[GgufFile]):
        self.parts = parts
        by_name: dict[str, Tensor] = {}
        for part in parts:
            for tensor in part.tensors:
                if tensor.name in by_name:
                    raise BadInput(f"{printable(part.path)}: tensor {tensor.name!r} is also in {printable(by_name[tensor.name].file.path.name)}")
                by_name[tensor.name] = tensor
        self.by_name = by_name
        expected = parts[0].integer("split.tensors.count") if len(parts) > 1 else None
        if expected is not None and expected != len(by_name):
            raise BadInput(f"{printable(parts[0].path)}: split.tensors.count is {expected}, but the {len(parts)} parts hold {len(by_name)} tensors")

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Model:
        """Checks the file (and the other parts, if it is split). BadInput says what is wrong with which file."""
        return cls(_open_parts(GgufFile(path)))

    @property
    def path(self) -> Path:
        return self.parts[0].path

    @cached_property
    def tensors(self) -> tuple[Tensor, ...]:
        return tuple(self.by_name.values())

    @property
    def architecture(self) -> str:
        return self.parts[0].architecture

    def get(self, key: str, default: Any = None) -> Any:
        return self.parts[0].get(key, default)

    def integer(self, key: str, default: int | None = None) -> int | None:
        return self.parts[0].integer(key, default)
