"""`wavesmith export`: a build as a folder that needs no wavesmith."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("export")
@click.option("--build", "name", metavar="NAME", help="Build by name or folder; default the one chosen with `builds use`, else the newest.")
@click.argument("folder", type=click.Path(path_type=Path))
def command(name: str | None, folder: Path) -> None:
    """Copy a build's programs and libraries into FOLDER (new or empty), with a README and scripts that set the environment.

    The folder runs without wavesmith, and may be moved; for a GPU it needs ROCm.
    """
    from .. import builds, export

    programs = export.export(builds.find(name), folder)
    click.echo(f"{', '.join(programs)} in {folder / 'bin'}", err=True)
    click.echo(str(folder))
