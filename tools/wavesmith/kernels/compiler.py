"""Compiles translation units to plain AMD code objects with clang alone: no ROCm, no HIP headers, no device library."""

from __future__ import annotations

import re
import shutil
import subprocess
import textwrap
from dataclasses import dataclass
from pathlib import Path

from .. import resources
from ..errors import BuildFailed, CannotBuild

# Newest first: 22 is the nearest public relative of ROCm 7.2's compiler and the first Debian package that knows gfx950.
CLANG_NAMES = ("clang++-22", "clang++-23", "clang++-21", "clang++-20", "clang++-19", "clang++")
CODE_OPTIONS = ("-std=c++17", "-O3", "-ffp-contract=off")  # those that decide the code


@dataclass(frozen=True)
class Compiler:
    """A clang that has the AMDGPU target, and the llvm-readelf beside it."""

    clang: str
    readelf: str
    version: str  # such as "clang 22.1.8"


@dataclass(frozen=True)
class Resources:
    """What one kernel needs, from the code object's metadata (LLVM AMDGPU usage, code object V5 metadata)."""

    symbol: str
    vgprs: int
    agprs: int
    sgprs: int
    static_lds_bytes: int
    scratch_bytes: int
    vgpr_spills: int
    sgpr_spills: int
    wave_size: int


def find() -> Compiler:
    """The first clang that can compile for AMD GPUs; CannotBuild says what to install."""
    for name in CLANG_NAMES:
        clang = shutil.which(name)
        if not clang:
            continue
        text = subprocess.run([clang, "--version"], capture_output=True, text=True, check=False).stdout
        found = re.search(r"clang version (\d+(?:\.\d+)*)", text)
        targets = subprocess.run([clang, "--print-targets"], capture_output=True, text=True, check=False).stdout
        if not found or "amdgcn" not in targets:
            continue
        suffix = name.removeprefix("clang++")
        readelf = shutil.which(f"llvm-readelf{suffix}") or shutil.which("llvm-readelf", path=str(Path(clang).resolve().parent))
        if readelf:
            return Compiler(clang, readelf, f"clang {found.group(1)}")
    raise CannotBuild("no clang with the AMDGPU target and llvm-readelf found; on Debian: apt-get install clang-22 lld-22 llvm-22")


def compile_unit(compiler: Compiler, source: Path, target: str, output: Path, code_object_version: int | None = None) -> None:
    """Compiles `source` for one gfx target into the plain code object `output`; BuildFailed shows the first error."""
    command = [
        compiler.clang, "-x", "hip", f"--offload-arch={target}", "--cuda-device-only", "--no-gpu-bundle-output", "-nogpulib", "-nogpuinc",
        *CODE_OPTIONS, "-Wall", "-Wextra", "-Werror", f"-I{resources.backend()}", "-c", str(source), "-o", str(output),
    ]  # fmt: skip
    if code_object_version:
        command.insert(1, f"-mcode-object-version={code_object_version}")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if "error:" in line] or done.stderr.splitlines() or ["no message"]
        raise BuildFailed(f"{target} {source.name}: {lines[0]}")


def resources_of(compiler: Compiler, code_object: Path) -> dict[str, Resources]:
    """Registers, LDS and scratch of every kernel in a code object, by symbol, from its metadata note (YAML)."""
    import yaml

    text = subprocess.run([compiler.readelf, "--notes", str(code_object)], capture_output=True, text=True, check=True).stdout
    note = re.search(r"^\s*---\n(.*?)^\s*\.\.\.", text, re.MULTILINE | re.DOTALL)
    if not note:
        raise BuildFailed(f"{code_object.name}: no AMDGPU metadata note")
    kernels = yaml.safe_load(textwrap.dedent(note.group(1)))["amdhsa.kernels"]
    return {kernel[".name"]: _resources(kernel) for kernel in kernels}


def _resources(kernel: dict) -> Resources:
    return Resources(
        symbol=kernel[".name"],
        vgprs=kernel[".vgpr_count"],
        agprs=kernel.get(".agpr_count", 0),
        sgprs=kernel[".sgpr_count"],
        static_lds_bytes=kernel[".group_segment_fixed_size"],
        scratch_bytes=kernel[".private_segment_fixed_size"],
        vgpr_spills=kernel.get(".vgpr_spill_count", 0),
        sgpr_spills=kernel.get(".sgpr_spill_count", 0),
        wave_size=kernel[".wavefront_size"],
    )
