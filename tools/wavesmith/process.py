"""Runs other programs: output into a log file, the whole process group stopped when we stop, failures as one line.

Success is decided by exit status alone. The log is searched only for a line worth showing to a person.
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from .errors import BuildFailed, CannotBuild, CannotRun, WavesmithError
from .known_failures import Explanation

OnProgress = Callable[[int, int], None]
Explain = Callable[[str], "Explanation | None"]  # what the output of a failed program means, if that is known

NINJA_STATUS = "[%f/%t] "
_NINJA_PROGRESS = re.compile(rb"^\[(\d+)/(\d+)\] ")
_ERROR_LINE = re.compile(
    r"(^|[\s:])(fatal )?error( [A-Z]+\d+)?:|^CMake Error|undefined reference|multiple definition|GGML_ASSERT|Traceback|^error\b|failed to|[Ee]rror loading",
)
_GRACE_SECONDS = 5.0
_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(
    command: Sequence[str | Path],
    log: Path,
    *,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    on_progress: OnProgress | None = None,
    failure: type[WavesmithError] = BuildFailed,
    what: str | None = None,
    explain: Explain | None = None,
) -> None:
    """Run `command` with stdout and stderr appended to `log`.

    on_progress: called with (steps done, steps in all) for every line that starts with ninja's `[done/total] `
        (the environment must set NINJA_STATUS to NINJA_STATUS).
    explain: asked for the cause of a failure; its error class then takes the place of `failure`.
    Raises `failure` naming `what`, the log and its first error line when the exit status is not 0, CannotBuild when the
    disk is full, CannotRun when the program cannot be started.
    """
    with open(log, "ab") as file:
        start = file.tell()
        file.write(f"$ {shlex.join(map(str, command))}\n".encode())
        file.flush()
        with _running(command, cwd, environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            for line in process.stdout:
                file.write(line)
                file.flush()
                progress = _NINJA_PROGRESS.match(line) if on_progress else None
                if progress:
                    on_progress(int(progress[1]), int(progress[2]))
            status = process.wait()
    if status != 0:
        raise _describe_failure(what or Path(command[0]).name, status, log, start, failure, explain)


def capture(
    command: Sequence[str | Path],
    log: Path | None = None,
    *,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    timeout: float | None = None,
    failure: type[WavesmithError] = CannotRun,
    what: str | None = None,
) -> str:
    """Run `command` and return its stdout; stderr is appended to `log`. Fails as `run` does, and after `timeout` seconds."""
    with open(log or os.devnull, "ab") as file:
        start = file.tell() if log else 0
        file.write(f"$ {shlex.join(map(str, command))}\n".encode())
        file.flush()
        try:
            with _running(command, cwd, environment, stdout=subprocess.PIPE, stderr=file) as process:
                output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            raise failure(f"{what or Path(command[0]).name} did not finish within {timeout:g} s" + (f" (log: {log})" if log else "")) from None
        if log:
            file.write(output)
    if process.returncode != 0:
        raise _describe_failure(what or Path(command[0]).name, process.returncode, log, start, failure)
    return output.decode(errors="replace")


def first_error_line(log: Path, start: int = 0) -> str | None:
    """The first line after byte `start` of the log that looks like an error, else its last line; None for an empty log.

    CMake puts the text of an error on the lines after `CMake Error at FILE:LINE`; its first paragraph is added.
    """
    lines = [line.strip() for line in _output(log, start).splitlines() if not line.startswith("$ ")]
    for index, line in enumerate(lines):
        if _ERROR_LINE.search(line):
            return " ".join([line, *_paragraph(lines[index + 1 :])]) if line.startswith("CMake Error") else line
    return next((line for line in reversed(lines) if line), None)


def _paragraph(lines: list[str]) -> list[str]:
    return list(itertools.takewhile(bool, itertools.dropwhile(lambda line: not line, lines)))[:4]


@contextmanager
def _running(
    command: Sequence[str | Path],
    cwd: Path | None,
    environment: Mapping[str, str] | None,
    **streams: object,
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program in a process group of its own; any exception inside the block stops the whole group."""
    release = _hold_signals()
    try:
        process = subprocess.Popen(
            [str(part) for part in command],
            cwd=cwd,
            env=dict(environment) if environment is not None else None,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            **streams,
        )
    except OSError as error:
        release()
        raise CannotRun(f"cannot start {command[0]}: {error.strerror}") from error
    try:
        release()
        yield process
    except BaseException:
        _stop(process)
        raise


def _hold_signals() -> Callable[[], None]:
    """Put off Ctrl-C and termination until the returned function is called.

    One that came while a program is being started would leave it running with nobody knowing its number.
    """
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    arrived: list[int] = []
    previous = {number: signal.signal(number, lambda number, _frame: arrived.append(number)) for number in _STOPPING}

    def release() -> None:
        for number, handler in previous.items():
            signal.signal(number, handler)
        for number in arrived:
            signal.raise_signal(number)

    return release


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the process and everything it started: a request first, then force."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            continue
    process.wait()
    if process.stdout:
        process.stdout.close()


def _describe_failure(what: str, status: int, log: Path | None, start: int, failure: type[WavesmithError], explain: Explain | None = None) -> WavesmithError:
    ending = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"failed with exit code {status}"
    if log is None:
        return failure(f"{what} {ending}")
    output = _output(log, start)
    known = explain(output) if explain else None
    if known:
        return known.error(f"{what} {ending}: {_shown(first_error_line(log, start), known.line)}; {known.text} (log: {log})")
    if "No space left on device" in output:
        return CannotBuild(f"{what} {ending}: no space left on the disk (log: {log})")
    return failure(f"{what} {ending}: {first_error_line(log, start) or 'no output'} (log: {log})")


def _shown(first: str | None, telling: str) -> str:
    """The first error, and the line that tells its cause where that is another one."""
    if not first or first in telling:
        return telling
    return first if telling in first else f"{first} ... {telling}"


def _output(log: Path, start: int) -> str:
    """What was written to the log since byte `start`."""
    with open(log, "rb") as file:
        file.seek(start)
        return file.read().decode(errors="replace")
