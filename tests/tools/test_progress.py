"""Progress: plain lines where there is no terminal, a bar where there is one, a log for each step either way."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from wavesmith import progress
from wavesmith.progress import Steps


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WAVESMITH_CACHE", str(tmp_path))
    return tmp_path


def test_plain_lines_number_the_steps_and_say_how_long(capsys: pytest.CaptureFixture[str]) -> None:
    steps = Steps("test")
    with steps.step("first thing"):
        pass
    with steps.step("second") as step:
        step.note = "already there"
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r" 1\. first thing \.\.\.\n 1\. first thing: 0\.\d s\n 2\. second \.\.\.\n 2\. second: already there, 0\.\d s\n", err)


def test_log_names_come_from_the_titles(cache: Path) -> None:
    steps = Steps("test")
    with steps.step("Fetch llama.cpp (git)") as step:
        step.write("a line")
        step.write("another")
    assert step.log.name == "01-fetch-llama-cpp-git.log"
    assert step.log.read_text() == "a line\nanother\n"
    assert step.log.parent.parent == cache / "logs"


def test_failing_step_does_not_look_finished(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyError), Steps("test").step("breaks"):
        raise KeyError
    assert capsys.readouterr().err == " 1. breaks ...\n"


def test_long_steps_speak_up_now_and_then(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_PLAIN_INTERVAL", 0.0)
    with Steps("test").step("long", unit="files") as step:
        step.update(1, 2000)
        step.update(3000)
    assert "    1 of 2,000 files\n    3,000 files\n" in capsys.readouterr().err


def test_short_steps_do_not(capsys: pytest.CaptureFixture[str]) -> None:
    with Steps("test").step("short") as step:
        for done in range(1000):
            step.update(done, 1000)
    assert capsys.readouterr().err.count("\n") == 2


def test_quiet_shows_nothing_and_still_logs(capsys: pytest.CaptureFixture[str]) -> None:
    with Steps("test", quiet=True).step("silent") as step:
        step.update(1, 2)
        step.write("kept")
    assert capsys.readouterr() == ("", "")
    assert step.log.read_text() == "kept\n"


def test_terminal_gets_a_bar_that_leaves_one_line(cache: Path) -> None:
    code = "from wavesmith.progress import Steps\nwith Steps('t').step('fetch', unit='bytes') as step:\n    step.update(500_000, 1_000_000)\n"
    main, terminal = pty.openpty()
    result = subprocess.run([sys.executable, "-c", code], stderr=terminal, stdin=subprocess.DEVNULL, check=True, env={**os.environ, "TERM": "xterm"})
    os.close(terminal)
    shown = b""
    while chunk := _read(main):
        shown += chunk
    os.close(main)
    assert result.returncode == 0
    assert b"0.5/1.0 MB" in shown
    assert re.search(rb" 1\. fetch: \d+\.\d s", shown)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # the other end is closed
        return b""
