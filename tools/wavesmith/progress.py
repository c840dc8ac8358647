"""Progress of long commands, on stderr: rich bars on a terminal, plain lines elsewhere. One log file per step."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import cache

_PLAIN_INTERVAL = 20.0  # seconds between two lines of one step when there is no terminal


class Step:
    """One running step: `log` is its file, `update` moves its bar, `note` is shown when it ends."""

    def __init__(self, title: str, log: Path, unit: str) -> None:
        self.title = title
        self.log = log
        self.note = ""
        self._unit = unit
        self._started = self._shown = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def update(self, done: int, total: int | None = None) -> None:
        """`done` of `total` units; `total` None when it is not known."""
        if time.monotonic() - self._shown >= _PLAIN_INTERVAL:
            self._shown = time.monotonic()
            _say(f"    {done:,}{f' of {total:,}' if total else ''} {self._unit}".rstrip())

    def write(self, line: str) -> None:
        """Append a line to the log."""
        with open(self.log, "a", encoding="utf-8") as file:
            file.write(line + "\n")


class _BarStep(Step):
    def __init__(self, title: str, log: Path, unit: str, bar, task) -> None:
        super().__init__(title, log, unit)
        self._bar, self._task = bar, task

    def update(self, done: int, total: int | None = None) -> None:
        self._bar.update(self._task, completed=done, total=total)


class _QuietStep(Step):
    def update(self, done: int, total: int | None = None) -> None:
        pass


class Steps:
    """The steps of one command, numbered from 1; their logs go to `logs/TIME-NAME-PID/NN-step.log` in the cache folder."""

    def __init__(self, name: str, *, quiet: bool = False) -> None:
        self.name = name
        self.quiet = quiet
        self.count = 0
        self._folder: Path | None = None

    @property
    def folder(self) -> Path:
        if self._folder is None:
            self._folder = cache.folder("logs") / f"{time.strftime('%Y%m%d-%H%M%S')}-{self.name}-{os.getpid()}"
            self._folder.mkdir(parents=True, exist_ok=True)
        return self._folder

    @contextmanager
    def step(self, title: str, *, unit: str = "", own_bar: bool = False) -> Iterator[Step]:
        """Run one step: `with steps.step("configure") as step: ...`.

        unit: what `update` counts; "bytes" shows sizes and a rate. own_bar: the step draws a bar itself, so none is drawn here.
        """
        self.count += 1
        log = self.folder / f"{self.count:02d}-{re.sub(r'[^a-z0-9]+', '-', title.lower()).strip('-')}.log"
        label = f"{self.count:2d}. {title}"
        if self.quiet:
            yield _QuietStep(title, log, unit)
        elif sys.stderr.isatty() and not own_bar:
            yield from self._with_bar(label, log, unit)
        else:
            yield from self._plain(label, log, unit)

    def _plain(self, label: str, log: Path, unit: str) -> Iterator[Step]:
        _say(f"{label} ...")
        step = Step(label, log, unit)
        yield step
        _say(_ending(label, step))

    def _with_bar(self, label: str, log: Path, unit: str) -> Iterator[Step]:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        console = Console(stderr=True)
        amount = DownloadColumn() if unit == "bytes" else MofNCompleteColumn()
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), amount, TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True) as bar:
            step = _BarStep(label, log, unit, bar, bar.add_task(label, total=None))
            yield step
        console.print(_ending(label, step), highlight=False, markup=False)


def _ending(label: str, step: Step) -> str:
    note = f"{step.note}, " if step.note else ""
    return f"{label}: {note}{step.seconds:.1f} s"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def print_table(table) -> None:
    """Print a rich renderable on stdout: at the terminal's width, or unwrapped when stdout is a file or pipe."""
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    with console.capture() as captured:
        console.print(table)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))
