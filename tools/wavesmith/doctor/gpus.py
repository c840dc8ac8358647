"""Puts together what all sources say about the GPUs, and checks them against each other."""

from __future__ import annotations

from dataclasses import dataclass, field

from .. import targets
from . import amd_smi, drm, hip_info, kfd, rocminfo
from .findings import CANNOT_RUN, NOTE, WARNING, Finding, commands
from .gpu import Gpu, Sighting
from .probe import Probe

# How far the sources may differ on a discrete card's memory before it is worth a word.
_MEMORY_TOLERANCE = 0.10
_SMALL_DIFFERENCE = 512 << 20  # bytes: what firmware and driver reserve


@dataclass
class Sources:
    """Everything that was read about GPUs, before it is put together."""

    topology: kfd.Topology
    cards: list[drm.Card]
    rocminfo: list[Sighting] | None  # None: the tool is not there or failed
    amd_smi: list[Sighting] | None
    hip_info: list[Sighting] | None
    hip: list[Sighting] | None
    timed_out: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)  # tool -> last line it printed


def tool_path(probe: Probe, name: str, roots: list[str]) -> str | None:
    """A ROCm tool on PATH or in the bin folder of one of the ROCm roots."""
    return probe.which(name) or next((f"{root}/bin/{name}" for root in roots if probe.exists(f"{root}/bin/{name}")), None)


def start_tools(probe: Probe, roots: list[str], hip_library: str | None) -> dict[str, tuple[str, ...]]:
    """Starts the tools that know GPUs, all at once; their commands by name."""
    found: dict[str, tuple[str, ...]] = {}
    for name, arguments in (("rocminfo", ()), ("amd-smi", amd_smi.COMMAND), ("hipInfo", ())):
        path = tool_path(probe, name, roots)
        if path:
            found[name] = (path, *arguments)
    if hip_library and (probe.exists("/dev/kfd") or probe.exists("/dev/dxg")):
        from .probe import HIP_QUERY

        found["hip"] = (HIP_QUERY, hip_library)
    for command in found.values():
        probe.start(*command)
    return found


def read(probe: Probe, tools: dict[str, tuple[str, ...]]) -> Sources:
    sources = Sources(kfd.read(probe), drm.read(probe), None, None, None, None)
    parsers = {"rocminfo": rocminfo.parse, "amd-smi": amd_smi.parse, "hipInfo": hip_info.parse, "hip": hip_info.parse_query}
    for name, command in tools.items():
        run = probe.run(*command)
        if run is None:
            continue
        if run.timed_out:
            sources.timed_out.append(name)
            continue
        sightings = parsers[name](run.stdout)
        if run.returncode != 0 and not sightings:
            lines = (run.stderr.strip() or run.stdout.strip()).splitlines()
            sources.failed[name] = lines[-1].strip()[:200] if lines else f"exit status {run.returncode}"
            continue
        setattr(sources, {"amd-smi": "amd_smi", "hipInfo": "hip_info"}.get(name, name), sightings)
    return sources


def merge(probe: Probe, sources: Sources) -> list[Gpu]:
    """The GPUs in HIP's order, hidden ones last. Their real target is the kernel's word (KFD), where there is one."""
    override = targets.from_override(probe.environ("HSA_OVERRIDE_GFX_VERSION") or "")
    ordered = [list(group) for group in (sources.topology.gpus, sources.rocminfo, sources.hip_info, sources.amd_smi) if group]
    if not ordered:
        return []
    groups: list[list[Sighting]] = [[sighting] for sighting in ordered[0] if sighting.target]
    from_kernel = bool(sources.topology.gpus)
    for sightings in (sources.rocminfo, sources.hip_info, sources.hip, sources.amd_smi, [card.sighting for card in sources.cards if card.sighting]):
        if sightings and sightings is not ordered[0]:
            _attach(groups, sightings)
    gpus = [_gpu(group, override if from_kernel else None) for group in groups]
    for position, gpu in zip(_visible(probe, gpus, from_kernel), range(len(gpus)), strict=False):
        gpus[position].index = gpu
    for gpu, group in zip(gpus, groups, strict=True):
        numbers = [sighting.index for sighting in group if sighting.index is not None]
        if numbers:
            gpu.index = numbers[-1]
    return sorted(gpus, key=lambda gpu: (gpu.index is None, gpu.index or 0))


def _attach(groups: list[list[Sighting]], sightings: list[Sighting]) -> None:
    """Adds each sighting to its GPU: by PCI address (the partitions of one card share it, in order), else by place
    in the list where both lists are equally long."""
    taken: set[int] = set()
    for place, sighting in enumerate(sightings):
        matching = [number for number, group in enumerate(groups) if number not in taken and sighting.pci and group[0].pci == sighting.pci]
        if not matching and len(sightings) == len(groups) and not (sighting.pci and groups[place][0].pci):
            matching = [place]
        if matching:
            taken.add(matching[0])
            groups[matching[0]].append(sighting)


def _first(group: list[Sighting], name: str):
    return next((value for sighting in group if (value := getattr(sighting, name)) is not None), None)


def _gpu(group: list[Sighting], override: str | None) -> Gpu:
    real = group[0]
    architecture = targets.ARCHITECTURES.get(real.target or "")
    named = {sighting.source: sighting.product for sighting in group if sighting.product}
    product = next((named[source] for source in ("hip", "rocminfo", "hipinfo", "amd-smi", "kfd", "pci") if _says_product(named.get(source))), None)
    integrated = bool(architecture and architecture.integrated) or bool(_first(group, "integrated"))
    memory: dict[str, int] = {}
    for sighting in group:
        memory.update(sighting.memory)
    return Gpu(
        index=None,
        target=real.target or "",
        product=product or "AMD GPU",
        integrated=integrated,
        pci=_first(group, "pci"),
        compute_units=_first(group, "compute_units"),
        features=next((sighting.features for sighting in group if sighting.features), ()),
        unique_id=_first(group, "unique_id"),
        override=override if override and override != real.target else None,
        memory=memory,
        reported={sighting.source: sighting.target for sighting in group if sighting.target},
        units_reported={sighting.source: sighting.compute_units for sighting in group if sighting.compute_units},
    )


def _says_product(name: str | None) -> bool:
    """Whether a name tells more than "AMD Radeon Graphics", which HIP calls many an APU."""
    return bool(name) and name not in ("AMD Radeon Graphics", "AMD Radeon(TM) Graphics", "AMD GPU")


def _visible(probe: Probe, gpus: list[Gpu], from_kernel: bool) -> list[int]:
    """Places of the GPUs that HIP numbers 0, 1, …: ROCR_VISIBLE_DEVICES picks first, HIP_VISIBLE_DEVICES (or else
    CUDA_VISIBLE_DEVICES) picks of what is left. rocminfo's own list has the first already applied."""
    places = list(range(len(gpus)))
    if from_kernel:
        places = _pick(places, probe.environ("ROCR_VISIBLE_DEVICES"), gpus)
    hip = probe.environ("HIP_VISIBLE_DEVICES")
    return _pick(places, hip if hip is not None else probe.environ("CUDA_VISIBLE_DEVICES"), gpus)


def _pick(places: list[int], choice: str | None, gpus: list[Gpu]) -> list[int]:
    """What a *_VISIBLE_DEVICES value leaves: numbers or GPU-<unique id>; the first entry that names nothing ends it."""
    if choice is None:
        return places
    picked: list[int] = []
    for entry in (entry.strip() for entry in choice.split(",")):
        place = None
        if entry.isascii() and entry.isdecimal():
            place = places[int(entry)] if len(entry) < 5 and int(entry) < len(places) else None
        elif entry.upper().startswith("GPU-"):
            place = next((place for place in places if gpus[place].unique_id is not None and f"{gpus[place].unique_id:016x}" == entry[4:].lower()), None)
        if place is None or place in picked:
            break
        picked.append(place)
    return picked


def usable_memory(gpu: Gpu) -> tuple[int | None, str]:
    """Bytes a model may count on, and by which source: HIP's own word where there is one; else for an integrated GPU
    VRAM and GTT together; else the smallest of what the sources say the card has."""
    if "hipMemGetInfo" in gpu.memory:
        return gpu.memory["hipMemGetInfo"], "hipMemGetInfo"
    if gpu.integrated and "GTT" in gpu.memory:
        return gpu.memory["GTT"] + gpu.memory.get("VRAM", 0), "VRAM + GTT"
    sizes = {name: gpu.memory[name] for name in ("VRAM", "KFD", "HSA", "amd-smi") if name in gpu.memory}
    if not sizes:
        return None, ""
    name = min(sizes, key=lambda name: sizes[name])
    return sizes[name], name


def check(probe: Probe, sources: Sources, gpus: list[Gpu]) -> list[Finding]:
    """Findings about which GPUs there are and whether the sources agree."""
    return [*_presence(probe, sources, gpus), *_kernels(gpus), *_agreement(sources, gpus), *_tools(sources)]


def _presence(probe: Probe, sources: Sources, gpus: list[Gpu]) -> list[Finding]:
    amd = [card for card in sources.cards if card.vendor == drm.AMD]
    if gpus:
        hidden = len(sources.topology.unreadable)
        if not hidden:
            return []
        return [Finding("hidden-gpus", NOTE, f"{hidden} more GPU nodes cannot be read", "this container or job has not been given those GPUs")]
    if probe.exists("/dev/dxg"):
        what = "this is WSL (/dev/dxg), and no ROCm tool names an AMD GPU"
        why = "in WSL a GPU can only be seen through ROCm for WSL; until then the host target works"
        return [Finding("wsl-no-gpu", NOTE, what, why)]
    if sources.topology.unreadable:
        what = f"{len(sources.topology.unreadable)} GPU nodes exist in {kfd.NODES}, but none can be read"
        why = "the container or job has not been given a GPU, so only the host target runs"
        fix = commands("docker run --device /dev/kfd --device /dev/dri --group-add video --group-add render …")
        return [Finding("no-gpu-granted", CANNOT_RUN, what, why, fix)]
    if not amd:
        why = "that is fine: the host target runs the same kernels on the CPU"
        return [Finding("no-amd-gpu", NOTE, "no AMD GPU found", why)]
    return _without_driver(probe, amd)


def _without_driver(probe: Probe, cards: list[drm.Card]) -> list[Finding]:
    """AMD cards on the PCI bus that the compute driver does not show."""
    names = ", ".join(f"{(card.sighting and card.sighting.product) or f'device 0x{card.device:04x}'} at {card.pci}" for card in cards)
    able = [card for card in cards if (architecture := targets.by_device(card.device)) and architecture.supported]
    if not able:
        return [Finding("no-compute-gpu", NOTE, f"{names}: not a GPU that wavesmith has kernels for", "the host target works")]
    if not probe.exists("/sys/module/amdgpu"):
        why = "without the amdgpu driver no program can use the GPU"
        return [Finding("driver-missing", CANNOT_RUN, f"{names}: the amdgpu driver is not loaded", why, commands("sudo modprobe amdgpu"))]
    why = "HIP needs the kernel's compute topology; a kernel without CONFIG_HSA_AMD, a VM or a driver that failed to start lacks it"
    return [Finding("compute-missing", CANNOT_RUN, f"{names}: amdgpu is loaded but shows no compute node", why, commands("sudo dmesg | grep -iE 'amdgpu|kfd'"))]


def _kernels(gpus: list[Gpu]) -> list[Finding]:
    findings = []
    for gpu in gpus:
        architecture = targets.ARCHITECTURES.get(gpu.target)
        if architecture is None:
            what = f"{gpu.label}: this wavesmith does not know the target"
            findings.append(Finding("unknown-target", WARNING, what, "there are no kernels for it; stock llama.cpp or the host target still works"))
        elif not architecture.supported:
            findings.append(Finding("no-kernels", NOTE, f"{gpu.label}: no wavesmith kernels", f"{architecture.reason}; the host target works too"))
    chosen, why = targets.choose(gpus)
    if chosen and len({gpu.integrated for gpu in gpus}) > 1:
        findings.append(Finding("integrated-and-discrete", NOTE, f"builds are for {why}", "name targets with --target to choose otherwise"))
    return findings


def _agreement(sources: Sources, gpus: list[Gpu]) -> list[Finding]:
    findings = []
    for gpu in gpus:
        names = {target for source, target in gpu.reported.items() if source != "pci"}
        if len(names) > 1 and not (gpu.override and names == {gpu.target, gpu.override}):
            told = ", ".join(f"{source} {target}" for source, target in gpu.reported.items())
            findings.append(Finding("sources-disagree", WARNING, f"{gpu.product}: its target is {told}", f"wavesmith takes the first, {gpu.target}"))
        if len(set(gpu.units_reported.values())) > 1:
            told = ", ".join(f"{source} {units}" for source, units in gpu.units_reported.items())
            why = "a partitioned card or a driver that counts workgroup processors; kernels ask the driver at run time"
            findings.append(Finding("compute-units-differ", NOTE, f"{gpu.label}: compute units by {told}", why))
        sizes = {name: gpu.memory[name] for name in ("VRAM", "KFD", "HSA", "amd-smi", "hipMemGetInfo") if name in gpu.memory}
        if not gpu.integrated and sizes and max(sizes.values()) - min(sizes.values()) > max(_SMALL_DIFFERENCE, _MEMORY_TOLERANCE * max(sizes.values())):
            told = ", ".join(f"{name} {size / (1 << 30):.1f} GiB" for name, size in sizes.items())
            why = "a model that fits by one figure may not load; count on the smallest"
            findings.append(Finding("memory-differs", WARNING, f"{gpu.label}: memory by {told}", why))
    seen = sum(gpu.index is not None for gpu in gpus)
    if sources.rocminfo is not None and sources.topology.gpus and len(sources.rocminfo) > len(gpus):
        what = f"rocminfo shows {len(sources.rocminfo)} GPUs, the kernel {len(gpus)}"
        findings.append(Finding("gpu-count-differs", WARNING, what, "the runtime and the kernel driver do not fit together"))
    elif sources.hip is not None and len(sources.hip) < seen:
        what = f"HIP shows {len(sources.hip)} of {seen} visible GPUs"
        findings.append(Finding("gpu-count-differs", WARNING, what, "the installed ROCm does not know the others, or may not open them"))
    for version in sources.topology.unknown_versions:
        findings.append(Finding("unknown-version", WARNING, f"KFD names a GPU of version {version}, which is no gfx version", "that GPU is left out"))
    return findings


def _tools(sources: Sources) -> list[Finding]:
    findings = []
    for name in sources.timed_out:
        what = f"{'the HIP runtime' if name == 'hip' else name} did not answer and was stopped"
        findings.append(Finding("tool-hangs", WARNING, what, "a GPU or driver that hangs does this; a reboot usually helps", commands("sudo dmesg | tail -50")))
    for name, line in sources.failed.items():
        findings.append(Finding("tool-fails", NOTE, f"{'the HIP runtime' if name == 'hip' else name} failed: {line}", "its view of the GPUs is missing below"))
    return findings
