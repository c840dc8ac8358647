"""`wavesmith doctor` as a user calls it."""

import json
import os
import subprocess
import sys
import time

import click
import pytest
from click.testing import CliRunner
from wavesmith.commands import doctor as module
from wavesmith.doctor import capture
from wavesmith.doctor.probe import Probe
from wavesmith.errors import BadInput

from . import machines


def saved(tmp_path, machine) -> str:
    capture.save(machine(), tmp_path / machine.__name__)
    return str(tmp_path / machine.__name__)


@pytest.mark.parametrize("machine", machines.EXPECTED, ids=lambda machine: machine.__name__)
def test_exit_code_from_a_capture(machine, tmp_path):
    result = CliRunner().invoke(module.command, ["--json", "--from", saved(tmp_path, machine)])
    assert result.exit_code == machines.EXPECTED[machine][0]
    assert json.loads(result.stdout)["exit_code"] == result.exit_code


def test_this_machine_then_its_capture(tmp_path):
    """The machine that runs the tests, in a folder with a blank in its name; the two answers are the same text."""
    folder = str(tmp_path / "my capture")
    command = [sys.executable, "-m", "wavesmith", "doctor", "--json"]
    start = time.monotonic()
    first = subprocess.run([*command, "--capture", folder], capture_output=True, text=True, check=False)
    assert time.monotonic() - start < 15
    second = subprocess.run([*command, "--from", folder], capture_output=True, text=True, check=False)
    assert first.stdout == second.stdout and first.returncode == second.returncode
    assert json.loads(first.stdout)["exit_code"] == first.returncode
    assert os.listdir(tmp_path) == ["my capture"]


def test_options_that_exclude_each_other(tmp_path):
    folder = saved(tmp_path, machines.nothing)
    for option in (["--fix"], ["--capture", str(tmp_path / "again")]):
        with pytest.raises(BadInput, match="--from"):
            CliRunner().invoke(module.command, ["--from", folder, *option], catch_exceptions=False)
    assert not (tmp_path / "again").exists()
    with pytest.raises(BadInput, match="no capture"):
        CliRunner().invoke(module.command, ["--from", str(tmp_path / "missing")], catch_exceptions=False)


@pytest.fixture
def mended(monkeypatch):
    """A machine without cmake whose repair is a command that is recorded, not run."""
    ran = []
    monkeypatch.setattr("wavesmith.doctor.probe.SystemProbe", lambda: Probe(machines.nothing() if ran else machines.without(machines.nothing(), "cmake")))
    monkeypatch.setattr(module, "_run", lambda argv: ran.append(argv))
    return ran


def test_fix_asks_first(mended):
    result = CliRunner().invoke(module.command, ["--fix"], input="n\n")
    assert mended == [] and result.exit_code == 3
    assert "run 'python3 -m pip install cmake'?" in result.stderr
    result = CliRunner().invoke(module.command, ["--fix", "--json"], input="y\n")
    assert mended == [("{python}", "-m", "pip", "install", "cmake")]
    assert result.exit_code == 0 and json.loads(result.stdout)["findings"][0]["name"] == "no-amd-gpu"


def test_fix_without_an_answer_runs_nothing(mended):
    result = CliRunner().invoke(module.command, ["--fix"], input="", standalone_mode=False)
    assert mended == [] and isinstance(result.exception, click.Abort)


def test_fix_only_prints_what_needs_root(monkeypatch):
    monkeypatch.setattr("wavesmith.doctor.probe.SystemProbe", lambda: Probe(machines.rx_9060_xt_no_permission()))
    monkeypatch.setattr(module, "_run", lambda argv: pytest.fail(f"ran {argv}"))
    result = CliRunner().invoke(module.command, ["--fix"])
    assert result.exit_code == 4 and "run it yourself: sudo usermod -aG render $USER" in result.stderr


def test_a_fix_runs_with_this_python(capfd):
    module._run(("{python}", "-c", "import sys; print('in', sys.prefix)"))
    module._run(("{python}", "-c", "raise SystemExit(7)"))
    told = capfd.readouterr().err
    assert f"in {sys.prefix}" in told and "done" in told and "exit status 7" in told
