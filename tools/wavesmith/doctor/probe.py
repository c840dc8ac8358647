"""Reads files, lists folders and runs tools, and records every answer; nothing else in the doctor touches the machine.

`Record` is what was read. `Probe` answers from a record alone (a capture); `SystemProbe` asks this machine, adds the
answer to the record and gives it back redacted. Whatever is not in a record is missing, for both.
"""

from __future__ import annotations

import fnmatch
import grp
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field
from pathlib import Path

from .redaction import Redactor

FILE_LIMIT = 1 << 20  # bytes read of one file
OUTPUT_LIMIT = 4 << 20  # bytes read of one stream of a tool
TOOL_TIMEOUT = 10.0  # seconds
HIP_QUERY = "hip-query"  # stands for hip_query.py run by this Python; its argument is the library


@dataclass(frozen=True)
class PathInfo:
    """`kind` is "file", "folder", "device" or "other"; `real` the path with links followed."""

    kind: str
    real: str
    group: str = ""
    mode: str = ""  # such as "0660"
    readable: bool = True
    writable: bool = False


@dataclass(frozen=True)
class ToolRun:
    """What a tool printed. `returncode` is None where it was stopped because it took too long."""

    returncode: int | None
    stdout: str = ""
    stderr: str = ""

    @property
    def timed_out(self) -> bool:
        return self.returncode is None


@dataclass
class Record:
    files: dict[str, str] = field(default_factory=dict)
    paths: dict[str, PathInfo] = field(default_factory=dict)
    tools: dict[tuple[str, ...], ToolRun] = field(default_factory=dict)
    programs: dict[str, str] = field(default_factory=dict)  # name -> path on PATH
    environment: dict[str, str] = field(default_factory=dict)
    facts: dict[str, object] = field(default_factory=dict)  # numbers, strings and lists of strings


class Probe:
    """Answers from a record."""

    live = False

    def __init__(self, record: Record | None = None) -> None:
        self.record = record or Record()
        self._known: tuple[int, list[str]] = (-1, [])

    def read(self, path: str) -> str | None:
        """Text of a file (its first MiB); None where it is missing or not readable."""
        return self.record.files.get(path)

    def stat(self, path: str) -> PathInfo | None:
        """None where nothing is at the path."""
        info = self.record.paths.get(path)
        if info is None and path in self.record.files:
            return PathInfo("file", path)
        if info is None and path in self._all_paths():
            return PathInfo("folder", path)
        return info

    def exists(self, path: str) -> bool:
        return self.stat(path) is not None

    def glob(self, pattern: str) -> list[str]:
        """Paths that match, sorted; wildcards do not cross a '/'."""
        parts = pattern.split("/")
        return [path for path in self._all_paths() if _matches(path.split("/"), parts)]

    def run(self, *argv: str, timeout: float = TOOL_TIMEOUT) -> ToolRun | None:
        """Output of a tool; None where it cannot be started."""
        return self.record.tools.get(argv)

    def start(self, *argv: str, timeout: float = TOOL_TIMEOUT) -> None:
        """Starts a tool whose output `run` will ask for, so that several run at once."""

    def real(self, path: str) -> str:
        """The path as this machine's programs know it: what was redacted for the record put back."""
        return path

    def which(self, program: str) -> str | None:
        return self.record.programs.get(program)

    def environ(self, name: str) -> str | None:
        return self.record.environment.get(name)

    def fact(self, name: str) -> object:
        """A named value of the machine: see SystemProbe._facts and `disk_free`."""
        return self.record.facts.get(name)

    def disk_free(self, path: str) -> int | None:
        """Free bytes for a new file below the path, which need not exist yet."""
        value = self.record.facts.get(f"disk_free {path}")
        return value if isinstance(value, int) else None

    def close(self) -> None:
        """Gives back what the probe holds."""

    def _all_paths(self) -> list[str]:
        """Every recorded path and the folders above it."""
        count = len(self.record.files) + len(self.record.paths)
        if self._known[0] != count:
            known: set[str] = set()
            for path in (*self.record.files, *self.record.paths):
                while path and path not in known:
                    known.add(path)
                    path = path.rpartition("/")[0]
            self._known = (count, sorted(known))
        return self._known[1]


def _matches(parts: list[str], patterns: list[str]) -> bool:
    return len(parts) == len(patterns) and all(
        part == pattern or (not part.startswith(".") or pattern.startswith(".")) and fnmatch.fnmatchcase(part, pattern)
        for part, pattern in zip(parts, patterns, strict=True)
    )


class SystemProbe(Probe):
    """Asks this machine. Every answer is redacted first; paths given to it may be redacted ones."""

    live = True

    def __init__(self) -> None:
        super().__init__()
        self._redactor = _machine_redactor()
        self._running: dict[tuple[str, ...], Future[ToolRun | None]] = {}
        self._children: list[subprocess.Popen[bytes]] = []
        self.record.facts.update(self._facts())

    def read(self, path: str) -> str | None:
        if path not in self.record.files:
            text = _read_file(self._redactor.real(path))
            if text is None:
                return None
            self.record.files[path] = self._redactor.text(text)
        return self.record.files[path]

    def stat(self, path: str) -> PathInfo | None:
        if path not in self.record.paths:
            info = _path_info(self._redactor.real(path))
            if info is None:
                return None
            self.record.paths[path] = PathInfo(**{**asdict(info), "real": self._redactor.text(info.real)})
        return self.record.paths[path]

    def glob(self, pattern: str) -> list[str]:
        import glob

        found = sorted(self._redactor.text(path) for path in glob.glob(self._redactor.real(pattern)))
        for path in found:
            self.stat(path)
        return [path for path in found if path in self.record.paths]

    def run(self, *argv: str, timeout: float = TOOL_TIMEOUT) -> ToolRun | None:
        if argv not in self.record.tools:
            self.start(*argv, timeout=timeout)
            outcome = self._running[argv].result()
            if outcome is None:
                return None
            self.record.tools[argv] = ToolRun(outcome.returncode, self._redactor.text(outcome.stdout), self._redactor.text(outcome.stderr))
        return self.record.tools[argv]

    def start(self, *argv: str, timeout: float = TOOL_TIMEOUT) -> None:
        if argv not in self._running:
            command = [self._redactor.real(word) for word in argv]
            if command[0] == HIP_QUERY:
                command = [sys.executable, "-I", str(Path(__file__).with_name("hip_query.py")), *command[1:]]
            future: Future[ToolRun | None] = Future()
            self._running[argv] = future
            # A daemon thread: a tool that hangs must not keep the doctor from leaving.
            threading.Thread(target=lambda: future.set_result(_run_tool(command, timeout, self._children)), daemon=True).start()

    def real(self, path: str) -> str:
        return self._redactor.real(path)

    def which(self, program: str) -> str | None:
        if program not in self.record.programs:
            # The environment that wavesmith is installed in brings its own cmake and ninja.
            search = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
            found = shutil.which(program, path=search)
            if found is None:
                return None
            self.record.programs[program] = self._redactor.text(os.path.abspath(found))
        return self.record.programs[program]

    def environ(self, name: str) -> str | None:
        value = os.environ.get(name)
        if value is not None:
            self.record.environment[name] = self._redactor.text(value)
        return self.record.environment.get(name)

    def disk_free(self, path: str) -> int | None:
        key = f"disk_free {path}"
        if key not in self.record.facts:
            folder = Path(self._redactor.real(path))
            while not folder.exists() and folder != folder.parent:
                folder = folder.parent
            try:
                self.record.facts[key] = shutil.disk_usage(folder).free
            except OSError:
                return None
        return super().disk_free(path)

    def close(self) -> None:
        """Stops the tools whose output nobody asked for."""
        for process in self._children:
            if process.poll() is None:
                _stop(process)

    def _facts(self) -> dict[str, object]:
        from .. import cache

        return {
            "system": os.uname().sysname,
            "kernel": os.uname().release,
            "machine": os.uname().machine,
            "python": ".".join(str(part) for part in sys.version_info[:3]),
            "virtual environment": sys.prefix != sys.base_prefix,
            "processors": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
            "superuser": os.geteuid() == 0,
            "groups": _group_names(os.getgroups()),
            "groups after login": _login_groups(),
            "cache folder": self._redactor.text(str(cache.root())),
            "module folders": [self._redactor.text(path) for path in sys.path if path.endswith(("site-packages", "dist-packages"))],
        }


# Only the groups that may own GPU device files: the others say something about the person.
_GPU_GROUPS = ("render", "video")


def _group_names(numbers: list[int]) -> list[str]:
    return [name for name in _GPU_GROUPS if (entry := _group(name)) and entry.gr_gid in numbers]


def _login_groups() -> list[str]:
    """GPU groups that the user is listed in, and so will have after the next login."""
    import pwd

    try:
        user = pwd.getpwuid(os.geteuid())
    except KeyError:
        return []
    return [name for name in _GPU_GROUPS if (entry := _group(name)) and (user.pw_name in entry.gr_mem or entry.gr_gid == user.pw_gid)]


def _group(name: str) -> grp.struct_group | None:
    try:
        return grp.getgrnam(name)
    except KeyError:
        return None


def _machine_redactor() -> Redactor:
    import pwd

    try:
        user = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        user = os.environ.get("USER", "")
    return Redactor(user, os.uname().nodename.partition(".")[0], os.path.expanduser("~").rstrip("/"))


def _read_file(path: str) -> str | None:
    """None for anything but a readable regular file: a pipe or a device could block for ever."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(FILE_LIMIT).decode("utf-8", "replace").replace("\r\n", "\n").replace("\0", "")
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _path_info(path: str) -> PathInfo | None:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    mode = status.st_mode
    kind = "folder" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "device" if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) else "other"
    group = ""
    if kind == "device":
        try:
            group = grp.getgrgid(status.st_gid).gr_name
        except KeyError:
            group = str(status.st_gid)
    return PathInfo(kind, os.path.realpath(path), group, f"{stat.S_IMODE(mode):04o}", os.access(path, os.R_OK), os.access(path, os.W_OK))


def _run_tool(command: list[str], timeout: float, children: list[subprocess.Popen[bytes]]) -> ToolRun | None:
    """Runs a tool with its output in files, so that neither a full pipe nor a grandchild holding one can block us.
    The process is added to `children`."""
    environment = {**os.environ, "LC_ALL": "C", "NO_COLOR": "1"}
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, env=environment, start_new_session=True)
        except (OSError, ValueError):
            return None
        children.append(process)
        try:
            returncode: int | None = process.wait(timeout)
        except subprocess.TimeoutExpired:
            returncode = None
            _stop(process)
        return ToolRun(returncode, _captured(stdout), _captured(stderr))


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Kills a tool and its children. One stuck inside the driver cannot be killed; it is left behind."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(1.0)
    except (OSError, subprocess.TimeoutExpired):
        return


def _captured(stream) -> str:
    stream.seek(0)
    return stream.read(OUTPUT_LIMIT).decode("utf-8", "replace").replace("\r\n", "\n").replace("\0", "")
