"""Every environment variable wavesmith reads, with default and meaning: the one list that docs and `wavesmith env` print."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Setting:
    name: str
    default: str
    meaning: str
    read_by: str  # "module", "host" (host platform of the kernels) or "tool"

    @property
    def value(self) -> str:
        return os.environ.get(self.name, self.default)

    @property
    def is_set(self) -> bool:
        return self.name in os.environ


SETTINGS = (
    Setting("WAVESMITH", "1", "0 leaves every op to stock", "module"),
    Setting("WAVESMITH_KERNELS", "mmq,mmvq,gemm,fattn", "kernels that may run; a leading '-' leaves one out (-mmq)", "module"),
    Setting("WAVESMITH_LEDGER", "", "file, or '-' for stderr: which kernel ran each op, or why stock did, printed at exit", "module"),
    Setting("WAVESMITH_LOG", "warn", "error, warn, info or debug", "module"),
    Setting("WAVESMITH_HOST_FAMILY", "rdna3", "gfx family whose kernels the host target runs", "host"),
    Setting("WAVESMITH_HOST_CHECKED", "0", "1 checks every LDS and buffer access of the host target", "host"),
    Setting("WAVESMITH_HOST_RACECHECK", "0", "1 also reports LDS races of the host target (implies WAVESMITH_HOST_CHECKED=1)", "host"),
    Setting("WAVESMITH_HOST_ORDER", "", "seed of a random order of the threads of a block on the host target", "host"),
    Setting("WAVESMITH_HOST_LIBRARY", "", "host library to load in place of the installed one", "tool"),
    Setting("WAVESMITH_CACHE", "", "cache folder in place of $XDG_CACHE_HOME/wavesmith", "tool"),
    Setting("CC", "", "C compiler of builds, in place of gcc or clang", "tool"),
    Setting("CXX", "", "C++ compiler of builds, in place of g++ or clang++", "tool"),
)

BY_NAME = {setting.name: setting for setting in SETTINGS}


def get(name: str) -> str:
    """Current value of a listed setting; KeyError for a name that is not listed."""
    return BY_NAME[name].value
