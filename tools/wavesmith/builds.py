"""The builds in the cache folder: which there are, which one is used, and how one is removed."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from . import build_lock, cache
from .build_plan import MANIFEST
from .built import Build, open_folder
from .errors import BadInput, CannotRun

FINISHED, UNFINISHED, RUNNING = "finished", "unfinished", "being made"
_PLAN = "plan.json"  # every build folder has it, from its first moment on
_DEFAULT = "default.json"
_REMOVED = ".removed-"


@dataclass(frozen=True)
class Entry:
    """One folder in `<cache>/builds`. `made` is when it was finished, else begun, in seconds since 1970."""

    name: str
    prefix: Path
    state: str
    target: str
    llama_version: str
    made: float
    is_default: bool

    @property
    def size(self) -> int:
        """Bytes on disk; reads every folder of the build."""
        return sum(entry.stat(follow_symlinks=False).st_blocks * 512 for entry in _walk(self.prefix))


def entries() -> list[Entry]:
    """All builds, the newest first."""
    folder = cache.root() / "builds"
    prefixes = [path.parent for path in folder.glob(f"*/{_PLAN}") if not path.parent.name.startswith(".")]
    chosen = _chosen()
    found = [_entry(prefix, chosen) for prefix in prefixes]
    return sorted(found, key=lambda entry: (-entry.made, entry.name))


def find(name: str | None = None) -> Build:
    """The build called `name`: its name, a beginning of it that only one build has, or its folder. Without a name the one that `use`
    chose, else the newest. BadInput for a name that fits none or several, CannotRun where there is no finished build."""
    if name is None:
        return _usual()
    prefix = Path(name) if _is_path(name) else named(name).prefix
    build = open_folder(prefix.absolute())
    if build is None:
        raise CannotRun(f"{prefix} holds no finished build; `wavesmith build` finishes one that was interrupted")
    return build


def named(name: str) -> Entry:
    """The entry with that name or beginning; BadInput, with what there is, for none or several."""
    found = entries()
    fitting = [entry for entry in found if entry.name == name] or [entry for entry in found if name and entry.name.startswith(name)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise BadInput(f"{len(fitting)} builds begin with {name}: {', '.join(entry.name for entry in fitting)}")
    raise BadInput(f"no build is called {name}; there {_are([entry.name for entry in found])}")


def use(name: str) -> Build:
    """Make a finished build the one that `find` returns without a name."""
    from .build import write_json

    build = find(name)
    cache.folder("builds")
    write_json(_default_file(), {"prefix": str(build.prefix.absolute())})
    return build


def remove(name: str) -> Entry:
    """Remove a build in the cache folder. BadInput where it is being made or one of its programs runs."""
    entry = named(name)
    if entry.prefix.is_symlink():
        raise BadInput(f"{entry.prefix} is a link; remove it yourself")
    with build_lock.tried(entry.prefix) as free:
        if not free:
            raise BadInput(f"{entry.name} is being made by another process; stop that first")
        running = _running(entry.prefix)
        if running:
            raise BadInput(f"{entry.name} is in use by process {', '.join(map(str, running))}; stop it first")
        _remove_folder(entry.prefix)
    if entry.is_default:
        _default_file().unlink(missing_ok=True)
    return entry


def _remove_folder(prefix: Path) -> None:
    """Renamed first: a removal that is interrupted leaves no folder that looks like a build. Leftovers go with the next one."""
    gone = prefix.with_name(f"{_REMOVED}{os.getpid()}-{prefix.name}")
    prefix.rename(gone)
    for leftover in prefix.parent.glob(f"{_REMOVED}*"):
        shutil.rmtree(leftover, ignore_errors=True)


def _usual() -> Build:
    chosen = _chosen()
    build = open_folder(chosen) if chosen else None
    if build:
        return build
    for entry in entries():
        build = open_folder(entry.prefix)
        if build:
            return build
    raise CannotRun("there is no finished build; make one with: wavesmith build")


def _entry(prefix: Path, chosen: Path | None) -> Entry:
    build = open_folder(prefix)
    try:
        plan = json.loads((prefix / _PLAN).read_text(encoding="utf-8"))
        target, version = str(plan["target"]), str(plan["llama_version"])
    except (OSError, ValueError, KeyError, TypeError):
        target, version = "?", "?"
    with build_lock.tried(prefix) as free:
        state = RUNNING if not free else FINISHED if build else UNFINISHED
    made = (prefix / (MANIFEST if build else _PLAN)).stat().st_mtime
    return Entry(prefix.name, prefix, state, target, version, made, chosen == prefix)


def _default_file() -> Path:
    return cache.root() / "builds" / _DEFAULT


def _chosen() -> Path | None:
    try:
        return Path(json.loads(_default_file().read_text(encoding="utf-8"))["prefix"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _is_path(name: str) -> bool:
    return os.sep in name or name in (".", "..")


def _are(names: list[str]) -> str:
    return f"are: {', '.join(names)}" if names else "is none"


def _running(prefix: Path) -> list[int]:
    """Processes whose program lies below the folder; of other users' processes nothing can be seen."""
    root, found = str(prefix.resolve()) + os.sep, []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            program = os.readlink(process / "exe")
        except OSError:
            continue
        if program.startswith(root):
            found.append(int(process.name))
    return sorted(found)


def _walk(folder: Path):
    with os.scandir(folder) as listing:
        for entry in listing:
            yield entry
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(Path(entry.path))
