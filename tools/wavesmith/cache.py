"""Folders that wavesmith keeps between runs (XDG base directories)."""

from __future__ import annotations

import errno
from pathlib import Path

from . import settings
from .errors import BadInput


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
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise BadInput(f"cannot make the cache folder {path}: {error.strerror}; choose another with WAVESMITH_CACHE") from None
    return path
