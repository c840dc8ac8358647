"""The one place that knows the emulator's interface."""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from wavesmith import cache
from wavesmith.errors import CannotRun

DESCRIPTION = "an AMDGPU ISA emulator driving tinygrad's mock GPU, not part of this repository"
TARGETS = ("gfx1100", "gfx1151", "gfx1201", "gfx942", "gfx950")  # whose instructions it has
PREEMPTION = 50  # about this many instructions before a wave is preempted, in a random schedule


class EmulationFailed(Exception):
    """The kernel did what it must not: touched memory outside its buffers, deadlocked, or used an instruction that cannot be emulated."""


@dataclass(frozen=True)
class Outcome:
    """Of one launch, in instructions of whole waves. `classes`, `opcodes`: how often each ran; `memory`: access figures."""

    instructions: int
    classes: dict[str, int]
    opcodes: dict[str, int]
    memory: dict[str, int]
    warnings: dict[str, int]


@lru_cache(maxsize=1)
def _module() -> ModuleType:
    folder, tinygrad = (os.environ.get(name) for name in ("WAVESMITH_EMULATOR", "TINYGRAD"))
    if not folder or not (Path(folder) / "run_co.py").is_file():
        raise CannotRun(f"no ISA emulator: set WAVESMITH_EMULATOR to the folder that holds run_co.py (docs/isa.md), now '{folder or ''}'")
    if not tinygrad or not Path(tinygrad).is_dir():
        raise CannotRun(f"the ISA emulator needs tinygrad: set TINYGRAD to its source tree (docs/isa.md), now '{tinygrad or ''}'")
    # What the emulator makes of instructions is cached; with the correction below it belongs in a cache of its own.
    os.environ["EMU_CACHE"] = str(cache.folder("isa-emulator"))
    sys.path.insert(0, folder)
    try:
        module = importlib.import_module("run_co")
        _correct_byte_operands(importlib.import_module("tinyemu").compiler().emu)
    except (ImportError, AttributeError, RuntimeError) as error:
        raise CannotRun(f"the ISA emulator in {folder} cannot be loaded: {error}") from None
    finally:
        sys.path.remove(folder)
    return module


def _correct_byte_operands(instructions: ModuleType) -> None:
    """CDNA's sign-extended byte operands (SDWA, sext): the emulator takes every byte for negative, since the constant 128 is replaced in it."""
    select, constant = instructions._sdwa_select, instructions._c

    def sdwa_select(value: Any, selection: Any, extend: Any) -> Any:
        plain = select(value, selection, constant(0))
        byte, word = (plain >> constant(7)).ne(constant(1)), (plain >> constant(15)).ne(constant(1))
        extended = (selection < constant(4)).where(byte.where(plain, plain | constant(0xFFFFFF00)), word.where(plain, plain | constant(0xFFFF0000)))
        return (extend.ne(constant(0)) & (selection < constant(6))).where(extended, plain)

    instructions._sdwa_select = sdwa_select


def require() -> None:
    """CannotRun, with what to set, when there is no emulator."""
    _module()


class CodeObject:
    """A code object that can be run."""

    def __init__(self, file: Path) -> None:
        self._module = _module()
        try:
            self._object = self._module.CodeObject(str(file))
        except self._module.EmuError as error:
            raise EmulationFailed(str(error)) from None

    def uncovered(self, symbol: str) -> list[str]:
        """The kernel's instructions that cannot be emulated, whether or not a case reaches them."""
        return [f"{address:#x} {instruction}: {reason}" for address, instruction, reason in self._object.coverage(symbol)[0]]

    def run(self, symbol: str, grid: tuple[int, int, int], block: tuple[int, int, int], args: list[Any], lds: int, seed: int | None) -> Outcome:
        """Runs a launch; arrays among `args` are changed in place. seed: None for waves in order, else a random schedule with preemption.

        Registers, LDS and scratch hold junk at the start, and every buffer ends at a page that cannot be touched.
        """
        how = {"schedule": "inorder"} if seed is None else {"schedule": "random", "quantum": PREEMPTION, "seed": seed}
        try:
            result = self._object.run(symbol, grid=grid, block=block, args=args, dyn_lds=lds, poison=True, **how)
        except self._module.EmuError as error:
            raise EmulationFailed(str(error)) from None
        return Outcome(result.insts, dict(result.counts), dict(result.by_op), dict(result.memory), dict(result.warn))
