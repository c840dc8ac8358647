"""`wavesmith quickstart`: the main job with one command."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("quickstart")
@click.option("--model", type=click.Path(path_type=Path), metavar="FILE", help="GGUF file; default SmolLM2-135M.")
@click.option("--llama", metavar="V", help="llama.cpp: supported version, tag, commit or folder; default the newest supported.")
@click.option("--via", type=click.Choice(["auto", "git", "sdist"]), default="auto", show_default=True, help="How to fetch llama.cpp.")
@click.option("--family", default="rdna3", show_default=True, help="gfx family whose kernels the host target runs.")
@click.option("--quick", is_flag=True, help="Validate fewer columns and rows.")
@click.option("--fresh", is_flag=True, help="Validate and bench again even when results are kept.")
@click.option("--jobs", "-j", type=click.IntRange(1), help="Compilers at once; default one per usable CPU.")
def command(model: Path | None, llama: str | None, via: str, family: str, quick: bool, fresh: bool, jobs: int | None) -> int:
    """Fetch llama.cpp, patch and build it with our kernels, validate them on a real model and bench both sides.

    The first run takes minutes; later ones reuse what is there. Exit code 0 only if the validation passed.
    """
    from .. import quickstart, settings
    from ..progress import Steps

    settings.check()
    steps = Steps("quickstart")
    outcome = quickstart.run(model=model, llama=llama, via=via, family=family, quick=quick, fresh=fresh, jobs=jobs, steps=steps)
    _print(outcome, steps.folder)
    return 0 if outcome.passed else 1


def _print(outcome, logs: Path) -> None:
    from rich.markup import escape
    from rich.table import Table

    from ..progress import print_table

    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for label, value in _rows(outcome):
        table.add_row(label, escape(value))
    table.add_row("logs", escape(str(logs)))
    click.echo()
    print_table(table)


def _rows(outcome) -> list[tuple[str, str]]:
    model, comparison = outcome.model, outcome.comparison
    rows = [
        ("llama.cpp", f"{outcome.build.llama_version} ({outcome.build.commit}), patched, target {outcome.build.target}"),
        ("programs", str(outcome.build.bin_dir)),
        ("model", f"{model.path.name}, {model.source}" + (f": {model.note}" if model.note else "")),
        ("validate", _validation(outcome.validation) + (", kept from an earlier run" if outcome.validation_kept else "")),
    ]
    for phase in comparison["phases"]:
        stock, ours = phase["stock"], phase["wavesmith"]
        speeds = f"wavesmith {ours['median']:.4g} tokens/s ({ours['min']:.4g} to {ours['max']:.4g}), stock {stock['median']:.4g}"
        rows.append((f"bench, {phase['tokens']} {phase['phase']}", f"{speeds}, ratio {phase['ratio']:.3g}"))
    when = f"measured {comparison['measured']}, {comparison['threads']} thread(s), family {comparison['family']}"
    rows.append(("", when + (f"; {comparison['note']}" if comparison["note"] else "")))
    return rows


def _validation(report: dict) -> str:
    counts = {status: count for status, count in report["counts"].items() if count}
    errors = [column["nmse"] for product in report["products"] for column in product["columns"] if column["nmse"] is not None]
    found = ", ".join(f"{count} {status}" for status, count in counts.items())
    worst = f", largest NMSE {max(errors):.1e}" if errors else ""
    return f"{'passed' if report['passed'] else 'FAILED'}: products {found}{worst}"
