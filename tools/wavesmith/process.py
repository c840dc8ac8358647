"""Runs other programs: output into a log file, the whole process group stopped when we stop, failures as one line.

Success is decided by exit status alone. The log is searched only for a line worth showing to a person.
"""

from __future__ import annotations

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

OnProgress = Callable[[int, int], None]

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
) -> None:
    """Run `command` with stdout and stderr appended to `log`.

    on_progress: called with (steps done, steps in all) for every line that starts with ninja's `[done/total] `
        (the environment must set NINJA_STATUS to NINJA_STATUS).
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
        raise _describe_failure(what or Path(command[0]).name, status, log, start, failure)


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

    CMake puts the text of an error on the lines after `CMake Error at FILE:LINE`, so the first of those is added.
    """
    with open(log, "rb") as file:
        file.seek(start)
        lines = [line.decode(errors="replace").strip() for line in file]
    lines = [line for line in lines if line and not line.startswith("$ ")]
    for index, line in enumerate(lines):
        if _ERROR_LINE.search(line):
            follows = lines[index + 1] if line.startswith("CMake Error") and index + 1 < len(lines) else ""
            return f"{line} {follows}".strip()
    return lines[-1] if lines else None


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


def _describe_failure(what: str, status: int, log: Path | None, start: int, failure: type[WavesmithError]) -> WavesmithError:
    ending = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"failed with exit code {status}"
    if log is None:
        return failure(f"{what} {ending}")
    line = first_error_line(log, start)
    if line and _mentions_full_disk(log, start):
        return CannotBuild(f"{what} {ending}: no space left on the disk (log: {log})")
    return failure(f"{what} {ending}: {line or 'no output'} (log: {log})")


def _mentions_full_disk(log: Path, start: int) -> bool:
    with open(log, "rb") as file:
        file.seek(start)
        return b"No space left on device" in file.read()
