"""Display devices in /sys: which cards are in the machine, and how the amdgpu driver splits their memory."""

from __future__ import annotations

from dataclasses import dataclass

from .. import targets
from .gpu import Sighting, normal_pci
from .probe import Probe

AMD, NVIDIA = 0x1002, 0x10DE
_DISPLAY_CLASSES = (0x03, 0x12)  # display controllers and processing accelerators
_MEMORY = {"VRAM": "mem_info_vram_total", "visible VRAM": "mem_info_vis_vram_total", "GTT": "mem_info_gtt_total"}


@dataclass
class Card:
    """A display device or accelerator on the PCI bus."""

    pci: str
    vendor: int
    device: int
    sighting: Sighting | None = None  # AMD devices only


def hexadecimal(text: str | None) -> int | None:
    try:
        return int((text or "").strip(), 16)
    except ValueError:
        return None


def read(probe: Probe) -> list[Card]:
    cards = []
    for path in probe.glob("/sys/bus/pci/devices/*"):
        pci = normal_pci(path.rpartition("/")[2])
        device_class = hexadecimal(probe.read(f"{path}/class"))
        if pci is None or device_class is None or device_class >> 16 not in _DISPLAY_CLASSES:
            continue
        vendor, device = hexadecimal(probe.read(f"{path}/vendor")), hexadecimal(probe.read(f"{path}/device"))
        if vendor is None or device is None:
            continue
        cards.append(Card(pci, vendor, device, _sighting(probe, path, pci, device) if vendor == AMD else None))
    return cards


def _sighting(probe: Probe, path: str, pci: str, device: int) -> Sighting:
    architecture = targets.by_device(device)
    memory = {}
    for name, file in _MEMORY.items():
        text = (probe.read(f"{path}/{file}") or "").strip()
        if text.isdecimal() and int(text):
            memory[name] = int(text)
    product = (probe.read(f"{path}/product_name") or "").strip()
    return Sighting(
        source="pci",
        target=architecture.name if architecture else None,
        product=product or (architecture.devices[device] if architecture else None),
        pci=pci,
        device_id=device,
        memory=memory,
    )
