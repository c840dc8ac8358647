"""One examination of a machine: asks every part, in an order that lets the slow tools run side by side."""

from __future__ import annotations

from dataclasses import dataclass

from .. import targets
from . import compilers, drm, environment, gpus, packages, permissions, rocm_installations, system
from .findings import Finding, exit_code
from .gpu import Gpu
from .probe import Probe, SystemProbe


@dataclass
class Examination:
    """All that the doctor found out."""

    gpus: list[Gpu]
    chosen_gpus: list[Gpu]
    choice: str  # why these
    cards: list[drm.Card]
    installations: list[rocm_installations.Installation]
    rocm: rocm_installations.Installation | None
    rocm_compiler: compilers.Program | None
    host_compilers: list[compilers.Program]
    tools: list[compilers.Program]
    machine: dict[str, object]
    access: dict[str, object]
    variables: dict[str, str]
    findings: list[Finding]

    @property
    def exit_code(self) -> int:
        return exit_code(self.findings)

    @property
    def targets(self) -> list[targets.Target]:
        return targets.resolve(None, self.gpus)


def examine(probe: Probe) -> Examination:
    installations = rocm_installations.find(probe)
    rocm = rocm_installations.choose(probe, installations)
    roots = [installation.root for installation in ([rocm] if rocm else []) + [other for other in installations if other is not rocm]]
    commands = gpus.start_tools(probe, roots, rocm.hip_library if rocm else None)
    compilers.start(probe, rocm.compilers[:1] if rocm else ())
    sources = gpus.read(probe, commands)
    found = gpus.merge(probe, sources)
    chosen, choice = targets.choose(found)
    host_compilers, tools = compilers.find(probe)
    findings = [
        *gpus.check(probe, sources, found),
        *permissions.check(probe, found),
        *rocm_installations.check(probe, installations, rocm, found),
        *compilers.check(probe, host_compilers, tools),
        *environment.check(probe, found, installations, rocm),
        *system.check(probe, len({gpu.build_target for gpu in chosen})),
    ]
    return Examination(
        gpus=found,
        chosen_gpus=chosen,
        choice=choice,
        cards=sources.cards,
        installations=installations,
        rocm=rocm,
        rocm_compiler=compilers.query(probe, "clang++", rocm.compilers[0]) if rocm and rocm.compilers else None,
        host_compilers=host_compilers,
        tools=tools,
        machine=_machine(probe),
        access=permissions.facts(probe),
        variables=environment.values(probe),
        findings=findings,
    )


def find_gpus() -> list[Gpu]:
    """The GPUs of this machine, for `targets.resolve`."""
    probe = SystemProbe()
    try:
        return examine(probe).gpus
    finally:
        probe.close()


def _machine(probe: Probe) -> dict[str, object]:
    sizes = system.memory(probe)
    folder = str(probe.fact("cache folder") or "")
    return {
        "distribution": packages.distribution(probe),
        "kernel": probe.fact("kernel"),
        "architecture": probe.fact("machine"),
        "wsl": probe.exists("/dev/dxg"),
        "processors": probe.fact("processors"),
        "memory_bytes": sizes.get("total"),
        "memory_available_bytes": sizes.get("available"),
        "cache_folder": folder,
        "disk_free_bytes": probe.disk_free(folder),
        "build_jobs": system.jobs(probe),
    }
