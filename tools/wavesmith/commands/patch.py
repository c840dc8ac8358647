"""`wavesmith patch check|apply|revert|diff`."""

from __future__ import annotations

from pathlib import Path

import click

_TREE = click.argument("tree", type=click.Path(path_type=Path))


@click.group()
def command() -> None:
    """Check, apply or revert the patch that lets llama.cpp use custom kernels."""


@command.command()
@click.argument("tree", required=False, type=click.Path(path_type=Path))
@click.option("--all", "every_version", is_flag=True, help="Try every supported version; with TREE, compare its anchors with theirs.")
def check(tree: Path | None, every_version: bool) -> None:
    """Show what each hunk finds in TREE. Exit status 0 if the whole patch can be applied, or is.

    With --all: whether it can be applied to every supported llama.cpp version (fetched where it is not in the cache) and, with TREE,
    which anchors moved in it, in which function, and since which supported version.
    """
    if tree is None and not every_version:
        raise click.UsageError("Missing argument 'TREE' (or --all)")
    if every_version:
        _check_all(tree)
    if tree is not None:
        _check_tree(tree)


def _check_tree(tree: Path) -> None:
    from .. import patching
    from ..errors import PatchRefused
    from ..progress import print_table

    states = patching.check(tree)
    print_table(_table(states))
    if not patching.can_apply(states):
        bad = next((state for state in states if state.state not in (patching.APPLIES, patching.APPLIED)), None)
        raise PatchRefused(f"{tree}: {bad.file}: {bad.detail}" if bad else f"{tree}: the patch is only partly applied")


def _check_all(tree: Path | None) -> None:
    from .. import patch_versions, patching
    from ..errors import DownloadFailed, PatchRefused

    if tree is not None:
        patching.check_tree(tree)
    checked = patch_versions.check_supported(say=lambda line: click.echo(line, err=True))
    for one in checked:
        click.echo(f"llama.cpp {one.version.version} ({one.version.commit[:9]}, ggml {one.version.ggml}): {one.problem or 'the patch applies'}")
    if tree is not None:
        for change in patch_versions.compare(tree, checked):
            click.echo(_sentence(change))
    refused = [one for one in checked if one.problem and one.tree]
    if refused:
        raise PatchRefused(f"llama.cpp {refused[0].version.version}: {refused[0].problem}")
    missing = [one.version.version for one in checked if one.tree is None]
    if missing:
        raise DownloadFailed(f"could not be checked because it could not be fetched: llama.cpp {', '.join(missing)}")


def _sentence(change) -> str:
    from .. import patch_versions

    now = "; ".join(f"line {place.line} {place.where}" for place in change.now)
    before = f"line {change.before.line} {change.before.where} in {change.since}" if change.before else "in no supported version"
    text = {
        patch_versions.FITS: f"fits: {now} (was {before})",
        patch_versions.MOVED: f"moved since {change.since}: now {now}; was {before}",
        patch_versions.GONE: f"gone since {change.since}: was {before}",
        patch_versions.AMBIGUOUS: f"ambiguous since {change.since}: now {now}; was {before}",
        patch_versions.UNREADABLE: f"its file is gone since {change.since}: was {before}",
    }[change.verdict]
    nearest = f"; most like it: line {change.nearest[0]}: {change.nearest[1]}" if change.nearest else ""
    return f"{change.insert.file}: {change.insert.name}: {text}{nearest}"


@command.command()
@_TREE
def apply(tree: Path) -> None:
    """Apply the patch to TREE: as a whole, or not at all."""
    from .. import patching

    click.echo("applied" if patching.apply(tree) else "already applied, nothing changed")


@command.command()
@_TREE
def revert(tree: Path) -> None:
    """Take the patch out of TREE again, byte for byte."""
    from .. import patching

    click.echo("reverted" if patching.revert(tree, lambda line: click.echo(line, err=True)) else "not applied, nothing changed")


@command.command()
@_TREE
def diff(tree: Path) -> None:
    """Print the patch as a unified diff of TREE, for `git apply` and `patch -p1`."""
    from .. import patching

    click.echo(patching.unified_diff(tree), nl=False)


def _table(states):
    from rich.table import Table

    table = Table()
    for title in ("hunk", "file", "anchor", "state"):
        table.add_column(title, overflow="fold")
    for state in states:
        table.add_row(state.name, state.file, _escape(state.anchor), state.state)
    return table


def _escape(text: str) -> str:
    from rich.markup import escape

    return escape(text)
