"""Where the data that ships with wavesmith lies: `backend/`, `patches/` and `cmake/`."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def data_root() -> Path:
    """Folder that holds `backend`, `patches` and `cmake`: the installed package's data, else the checkout around it."""
    installed = _PACKAGE / "data"
    return installed if (installed / "backend").is_dir() else _PACKAGE.parent.parent


def backend() -> Path:
    return data_root() / "backend"


def patches() -> Path:
    return data_root() / "patches"
