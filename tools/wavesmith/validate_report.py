"""What `wavesmith validate` found, and its JSON form (schemas/validate.schema.json, docs/validate.md)."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from . import __version__
from .errors import BadInput
from .gguf_file import printable

SCHEMA = "wavesmith/validate"
SCHEMA_VERSION = 1

PASSED, FAILED, INVALID, STOCK, UNKNOWN = "passed", "failed", "invalid reference", "stock", "unknown"
STATUSES = (PASSED, FAILED, INVALID, STOCK, UNKNOWN)


@dataclass
class Column:
    """Figures for one N. Errors are null where they are not finite or not known."""

    n: int
    kernel: str = ""
    nmse: float | None = None
    worst_row: int | None = None
    worst_row_nmse: float | None = None
    stock_nmse: float | None = None  # stock against the reference
    nmse_to_stock: float | None = None  # ours against stock


@dataclass
class Checks:
    """What must hold beside the errors. None: not applicable, or not reached."""

    integers: bool | None = None  # integer sums bit-exact
    integer_rows: int = 0
    float_part: bool | None = None  # within the bound of f32 arithmetic on the quantised values
    checked: bool | None = None  # the kernels that check every access find no fault and give the same bits
    guards: bool | None = None  # no byte around a buffer changed
    poison: bool | None = None  # same bits whatever lies around the operands
    columns: bool | None = None  # column j the same bits for every N
    module: bool | None = None  # same bits from the build's own device


@dataclass
class ProductReport:
    """One distinct product of the model."""

    op: str
    type: str
    type_number: int
    m: int
    k: int
    experts: int
    tensors: int
    tensor: str
    status: str
    reason: str = ""
    failures: list[str] = field(default_factory=list)
    rows: int = 0
    checks: Checks = field(default_factory=Checks)
    columns: list[Column] = field(default_factory=list)
    seconds: float = 0.0


@dataclass
class Report:
    """Everything `--json` writes, see docs/validate.md."""

    model: str
    architecture: str
    target: str
    family: str
    quick: bool
    build: str
    devices: list[str]
    limits: dict[str, float | None]
    host_library: str
    products: list[ProductReport]
    seconds: float

    @property
    def passed(self) -> bool:
        """At least one product was checked, and none failed."""
        statuses = [product.status for product in self.products]
        return PASSED in statuses and FAILED not in statuses and INVALID not in statuses

    def as_json(self) -> dict[str, Any]:
        counts = {status: sum(p.status == status for p in self.products) for status in STATUSES}
        return {
            "schema": SCHEMA,
            "version": SCHEMA_VERSION,
            "wavesmith": __version__,
            "passed": self.passed,
            "counts": counts,
            **asdict(self),
        }


def check_writable(path: Path) -> None:
    """BadInput when a report could not be written to `path`: better now than after minutes of work."""
    folder = path.absolute().parent
    if not folder.is_dir():
        raise BadInput(f"cannot write {printable(path)}: its folder does not exist")
    if path.is_dir():
        raise BadInput(f"cannot write {printable(path)}: it is a folder")
    if not os.access(folder, os.W_OK):
        raise BadInput(f"cannot write {printable(path)}: no permission for its folder")


def write_json(report: Report, path: Path) -> None:
    """Writes the report atomically: the file is whole or as it was before. BadInput when it cannot be written there."""
    import json

    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with open(part, "w", encoding="utf-8") as file:
            json.dump(report.as_json(), file, indent=2, allow_nan=False)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError) as error:
        raise BadInput(f"cannot write {printable(path)}: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)
