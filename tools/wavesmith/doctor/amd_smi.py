"""Reads what `amd-smi static --asic --bus --vram --json` prints.

A list of one object per GPU, or since ROCm 7 an object with such a list under "gpu_data"; warnings may come before it.
"""

from __future__ import annotations

import json
import re

from .. import targets
from .gpu import Sighting, normal_pci

COMMAND = ("static", "--asic", "--bus", "--vram", "--json")
_UNITS = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}


def first_json(text: str) -> object:
    """The first JSON object or list that starts a line and holds an object; None where there is none."""
    decoder = json.JSONDecoder()
    for match in re.finditer(r"^[ \t]*([\[{])", text, re.MULTILINE):
        try:
            value, _ = decoder.raw_decode(text, match.start(1))
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) or isinstance(value, list) and any(isinstance(item, dict) for item in value):
            return value
    return None


def parse(text: str) -> list[Sighting]:
    value = first_json(text)
    if isinstance(value, dict):
        value = value.get("gpu_data", [value])
    entries = value if isinstance(value, list) else []
    return [_gpu(entry) for entry in entries if isinstance(entry, dict) and isinstance(entry.get("asic"), dict)]


def _gpu(entry: dict) -> Sighting:
    asic = entry["asic"]
    split = targets.canonical(str(asic.get("target_graphics_version", "")))
    size = _bytes(_member(entry, "vram", "size"))
    market_name = _text(asic.get("market_name"))
    return Sighting(
        source="amd-smi",
        target=split[0] if split else None,
        product=market_name,
        pci=normal_pci(str(_member(entry, "bus", "bdf"))),
        compute_units=_number(asic.get("num_compute_units")),
        device_id=_hexadecimal(asic.get("device_id")),
        memory={"amd-smi": size} if size else {},
    )


def _member(entry: dict, *keys: str) -> object:
    value: object = entry
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _text(value: object) -> str | None:
    return value.strip() if isinstance(value, str) and value.strip() and value.strip().upper() != "N/A" else None


def _number(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 60:
        return value
    return int(value) if isinstance(value, str) and re.fullmatch(r"[1-9]\d{0,17}", value, re.ASCII) else None


def _hexadecimal(value: object) -> int | None:
    return int(value, 16) if isinstance(value, str) and re.fullmatch(r"(0x)?[0-9a-fA-F]{1,8}", value) else None


def _bytes(value: object) -> int | None:
    """Bytes of {"value": 24560, "unit": "MB"} or of "24560 MB"."""
    if isinstance(value, dict):
        number, unit = _number(value.get("value")), value.get("unit")
    else:
        match = re.fullmatch(r"\s*(\d{1,18})\s*([A-Za-z]+)\s*", value, re.ASCII) if isinstance(value, str) else None
        number, unit = (int(match[1]), match[2]) if match else (None, None)
    factor = _UNITS.get(unit.upper()) if isinstance(unit, str) else None
    return number * factor if number and factor else None
