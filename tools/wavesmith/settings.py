"""Every environment variable wavesmith reads, with default and meaning: the one list that docs and `wavesmith env` print.

A command line option wins over the environment variable, that over the config file (config.py), that over the default.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from pathlib import Path

_applied: set[str] = set()  # variables that `apply` took from the config file


@dataclass(frozen=True)
class Setting:
    name: str
    default: str
    meaning: str
    read_by: str  # "module", "host" (host platform of the kernels) or "tool"

    @property
    def key(self) -> str:
        """Its key in the config file: the name without WAVESMITH_, in small letters; `enabled` for WAVESMITH itself."""
        return "enabled" if self.name == "WAVESMITH" else self.name.removeprefix("WAVESMITH_").lower()

    @property
    def value(self) -> str:
        if self.name in os.environ:
            return os.environ[self.name]
        return configured().get(self.name, self.default)

    @property
    def is_set(self) -> bool:
        """Whether the environment or the config file sets it."""
        return self.source != "default"

    @property
    def source(self) -> str:
        """Where the value comes from: "environment", "config file" or "default"."""
        if self.name in os.environ and self.name not in _applied:
            return "environment"
        return "config file" if self.name in configured() else "default"


_CONFIG = "WAVESMITH_CONFIG"  # cannot be set in the file that it names

SETTINGS = (
    Setting("WAVESMITH", "1", "0 leaves every op to stock", "module"),
    Setting("WAVESMITH_KERNELS", "mmq,mmvq,gemm,fattn", "kernels that may run; a leading '-' leaves one out (-mmq)", "module"),
    Setting("WAVESMITH_LDS_LIMIT", "", "most LDS in bytes that a workgroup may have; lowers what the family allows", "host"),
    Setting("WAVESMITH_LEDGER", "", "file, or '-' for stderr: which kernel ran each op, or why stock did, printed at exit", "module"),
    Setting("WAVESMITH_LOG", "warn", "error, warn, info or debug", "module"),
    Setting("WAVESMITH_HOST_FAMILY", "rdna3", "gfx family whose kernels the host target runs", "host"),
    Setting("WAVESMITH_HOST_CHECKED", "0", "1 checks every LDS and buffer access of the host target", "host"),
    Setting("WAVESMITH_HOST_RACECHECK", "0", "1 also reports LDS races of the host target (implies WAVESMITH_HOST_CHECKED=1)", "host"),
    Setting("WAVESMITH_HOST_ORDER", "", "seed of a random order of the threads of a block on the host target", "host"),
    Setting("WAVESMITH_HOST_LIBRARY", "", "host library to load in place of the installed one", "tool"),
    Setting("WAVESMITH_CACHE", "", "cache folder in place of $XDG_CACHE_HOME/wavesmith", "tool"),
    Setting("PIP_INDEX_URL", "", "package index to fetch from; with pip at hand, all of pip's configuration counts", "tool"),
    Setting("PIP_CERT", "", "file of certificates to trust in downloads, in place of the system's", "tool"),
    Setting("REQUESTS_CA_BUNDLE", "", "the same, read after PIP_CERT", "tool"),
    Setting(_CONFIG, "", "config file in place of $XDG_CONFIG_HOME/wavesmith/config.toml", "tool"),
    Setting("CC", "", "C compiler of builds, in place of gcc or clang", "tool"),
    Setting("CXX", "", "C++ compiler of builds, in place of g++ or clang++", "tool"),
)

BY_NAME = {setting.name: setting for setting in SETTINGS}


def get(name: str) -> str:
    """Current value of a listed setting; KeyError for a name that is not listed."""
    return BY_NAME[name].value


def config_path() -> Path:
    """The config file, which need not exist."""
    chosen = os.environ.get(_CONFIG)
    if chosen:
        return Path(chosen).expanduser().absolute()
    from . import config

    return config.default_path()


def configured() -> dict[str, str]:
    """What the config file sets, by setting name; BadInput where the file is wrong."""
    return _load(os.environ.get(_CONFIG), os.environ.get("XDG_CONFIG_HOME"), os.environ.get("HOME"))


@functools.lru_cache(maxsize=8)
def _load(*_where: str | None) -> dict[str, str]:
    """Read once for each combination of the variables that say where the file is."""
    from . import config

    return config.load(config_path(), {setting.key: setting.name for setting in SETTINGS if setting.name != _CONFIG})


def apply() -> None:
    """Puts the config file's settings into the environment, where the module and child processes read them."""
    for name, value in configured().items():
        if name not in os.environ:
            os.environ[name] = value
            _applied.add(name)
