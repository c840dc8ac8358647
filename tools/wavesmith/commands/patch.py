"""`wavesmith patch check|apply|revert|diff`."""

from __future__ import annotations

from pathlib import Path

import click

_TREE = click.argument("tree", type=click.Path(path_type=Path))


@click.group()
def command() -> None:
    """Check, apply or revert the patch that lets llama.cpp use custom kernels."""


@command.command()
@_TREE
@click.pass_context
def check(context: click.Context, tree: Path) -> None:
    """Show what each hunk finds in TREE. Exit status 0 if the whole patch can be applied, or is."""
    from .. import patching
    from ..errors import PatchRefused
    from ..progress import print_table

    states = patching.check(tree)
    print_table(_table(states))
    if not patching.can_apply(states):
        bad = next((state for state in states if state.state not in (patching.APPLIES, patching.APPLIED)), None)
        raise PatchRefused(f"{tree}: {bad.file}: {bad.detail}" if bad else f"{tree}: the patch is only partly applied")


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
