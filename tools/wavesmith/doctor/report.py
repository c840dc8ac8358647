"""The examination for people (lines of text) and for programs (schemas/doctor.schema.json)."""

from __future__ import annotations

from ..targets import Target
from .examine import Examination
from .findings import NOTE, SEVERITIES
from .gpu import Gpu
from .gpus import usable_memory
from .rocm_installations import Installation

SCHEMA_VERSION = 1
VERDICTS = {0: "fine", 1: "warnings", 3: "cannot build", 4: "cannot run"}
_GIB = 1 << 30


def as_json(examination: Examination) -> dict[str, object]:
    return {
        "schema_version": SCHEMA_VERSION,
        "exit_code": examination.exit_code,
        "verdict": VERDICTS[examination.exit_code],
        "machine": examination.machine,
        "gpus": [_gpu_json(gpu, gpu in examination.chosen_gpus) for gpu in examination.gpus],
        "targets": [_target_json(target) for target in examination.targets],
        "target_reason": examination.choice,
        "rocm": {
            "chosen": examination.rocm.root if examination.rocm else None,
            "compiler": vars(examination.rocm_compiler) if examination.rocm_compiler else None,
            "installations": [_installation_json(installation) for installation in examination.installations],
        },
        "compilers": [vars(program) for program in examination.host_compilers],
        "tools": [vars(program) for program in examination.tools],
        "access": examination.access,
        "environment": examination.variables,
        "findings": [
            {
                "name": finding.name,
                "severity": finding.severity,
                "what": finding.what,
                "why": finding.why,
                "fixes": [{"command": fix.command, "safe": fix.safe} for fix in finding.fixes],
            }
            for finding in examination.findings
        ],
    }


def _gpu_json(gpu: Gpu, chosen: bool) -> dict[str, object]:
    usable, source = usable_memory(gpu)
    return {
        "index": gpu.index,
        "target": gpu.target,
        "build_target": gpu.build_target,
        "family": gpu.family,
        "features": list(gpu.features),
        "product": gpu.product,
        "integrated": gpu.integrated,
        "pci": gpu.pci,
        "compute_units": gpu.compute_units,
        "memory_bytes": gpu.memory,
        "usable_memory_bytes": usable,
        "usable_memory_source": source,
        "reported_targets": gpu.reported,
        "chosen": chosen,
    }


def _target_json(target: Target) -> dict[str, object]:
    return {
        "name": target.name,
        "platform": target.platform,
        "family": target.family,
        "kernel_target": target.kernel_target,
        "code_object_version": target.code_object_version,
        "note": target.note,
    }


def _installation_json(installation: Installation) -> dict[str, object]:
    return {
        "root": installation.root,
        "real_root": installation.real_root,
        "layout": installation.layout,
        "hip_version": installation.hip_version,
        "version_file": installation.version_file,
        "rocm_version": installation.rocm_version,
        "compilers": list(installation.compilers),
        "missing": list(installation.missing),
        "usable": installation.usable,
    }


def as_text(examination: Examination) -> list[str]:
    """Lines without colour; the findings come last, the worst at the very end, where a terminal shows them."""
    machine = examination.machine
    lines = [f"Machine   {machine['distribution']}, kernel {machine['kernel']}{', WSL' if machine['wsl'] else ''}"]
    for gpu in examination.gpus:
        lines += _gpu_lines(gpu, gpu in examination.chosen_gpus)
    if not examination.gpus:
        lines.append("GPU       no AMD GPU found; the host target runs the kernels on the CPU")
    names = ", ".join(target.name for target in examination.targets)
    lines.append(f"Builds    for {names}: {examination.choice}")
    lines += _rocm_lines(examination)
    programs = [*examination.host_compilers[:2], *examination.tools]
    told = ", ".join(f"{program.name} {program.version or ''}".strip() for program in programs)
    lines.append(f"Tools     {told or 'none found'}")
    lines.append(f"Room      {_size(machine['disk_free_bytes'])} disk, {_size(machine['memory_available_bytes'])} memory, {machine['build_jobs']} build jobs")
    lines += [f"Variable  {name}={value}" for name, value in examination.variables.items()]
    for finding in sorted(examination.findings, key=lambda finding: SEVERITIES.index(finding.severity)):
        lines += ["", f"{finding.severity}: {finding.what}", f"    why: {finding.why}"]
        lines += [f"    fix: {fix.command}" for fix in finding.fixes]
    return [*lines, "", _verdict(examination)]


def _verdict(examination: Examination) -> str:
    problems = sum(finding.severity != NOTE for finding in examination.findings)
    names = ", ".join(target.name for target in examination.targets)
    if not problems:
        return f"Everything is fine: `wavesmith build` will build for {names}."
    return f"{VERDICTS[examination.exit_code].capitalize()}: {problems} problem{'s' if problems > 1 else ''} found, see above."


def _gpu_lines(gpu: Gpu, chosen: bool) -> list[str]:
    place = f"GPU {gpu.index}" if gpu.index is not None else "GPU -"
    kind = "integrated" if gpu.integrated else "discrete"
    units = f"{gpu.compute_units} compute units" if gpu.compute_units else "compute units unknown"
    override = f", passes for {gpu.override}" if gpu.override else ""
    features = f" ({':'.join(gpu.features)})" if gpu.features else ""
    state = "builds are for it" if chosen else "hidden" if gpu.index is None else "left out"
    first = f"{place:<9} {gpu.product}: {gpu.target}{features}{override}, {gpu.family or 'no kernels'}, {kind}, {units}, {state}"
    usable, source = usable_memory(gpu)
    told = ", ".join(f"{name} {_size(size)}" for name, size in gpu.memory.items())
    return [first, f"          memory: {_size(usable)} usable by {source} ({told})" if told else "          memory: no source says"]


def _rocm_lines(examination: Examination) -> list[str]:
    if examination.rocm is None:
        return ["ROCm      none found"]
    compiler = examination.rocm_compiler
    told = f", compiler {compiler.path} {compiler.version or ''}".rstrip() if compiler else ", no compiler"
    return [f"ROCm      {examination.rocm.root}: HIP {examination.rocm.hip_version or 'of unknown version'}{told}"]


def _size(value: object) -> str:
    return f"{value / _GIB:.1f} GiB" if isinstance(value, int) else "unknown"
