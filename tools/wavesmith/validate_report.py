"""What `wavesmith validate` found, and its JSON form (schemas/validate.schema.json, docs/validate.md)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from . import __version__, output_file

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


def write_json(report: Report, path: Path) -> None:
    """Writes the report to the file that the user named. BadInput when it cannot be written there."""
    output_file.write_json(path, report.as_json())
