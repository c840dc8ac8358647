"""What `backend/` defines: GGUF types, tile plans and argument lists, read from the headers themselves.

The headers are the only place where these are written down; this module relies on their fixed form (one `struct` per
type header, one `MMQ_PLAN(...)` row per line, one field per line in an argument struct) and says so when it is broken.
The rows of tile plans are written by planner.py.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path

from .. import resources
from ..errors import BadInput


@dataclass(frozen=True)
class Quant:
    """A quantised GGUF type: `stem` names its header in quants/, `struct` its C++ struct. quants/support/quant.h says what the numbers mean."""

    stem: str
    struct: str
    name: str
    ggml_type: int
    block_values: int
    block_bytes: int
    parts: int
    minimums: int
    scale_steps: int
    step_values: int

    @property
    def bits(self) -> float:
        """Bits of a weight, scales included."""
        return 8 * self.block_bytes / self.block_values

    @property
    def activations(self) -> str:
        """Layout of quantised activations that mmq reads for it (backend/kernels/q8_1_blocks.h)."""
        return "d2s8" if self.step_values == 64 else "d4s8"


@dataclass(frozen=True)
class Plan:
    """A row of plan/mmq_plans.inc. `host`: the host library has it too."""

    architecture: str
    parts: int
    tile_m: int
    tile_n: int
    waves_m: int
    waves_n: int
    stages: int
    host: bool

    @property
    def name(self) -> str:
        return f"{self.tile_m}x{self.tile_n}"

    @property
    def tile(self) -> str:
        """The template arguments of MmqTile."""
        return f"{self.tile_m}, {self.tile_n}, {self.waves_m}, {self.waves_n}, {self.stages}"

    @property
    def waves(self) -> int:
        return self.waves_m * self.waves_n


@dataclass(frozen=True)
class Argument:
    """A kernel argument: `meaning` is the comment beside the field."""

    name: str
    type: str
    meaning: str


_NUMBERS = ("ggml_type", "block_values", "block_bytes", "parts", "minimums", "scale_steps", "step_values")


def _read(relative: str) -> str:
    path = resources.backend() / relative
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from None


def _integer(text: str, name: str, path: str) -> int:
    found = re.search(rf"\bconstexpr int\s+{name}\s*=\s*(\d+);", text)
    if not found:
        raise BadInput(f"backend/{path}: no 'static constexpr int {name} = …;'")
    return int(found.group(1))


def _inherited(base: str | None) -> str:
    """The header of a type's base (BlocksOf32: quants/support/blocks_of_32.h), followed by those of the base's bases."""
    if base is None:
        return ""
    if base == "Defaults":
        return _read("quants/support/quant.h")
    text = _read(f"quants/support/{re.sub(r'(?<=[a-z])(?=[A-Z0-9])', '_', base).lower()}.h")
    further = re.search(rf"\bstruct {base} (?:: (\w+)(?:<\w+>)? )?\{{", text)
    return text + _inherited(further.group(1) if further else None)


def quant(stem: str) -> Quant:
    """The type that quants/<stem>.h defines."""
    path = f"quants/{stem}.h"
    text = _read(path)
    struct = re.search(r"^struct (\w+) (?:: (\w+)(?:<\w+>)? )?\{", text, re.MULTILINE)
    name = re.search(r'static constexpr const char \* name\s*=\s*"([^"]+)";', text)
    if not struct or not name:
        raise BadInput(f"backend/{path}: no struct with a name")
    text += _inherited(struct.group(2))
    numbers = {key: _integer(text, key, path) for key in _NUMBERS}
    return Quant(stem=stem, struct=struct.group(1), name=name.group(1), **numbers)


def quants() -> list[Quant]:
    """Every quantised type, in order of its ggml number."""
    stems = sorted(Path(path).stem for path in (resources.backend() / "quants").glob("*.h"))
    return sorted((quant(stem) for stem in stems), key=lambda item: item.ggml_type)


@functools.cache
def tile_k() -> int:
    """Values of K in a tile of mmq: those of a block of quantised activations."""
    return _integer(_read("kernels/q8_1_blocks.h"), "q8_1_block_values", "kernels/q8_1_blocks.h")


def plans() -> list[Plan]:
    """Every row of plan/mmq_plans.inc."""
    rows = re.findall(r"^MMQ_PLAN\(\s*(\w+)" + r"\s*,\s*(\d+)" * 7 + r"\s*\)", _read("plan/mmq_plans.inc"), re.MULTILINE)
    if not rows:
        raise BadInput("backend/plan/mmq_plans.inc: no MMQ_PLAN row")
    return [Plan(row[0], *(int(value) for value in row[1:-1]), host=row[-1] == "1") for row in rows]


_FIELD = re.compile(r"^\s+(?P<type>(?:const )?\w+(?: \*)?)\s+(?P<names>\w+(?:, \w+)*);\s*(?://\s*(?P<meaning>.*))?$")


def arguments(header: str, struct: str) -> list[Argument]:
    """The fields of an argument struct in a kernel header, in order; the layout of its members is that of a kernel's arguments."""
    text = _read(f"kernels/{header}")
    body = re.search(rf"^struct {struct} \{{\n(.*?)^\}};", text, re.MULTILINE | re.DOTALL)
    if not body:
        raise BadInput(f"backend/kernels/{header}: no struct {struct}")
    fields: list[Argument] = []
    for line in body.group(1).splitlines():
        if not line.strip() or line.strip().startswith("//"):
            continue
        found = _FIELD.match(line)
        if not found:
            raise BadInput(f"backend/kernels/{header}: cannot read the field '{line.strip()}'")
        for name in found["names"].split(", "):
            fields.append(Argument(name, found["type"].strip(), (found["meaning"] or "").strip()))
    return fields
