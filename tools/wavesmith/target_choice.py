"""Which targets a build is for, and what the user should be told about the choice."""

from __future__ import annotations

from dataclasses import dataclass

from . import targets
from .errors import BadInput
from .targets import Target


@dataclass(frozen=True)
class Choice:
    """`notes` are sentences for the user: why these targets, and what is special about them."""

    targets: tuple[Target, ...]
    notes: tuple[str, ...] = ()


def choose(words: list[str]) -> Choice:
    """The targets of the user's words; without words, those of the GPUs that the doctor finds on this machine.

    BadInput for an unknown word (with the nearest names) and for targets that one build cannot hold together.
    """
    if words:
        chosen, notes = targets.resolve(words, []), []
    else:
        from .doctor.examine import find_gpus

        found = find_gpus()
        chosen, notes = targets.resolve(None, found), [f"target: {targets.choose(found)[1]}"]
    check(chosen)
    notes += [target.note for target in chosen if target.note and f"target: {target.note}" not in notes]
    return Choice(tuple(chosen), tuple(dict.fromkeys(notes)))


def check(chosen: list[Target]) -> None:
    """BadInput for targets that no build can be made for."""
    if any(target.platform == "cuda" for target in chosen):
        raise BadInput("no builds for target cuda: its kernels serve to check the sources on an NVIDIA GPU; builds are for gfx targets and host")
    by_name: dict[str, list[Target]] = {}
    for target in chosen:
        by_name.setdefault(target.name, []).append(target)
    for same in by_name.values():
        if len(same) > 1 and any(not target.features for target in same):
            names = ", ".join(target.compiler_name for target in same)
            raise BadInput(f"{names}: one build holds a target either with features or without them")
