"""Folders that wavesmith keeps between runs (XDG base directories)."""

from __future__ import annotations

import os
from pathlib import Path

from . import settings
from .errors import DISK_FULL, BadInput


def root() -> Path:
    """The cache folder: $WAVESMITH_CACHE, else the platform's user cache folder / wavesmith. Not created here."""
    chosen = settings.get("WAVESMITH_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_cache_dir("wavesmith", appauthor=False))


def folder(name: str) -> Path:
    """A subfolder of the cache (`downloads`, `sources`, `builds`, `models`, `logs`), created. BadInput where it cannot be."""
    path = root() / name
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if error.errno in DISK_FULL:
            raise
        raise _unusable(path, error.strerror) from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise _unusable(path, "no permission to write there")
    return path


def _unusable(path: Path, why: str) -> BadInput:
    return BadInput(f"cannot use the cache folder {path}: {why}; choose another with WAVESMITH_CACHE")
