"""Says which kernels a build's programs will run with, asked from the build itself."""

from __future__ import annotations

from collections.abc import Mapping

from . import process, settings
from .build_verify import DEVICE
from .built import Build

KERNELS = ("mmq", "mmvq", "gemm", "fattn")


def describe(build: Build, variables: Mapping[str, str]) -> list[str]:
    """Sentences for the user. Runs the build's llama-bench with the given environment to list its devices."""
    if variables.get("WAVESMITH") == "0":
        return ["wavesmith kernels: off (WAVESMITH=0), stock's run"]
    allowed = allowed_kernels(variables.get("WAVESMITH_KERNELS") or settings.BY_NAME["WAVESMITH_KERNELS"].default)
    listing = process.capture([build.program("llama-bench"), "--list-devices"], environment=variables, timeout=60)
    devices = [line.strip() for line in listing.splitlines() if line.startswith("  ") and ":" in line]
    ours = [line for line in devices if line.startswith(f"{DEVICE}:")]
    gpus = [line for line in devices if not build.target.startswith("host") and line.startswith(("ROCm", "CUDA"))]
    if not ours and not gpus:
        return [f"wavesmith kernels: not active, the build ({build.target}) finds no device for them here; stock's run"]
    may = f"of {', '.join(allowed)}, those that this version has" if allowed else "none (WAVESMITH_KERNELS leaves out all)"
    active = [f"wavesmith kernels: active on {line}" for line in ours] + [f"wavesmith kernels: part of the backend of {line}" for line in gpus]
    return [*active, f"kernels that may run: {may}; WAVESMITH_LEDGER=- lists at exit which ran"]


def allowed_kernels(value: str) -> list[str]:
    """Kernels that a value of WAVESMITH_KERNELS allows: the named ones, or all but those with a leading '-'."""
    words = [word.strip() for word in value.split(",") if word.strip()]
    named = [word for word in words if not word.startswith("-")] or list(KERNELS)
    return [kernel for kernel in KERNELS if kernel in named and f"-{kernel}" not in words]
