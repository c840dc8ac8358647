"""`wavesmith validate`: check the kernels on a model's own weights."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("validate")
@click.argument("model", required=False, type=click.Path(path_type=Path))
@click.option("--target", default="host", show_default=True, help="What to validate; only host so far.")
@click.option("--family", default="rdna3", show_default=True, metavar="F", help="gcn, cdna2, cdna3, cdna4, rdna2, rdna3, rdna3.5 or rdna4.")
@click.option("--quick", is_flag=True, help="Fewer columns (1, 16, 33) and up to 1,024 rows of each tensor.")
@click.option("--build", "build_dir", type=click.Path(path_type=Path), metavar="DIR", help="Folder with the ggml libraries to compare with.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), metavar="F", help="Also write the result as JSON.")
def command(model: Path | None, target: str, family: str, quick: bool, build_dir: Path | None, json_file: Path | None) -> int:
    """Check on MODEL's own weights that our kernels compute what they should.

    Every distinct (type, M, K) of MODEL (a GGUF file; default SmolLM2-135M) is multiplied with 1 to 128 columns and compared with a
    float64 reference and with stock ggml. Exit code 0 only if every check held and at least one product was checked.
    """
    import os

    from .. import host_library, output_file, settings, validate, validate_report
    from .. import model as models
    from ..progress import Steps
    from ..stock_ggml import find_library

    settings.check()
    validate.check_request(target, family)
    if json_file is not None:
        output_file.check_writable(json_file)
    if build_dir is not None:
        find_library(build_dir)
    steps = Steps("validate")
    chosen = models.get(model)
    plan = validate.plan(chosen.path, target=target, family=family, quick=quick)
    host_library.load()
    if build_dir is not None:
        folder, environment = build_dir, {**os.environ, "WAVESMITH_HOST_FAMILY": family}
    else:
        folder, environment = validate.find_build(target, family, steps)
    with steps.step(f"validate {len(plan.taken)} products") as step:
        report = validate.run(plan, folder, environment, step.update)
    _print(report)
    if json_file is not None:
        validate_report.write_json(report, json_file)
    return 0 if report.passed else 1


def _print(report) -> None:
    from rich.table import Table

    from ..progress import print_table

    table = Table("op", "type", "M", "K", "experts", "tensors", "NMSE", "stock NMSE", "to stock", "worst row", "integers", "result", box=None, pad_edge=False)
    for product in report.products:
        table.add_row(*_row(product))
    print_table(table)
    for product in report.products:
        for failure in product.failures or ([product.reason] if product.reason else []):
            click.echo(f"{product.type} M={product.m} K={product.k}: {failure}")
    click.echo(_summary(report))


def _row(product) -> tuple[str, ...]:
    worst = max(product.columns, key=lambda c: (c.nmse is None, c.nmse or 0.0), default=None)
    row = max(product.columns, key=lambda c: (c.worst_row_nmse is None, c.worst_row_nmse or 0.0), default=None)
    result = {"passed": "[green]passed[/green]", "failed": "[red]failed[/red]", "invalid reference": "[red]invalid reference[/red]"}
    return (
        product.op,
        product.type,
        f"{product.m:,}",
        f"{product.k:,}",
        str(product.experts or ""),
        str(product.tensors),
        _number(worst and worst.nmse) if worst else "",
        _number(max((c.stock_nmse or 0.0 for c in product.columns), default=None)) if worst else "",
        _number(max((c.nmse_to_stock or 0.0 for c in product.columns), default=None)) if worst else "",
        f"{row.worst_row:,}: {_number(row.worst_row_nmse)}" if row and row.worst_row is not None else "",
        {True: f"exact, {product.checks.integer_rows} rows", False: "WRONG", None: ""}[product.checks.integers],
        result.get(product.status, product.status),
    )


def _number(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.1e}"


def _summary(report) -> str:
    from .. import validate, validate_report

    counts = report.as_json()["counts"]
    columns = validate.QUICK_COLUMNS if report.quick else validate.COLUMNS
    parts = [f"{counts[status]} {status}" for status in counts if counts[status]]
    scope = f"quick: at most {validate.QUICK_ROWS} rows of a tensor, " if report.quick else ""
    module = "" if validate.MODULE_DEVICE in report.devices else f"; the build has no {validate.MODULE_DEVICE} device, so only the host library was checked"
    verdict = "passed" if report.passed else "FAILED" if counts[validate_report.FAILED] or counts[validate_report.INVALID] else "FAILED: nothing was checked"
    return f"{verdict}: {', '.join(parts)} ({report.family}, {scope}N = {', '.join(map(str, columns))}, {report.seconds:.0f} s){module}"
