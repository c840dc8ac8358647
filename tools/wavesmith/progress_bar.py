"""One bar for a download, on stderr: transient on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_PLAIN_INTERVAL = 10.0  # seconds

Report = Callable[[int, "int | None"], None]


@contextmanager
def of_bytes(title: str, report: Report | None = None) -> Iterator[Report]:
    """Yields a function of (bytes done, bytes in all or None). A `report` that is given is used in place of a bar."""
    if report is not None:
        yield report
    elif sys.stderr.isatty():
        yield from _bar(title)
    else:
        yield from _lines(title)


def _bar(title: str) -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _lines(title: str) -> Iterator[Report]:
    shown = time.monotonic()
    print(f"fetching {title}", file=sys.stderr, flush=True)

    def report(done: int, total: int | None) -> None:
        nonlocal shown
        if time.monotonic() - shown >= _PLAIN_INTERVAL:
            shown = time.monotonic()
            print(f"    {done >> 20}{f' of {total >> 20}' if total else ''} MiB", file=sys.stderr, flush=True)

    yield report
