"""Reads TOML on every supported Python."""

from __future__ import annotations


def loads(text: str) -> dict:
    """The document as a dictionary; ValueError where it is not TOML."""
    try:
        import tomllib
    except ModuleNotFoundError:  # Python 3.10
        import tomli as tomllib
    return tomllib.loads(text)
