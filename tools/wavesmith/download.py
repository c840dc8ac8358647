"""Fetches pinned files from the user's package index into the cache: resumed, checked, shared between processes."""

from __future__ import annotations

import errno
import hashlib
import http.client
import os
import urllib.error
from collections.abc import Callable
from pathlib import Path

from . import cache, package_index, progress_bar, web
from .errors import CannotBuild, HashMismatch
from .package_index import Index

OnProgress = Callable[[int, "int | None"], None]  # bytes done, bytes in all if known
_CHUNK = 1 << 18


def fetch_from_index(
    project: str,
    wanted: str | Callable[[str], bool],
    sha256: str,
    size: int | None = None,
    *,
    on_progress: OnProgress | None = None,
    index: Index | None = None,
) -> Path:
    """A file of a project in the package index, in the cache's `downloads` folder.

    wanted: its name, or a function that accepts the name. sha256: 64 hexadecimal digits. size: bytes, if known.
    on_progress: told (bytes done, bytes in all); without it a bar is shown on stderr. index: default is the user's pip's.
    HashMismatch where the bytes are not the pinned ones (they are thrown away), DownloadFailed where there are none.
    """
    import filelock

    folder = cache.folder("downloads")
    name = wanted if isinstance(wanted, str) else f"{package_index.normalise(project)}-{sha256[:16]}"
    with filelock.FileLock(folder / f"{name}.lock"):
        target = folder / name
        if target.is_file() and _sha256(target) == sha256:
            return target
        target.unlink(missing_ok=True)
        index = index or package_index.from_pip()
        listed = package_index.find(index, project, wanted)
        if listed.sha256 and listed.sha256 != sha256:
            raise HashMismatch(f"{listed.name}: the index lists sha256 {listed.sha256}, expected {sha256}")
        with progress_bar.of_bytes(listed.name, on_progress) as report:
            _fetch(index.client, _address(index, listed), target, sha256, size, report)
        return target


def _address(index: Index, listed: package_index.Listed) -> str:
    for base in index.urls:
        address = web.with_credentials_of(listed.url, base)
        if address != listed.url:
            return address
    return listed.url


def _fetch(client: web.Client, url: str, target: Path, sha256: str, size: int | None, report: OnProgress) -> None:
    part = target.with_name(target.name + ".part")
    resumed = part.exists()
    _fill(client, url, part, size, report)
    found = _sha256(part)
    if found != sha256 and resumed:
        # The old part may have been of other bytes.
        part.unlink()
        _fill(client, url, part, size, report)
        found = _sha256(part)
    if found != sha256:
        part.unlink()
        raise HashMismatch(f"{target.name}: sha256 {found}, expected {sha256}; the file was thrown away")
    os.replace(part, target)


def _fill(client: web.Client, url: str, part: Path, size: int | None, report: OnProgress) -> None:
    """Downloads until `part` is whole, continuing what is there and trying again as long as something comes."""
    web.retrying(url, lambda: _attempt(client, url, part, size, report), measure=lambda: _length(part))


def _attempt(client: web.Client, url: str, part: Path, size: int | None, report: OnProgress) -> None:
    start = _length(part)
    try:
        with client.open(url, {"Range": f"bytes={start}-"} if start else {}) as response:
            if start and not (response.status == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {start}-")):
                start = 0  # the server sends the whole file
            length = response.headers.get("Content-Length")
            total = start + int(length) if length else size
            _save(response, part, start, total, report)
    except urllib.error.HTTPError as error:
        if error.code != 416 or not start:
            raise
        # The part is as long as the file, or longer.
        if start != size:
            part.unlink()
            raise ConnectionError("the server cannot continue the download") from None


def _save(response, part: Path, start: int, total: int | None, report: OnProgress) -> None:
    done = start
    try:
        with open(part, "r+b" if start else "wb") as file:
            file.seek(start)
            while chunk := response.read(_CHUNK):
                file.write(chunk)
                done += len(chunk)
                report(done, total)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise CannotBuild(f"no space left for {part.name.removesuffix('.part')} ({total or 'unknown'} bytes) in {part.parent}") from None
        raise
    if total is not None and done < total:
        raise http.client.IncompleteRead(b"", total - done)


def _length(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
