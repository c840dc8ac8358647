"""Folders that wavesmith keeps between runs (XDG base directories)."""

from __future__ import annotations

from pathlib import Path

from . import settings


def root() -> Path:
    """The cache folder: $WAVESMITH_CACHE, else the platform's user cache folder / wavesmith. Not created here."""
    chosen = settings.get("WAVESMITH_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_cache_dir("wavesmith", appauthor=False))


def folder(name: str) -> Path:
    """A subfolder of the cache (`downloads`, `sources`, `builds`, `models`, `logs`), created."""
    path = root() / name
    path.mkdir(parents=True, exist_ok=True)
    return path
