"""Hashes that tell whether evidence is still about the kernel in the checkout: of its sources, and of its machine code."""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from wavesmith import resources
from wavesmith.kernels import compiler
from wavesmith.kernels.device_source import Kernel, Unit

_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


@cache
def _code_digest(path: Path) -> bytes:
    """Of a header without comments and layout, which do not change what it says."""
    lines = (" ".join(line.split()) for line in _COMMENT.sub(" ", path.read_text(encoding="utf-8")).splitlines())
    return hashlib.sha256("\n".join(line for line in lines if line).encode()).digest()


@cache
def _included_by(path: Path) -> tuple[Path, ...]:
    return _included(path.read_text(encoding="utf-8"), path.parent)


def _included(text: str, folder: Path) -> tuple[Path, ...]:
    root = resources.backend()
    found = []
    for name in _INCLUDE.findall(text):
        path = next((path for path in ((folder / name).resolve(), (root / name).resolve()) if path.is_file()), None)
        if path is None:
            raise FileNotFoundError(f"no header '{name}' under {root}")
        found.append(path)
    return tuple(found)


def headers(text: str) -> set[Path]:
    """Every header under backend/ that a translation unit includes, directly or through others."""
    found: set[Path] = set()
    left = list(_included(text, resources.backend()))
    while left:
        path = left.pop()
        if path not in found:
            found.add(path)
            left += _included_by(path)
    return found


def forget() -> None:
    """Headers are read once; this has them read again."""
    _code_digest.cache_clear()
    _included_by.cache_clear()


def own_text(unit: Unit, kernel: Kernel) -> str:
    """The part of a translation unit that is about one kernel: what all share, and its function."""
    parts = unit.text.split("\n\n")
    others = [other.symbol for other in unit.kernels if other.symbol != kernel.symbol]
    return "\n\n".join(part for part in parts if not any(f" {symbol}(" in part for symbol in others))


def source_hash(unit: Unit, kernel: Kernel) -> str:
    """sha256 of the generated text, the headers it reaches (comments left out) and the compiler's options."""
    root = resources.backend().resolve()
    text = own_text(unit, kernel)
    digest = hashlib.sha256(" ".join(compiler.CODE_OPTIONS).encode())
    digest.update(text.encode())
    for path in sorted(headers(text)):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + _code_digest(path))
    return digest.hexdigest()


# Machine code --------------------------------------------------------------------------------------------------------


def code_hash(file: Path, symbol: str) -> str:
    """sha256 of a kernel's instructions, its descriptor but for the place of its entry, and all constants of the code object (ELF64)."""
    data = file.read_bytes()
    sections = list(_sections(data))
    symbols = dict(_symbols(data, sections))
    functions = {name for name, (_, _, kind) in symbols.items() if kind == _FUNCTION}
    descriptors = {f"{name}.kd" for name in functions} & symbols.keys()
    helpers = functions - {name.removesuffix(".kd") for name in descriptors}
    digest = hashlib.sha256()
    for name in [symbol, *sorted(helpers)]:
        digest.update(_bytes(data, sections, *symbols[name][:2]))
    own = _bytes(data, sections, *symbols[f"{symbol}.kd"][:2])
    digest.update(own[:16] + own[24:])
    digest.update(_constants(data, sections, [symbols[name][:2] for name in descriptors]))
    return digest.hexdigest()


_FUNCTION = 2


def _constants(data: bytes, sections: list[tuple[str, int, int, int]], descriptors: list[tuple[int, int]]) -> bytes:
    """.rodata without the kernels' descriptors, which come and go with other kernels."""
    kept = b""
    for name, address, offset, size in sections:
        if name == ".rodata":
            position = address
            for start, length in [*sorted(descriptors), (address + size, 0)]:
                kept += data[offset + position - address : offset + start - address].strip(b"\0")
                position = start + length
    return kept


def _sections(data: bytes) -> Iterator[tuple[str, int, int, int]]:
    """(name, address, file offset, size)."""
    table, entry_size, count, names = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HHH", data, 58)
    headers = [struct.unpack_from("<IIQQQQ", data, table + i * entry_size) for i in range(count)]
    for name, _, _, address, offset, size in headers:
        start = headers[names][4] + name
        yield data[start : data.index(b"\0", start)].decode(), address, offset, size


def _symbols(data: bytes, sections: list[tuple[str, int, int, int]]) -> Iterator[tuple[str, tuple[int, int, int]]]:
    """name, (address, size, kind)."""
    place = {name: (offset, size) for name, _, offset, size in sections}
    table, strings = (".symtab", ".strtab") if ".symtab" in place else (".dynsym", ".dynstr")
    for offset in range(place[table][0], sum(place[table]), 24):
        name, info, _, _, address, size = struct.unpack_from("<IBBHQQ", data, offset)
        start = place[strings][0] + name
        yield data[start : data.index(b"\0", start)].decode(), (address, size, info & 15)


def _bytes(data: bytes, sections: list[tuple[str, int, int, int]], address: int, size: int) -> bytes:
    for _, start, offset, length in sections:
        if start and start <= address < start + length:
            return data[offset + address - start : offset + address - start + size]
    raise ValueError(f"no section holds the address {address:#x}")
