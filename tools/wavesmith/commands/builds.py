"""`wavesmith builds list|rm|use`."""

from __future__ import annotations

import time

import click


@click.group()
def command() -> None:
    """Builds in the cache folder: list them, remove some, choose the one that run, serve and export take."""


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list in place of the table.")
def list_command(as_json: bool) -> None:
    """Show every build: target, llama.cpp, state, size and date. The newest finished one is used unless `use` chose another."""
    from .. import builds

    entries = builds.entries()
    if as_json:
        _print_json(entries)
    elif not entries:
        click.echo("no builds; make one with: wavesmith build", err=True)
    else:
        _print_table(entries)


@command.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def rm(names: tuple[str, ...]) -> None:
    """Remove builds by name, or by a beginning of it that only one has. One that is being made, or whose programs run, stays."""
    from .. import builds

    for name in names:
        click.echo(f"removed {builds.remove(name).name}")


@command.command()
@click.argument("name")
def use(name: str) -> None:
    """Choose the build that run, serve and export take: its name, a beginning of it, or a folder made with --out."""
    from .. import builds

    click.echo(f"using {builds.use(name).prefix}")


def _print_json(entries) -> None:
    import json

    rows = [
        {
            "name": entry.name,
            "folder": str(entry.prefix),
            "state": entry.state,
            "target": entry.target,
            "llama_version": entry.llama_version,
            "bytes": entry.size,
            "made": int(entry.made),
            "chosen": entry.is_default,
        }
        for entry in entries
    ]
    click.echo(json.dumps(rows, indent=2))


def _print_table(entries) -> None:
    from rich.markup import escape
    from rich.table import Table

    from ..progress import print_table

    table = Table("name", "target", "llama.cpp", "state", "size", "made", box=None, padding=(0, 1), pad_edge=False)
    for entry in entries:
        made = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.made))
        state = entry.state + (", chosen" if entry.is_default else "")
        table.add_row(escape(entry.name), escape(entry.target), escape(entry.llama_version), state, f"{entry.size / 1e6:,.0f} MB", made)
    print_table(table)
