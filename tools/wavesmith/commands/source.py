"""`wavesmith source get`."""

from __future__ import annotations

import sys

import click


@click.group()
def command() -> None:
    """Fetch a pinned llama.cpp tree."""


@command.command()
@click.option("--llama", metavar="V", help="Supported version, upstream tag or commit, or a folder; default the newest supported version.")
@click.option("--via", type=click.Choice(["auto", "git", "sdist"]), default="auto", show_default=True, help="auto: git where it answers, else the sdist.")
@click.option("--fresh", is_flag=True, help="Fetch or unpack again, dropping changes made to the tree in the cache.")
def get(llama: str | None, via: str, fresh: bool) -> None:
    """Fetch llama.cpp and print the folder of its tree (the last line on stdout)."""
    from .. import source

    found = source.get(llama, via, fresh=fresh, say=lambda line: print(line, file=sys.stderr, flush=True))
    print(f"llama.cpp {found.version}, commit {found.commit} ({found.via})", file=sys.stderr)
    click.echo(str(found.path.absolute()))
