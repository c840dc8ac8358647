"""The patch on every supported llama.cpp version, and what became of its anchors in a tree of another one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import lock, patching, source
from .errors import BadInput, DownloadFailed
from .hunks import Insert
from .patching import AnchorPlace

Say = Callable[[str], None]

FITS, MOVED, GONE, AMBIGUOUS, UNREADABLE = "fits", "moved", "gone", "ambiguous", "no such file"


@dataclass(frozen=True)
class Checked:
    """One supported version. `tree` is None where it could not be fetched; `problem` is "" where the patch applies."""

    version: lock.Version
    tree: Path | None
    problem: str


@dataclass(frozen=True)
class AnchorChange:
    """An anchor in a tree, compared with the newest supported version that it fits in.

    `since` is that version and `before` its place there; "" and None where it fits in none. `nearest` is the line of the tree that is most
    like the anchor where that is gone: (number, text).
    """

    insert: Insert
    verdict: str
    since: str
    before: AnchorPlace | None
    now: tuple[AnchorPlace, ...]
    nearest: tuple[int, str] | None = None


def check_supported(say: Say | None = None) -> list[Checked]:
    """Try the patch on every supported version, newest first: trees in the cache, fetched where they are not there."""
    return [_check(version, say) for version in lock.load().versions]


def compare(tree: Path, supported: list[Checked]) -> list[AnchorChange]:
    """What became of every anchor in `tree`. BadInput where that is no llama.cpp tree, or where there is no version to compare with."""
    now = patching.anchor_places(tree)
    before = {one.version.version: patching.anchor_places(one.tree) for one in supported if one.tree}
    if not before:
        raise BadInput("no supported version could be fetched, so there is nothing to compare the tree with")
    inserts = dict.fromkeys(insert for places in before.values() for insert in places)
    return [_compare(tree, insert, now.get(insert), before) for insert in inserts if insert in now or not (tree / insert.file).is_file()]


def _check(version: lock.Version, say: Say | None) -> Checked:
    try:
        tree = source.get(version.version, say=say).path
    except DownloadFailed as error:
        return Checked(version, None, f"not fetched: {error}")
    states = patching.check(tree)
    if patching.can_apply(states):
        return Checked(version, tree, "")
    bad = next((state for state in states if state.state not in (patching.APPLIES, patching.APPLIED)), None)
    return Checked(version, tree, f"{bad.file}: hunk '{bad.name}': {bad.detail}" if bad else "the patch is only partly applied")


def _compare(tree: Path, insert: Insert, places: list[AnchorPlace] | None, before: dict[str, dict[Insert, list[AnchorPlace]]]) -> AnchorChange:
    since, old = next(((name, found[insert][0]) for name, found in before.items() if _verdict(found.get(insert)) == FITS), ("", None))
    verdict = _verdict(places)
    nearest = _nearest(tree, insert) if verdict == GONE else None
    return AnchorChange(insert, verdict, since, old, tuple(places or ()), nearest)


def _verdict(places: list[AnchorPlace] | None) -> str:
    if places is None:
        return UNREADABLE
    if not places:
        return GONE
    if len(places) > 1:
        return AMBIGUOUS
    return FITS if places[0].fits else MOVED


def _nearest(tree: Path, insert: Insert) -> tuple[int, str] | None:
    """The line of the file that is most like the first line of the anchor."""
    import difflib

    wanted = next(line.strip() for line in insert.anchor.split("\n") if line.strip())
    lines = [line.strip() for line in (tree / insert.file).read_text(encoding="latin-1").splitlines()]
    close = difflib.get_close_matches(wanted, sorted({line for line in lines if len(line) > 4}), n=1, cutoff=0.6)
    return (lines.index(close[0]) + 1, close[0]) if close else None
