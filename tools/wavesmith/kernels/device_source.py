"""HIP translation units that instantiate the kernels for one target.

Each kernel becomes an `extern "C" __global__` function whose parameters are the fields of the kernel's argument struct,
in order, so that a launcher needs nothing but the manifest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from . import definitions
from .definitions import Argument, Plan, Quant
from .families import Family, families


@dataclass(frozen=True)
class Kernel:
    """One device function: `cxx` is the kernel class, `grid` the launch rule (docs/manifest.md) over the arguments' names."""

    symbol: str
    operation: str  # "MUL_MAT", "QUANTIZE_Q8_1", "EXPERT_SLOTS"
    type: str  # GGUF type of the weights, or the layout
    cxx: str
    struct: str
    arguments: tuple[Argument, ...]
    threads: int
    grid: str
    plan: Plan | None = None


@dataclass(frozen=True)
class Unit:
    """A translation unit: its name, the kernels in it, its text."""

    name: str
    kernels: tuple[Kernel, ...]
    text: str


def mmq_unit(quant: Quant, family: Family) -> Unit:
    """All tile plans of mmq for one type on one family."""
    arguments = tuple(
        replace(argument, meaning=f"{quant.activations} {argument.meaning}") if argument.name == "activations" else argument
        for argument in definitions.arguments("mmq_arguments.h", "MmqArguments")
    )
    kernels = tuple(
        Kernel(
            symbol=f"mmq_{quant.stem}_{plan.name}",
            operation="MUL_MAT",
            type=quant.name,
            cxx=f"Mmq<arch::{family.architecture}, quants::{quant.struct}, MmqTile<{plan.tile}>>",
            struct="MmqArguments",
            arguments=arguments,
            threads=plan.waves * family.wave_size,
            grid=f"x = ceil(m / {plan.tile_m}), y = ceil(n / {plan.tile_n}), z = batches",
            plan=plan,
        )
        for plan in definitions.plans()
        if plan.architecture == family.architecture and plan.parts == quant.parts
    )
    return _unit(f"mmq_{quant.stem}", ("kernels/mmq.h", f"quants/{quant.stem}.h", f"arch/{family.header}"), kernels, family.architecture)


def common_unit(family: Family) -> Unit:
    """The kernels that have no tile plan: quantize_q8_1 in every layout, expert_slots, gemm for every float type."""
    architecture = family.architecture
    quantize = tuple(definitions.arguments("quantize_q8_1.h", "QuantizeQ8_1Arguments"))
    slots = tuple(definitions.arguments("expert_slots.h", "ExpertSlotsArguments"))
    gemm = tuple(definitions.arguments("gemm.h", "GemmArguments"))
    kernels = [
        Kernel(f"quantize_q8_1_{layout}", "QUANTIZE_Q8_1", layout, f"QuantizeQ8_1<arch::{architecture}, Q8_1Layout::{layout}>",
               "QuantizeQ8_1Arguments", quantize, 128, "x = ne1 * ne2 * ne3, y = ceil(k / 512), z = 1")
        for layout in ("d4", "ds4", "d2s6", "d4s8", "d2s8")
    ]  # fmt: skip
    kernels.append(Kernel("expert_slots", "EXPERT_SLOTS", "i32", f"ExpertSlots<arch::{architecture}>", "ExpertSlotsArguments", slots, 128,
                          "x = experts, y = 1, z = 1"))  # fmt: skip
    kernels += [
        Kernel(f"gemm_{name.lower()}", "MUL_MAT", name.lower(), f"Gemm<arch::{architecture}, Weight{name}>", "GemmArguments", gemm,
               4 * family.wave_size, "x = ceil(m / 4), y = ceil(n / 4), z = batches")
        for name in ("F32", "F16", "BF16")
    ]  # fmt: skip
    headers = ("kernels/quantize_q8_1.h", "kernels/expert_slots.h", "kernels/gemm.h", f"arch/{family.header}")
    return _unit("common", headers, tuple(kernels), architecture)


def units(family: str) -> list[Unit]:
    """Every translation unit of a family; none where there is no such family."""
    known = families().get(family)
    return [common_unit(known), *(mmq_unit(quant, known) for quant in definitions.quants())] if known else []


def _unit(name: str, headers: tuple[str, ...], kernels: tuple[Kernel, ...], architecture: str) -> Unit:
    lines = ['#include "platform/hip/simt.h"', *(f'#include "{header}"' for header in headers), "", "using namespace wavesmith;", ""]
    for kernel in kernels:
        parameters = ", ".join(f"{argument.type} {argument.name}" for argument in kernel.arguments)
        values = ", ".join(argument.name for argument in kernel.arguments)
        lines += [
            f'extern "C" __attribute__((global, amdgpu_flat_work_group_size({kernel.threads}, {kernel.threads}))) void {kernel.symbol}({parameters}) {{',
            f"    using Kernel = {kernel.cxx};",
            f'    static_assert(Kernel::threads == {kernel.threads}, "threads of a block");',
            f"    const {kernel.struct} arguments = {{ {values} }};",
            f"    Kernel::run(hip::DeviceSimt<arch::{architecture}, Kernel::lds_bytes>(), arguments);",
            "}",
            "",
        ]
    return Unit(name, kernels, "\n".join(lines))
