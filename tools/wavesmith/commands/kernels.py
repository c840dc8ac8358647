"""`wavesmith kernels`: the kernels as code objects."""

from __future__ import annotations

from pathlib import Path

import click


@click.group()
def command() -> None:
    """Kernels as AMD code objects."""


@command.command("compile")
@click.option("--target", "targets", multiple=True, required=True, metavar="TARGET", help="gfx1100, a list, a family (rdna3), gfx11* or all")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="folder for the code objects and manifest.json")
@click.option("--only", metavar="TEXT", help="only translation units whose name contains TEXT, such as q4_k")
@click.option("--jobs", type=click.IntRange(min=1), help="compilers at once (default: all CPUs)")
def compile_command(targets: tuple[str, ...], out: Path, only: str | None, jobs: int | None) -> None:
    """Compile every kernel for TARGET with clang alone; no ROCm needed."""
    from ..kernels.compile import compile_targets
    from ..progress import Steps
    from ..targets import resolve

    with Steps("kernels").step("compile kernels") as step:
        kernels = compile_targets(resolve(list(targets), []), out.absolute(), jobs=jobs, only=only, progress=step.update)
    spilled = [kernel for kernel in kernels if kernel["scratch_bytes"] or kernel["vgpr_spills"] or kernel["sgpr_spills"]]
    for kernel in spilled:
        click.echo(f"spills: {kernel['target']} {kernel['symbol']}: {kernel['scratch_bytes']} bytes of scratch, {kernel['vgpr_spills']} VGPRs", err=True)
    click.echo(f"{len(kernels)} kernels in {out / 'manifest.json'}, {len(spilled)} with spills")


@command.command("plan")
@click.option("--check", is_flag=True, help="fail if the rows that are compiled are not the planner's, or if one does not fit")
@click.option("--write", is_flag=True, help="write the planner's rows to backend/plan/mmq_plans.inc")
def plan_command(check: bool, write: bool) -> None:
    """Print the tile plans of mmq with what they need: LDS, registers, occupancy."""
    from rich.console import Console

    from ..errors import CheckFailed
    from ..kernels import definitions, plan_report, planner

    rows = planner.table()
    found = planner.problems(rows)
    if write and not found:
        planner.write(rows)
    if check and not planner.is_current(rows):
        found += planner.problems(definitions.plans())
        found.append(f"backend/{planner.FILE} is not what the planner writes: run `{planner.COMMAND}`")
    console = Console(width=None if Console().is_terminal else 140)
    console.print(plan_report.table(rows))
    console.print(
        f"{len(rows)} rows; LDS and registers (estimated) for the type that needs most; every row runs all types of its number of parts.", soft_wrap=True
    )
    if found:
        raise CheckFailed("; ".join(found))
