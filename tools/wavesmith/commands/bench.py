"""`wavesmith bench`: stock and wavesmith, measured in one run."""

from __future__ import annotations

from pathlib import Path

import click

from ..build_plan import TARGETS


@click.command("bench")
@click.argument("model", required=False, type=click.Path(path_type=Path))
@click.option("--target", type=click.Choice(TARGETS), default="host", show_default=True)
@click.option("--llama", metavar="V", help="llama.cpp version; default the newest supported. Built first when there is no build.")
@click.option("--family", help="gfx family whose kernels the host target runs.")
@click.option("--prompt", type=click.IntRange(0), default=32, show_default=True, help="Prompt tokens; 0 leaves the phase out.")
@click.option("--generate", type=click.IntRange(0), default=8, show_default=True, help="Generated tokens; 0 leaves the phase out.")
@click.option("--threads", "-t", type=click.IntRange(1), help="Threads of both sides; default 2, or 1 on a single CPU.")
@click.option("--repetitions", "-r", type=click.IntRange(1), default=2, show_default=True, help="Runs per side.")
@click.option("--perplexity", "text", type=click.Path(path_type=Path), help="Also compare the perplexity over the first 1,024 tokens of TEXT.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Also write the result to a file.")
def command(
    model: Path | None,
    target: str,
    llama: str | None,
    family: str | None,
    prompt: int,
    generate: int,
    threads: int | None,
    repetitions: int,
    text: Path | None,
    json_file: Path | None,
) -> None:
    """Run llama-bench with stock's kernels and with ours, taking turns, and show both.

    MODEL is a GGUF file; without one a small model is fetched.
    """
    if not prompt and not generate:
        raise click.UsageError("--prompt and --generate are both 0: nothing to measure")
    from .. import bench, build, output_file, settings, validate
    from .. import model as models
    from ..progress import Steps

    settings.check()
    if json_file:
        output_file.check_writable(json_file)
    if family:
        validate.check_request(target, family)
    steps = Steps("bench")
    path = models.get(model).path
    made = build.ensure(target, llama, steps=steps)
    threads = threads or bench.default_threads()
    comparison = bench.compare(made, path, prompt=prompt, generate=generate, threads=threads, repetitions=repetitions, family=family, steps=steps)
    bench.print_comparison(comparison)
    result = comparison.as_json()
    if text:
        result["perplexity"] = _compare_perplexity(made, path, text, threads, family, steps)
    if json_file:
        output_file.write_json(json_file, result)


def _compare_perplexity(made, model: Path, text: Path, threads: int, family: str | None, steps) -> dict:
    from .. import perplexity

    outcome = perplexity.compare(made, model, text, threads=threads, family=family, steps=steps)
    click.echo(f"perplexity: stock {outcome.stock:.4f}, wavesmith {outcome.wavesmith:.4f}, difference {100 * outcome.difference:+.3f} %")
    return outcome.as_json()
