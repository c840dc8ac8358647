"""GPUs in the kernel's compute topology (/sys/class/kfd/kfd/topology/nodes): the order in which HIP counts them.

A node is a folder with a file `properties` of lines "key value" and `mem_banks/*/properties` likewise. A node without
SIMDs is a CPU. In a container the nodes of GPUs that are not handed to it exist but cannot be read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .. import targets
from .gpu import Sighting, pci_address
from .probe import Probe

NODES = "/sys/class/kfd/kfd/topology/nodes"
_FRAME_BUFFER_HEAPS = (1, 2)  # public (visible to the CPU) and private


@dataclass
class Topology:
    present: bool = False
    gpus: list[Sighting] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)  # node folders
    unknown_versions: list[int] = field(default_factory=list)  # gfx_target_version that is no version


def parse_properties(text: str) -> dict[str, int]:
    """Numbers by key; lines that are not "key number" are left out."""
    values = {}
    for line in text.splitlines():
        match = re.fullmatch(r"\s*(\w+)\s+(\d{1,20})\s*", line, re.ASCII)
        if match:
            values[match[1]] = int(match[2])
    return values


def gpu_of_node(properties: dict[str, int], banks: list[dict[str, int]]) -> Sighting | None:
    """The GPU of a node; None for a CPU and for a version that is none."""
    target = targets.from_kfd_version(properties.get("gfx_target_version", 0))
    if target is None or properties.get("simd_count", 0) == 0:
        return None
    architecture = targets.ARCHITECTURES.get(target)
    device_id = properties.get("device_id")
    product = architecture.devices.get(device_id) if architecture else None
    memory = sum(bank.get("size_in_bytes", 0) for bank in banks if bank.get("heap_type") in _FRAME_BUFFER_HEAPS)
    return Sighting(
        source="kfd",
        target=target,
        product=product,
        pci=pci_address(properties.get("domain", 0), properties["location_id"]) if "location_id" in properties else None,
        compute_units=properties["simd_count"] // max(1, properties.get("simd_per_cu", 1)),
        integrated=True if properties.get("cpu_cores_count", 0) > 0 else None,
        unique_id=properties.get("unique_id") or None,
        device_id=device_id,
        render_minor=properties.get("drm_render_minor") or None,
        memory={"KFD": memory} if memory else {},
    )


def read(probe: Probe) -> Topology:
    nodes = [path for path in probe.glob(f"{NODES}/*") if path.rpartition("/")[2].isdecimal()]
    topology = Topology(present=bool(nodes))
    for node in sorted(nodes, key=lambda path: int(path.rpartition("/")[2])):
        text = probe.read(f"{node}/properties")
        if not text:
            topology.unreadable.append(node)
            continue
        properties = parse_properties(text)
        banks = [parse_properties(probe.read(path) or "") for path in probe.glob(f"{node}/mem_banks/*/properties")]
        gpu = gpu_of_node(properties, banks)
        if gpu:
            topology.gpus.append(gpu)
        elif properties.get("gfx_target_version", 0) and properties.get("simd_count", 0):
            topology.unknown_versions.append(properties["gfx_target_version"])
    return topology
