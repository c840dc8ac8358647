"""Bench and perplexity: what is read from llama.cpp's tools, and how the two sides take turns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from wavesmith import bench, perplexity, process
from wavesmith.build import Build
from wavesmith.commands.bench import command
from wavesmith.errors import BadInput, CannotRun
from wavesmith.progress import Steps

PROMPT, GENERATE = bench.Phase("prompt", 32), bench.Phase("generate", 8)

# Stands in for llama-bench: speeds are 10 and 4 with the module, 20 and 8 without, and every call is written down.
FAKE_BENCH = """#!/bin/sh
[ "$WAVESMITH" = 0 ] && side=stock || side=wavesmith
echo "$side $*" >> "$(dirname "$0")/calls"
[ $side = stock ] && speeds='20 8' || speeds='10 4'
set -- $speeds
printf '[{"n_prompt": 32, "n_gen": 0, "avg_ts": %s}, {"n_prompt": 0, "n_gen": 8, "avg_ts": %s}]' $1 $2
"""

FAKE_PERPLEXITY = """#!/bin/sh
echo 'perplexity: calculating'
[ "$WAVESMITH" = 0 ] && echo '0.06.977.610 I Final estimate: PPL = 10.0000 +/- 0.5' || echo 'Final estimate: PPL = 10.0200 +/- 0.5'
"""


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    monkeypatch.setenv("WAVESMITH_CACHE", str(tmp_path / "cache"))
    programs = {}
    for name, text in {"llama-bench": FAKE_BENCH, "llama-perplexity": FAKE_PERPLEXITY}.items():
        programs[name] = tmp_path / name
        programs[name].write_text(text)
        programs[name].chmod(0o755)
    return Build(tmp_path, "host", "1.0", "abc", "key", tmp_path, tmp_path, programs)


def quiet() -> Steps:
    return Steps("test", quiet=True)


def test_sides_take_turns_and_the_first_one_alternates(build: Build, tmp_path: Path) -> None:
    bench.compare(build, tmp_path / "m.gguf", threads=1, repetitions=3, steps=quiet())
    sides = [line.split()[0] for line in (tmp_path / "calls").read_text().splitlines()]
    assert sides == ["stock", "wavesmith", "wavesmith", "stock", "stock", "wavesmith"]


def test_both_sides_get_the_same_arguments(build: Build, tmp_path: Path) -> None:
    bench.compare(build, tmp_path / "m.gguf", threads=2, repetitions=1, steps=quiet())
    arguments = {line.split(maxsplit=1)[1] for line in (tmp_path / "calls").read_text().splitlines()}
    assert arguments == {f"-m {tmp_path}/m.gguf -p 32 -n 8 -t 2 -r 1 --no-warmup -o json"}


def test_figures(build: Build, tmp_path: Path) -> None:
    comparison = bench.compare(build, tmp_path / "m.gguf", threads=1, repetitions=2, family="rdna4", steps=quiet())
    result = comparison.as_json()
    assert result["version"] == bench.SCHEMA_VERSION
    assert result["family"] == "rdna4"
    assert result["note"] == "CPU model of the kernels: not a speed of any GPU"
    prompt, generate = result["phases"]
    assert prompt["stock"] == {"median": 20.0, "min": 20.0, "max": 20.0, "all": [20.0, 20.0]}
    assert prompt["ratio"] == generate["ratio"] == 0.5
    assert comparison.side_seconds("wavesmith") == pytest.approx(32 / 10 + 8 / 4)
    assert 0 < result["seconds"] < 60
    json.dumps(result)


def test_table_says_what_the_figures_are_not(build: Build, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench.print_comparison(bench.compare(build, tmp_path / "m.gguf", threads=1, repetitions=2, steps=quiet()))
    shown = capsys.readouterr().out
    assert "note: CPU model of the kernels: not a speed of any GPU" in shown
    assert "0.5x" in shown
    assert "20 (20 to 20, 2 runs)" in shown


def test_median_ratio_ignores_one_bad_run() -> None:
    phase = bench.Phase("prompt", 32, {"stock": [10.0, 10.0, 1.0], "wavesmith": [20.0, 21.0, 20.0]})
    assert phase.ratio == 2.0


@pytest.mark.parametrize(
    "output",
    [
        "",
        "not json",
        "[]",
        "{}",
        '[{"n_prompt": 32, "n_gen": 0}]',
        '[{"n_prompt": 32, "n_gen": 0, "avg_ts": 5}]',
        '[{"n_prompt": 32, "n_gen": 0, "avg_ts": 5}, {"n_prompt": 0, "n_gen": 8, "avg_ts": 0}]',
        '[{"n_prompt": 32, "n_gen": 0, "avg_ts": NaN}, {"n_prompt": 0, "n_gen": 8, "avg_ts": 1}]',
        '[{"n_prompt": 16, "n_gen": 0, "avg_ts": 5}, {"n_prompt": 0, "n_gen": 8, "avg_ts": 1}]',
    ],
)
def test_output_without_a_speed_for_every_phase_is_an_error(output: str) -> None:
    with pytest.raises(CannotRun, match="llama-bench"):
        bench.parse_rates(output, [PROMPT, GENERATE])


def test_failing_program_is_an_error_with_its_log(build: Build, tmp_path: Path) -> None:
    build.program("llama-bench").write_text("#!/bin/sh\necho 'error: failed to load model' >&2\nexit 1\n")
    with pytest.raises(CannotRun, match="error: failed to load model .log: "):
        bench.compare(build, tmp_path / "m.gguf", threads=1, steps=quiet())


def test_nothing_to_measure_is_refused() -> None:
    result = CliRunner().invoke(command, ["--prompt", "0", "--generate", "0"])
    assert result.exit_code == 2
    assert "nothing to measure" in result.output


def test_perplexity_of_both_sides(build: Build, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("words")
    outcome = perplexity.compare(build, tmp_path / "m.gguf", text, steps=quiet())
    assert (outcome.stock, outcome.wavesmith) == (10.0, 10.02)
    assert outcome.difference == pytest.approx(0.002)


def test_perplexity_of_a_missing_text(build: Build, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is not a file"):
        perplexity.compare(build, tmp_path / "m.gguf", tmp_path / "nothing", steps=quiet())


@pytest.mark.parametrize("output", ["", "Final estimate: PPL = nan +/- nan", "Final estimate: PPL = inf +/- nan", "PPL = 5.0"])
def test_perplexity_without_a_finite_estimate_is_an_error(output: str) -> None:
    with pytest.raises(CannotRun, match="estimate"):
        perplexity.parse_estimate(output)


@pytest.mark.build
def test_bench_of_a_real_model(host_build, smollm2: Path) -> None:
    comparison = bench.compare(host_build, smollm2, prompt=8, generate=2, threads=1, repetitions=1)
    assert [phase.name for phase in comparison.phases] == ["prompt", "generate"]
    assert all(rate > 0 for phase in comparison.phases for rates in phase.rates.values() for rate in rates)


@pytest.mark.build
def test_module_takes_the_matrix_products_of_a_real_model(host_build, smollm2: Path, tmp_path: Path) -> None:
    """Otherwise every comparison above would compare stock with itself."""
    ledger = tmp_path / "ledger"
    for stock in (False, True):
        environment = host_build.environment(stock=stock) | {"WAVESMITH_LEDGER": str(ledger)}
        command_line = [host_build.program("llama-bench"), "-m", smollm2, "-p", "4", "-n", "0", "-t", "1", "-r", "1", "--no-warmup"]
        process.capture([str(part) for part in command_line], tmp_path / "log", environment=environment)
        if stock:
            assert not ledger.exists() or "mmq" not in ledger.read_text()
        else:
            assert "mmq" in ledger.read_text()
            ledger.unlink()


@pytest.mark.build
def test_perplexity_of_a_real_model_is_stocks(host_build, smollm2: Path, repository: Path) -> None:
    outcome = perplexity.compare(host_build, smollm2, repository / "tests" / "text" / "gpus.txt", threads=bench.default_threads())
    assert 1.0 < outcome.stock < 100.0
    assert outcome.wavesmith != outcome.stock
    assert abs(outcome.difference) < 0.005
