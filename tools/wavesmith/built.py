"""A finished build: its folder, its programs, and the environment they run in."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from .build_plan import MANIFEST

MANIFEST_VERSION = 1


@dataclass(frozen=True)
class Build:
    """A finished build. Paths are where it lies now, wherever it was made."""

    prefix: Path
    target: str
    llama_version: str
    commit: str
    key: str
    bin_dir: Path
    lib_dir: Path
    programs: dict[str, Path]
    rocm_libraries: tuple[str, ...] = ()  # folders of the ROCm it was built with

    @property
    def has_host(self) -> bool:
        """Whether its kernels also run on the CPU, as the device WAVESMITH."""
        return "host" in self.target.split(",")

    def program(self, name: str) -> Path:
        """Path of one of build_plan.PROGRAMS."""
        return self.programs[name]

    def environment(self, family: str | None = None, stock: bool = False) -> dict[str, str]:
        """The environment in which its programs are compared: ours, or with `stock` the same programs with the module switched off.

        family: gfx family whose kernels the host target runs. Waiting OpenMP threads sleep: on a busy machine their
        spinning would make every figure meaningless.
        """
        environment = {name: value for name, value in os.environ.items() if name != "GGML_BACKEND_PATH"}
        environment["OMP_WAIT_POLICY"] = "passive"
        if stock:
            environment["WAVESMITH"] = "0"
        else:
            environment.pop("WAVESMITH", None)
        if family:
            environment["WAVESMITH_HOST_FAMILY"] = family
        return environment


def open_folder(prefix: Path) -> Build | None:
    """The finished build in a folder, if its manifest is there and its programs still exist."""
    try:
        manifest = json.loads((prefix / MANIFEST).read_text(encoding="utf-8"))
        if manifest["version"] != MANIFEST_VERSION:
            return None
        build = _build(prefix, manifest)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return build if all(os.access(path, os.X_OK) for path in build.programs.values()) else None


def _build(prefix: Path, manifest: dict) -> Build:
    plan = manifest["plan"]
    return Build(
        prefix=prefix,
        target=plan["target"],
        llama_version=plan["llama_version"],
        commit=plan["llama_commit"],
        key=plan["key"],
        bin_dir=prefix / manifest["bin_dir"],
        lib_dir=prefix / manifest["lib_dir"],
        programs={name: prefix / path for name, path in manifest["programs"].items()},
        rocm_libraries=tuple(manifest.get("rocm_libraries", ())),
    )
