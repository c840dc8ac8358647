"""The patch as data: what `patches/hunks.toml` and the texts beside it say. docs/patching.md describes the fields."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from . import resources, toml
from .errors import CannotRun

_COMMENT = {"c++": "//", "cmake": "#"}


@dataclass(frozen=True)
class File:
    """A whole file that the patch adds."""

    name: str
    target: str  # relative to the tree
    content: bytes


@dataclass(frozen=True)
class Insert:
    """A text that the patch puts before or after the lines of an anchor."""

    name: str
    file: str  # relative to the tree
    language: str  # "c++" or "cmake"
    inside: str  # function or block that holds the anchor, "" for none
    anchor: str  # lines joined by \n
    place: str  # "before" or "after"
    text: str  # with \n at the end of every line, markers included
    ggml: str  # version specifier

    @property
    def begin(self) -> str:
        return f"{_COMMENT[self.language]} >>> custom kernels: {self.name}"

    @property
    def end(self) -> str:
        return f"{_COMMENT[self.language]} <<< custom kernels: {self.name}"


@dataclass(frozen=True)
class Foreign:
    """Another kernel patch, known by the name of a file or by a text."""

    name: str
    file: str
    text: str


@dataclass(frozen=True)
class PatchSet:
    files: tuple[File, ...]
    inserts: tuple[Insert, ...]
    foreign: tuple[Foreign, ...]
    ggml: str  # version specifier of the whole patch
    identity: str  # 16 hexadecimal digits, a hash of all of the above


@cache
def load() -> PatchSet:
    """The patch that ships with wavesmith. CannotRun where its data is missing or damaged."""
    try:
        return read(resources.patches() / "hunks.toml", resources.data_root())
    except (OSError, KeyError, ValueError) as error:
        raise CannotRun(f"the patch data of this wavesmith is missing or damaged: {error}") from error


def read(path: Path, root: Path) -> PatchSet:
    """The patch described by the file `path`; sources of whole files are relative to `root`."""
    raw = path.read_bytes()
    data = toml.loads(raw.decode())
    if data["format"] != 1:
        raise ValueError(f"{path.name} has format {data['format']}, expected 1")
    digest = hashlib.sha256(raw)

    files = []
    for row in data["file"]:
        content = (root / row["source"]).read_bytes()
        digest.update(content)
        files.append(File(row["name"], row["target"], content))

    inserts = []
    for row in data["insert"]:
        body = (path.parent / "text" / row["text"]).read_bytes().decode("ascii")
        digest.update(body.encode())
        inserts.append(_insert(row, body, data["ggml"]))

    foreign = tuple(Foreign(row["name"], row.get("file", ""), row.get("text", "")) for row in data["foreign"])
    return PatchSet(tuple(files), tuple(inserts), foreign, data["ggml"], digest.hexdigest()[:16])


def _insert(row: dict, body: str, ggml: str) -> Insert:
    if row["language"] not in _COMMENT or row["place"] not in ("before", "after") or not body.endswith("\n"):
        raise ValueError(f"hunk '{row['name']}': bad language, place or text")
    bare = Insert(row["name"], row["file"], row["language"], row["inside"], row["anchor"].strip("\n"), row["place"], "", row.get("ggml", ggml))
    return Insert(**{**bare.__dict__, "text": f"{bare.begin}\n{body}{bare.end}\n"})
