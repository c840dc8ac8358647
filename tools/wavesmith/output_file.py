"""Files that the user names for a result: written whole or not at all, but never in place of a device, a pipe or a link."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from .errors import BadInput
from .gguf_file import printable

_REFUSED = (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError)


def check_writable(path: Path) -> None:
    """BadInput when a result could not be written to `path`: better now than after minutes of work."""
    status = _status(path)
    if status is not None and stat.S_ISDIR(status.st_mode):
        raise BadInput(f"cannot write {printable(path)}: it is a folder")
    if status is not None and not stat.S_ISREG(status.st_mode):
        if not os.access(path, os.W_OK):
            raise BadInput(f"cannot write {printable(path)}: no permission for it")
        return
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise BadInput(f"cannot write {printable(path)}: its folder does not exist")
    if not os.access(folder, os.W_OK):
        raise BadInput(f"cannot write {printable(path)}: no permission for its folder")


def write_json(path: Path, content: object) -> None:
    """`content` as JSON. BadInput when it cannot be written there."""
    import json

    write(path, (json.dumps(content, indent=2, allow_nan=False) + "\n").encode())


def write(path: Path, content: bytes) -> None:
    """Links are followed. A regular file is replaced as a whole, keeping its mode; what is none is written to as it is.

    BadInput when it cannot be written there.
    """
    status = _status(path)
    try:
        stream = None if status is None else _standard_stream(status)
        if stream is not None:  # also where it is redirected to a regular file: what was printed there must stay
            _write_stream(stream, content)
        elif status is not None and not stat.S_ISREG(status.st_mode):
            path.write_bytes(content)
        else:
            _replace(Path(os.path.realpath(path)), content, status)
    except _REFUSED as error:
        raise BadInput(f"cannot write {printable(path)}: {error.strerror}") from None


def _status(path: Path) -> os.stat_result | None:
    """None where there is nothing, or a link to nothing."""
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot write {printable(path)}: {getattr(error, 'strerror', None) or error}") from None


def _standard_stream(status: os.stat_result) -> int | None:
    """1 or 2 where the file is what our stdout or stderr goes to."""
    for descriptor in (1, 2):
        try:
            if os.path.samestat(status, os.fstat(descriptor)):
                return descriptor
        except OSError:
            continue
    return None


def _write_stream(descriptor: int, content: bytes) -> None:
    import sys

    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    with open(descriptor, "wb", closefd=False) as file:
        file.write(content)


def _replace(path: Path, content: bytes, status: os.stat_result | None) -> None:
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with open(part, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if status is not None:
            os.chmod(part, stat.S_IMODE(status.st_mode))
        os.replace(part, path)
    except OSError as error:
        error.filename = error.filename or str(path)
        raise
    finally:
        part.unlink(missing_ok=True)
