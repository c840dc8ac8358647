"""What differs between two manifests, kernel by kernel, and the choice of kernels to show."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from ..errors import BadInput
from .manifest import PLAN, RESOURCES
from .occupancy import waves_per_simd

FIGURES = (*RESOURCES, "waves_per_simd")
_OTHER_FIELDS = ("op", "type", "block", "grid", "dynamic_lds_bytes", "args")


@dataclass(frozen=True)
class Difference:
    """One kernel that is not the same in both. `change` is "added", "removed" or "changed"; `fields` holds (before, after) by name."""

    target: str
    symbol: str
    change: str
    fields: dict[str, tuple[object, object]]


def select(kernels: list[dict], targets: tuple[str, ...] = (), types: tuple[str, ...] = (), operations: tuple[str, ...] = ()) -> list[dict]:
    """The kernels that match one pattern of each list (shell wildcards, any case, commas between patterns); an empty list lets all through."""

    def matches(value: str, patterns: tuple[str, ...]) -> bool:
        words = [word.strip().casefold() for pattern in patterns for word in pattern.split(",")]
        return not words or any(fnmatchcase(value.casefold(), word) for word in words)

    return [k for k in kernels if matches(k["target"], targets) and matches(k["type"], types) and matches(k["op"], operations)]


def with_occupancy(kernel: dict) -> dict:
    """The kernel with `waves_per_simd` added: waves by vector registers, None where the target is unknown to this version."""
    try:
        waves = waves_per_simd(kernel["target"], kernel["vgprs"])
    except BadInput:
        waves = None
    return {**kernel, "waves_per_simd": waves}


def compare(before: list[dict], after: list[dict]) -> list[Difference]:
    """In the order of `before`, then what `after` adds."""
    old, new = ({(kernel["target"], kernel["symbol"]): with_occupancy(kernel) for kernel in kernels} for kernels in (before, after))
    differences = []
    for key in [*old, *(key for key in new if key not in old)]:
        if key not in new:
            differences.append(Difference(*key, "removed", {}))
        elif key not in old:
            differences.append(Difference(*key, "added", {}))
        else:
            fields = _changed(_flat(old[key]), _flat(new[key]))
            if fields:
                differences.append(Difference(*key, "changed", fields))
    return differences


def _flat(kernel: dict) -> dict[str, object]:
    plan = kernel["plan"] or {}
    return {**{f"plan.{name}": plan.get(name) for name in PLAN}, **{name: kernel[name] for name in (*_OTHER_FIELDS, *FIGURES)}}


def _changed(before: dict[str, object], after: dict[str, object]) -> dict[str, tuple[object, object]]:
    return {name: (before[name], after[name]) for name in before if before[name] != after[name]}
