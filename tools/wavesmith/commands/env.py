"""`wavesmith env`: the environment variables that change what wavesmith does."""

from __future__ import annotations

import click

from .. import settings


@click.command("env")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list in place of the table.")
def command(as_json: bool) -> None:
    """Show every environment variable, its value, where that comes from, and its default."""
    if as_json:
        _print_json()
    else:
        _print_table()


def _print_json() -> None:
    import json

    rows = [{"name": s.name, "value": s.value, "default": s.default, "source": s.source, "read_by": s.read_by, "meaning": s.meaning} for s in settings.SETTINGS]
    for row, setting in zip(rows, settings.SETTINGS, strict=True):
        row["problem"] = setting.problem(setting.value)
    click.echo(json.dumps(rows, indent=2))


def _print_table() -> None:
    from rich.markup import escape
    from rich.table import Table

    from ..progress import print_table

    table = Table("variable", "value", "from", "default", "read by", "meaning", box=None, padding=(0, 1), pad_edge=False)
    for setting in settings.SETTINGS:
        value = f"[bold]{escape(setting.value)}[/bold]" if setting.is_set else escape(setting.value)
        if setting.problem(setting.value):
            value += f" [red](invalid: expected {escape(setting.expected)})[/red]"
        table.add_row(setting.name, value, setting.source, escape(setting.default), setting.read_by, escape(setting.meaning))
    print_table(table)
