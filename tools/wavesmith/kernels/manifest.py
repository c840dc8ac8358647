"""The manifest beside a folder of code objects: all that a launcher needs (docs/manifest.md, schemas/manifest.schema.json)."""

from __future__ import annotations

import json
from pathlib import Path

from ..errors import BadInput
from .compiler import Resources
from .definitions import tile_k
from .device_source import Kernel

SCHEMA = 1
FILE_NAME = "manifest.json"

TEXTS = ("target", "file", "symbol", "op", "type", "grid")
PLAN = ("tile_m", "tile_n", "tile_k", "stages", "waves", "split_k")
RESOURCES = ("vgprs", "agprs", "sgprs", "static_lds_bytes", "scratch_bytes", "vgpr_spills", "sgpr_spills")
ARGUMENT_TYPES = ("pointer", "i32", "i64")

_SIZES = {"int32_t": "i32", "int64_t": "i64"}


def entry(kernel: Kernel, target: str, file: str, resources: Resources) -> dict:
    """One element of "kernels"."""
    plan = kernel.plan
    return {
        "target": target,
        "file": file,
        "symbol": kernel.symbol,
        "op": kernel.operation,
        "type": kernel.type,
        "plan": {"tile_m": plan.tile_m, "tile_n": plan.tile_n, "tile_k": tile_k(), "stages": plan.stages, "waves": plan.waves, "split_k": 1} if plan else None,
        "args": [{"name": arg.name, "type": _SIZES.get(arg.type, "pointer"), "meaning": arg.meaning} for arg in kernel.arguments],
        "block": [kernel.threads, 1, 1],
        "grid": kernel.grid,
        "dynamic_lds_bytes": 0,
        "vgprs": resources.vgprs,
        "agprs": resources.agprs,
        "sgprs": resources.sgprs,
        "static_lds_bytes": resources.static_lds_bytes,
        "scratch_bytes": resources.scratch_bytes,
        "vgpr_spills": resources.vgpr_spills,
        "sgpr_spills": resources.sgpr_spills,
    }


def write(folder: Path, compiler: str, kernels: list[dict]) -> Path:
    """Writes `manifest.json` atomically."""
    path = folder / FILE_NAME
    partial = path.with_suffix(".json.part")
    partial.write_text(json.dumps({"schema": SCHEMA, "compiler": compiler, "kernels": kernels}, indent=1) + "\n", encoding="utf-8")
    partial.replace(path)
    return path


def read(path: Path) -> dict:
    """Reads a manifest, given the file or its folder; BadInput with one line if it is none."""
    file = path / FILE_NAME if path.is_dir() else path
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"{file}: {error.strerror}") from None
    except ValueError as error:
        raise BadInput(f"{file}: not JSON ({error})") from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA or not isinstance(data.get("kernels"), list):
        raise BadInput(f"{file}: not a manifest of schema {SCHEMA}")
    seen = set()
    for number, kernel in enumerate(data["kernels"]):
        problem = _problem(kernel)
        if problem:
            raise BadInput(f"{file}: kernel {number}: {problem}")
        if (kernel["target"], kernel["symbol"]) in seen:
            raise BadInput(f"{file}: kernel {number}: {kernel['symbol']} of {kernel['target']} is there twice")
        seen.add((kernel["target"], kernel["symbol"]))
    return data


def _problem(kernel: object) -> str | None:
    """What is wrong with an element of "kernels", or None. The JSON Schema says the same in full; this serves without a validator."""
    if not isinstance(kernel, dict):
        return "not an object"
    for name in TEXTS:
        if not isinstance(kernel.get(name), str):
            return f"no text '{name}'"
    for name in ("dynamic_lds_bytes", *RESOURCES):
        if not _is_count(kernel.get(name)):
            return f"no number '{name}'"
    plan = kernel.get("plan", False)
    if plan is not None and not (isinstance(plan, dict) and all(_is_count(value) for value in plan.values()) and plan.keys() >= set(PLAN)):
        return "no plan"
    block = kernel.get("block")
    if not isinstance(block, list) or len(block) != 3 or not all(_is_count(value) for value in block):
        return "no block of three numbers"
    args = kernel.get("args")
    if not isinstance(args, list) or not all(isinstance(arg, dict) and arg.get("type") in ARGUMENT_TYPES and isinstance(arg.get("name"), str) for arg in args):
        return "no list of arguments"
    return None


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
