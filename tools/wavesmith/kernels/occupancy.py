"""How many waves of a kernel a SIMD can hold, as far as vector registers decide it."""

from __future__ import annotations

from ..errors import BadInput
from ..targets import ARCHITECTURES
from .families import families

# RDNA3 targets whose SIMDs have two thirds of the registers (LLVM, AMDGPU.td: without Feature1_5xVGPRs), and their granule.
_SMALLER = ("gfx11-generic", "gfx1102", "gfx1103", "gfx1150", "gfx1152", "gfx1153")
_SMALLER_REGISTERS = (1024, 16)


def waves_per_simd(target: str, vgprs: int) -> int:
    """Waves per SIMD. `vgprs` as the metadata counts them: on CDNA2 and later they include the AGPRs. BadInput for an unknown target."""
    name = target.split(":")[0]
    architecture = ARCHITECTURES.get(name)
    if architecture is None or architecture.family is None:
        raise BadInput(f"no family is known for the target '{target}'")
    family = families()[architecture.family]
    total, granule = _SMALLER_REGISTERS if name in _SMALLER else (family.vgprs, family.vgpr_granule)
    taken = max(1, -(-vgprs // granule)) * granule
    return min(family.waves_per_simd, total // taken)
