"""Reads what `rocminfo` prints: HSA agents, those hidden by ROCR_VISIBLE_DEVICES left out, in HIP's order.

The text is an indented list of "Key: value" lines under "Agent N" headings. A GPU agent may have several ISA lines, the
first being its own and the others generic ones such as amdgcn-amd-amdhsa--gfx11-generic.
"""

from __future__ import annotations

import re

from .. import targets
from .gpu import Sighting, pci_address

_AGENT = re.compile(r"^Agent\s+\d+\s*$")
_LINE = re.compile(r"^\s*([A-Za-z][\w .()/-]*?)\s*:+\s*(.*?)\s*$")
_SIZE = re.compile(r"^(\d{1,18})(?:\s*\(0x[0-9a-fA-F]+\))?\s*KB$")


def parse(text: str) -> list[Sighting]:
    """The GPU agents; anything that is not one is left out."""
    sightings = []
    for lines in _agents(text):
        gpu = _gpu(lines)
        if gpu:
            sightings.append(gpu)
    return sightings


def _agents(text: str) -> list[list[tuple[str, str]]]:
    """For each agent its (key, value) lines."""
    agents: list[list[tuple[str, str]]] = []
    for line in (line[:400] for line in text.splitlines()):
        if _AGENT.match(line.strip()):
            agents.append([])
        elif agents and (match := _LINE.match(line)):
            agents[-1].append((match[1], match[2]))
    return agents


def _gpu(lines: list[tuple[str, str]]) -> Sighting | None:
    first: dict[str, str] = {}
    for key, value in lines:
        first.setdefault(key, value)
    names = [targets.canonical(value) for key, value in lines if key == "Name"]
    own = [name for name in names if name and not name[0].endswith("-generic")]
    if first.get("Device Type", "") != "GPU" or not own:
        return None
    target, _ = own[0]
    features = next((features for name, features in own if name == target and features), ())
    location = _number(first.get("BDFID"))
    unique = re.fullmatch(r"GPU-([0-9a-fA-F]{8,16})", first.get("Uuid", ""))
    pools = _pools(lines)
    return Sighting(
        source="rocminfo",
        target=target,
        features=features,
        product=_product(first.get("Marketing Name"), target),
        pci=pci_address(_number(first.get("Domain")) or 0, location) if location is not None else None,
        compute_units=_number(first.get("Compute Unit")),
        integrated=True if "APU" in first.get("Memory Properties", "").split() else None,
        unique_id=int(unique[1], 16) if unique else None,
        device_id=_number(first.get("Chip ID")),
        memory={"HSA": max(pools)} if pools else {},
    )


def _number(text: str | None) -> int | None:
    """The number that a value such as "29772(0x744c)" starts with."""
    match = re.match(r"\d{1,18}", text or "", re.ASCII)
    return int(match[0]) if match else None


def _product(name: str | None, target: str) -> str | None:
    return name if name and name.upper() != "N/A" and targets.canonical(name) is None else None


def _pools(lines: list[tuple[str, str]]) -> list[int]:
    """Bytes of the global memory pools."""
    sizes, is_global = [], False
    for key, value in lines:
        if key == "Segment":
            is_global = value.startswith("GLOBAL")
        elif key == "Size" and is_global and (match := _SIZE.match(value)):
            sizes.append(int(match[1]) * 1024)
            is_global = False
    return [size for size in sizes if size]
