"""Running other programs: logs, failures, progress, and nothing left running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from wavesmith import process
from wavesmith.errors import BuildFailed, CannotBuild, CannotRun


def shell(text: str) -> list[str]:
    return ["sh", "-c", text]


def test_output_of_both_streams_goes_to_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process.run(shell("echo one; echo two >&2"), log)
    assert log.read_text().splitlines() == ["$ sh -c 'echo one; echo two >&2'", "one", "two"]


def test_logs_are_appended(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process.run(["true"], log)
    process.run(["true"], log)
    assert log.read_text() == "$ true\n$ true\n"


def test_failure_names_exit_code_log_and_first_error_line(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("old: error: from an earlier run\n")
    with pytest.raises(BuildFailed) as caught:
        process.run(shell("echo fine; echo 'a.cpp:3:1: error: no such thing'; echo 'b.cpp:1:1: error: later'; exit 7"), log, what="the build")
    assert str(caught.value) == f"the build failed with exit code 7: a.cpp:3:1: error: no such thing (log: {log})"


def test_error_text_with_exit_code_zero_is_no_failure(tmp_path: Path) -> None:
    process.run(shell("echo 'a.cpp:3:1: error: shown by a program that carries on'"), tmp_path / "log")


def test_cmake_error_brings_its_text(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("-- fine\nCMake Error at CMakeLists.txt:3 (message):\n  the module is missing\n\n-- end\n")
    assert process.first_error_line(log) == "CMake Error at CMakeLists.txt:3 (message): the module is missing"


def test_without_an_error_line_the_last_line_is_shown(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match="exit code 1: second"):
        process.run(shell("echo first; echo second; exit 1"), tmp_path / "log", failure=CannotRun)


def test_silent_failure(tmp_path: Path) -> None:
    with pytest.raises(BuildFailed, match="false failed with exit code 1: no output"):
        process.run(["false"], tmp_path / "log")


def test_full_disk_is_said_plainly(tmp_path: Path) -> None:
    with pytest.raises(CannotBuild, match="no space left on the disk"):
        process.run(shell("echo 'fatal error: error writing to x.o: No space left on device'; exit 1"), tmp_path / "log")


def test_killed_program_names_the_signal(tmp_path: Path) -> None:
    with pytest.raises(BuildFailed, match="was killed by SIGKILL"):
        process.run(shell("kill -9 $$"), tmp_path / "log")


def test_missing_program(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match="cannot start /no/such/program: No such file or directory"):
        process.run(["/no/such/program"], tmp_path / "log")


def test_progress_comes_from_ninja_status_lines_only(tmp_path: Path) -> None:
    seen = []
    process.run(shell("echo '[1/4] a'; echo 'text [9/9] b'; echo '[4/4] c'"), tmp_path / "log", on_progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 4), (4, 4)]


def test_capture_returns_stdout_and_logs_both(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert process.capture(shell("echo out; echo err >&2"), log) == "out\n"
    assert log.read_text().splitlines()[1:] == ["err", "out"]


def test_capture_failure_finds_the_error_on_stderr(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match="error: bad model"):
        process.capture(shell("echo '[]'; echo 'error: bad model' >&2; exit 1"), tmp_path / "log")


def test_capture_gives_up_after_its_time(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    started = time.monotonic()
    with pytest.raises(CannotRun, match="did not finish within 0.5 s"):
        process.capture(shell(f"sleep 60 & echo $! > {pid_file}; wait"), timeout=0.5)
    assert time.monotonic() - started < 30
    assert_ends(int(pid_file.read_text()))


def test_an_exception_stops_the_whole_process_group(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        process.run(shell(f"sleep 60 & echo $! > {pid_file}; echo '[1/2] x'; wait"), tmp_path / "log", on_progress=interrupt)
    assert_ends(int(pid_file.read_text()))


def test_ctrl_c_on_the_tool_stops_what_it_runs(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    code = (
        f"from pathlib import Path; from wavesmith import process; process.run(['sh', '-c', 'echo $$ > {pid_file}; sleep 60'], Path({str(tmp_path / 'log')!r}))"
    )
    tool = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while not (pid_file.exists() and pid_file.read_text().strip()) and time.monotonic() < deadline:
        time.sleep(0.05)
    tool.send_signal(signal.SIGINT)
    assert tool.wait(30) != 0
    assert_ends(int(pid_file.read_text()))


def assert_ends(pid: int) -> None:
    """The process is gone (or a zombie that nobody has collected) within ten seconds."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (ProcessLookupError, FileNotFoundError):
            return
        if state == "Z":
            return
        time.sleep(0.05)
    raise AssertionError(f"process {pid} still runs")
