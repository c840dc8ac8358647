"""`wavesmith build`: resolve, print, build."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("build")
@click.option(
    "--target",
    "words",
    multiple=True,
    metavar="TARGET",
    help="gfx1100, a family (rdna3), a pattern (gfx11*), all, host, or a list; default what the GPUs of this machine need.",
)
@click.option("--llama", metavar="V", help="llama.cpp: supported version, tag, commit or folder; default the newest supported.")
@click.option("--via", type=click.Choice(["auto", "git", "sdist"]), default="auto", show_default=True, help="How to fetch llama.cpp.")
@click.option("--jobs", "-j", type=click.IntRange(1), help="Compilers at once; default one per usable CPU.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Folder of the build; default one in the cache folder.")
@click.option("--plan", "plan_only", is_flag=True, help="Print the resolved plan and do nothing.")
def command(words: tuple[str, ...], llama: str | None, via: str, jobs: int | None, out: Path | None, plan_only: bool) -> None:
    """Build llama.cpp with the wavesmith kernels. The last line on stdout is the folder of its programs.

    Without --target the build is for the GPUs that `wavesmith doctor` finds, and for the CPU (host) where it finds none.
    A build that is there already is used as it is; one that was interrupted goes on where it stopped.
    """
    from .. import build, build_plan, cache, settings, target_choice
    from ..progress import Steps

    settings.check()
    choice = target_choice.choose(list(words))
    plan = build_plan.resolve(choice.targets, llama, out, notes=choice.notes)
    if not plan_only:
        cache.folder("builds")  # a place that cannot be used is known before anything is printed
    width = max(len(label) for label, _ in plan.lines())
    for label, value in plan.lines():
        click.echo(f"{label:{width}}  {value}", err=not plan_only)
    if not plan_only:
        click.echo(build.make(plan, via=via, jobs=jobs, steps=Steps("build")).bin_dir)
