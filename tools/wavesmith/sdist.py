"""Takes the llama.cpp tree out of an sdist of llama-cpp-python."""

from __future__ import annotations

import gzip
import os
import tarfile
import zlib
from pathlib import Path, PurePosixPath

from .errors import DownloadFailed

_INSIDE = PurePosixPath("vendor/llama.cpp")
_CHUNK = 1 << 20


def extract_tree(archive: Path, destination: Path) -> None:
    """Writes the tree into the new folder `destination`. DownloadFailed where the archive is damaged or would write elsewhere."""
    count = 0
    try:
        with gzip.open(archive) as stream, tarfile.open(fileobj=stream, mode="r:") as tar:
            for member in tar:
                path = _path_in_tree(member)
                if path is not None:
                    _extract(tar, member, destination, path)
                    count += 1
            while stream.read(_CHUNK):  # to the end, where gzip's own checksum is
                pass
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DownloadFailed(f"{archive.name} is damaged: {error}") from None
    if count == 0:
        raise DownloadFailed(f"{archive.name} holds no {_INSIDE}")


def _path_in_tree(member: tarfile.TarInfo) -> PurePosixPath | None:
    """Where a member belongs in the tree; None for what is not part of it. DownloadFailed for a name that leaves the archive."""
    name = PurePosixPath(member.name)
    if name.is_absolute() or ".." in name.parts or "\0" in member.name or "\\" in member.name:
        raise DownloadFailed(f"refused archive member {member.name!r}: its path leads out of the archive")
    inner = name.parts[1:]
    if inner[: len(_INSIDE.parts)] != _INSIDE.parts:
        return None
    path = PurePosixPath(*inner[len(_INSIDE.parts) :])
    if path == PurePosixPath(".git"):  # points to a repository that is not part of the sdist
        return None
    return path


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, destination: Path, path: PurePosixPath) -> None:
    target = destination / path
    _check_parents(member, destination, path)
    if member.issym():
        _check_link(member, path)
    if hasattr(tarfile, "data_filter"):
        tarfile.data_filter(member, str(destination))
    if member.isdir():
        target.mkdir(parents=True, exist_ok=True)
    elif member.issym():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(member.linkname)
    elif member.isreg():
        target.parent.mkdir(parents=True, exist_ok=True)
        _write(tar, member, target)
    else:
        raise DownloadFailed(f"refused archive member {member.name!r}: neither file, folder nor symbolic link")


def _check_parents(member: tarfile.TarInfo, destination: Path, path: PurePosixPath) -> None:
    """Nothing is written through a link or over an entry that is there already."""
    for parent in path.parents:
        if (destination / parent).is_symlink():
            raise DownloadFailed(f"refused archive member {member.name!r}: it lies behind a link")
    if not member.isdir() and os.path.lexists(destination / path):
        raise DownloadFailed(f"refused archive member {member.name!r}: it is there twice")


def _check_link(member: tarfile.TarInfo, path: PurePosixPath) -> None:
    link = PurePosixPath(member.linkname)
    depth = len(path.parent.parts)
    for part in link.parts:
        depth += -1 if part == ".." else 1
        if depth < 0 or link.is_absolute():
            raise DownloadFailed(f"refused archive member {member.name!r}: it links to {member.linkname!r}, out of the tree")


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    source = tar.extractfile(member)
    left = member.size
    with open(target, "xb") as file:
        while left > 0 and (chunk := source.read(min(_CHUNK, left))):
            file.write(chunk)
            left -= len(chunk)
    if left:
        raise EOFError(f"{member.name} ends too early")
    target.chmod(0o755 if member.mode & 0o100 else 0o644)
    os.utime(target, (member.mtime, member.mtime))
