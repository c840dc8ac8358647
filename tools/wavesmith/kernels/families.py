"""The gfx families as the planner sees them: families.toml, read once."""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields
from pathlib import Path

from .. import toml

FILE = Path(__file__).with_name("families.toml")


@dataclass(frozen=True)
class Step:
    """A family's matrix step (backend/arch/matrix_step.h); families.toml says what each number is."""

    m: int
    n: int
    rows: int
    columns: int
    operand_words: int
    held: bool
    copies: int
    sums: int

    @property
    def registers(self) -> int:
        """Results of a lane."""
        return self.rows * self.columns


@dataclass(frozen=True)
class Family:
    """What a gfx family offers to a workgroup; families.toml says what each number is. LDS in bytes."""

    name: str
    architecture: str
    header: str
    wave_size: int
    lds_bytes: int
    lds_shared: int
    lds_granule: int
    unit: str
    simds: int
    waves_per_simd: int
    vgprs: int
    vgprs_per_wave: int
    vgpr_granule: int
    step: Step


@functools.cache
def families() -> dict[str, Family]:
    """Every family by its name, in the order of the file."""
    document = toml.loads(FILE.read_text(encoding="utf-8"))
    found = {}
    for name, table in document.items():
        values = {**table, "name": name, "step": Step(**table["step"])}
        found[name] = Family(**{field.name: values[field.name] for field in fields(Family)})
    return found


def by_architecture(architecture: str) -> Family:
    """The family of a struct in backend/arch; KeyError if there is none."""
    return {family.architecture: family for family in families().values()}[architecture]
