"""Gets llama.cpp trees: a supported version, an upstream tag or commit, or a folder that is there already."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from . import cache, download, git, lock, patching, sdist
from .errors import BadInput, CannotBuild, DownloadFailed, HashMismatch

VIAS = ("auto", "git", "sdist")
_LEFT_OUT = {".git", "build", "__pycache__"}

OnProgress = download.OnProgress
Say = Callable[[str], None]


@dataclass(frozen=True)
class Source:
    """A tree on disk. `commit` is 40 hexadecimal digits, or "tree-" and a hash of the files where it is not known."""

    path: Path
    version: str  # of the package that holds it, the tag, or "local"
    commit: str
    via: str  # "git", "sdist" or "folder"
    build_number: int = 0  # of a tag bNNNN, for -DLLAMA_BUILD_NUMBER


@dataclass(frozen=True)
class Identity:
    """What a specification names, known without fetching it. `spec` asks `get` for the same tree again."""

    spec: str
    version: str
    commit: str
    entry: lock.Version | None = None
    folder: Path | None = None


def resolve(spec: str | None = None) -> Identity:
    """What VERSION, TAG, COMMIT or DIR stands for; None is the newest supported version. BadInput where it is none of them.

    The commit of a tag is the tag itself until it is fetched.
    """
    locked = lock.load()
    entry = locked.newest if spec is None else locked.by_version(spec)
    if spec is not None and entry is None and re.fullmatch(r"[0-9a-f]{7,40}", spec):
        entry = locked.by_commit(spec)
    if entry is not None:
        return Identity(entry.version, entry.version, entry.commit, entry)
    if spec and Path(spec).is_dir():
        return _identify_folder(Path(spec).resolve())
    if re.fullmatch(r"b\d+", spec):
        return Identity(spec, spec, spec)
    if re.fullmatch(r"[0-9a-f]{7,40}", spec):
        return Identity(spec, spec[:9], spec)
    raise BadInput(f"{spec or repr(spec)}: not a supported llama.cpp version ({locked.names()}), a tag (b1234), a commit or a folder")


def get(spec: str | None = None, via: str = "auto", *, fresh: bool = False, on_progress: OnProgress | None = None, say: Say | None = None) -> Source:
    """The tree that `spec` names (see `resolve`), fetched into the cache's `sources` folder where it is not there.

    via: "git", "sdist", or "auto" for git where the upstream repository answers and the sdist where it does not.
    fresh: fetch again even if it is there. on_progress: told (bytes done, bytes in all) of a download in place of a bar.
    say: told what is going on, one line each. Raises BadInput, DownloadFailed, HashMismatch.
    """
    import filelock

    if via not in VIAS:
        raise BadInput(f"no way to fetch called {via}: {', '.join(VIAS)}")
    say = say or (lambda line: None)
    identity = resolve(spec)
    if identity.folder is not None:
        return Source(identity.folder, identity.version, identity.commit, "folder")
    if identity.entry is None:
        say(f"warning: {identity.spec} is not a supported version of llama.cpp ({lock.load().names()}); the patch may not apply")
    folder = cache.folder("sources")
    with filelock.FileLock(folder / f"{identity.version}.lock"):
        found = None if fresh else _cached(folder, identity, via)
        if found is not None:
            return found
        return _fetch(folder, identity, via, on_progress, say)


def _identify_folder(folder: Path) -> Identity:
    patching.check_tree(folder)
    marker = _read_marker(folder)
    entry = lock.load().by_version(marker.get("version", ""))
    if entry is not None and marker["commit"] == entry.commit:
        return Identity(str(folder), entry.version, entry.commit, entry, folder)
    return Identity(str(folder), "local", f"tree-{_content_hash(folder)}", None, folder)


def warnings(identity: Identity) -> list[str]:
    """What the user should know about a tree of their own before it is built: changes that no commit holds."""
    if identity.folder is None:
        return []
    changed = git.uncommitted(identity.folder)
    return [f"{identity.folder} has {changed} uncommitted change(s), which are part of this build"] if changed else []


def _content_hash(folder: Path) -> str:
    """Twelve hexadecimal digits over the names and contents of a tree's files."""
    import hashlib

    digest = hashlib.sha256()
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - _LEFT_OUT)
        for name in sorted(set(names) - _LEFT_OUT):
            path = Path(parent) / name
            if path.is_file():
                content = path.read_bytes()
                digest.update(f"{path.relative_to(folder).as_posix()}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:12]


def _cached(folder: Path, identity: Identity, via: str) -> Source | None:
    """A tree fetched before, if there is one that came the wanted way."""
    for path in sorted(folder.glob(f"{identity.version}-*")):
        marker = _read_marker(path)
        if path.is_dir() and marker.get("spec") == identity.spec and via in ("auto", marker["via"]) and (path / "ggml/src").is_dir():
            return _source(path, marker)
    return None


def _fetch(folder: Path, identity: Identity, via: str, on_progress: OnProgress | None, say: Say) -> Source:
    repository = lock.load().repository
    reason = "" if via == "sdist" else git.answers(repository)
    if via == "sdist" or (via == "auto" and reason):
        if identity.entry is None:
            because = f" ({reason})" if reason else ""
            raise DownloadFailed(f"{identity.spec} can only be fetched with git{because}; supported without it: {lock.load().names()}")
        if reason:
            say(f"git cannot be used ({reason}), fetching the sdist")
        return _fetch_sdist(folder, identity, on_progress, say)
    if reason:
        raise DownloadFailed(f"cannot fetch {identity.spec} with git: {reason}")
    return _fetch_git(folder, identity, repository, say)


def _fetch_sdist(folder: Path, identity: Identity, on_progress: OnProgress | None, say: Say) -> Source:
    entry = identity.entry
    archive = download.fetch_from_index(lock.load().project, entry.sdist, entry.sha256, entry.size, on_progress=on_progress)
    path = folder / f"{entry.version}-{entry.commit[:9]}-{entry.sha256[:12]}"
    say(f"unpacking {archive.name}")
    with _new_folder(path) as partial:
        sdist.extract_tree(archive, partial)
        patching.check_tree(partial)
    return _finish(path, identity, entry.commit, "sdist")


def _fetch_git(folder: Path, identity: Identity, repository: str, say: Say) -> Source:
    say(f"fetching {identity.spec} with git")
    revision = identity.commit
    path = folder / f"{identity.version}-{revision[:9]}-git"
    with _new_folder(path) as partial:
        partial.rmdir()
        commit = git.checkout(repository, revision, partial)
        if re.fullmatch(r"[0-9a-f]{7,40}", revision) and not commit.startswith(revision):
            raise HashMismatch(f"{identity.spec}: git fetched commit {commit}, expected {revision}")
        patching.check_tree(partial)
    return _finish(path, identity, commit, "git")


@contextmanager
def _new_folder(path: Path):
    """A folder beside `path` that takes its place when the block ends well, and vanishes otherwise."""
    partial = path.with_name(f".{path.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        yield partial
        _marker_path(path).unlink(missing_ok=True)
        shutil.rmtree(path, ignore_errors=True)
        partial.rename(path)
    except OSError as error:
        if error.errno in (28, 122):  # ENOSPC, EDQUOT
            raise CannotBuild(f"no space left for a llama.cpp tree (about 200 MB) in {path.parent}") from None
        raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _finish(path: Path, identity: Identity, commit: str, via: str) -> Source:
    """Writes the marker beside the tree, which says that the tree is whole; the tree itself stays pristine."""
    marker = {"spec": identity.spec, "version": identity.version, "commit": commit, "via": via}
    partial = path.with_name(f".{path.name}.json.partial")
    partial.write_text(json.dumps(marker, indent=2) + "\n", encoding="utf-8")
    os.replace(partial, _marker_path(path))
    return _source(path, marker)


def _source(path: Path, marker: dict) -> Source:
    tag = re.fullmatch(r"b(\d+)", marker["version"])
    return Source(path, marker["version"], marker["commit"], marker["via"], int(tag[1]) if tag else 0)


def _marker_path(path: Path) -> Path:
    return path.with_name(path.name + ".json")


def _read_marker(path: Path) -> dict:
    try:
        marker = json.loads(_marker_path(path).read_text(encoding="utf-8"))
        return marker if isinstance(marker, dict) and asdict(Source(path, marker["version"], marker["commit"], marker["via"])) else {}
    except (OSError, ValueError, KeyError):
        return {}
