"""`wavesmith inspect`: a manifest of code objects as a table, or what differs between two."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("manifests", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="MANIFEST [MANIFEST2]")
@click.option("--target", "targets", multiple=True, metavar="TARGET", help="only these targets: gfx1100, gfx11*, a list")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="only these types: q4_k, q*_k, f16, a list")
@click.option("--op", "operations", multiple=True, metavar="OP", help="only these operations: MUL_MAT, QUANTIZE_Q8_1, a list")
@click.option("--json", "as_json", is_flag=True, help="print JSON in place of a table")
def command(manifests: tuple[Path, ...], targets: tuple[str, ...], types: tuple[str, ...], operations: tuple[str, ...], as_json: bool) -> None:
    """Show the kernels of MANIFEST, a file or its folder; with MANIFEST2 what differs from it."""
    from ..errors import BadInput
    from ..kernels import comparison, manifest

    if len(manifests) > 2:
        raise BadInput(f"one or two manifests, not {len(manifests)}")
    chosen = [comparison.select(manifest.read(path)["kernels"], targets, types, operations) for path in manifests]
    if not any(chosen):
        raise BadInput(f"no kernel matches in {' and '.join(map(str, manifests))}")
    if len(chosen) == 2:
        _show_differences(comparison.compare(*chosen), as_json)
    else:
        _show([comparison.with_occupancy(kernel) for kernel in chosen[0]], as_json)


def _show(kernels: list[dict], as_json: bool) -> None:
    if as_json:
        _print_json(kernels)
        return
    from rich.table import Table

    from ..progress import print_table

    table = Table("target", "symbol", "op", "type", "plan", box=None, padding=(0, 1), pad_edge=False)
    for name in ("VGPR", "AGPR", "SGPR", "LDS", "scratch", "spills", "waves/SIMD"):
        table.add_column(name, justify="right")
    for kernel in kernels:
        texts = (kernel["target"], kernel["symbol"], kernel["op"], kernel["type"], _plan(kernel["plan"]))
        figures = (kernel["vgprs"], kernel["agprs"], kernel["sgprs"], kernel["static_lds_bytes"] + kernel["dynamic_lds_bytes"], kernel["scratch_bytes"],
                   kernel["vgpr_spills"] + kernel["sgpr_spills"], "?" if kernel["waves_per_simd"] is None else kernel["waves_per_simd"])  # fmt: skip
        table.add_row(*(_literal(value) for value in (*texts, *figures)))
    print_table(table)


def _plan(plan: dict | None) -> str:
    if plan is None:
        return "-"
    split = f", split-K {plan['split_k']}" if plan["split_k"] > 1 else ""
    return f"{plan['tile_m']}x{plan['tile_n']}x{plan['tile_k']}, {plan['waves']} waves, {plan['stages']} stage{'s' * (plan['stages'] > 1)}{split}"


def _literal(value: object) -> str:
    from rich.markup import escape

    return escape(str(value))


def _show_differences(differences: list, as_json: bool) -> None:
    if as_json:
        _print_json([{"target": d.target, "symbol": d.symbol, "change": d.change, "fields": {k: list(v) for k, v in d.fields.items()}} for d in differences])
        return
    if not differences:
        click.echo("no difference")
        return
    from rich.table import Table

    from ..progress import print_table

    table = Table("target", "symbol", "change", "what", box=None, padding=(0, 1), pad_edge=False)
    for difference in differences:
        what = ", ".join(_change(name, *values) for name, values in difference.fields.items())
        table.add_row(*(_literal(value) for value in (difference.target, difference.symbol, difference.change, what)))
    print_table(table)


def _change(name: str, before: object, after: object) -> str:
    if name == "args":
        return "args: other arguments"
    if isinstance(before, int) and isinstance(after, int):
        return f"{name} {before} -> {after} ({after - before:+d})"
    return f"{name} {before} -> {after}"


def _print_json(value: object) -> None:
    import json

    click.echo(json.dumps(value, indent=1))
