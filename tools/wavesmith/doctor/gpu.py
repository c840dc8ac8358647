"""The doctor's words for a GPU: what one source says of it (`Sighting`) and what all sources together say (`Gpu`)."""

from __future__ import annotations

from dataclasses import dataclass, field

from .. import targets


@dataclass
class Sighting:
    """A GPU as one source shows it. Absent facts are None. `memory` maps a source-qualified name to bytes."""

    source: str  # "kfd", "rocminfo", "amd-smi", "hipinfo", "hip" or "pci"
    target: str | None = None
    features: tuple[str, ...] = ()
    product: str | None = None
    pci: str | None = None  # "0000:03:00.0"
    compute_units: int | None = None
    integrated: bool | None = None
    unique_id: int | None = None
    index: int | None = None  # HIP's device number, where the source knows it
    device_id: int | None = None
    render_minor: int | None = None
    memory: dict[str, int] = field(default_factory=dict)


@dataclass
class Gpu:
    """A GPU. `index` is HIP's device number, None where an environment variable hides it. `override` is the target that
    HSA_OVERRIDE_GFX_VERSION makes HIP see in place of the real one. `reported` says which source named which target."""

    index: int | None
    target: str
    product: str
    integrated: bool
    pci: str | None = None
    compute_units: int | None = None
    features: tuple[str, ...] = ()
    unique_id: int | None = None
    override: str | None = None
    memory: dict[str, int] = field(default_factory=dict)
    reported: dict[str, str] = field(default_factory=dict)
    units_reported: dict[str, int] = field(default_factory=dict)

    @property
    def build_target(self) -> str:
        """The target whose code HIP will load on this GPU."""
        return self.override or self.target

    @property
    def family(self) -> str | None:
        return targets.family_of(self.target)

    @property
    def label(self) -> str:
        return f"{self.product} ({self.target})"


def pci_address(domain: int, location: int) -> str:
    """PCI address of KFD's location_id and HSA's BDFID: bus in bits 8-15, device in 3-7, function in 0-2."""
    return f"{domain & 0xFFFFFFFF:04x}:{location >> 8 & 0xFF:02x}:{location >> 3 & 0x1F:02x}.{location & 7}"


def normal_pci(text: str) -> str | None:
    """The form "0000:03:00.0" of what tools print (capital letters, no domain); None where it is no PCI address."""
    import re

    match = re.fullmatch(r"(?:([0-9a-fA-F]{4,8}):)?([0-9a-fA-F]{2}):([0-9a-fA-F]{2})\.([0-7])", text.strip())
    if not match:
        return None
    domain, bus, device, function = match.groups()
    return f"{int(domain or '0', 16):04x}:{bus}:{device}.{function}".lower()
