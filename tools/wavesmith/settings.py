"""Every environment variable wavesmith reads, with default and meaning: the one list that docs and `wavesmith env` print.

A command line option wins over the environment variable, that over the config file (config.py), that over the default.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .errors import BadInput

_applied: set[str] = set()  # variables that `apply` took from the config file


@dataclass(frozen=True)
class Setting:
    name: str
    default: str
    meaning: str
    read_by: str  # "module", "host" (host platform of the kernels) or "tool"
    expected: str = ""  # what a value must be, for messages
    accepts: Callable[[str], bool] = lambda _value: True  # asked about values that are not empty; an empty one counts as not set

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

    def problem(self, value: str) -> str:
        """What is wrong with a value, in one line; "" for a right one."""
        return "" if value == "" or self.accepts(value) else f"{self.name} is {value!r}; expected {self.expected}"


HOST_FAMILIES = ("gcn", "cdna2", "cdna3", "cdna4", "rdna2", "rdna3", "rdna3.5", "rdna4")
KERNELS = ("mmq", "mmvq", "gemm", "fattn")
LOG_LEVELS = ("error", "warn", "info", "debug")


def _any_of(values: Iterable[str]) -> str:
    *first, last = values
    return f"{', '.join(first)} or {last}"


def _is_switch(value: str) -> bool:
    return value in ("0", "1")


def _is_kernel_list(value: str) -> bool:
    names = [name for item in value.split(",") if (name := item.replace(" ", ""))]
    return all(name.removeprefix("-") in KERNELS for name in names)


def _is_seed(value: str) -> bool:
    return re.fullmatch("[0-9]+", value) is not None and int(value.lstrip("0")[:21] or "0") < 1 << 64


def _is_byte_count(value: str) -> bool:
    return _is_seed(value) and int(value.lstrip("0") or "0") < (1 << 32) - 1


_CONFIG = "WAVESMITH_CONFIG"  # cannot be set in the file that it names

SETTINGS = (
    Setting("WAVESMITH", "1", "0 leaves every op to stock", "module", "0 or 1", _is_switch),
    Setting(
        "WAVESMITH_KERNELS",
        ",".join(KERNELS),
        "kernels that may run; a leading '-' leaves one out (-mmq)",
        "module",
        f"a list of {_any_of(KERNELS)}, each with or without a leading '-'",
        _is_kernel_list,
    ),
    Setting(
        "WAVESMITH_LDS_LIMIT",
        "",
        "most LDS in bytes that a workgroup may have; lowers what the family allows",
        "host",
        "a number of bytes below 2^32 - 1",
        _is_byte_count,
    ),
    Setting("WAVESMITH_LEDGER", "", "file, or '-' for stderr: which kernel ran each op, or why stock did, printed at exit", "module"),
    Setting("WAVESMITH_LOG", "warn", _any_of(LOG_LEVELS), "module", _any_of(LOG_LEVELS), LOG_LEVELS.__contains__),
    Setting(
        "WAVESMITH_HOST_FAMILY",
        "rdna3",
        "gfx family whose kernels the host target runs",
        "host",
        _any_of(HOST_FAMILIES),
        HOST_FAMILIES.__contains__,
    ),
    Setting("WAVESMITH_HOST_CHECKED", "0", "1 checks every LDS and buffer access of the host target", "host", "0 or 1", _is_switch),
    Setting(
        "WAVESMITH_HOST_RACECHECK",
        "0",
        "1 also reports LDS races of the host target (implies WAVESMITH_HOST_CHECKED=1)",
        "host",
        "0 or 1",
        _is_switch,
    ),
    Setting(
        "WAVESMITH_HOST_ORDER",
        "",
        "seed of a random order of the threads of a block on the host target",
        "host",
        "a decimal seed below 2^64",
        _is_seed,
    ),
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


def check() -> None:
    """BadInput for the first setting with a wrong value, wherever that comes from."""
    for setting in SETTINGS:
        problem = setting.problem(setting.value)
        if problem:
            where = f" (in {config_path()})" if setting.source == "config file" else ""
            raise BadInput(problem + where)


def without(environment: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """A copy of `environment` in which the named settings are not set."""
    return {name: value for name, value in environment.items() if name not in names}


@contextmanager
def unset(names: Iterable[str]) -> Iterator[None]:
    """Takes the named settings out of our own environment for a while."""
    before = {name: os.environ.pop(name) for name in names if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(before)


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
