"""`wavesmith run`: a program of a build."""

from __future__ import annotations

import click


@click.command("run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--build", "name", metavar="NAME", help="Build by name or folder; default the one chosen with `builds use`, else the newest.")
@click.argument("program")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(name: str | None, program: str, arguments: tuple[str, ...]) -> None:
    """Run PROGRAM (llama-bench, llama-completion, llama-server …) of a build, with its environment set.

    The program takes the place of wavesmith: signals, input, output and the exit status are its own.
    """
    from .. import builds, run_program
    from ..progress import Steps

    build = builds.find(name)
    path = run_program.program(build, program, Steps("run"))
    run_program.replace_process(path, arguments, run_program.environment(build))
