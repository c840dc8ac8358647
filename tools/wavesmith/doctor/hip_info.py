"""Reads what HIP itself says: the sample program `hipInfo`, and hip_query.py, which asks libamdhip64 for the same.

hipInfo prints a block per device: "device#  N" without a colon, then "key:   value" lines. On RDNA it counts workgroup
processors, two compute units each, as multiprocessors.
"""

from __future__ import annotations

import json
import re

from .. import targets
from .gpu import Sighting, normal_pci

_SIZE = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*GB")


def parse(text: str) -> list[Sighting]:
    """The devices of hipInfo's output."""
    blocks: list[dict[str, str]] = []
    for line in text.splitlines():
        header = re.fullmatch(r"\s*device#\s*(\d{1,4})\s*", line, re.ASCII)
        pair = re.fullmatch(r"\s*([\w.]+):\s*(.*?)\s*", line)
        if header:
            blocks.append({"device": header[1]})
        elif pair and blocks:
            blocks[-1].setdefault(pair[1], pair[2])
    return [sighting for block in blocks if (sighting := _gpu(block))]


def _gpu(block: dict[str, str]) -> Sighting | None:
    split = targets.canonical(block.get("gcnArchName", ""))
    if split is None:
        return None
    memory = {}
    for name, key in (("hipMemGetInfo", "memInfo.total"), ("hipMemGetInfo free", "memInfo.free")):
        match = _SIZE.match(block.get(key, ""))
        if match:
            memory[name] = int(float(match[1]) * (1 << 30))
    units = _number(block.get("multiProcessorCount"))
    bus, device, domain = (_number(block.get(key)) for key in ("pciBusID", "pciDeviceID", "pciDomainID"))
    return Sighting(
        source="hipinfo",
        target=split[0],
        features=split[1],
        product=block.get("Name") or None,
        pci=f"{domain or 0:04x}:{bus:02x}:{device:02x}.0" if bus is not None and device is not None and bus < 256 and device < 32 else None,
        compute_units=units * compute_units_per_multiprocessor(split[0]) if units else None,
        integrated=block.get("isIntegrated") == "1" or None,
        index=int(block["device"]),
        memory=memory,
    )


def compute_units_per_multiprocessor(target: str) -> int:
    """RDNA counts a workgroup processor of two compute units as one multiprocessor."""
    return 2 if re.match(r"gfx1\d", target) else 1


def parse_query(text: str) -> list[Sighting]:
    """The devices of hip_query.py's output."""
    try:
        devices = json.loads(text)["devices"]
        return [_queried(device) for device in devices]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []


def _queried(device: dict) -> Sighting:
    memory = {}
    for name, key in (("hipMemGetInfo", "total"), ("hipMemGetInfo free", "free")):
        if isinstance(device.get(key), int) and device[key] > 0:
            memory[name] = device[key]
    return Sighting(
        source="hip",
        product=str(device["name"]) or None,
        pci=normal_pci(str(device["pci"])),
        index=int(device["index"]),
        memory=memory,
    )


def _number(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"\d{1,9}", text, re.ASCII) else None
