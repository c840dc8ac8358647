"""How many waves of a kernel a SIMD can hold, as far as vector registers decide it (LLVM's AMDGPU backend, AMDGPUBaseInfo.cpp)."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import BadInput
from ..targets import ARCHITECTURES
from .families import families


@dataclass(frozen=True)
class VectorRegisters:
    """Of one SIMD: `total` registers per lane, handed out in steps of `granule` to at most `waves` waves."""

    total: int
    granule: int
    waves: int


_SMALLER = VectorRegisters(1024, 16, 16)
# Members with fewer registers than those of their family that wavesmith is checked on (families.toml).
_OF_TARGET = {"gfx11-generic": _SMALLER, "gfx1102": _SMALLER, "gfx1103": _SMALLER, "gfx1150": _SMALLER, "gfx1152": _SMALLER, "gfx1153": _SMALLER}


def waves_per_simd(target: str, vgprs: int) -> int:
    """Waves per SIMD. `vgprs` as the metadata counts them: on CDNA2 and later they include the AGPRs. BadInput for an unknown target."""
    name = target.split(":")[0]
    architecture = ARCHITECTURES.get(name)
    if architecture is None or architecture.family is None:
        raise BadInput(f"no family is known for the target '{target}'")
    family = families()[architecture.family]
    registers = _OF_TARGET.get(name, VectorRegisters(family.vgprs, family.vgpr_granule, family.waves_per_simd))
    taken = max(1, -(-vgprs // registers.granule)) * registers.granule
    return min(registers.waves, registers.total // taken)
