"""Replaces several files as one step: either all of them are new afterwards or none is."""

from __future__ import annotations

import os
from pathlib import Path

Changes = dict[Path, "tuple[bytes | None, bytes | None]"]  # path -> (content now, content wanted); None: no file


def replace_all(changes: Changes) -> None:
    """Writes all changes. On any failure, Ctrl-C included, every file has its old content again and the error goes on."""
    staged: dict[Path, Path] = {}
    done: list[Path] = []
    try:
        for path, (_, new) in changes.items():
            if new is not None:
                staged[path] = _stage(path, new)
        for path, (_, new) in changes.items():
            done.append(path)
            _put(path, staged.get(path))
    except BaseException:
        for path in done:
            old = changes[path][0]
            _put(path, None if old is None else _stage(path, old))
        raise
    finally:
        for temporary in staged.values():
            temporary.unlink(missing_ok=True)


def _stage(path: Path, content: bytes) -> Path:
    """Writes `content` beside `path`, with the mode of the file it will replace."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            os.chmod(temporary, path.stat().st_mode & 0o7777)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename = str(path)  # a failed write names no file by itself
        raise
    return temporary


def _put(path: Path, temporary: Path | None) -> None:
    if temporary is None:
        path.unlink(missing_ok=True)
    else:
        os.replace(temporary, path)
