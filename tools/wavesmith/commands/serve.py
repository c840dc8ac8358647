"""`wavesmith serve`: llama-server with our kernels."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("serve", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--build", "name", metavar="NAME", help="Build by name or folder; default the one chosen with `builds use`, else the newest.")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(name: str | None, model: Path, arguments: tuple[str, ...]) -> None:
    """Start llama-server (OpenAI-compatible API) on MODEL, a GGUF file, and say which kernels are active.

    ARGUMENTS go to llama-server as they are, such as --port 8080. The server is compiled when it is first asked for.
    """
    from .. import builds, run_program, serve
    from ..progress import Steps

    program, words, variables, notes = serve.prepare(builds.find(name), model, arguments, Steps("serve"))
    for note in notes:
        click.echo(note, err=True)
    run_program.replace_process(program, words, variables)
