"""One process at a time per build folder, on this machine and on file systems that several machines share."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path

from . import cache
from .progress import Steps


def path(prefix: Path) -> Path:
    """The lock file of a build folder; in the cache folder, since the build folder itself may be removed."""
    name = hashlib.sha256(str(prefix.absolute()).encode()).hexdigest()[:16]
    return cache.folder("builds") / f".{name}.lock"


@contextlib.contextmanager
def held(prefix: Path, steps: Steps) -> Iterator[None]:
    """Hold the lock; wait for another process that has it, and say so."""
    from filelock import FileLock, Timeout

    lock = FileLock(path(prefix))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        with steps.step("wait for another process that makes this build"):
            lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def tried(prefix: Path) -> Iterator[bool]:
    """Whether the lock could be taken at once; it is held inside the block if so."""
    from filelock import FileLock, Timeout

    lock = FileLock(path(prefix))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()
