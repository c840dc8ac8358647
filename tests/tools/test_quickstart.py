"""Quickstart: the order of its parts, what is kept, and what makes a kept result stale. The parts have tests of their own."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from wavesmith import bench, build, host_library, model, quickstart, validate
from wavesmith.build import Build
from wavesmith.commands.quickstart import command
from wavesmith.errors import BuildFailed


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Stand-ins for every part; `calls` lists what really ran."""
    gguf = tmp_path / "m.gguf"
    gguf.write_bytes(b"weights")
    library = tmp_path / "library"
    library.write_bytes(b"kernels")
    state = SimpleNamespace(calls=[], gguf=gguf, library=library, key="key", passed=True, source="downloaded", note="", tmp=tmp_path)

    def make() -> Build:
        return Build(tmp_path, "host", "1.0", "abc", state.key, tmp_path, tmp_path, {})

    def find(llama=None):
        return make() if "build" in state.calls else None

    def ensure(**_):
        state.calls.append("build")
        return make()

    def run_validate(plan, folder, environment, on_progress):
        state.calls.append(f"validate{' quick' if plan.quick else ''} {plan.family}")
        column = {"nmse": 3e-5}
        report = {"passed": state.passed, "counts": {"passed": 3, "failed": 0}, "products": [{"columns": [column]}]}
        return SimpleNamespace(as_json=lambda: report)

    def compare(made, path, *, threads, family, steps):
        state.calls.append(f"bench {family}")
        phases = [bench.Phase("prompt", 32, {"stock": [20.0], "wavesmith": [10.0]})]
        return bench.Comparison(path.name, "host", "1.0", "abc", threads, family, phases, 1.0, "2026-10-01 12:00")

    monkeypatch.setenv("WAVESMITH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(model, "get", lambda path: model.ModelFile(path or gguf, "given" if path else state.source, state.note))
    monkeypatch.setattr(build, "find", find)
    monkeypatch.setattr(build, "ensure", ensure)
    monkeypatch.setattr(validate, "plan", lambda path, family, quick: SimpleNamespace(quick=quick, family=family))
    monkeypatch.setattr(validate, "run", run_validate)
    monkeypatch.setattr(bench, "compare", compare)
    monkeypatch.setattr(host_library, "path", lambda: state.library)
    return state


def go(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(command, list(arguments), standalone_mode=False)
    assert result.exception is None, result.exception
    assert result.return_value == code
    return result.stdout


def test_first_run_does_everything_in_order(parts) -> None:
    shown = go()
    assert parts.calls == ["build", "validate rdna3", "bench rdna3"]
    assert "m.gguf, downloaded" in shown
    assert "passed: products 3 passed, largest NMSE 3.0e-05" in shown
    assert re.search(r"bench, 32 prompt\s+wavesmith 10 tokens/s .*stock 20, ratio 0.5", shown)
    assert "CPU model of the kernels: not a speed of any GPU" in shown


def test_second_run_does_nothing_again_and_says_so(parts) -> None:
    go()
    parts.calls[:] = ["build"]
    shown = go()
    assert parts.calls == ["build"]
    assert "kept from an earlier run" in shown
    assert "measured 2026-10-01 12:00" in shown


def test_fresh_measures_again_but_does_not_build_again(parts) -> None:
    go()
    parts.calls[:] = ["build"]
    go("--fresh")
    assert parts.calls == ["build", "validate rdna3", "bench rdna3"]


@pytest.mark.parametrize("what", ["model", "build", "library", "family", "quick"])
def test_whatever_could_change_a_result_makes_it_stale(parts, what: str) -> None:
    go()
    parts.calls[:] = ["build"]
    arguments = {"family": ["--family", "rdna4"], "quick": ["--quick"]}.get(what, [])
    if what == "model":
        parts.gguf.write_bytes(b"other weights")
    elif what == "library":
        parts.library.write_bytes(b"other kernels")
    elif what == "build":
        parts.key = "other"
    go(*arguments)
    assert any(call.startswith("validate") for call in parts.calls)
    assert any(call.startswith("bench") for call in parts.calls) == (what in ("model", "build", "family"))


def test_failed_validation_is_exit_code_1_also_when_kept(parts) -> None:
    parts.passed = False
    assert "FAILED" in go(code=1)
    assert "FAILED" in go(code=1)
    assert parts.calls.count("validate rdna3") == 1


def test_generated_model_is_named_as_such(parts) -> None:
    parts.source, parts.note = "generated", "no package index answers"
    assert re.search(r"m\.gguf, generated: no package index answers", go())


def test_model_option(parts) -> None:
    other = parts.tmp / "other.gguf"
    other.write_bytes(b"other")
    assert "other.gguf, given" in go("--model", str(other))


def test_broken_kept_result_is_made_anew(parts) -> None:
    go()
    for path in (parts.tmp / "cache" / "results").iterdir():
        path.write_text("{")
    parts.calls[:] = ["build"]
    go()
    assert parts.calls == ["build", "validate rdna3", "bench rdna3"]


def test_failing_part_keeps_what_was_done_before(parts, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_, **__):
        raise BuildFailed("no")

    with monkeypatch.context() as broken:
        broken.setattr(bench, "compare", fail)
        assert isinstance(CliRunner().invoke(command, [], standalone_mode=False).exception, BuildFailed)
    go()
    assert parts.calls == ["build", "validate rdna3", "bench rdna3"]


@pytest.mark.build
def test_quickstart_of_a_real_model_twice(host_build, smollm2: Path) -> None:
    from wavesmith.progress import Steps

    first = quickstart.run(model=smollm2, quick=True, steps=Steps("quickstart", quiet=True))
    assert first.passed
    second = quickstart.run(model=smollm2, quick=True, steps=Steps("quickstart", quiet=True))
    assert second.validation_kept and second.comparison_kept
    assert second.validation == first.validation and second.comparison == first.comparison
