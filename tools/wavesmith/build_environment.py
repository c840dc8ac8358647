"""The environment of CMake and the compilers: the user's, without what would change the result."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from . import process, rocm

_NOT_INHERITED = (
    "CFLAGS",
    "CXXFLAGS",
    "CPPFLAGS",
    "LDFLAGS",
    "CMAKE_PREFIX_PATH",
    "CMAKE_GENERATOR",
    "CMAKE_ARGS",
    "DESTDIR",
    "MAKEFLAGS",
    *rocm.NOT_INHERITED,
)


def variables(prefix: Path, extra: Mapping[str, str]) -> dict[str, str]:
    """For a build in `prefix`, kept from reading a repository around that folder. extra: what its ROCm needs."""
    environment = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
    environment.update(extra)
    environment.update(
        GIT_CEILING_DIRECTORIES=str(prefix),
        NINJA_STATUS=process.NINJA_STATUS,
        CCACHE_BASEDIR=str(prefix),  # builds in different folders share compiled files
        CCACHE_NOHASHDIR="1",
    )
    return environment
