"""Saves a record as a folder of plain files, and reads it back.

capture.json     what is not a file: format version, programs on PATH, environment variables, facts, kind and access
                 rights of paths, and for each tool its command, exit status and the names of its two outputs
files/PATH       the text of each file that was read, under its own path
tools/N-NAME.*   what each tool printed: .out.txt (stdout) and .err.txt (stderr)
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict
from pathlib import Path, PurePosixPath

from ..errors import BadInput
from .probe import FILE_LIMIT, OUTPUT_LIMIT, PathInfo, Record, ToolRun

VERSION = 1
INDEX = "capture.json"
_INDEX_LIMIT = 32 << 20


def save(record: Record, folder: Path) -> None:
    """Writes the record to a folder that is new or empty; all of it or nothing. BadInput where that cannot be."""
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise BadInput(f"{folder} is not an empty folder; name a new one for the capture")
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as scratch:
            draft = Path(scratch) / "capture"
            draft.mkdir()
            _write(record, draft)
            os.replace(draft, folder)
    except OSError as error:
        raise BadInput(f"cannot write the capture to {folder}: {error.strerror or error}") from None


def _write(record: Record, folder: Path) -> None:
    for path, text in record.files.items():
        _write_text(folder / _file_name(path), text)
    tools = []
    for number, (argv, run) in enumerate(record.tools.items(), 1):
        name = f"tools/{number:02d}-{PurePosixPath(argv[0]).name}"
        _write_text(folder / f"{name}.out.txt", run.stdout)
        _write_text(folder / f"{name}.err.txt", run.stderr)
        tools.append({"command": list(argv), "exit": run.returncode, "stdout": f"{name}.out.txt", "stderr": f"{name}.err.txt"})
    index = {
        "version": VERSION,
        "programs": record.programs,
        "environment": record.environment,
        "facts": record.facts,
        "paths": {path: asdict(info) for path, info in record.paths.items()},
        "files": {path: _file_name(path) for path in record.files},
        "tools": tools,
    }
    _write_text(folder / INDEX, json.dumps(index, indent=1, ensure_ascii=False) + "\n")


def _file_name(path: str) -> str:
    """Name inside the capture of the file of a path; never one that leads out of it."""
    parts = [{"..": "%2E%2E", ".": "%2E"}.get(part, part) for part in path.split("/") if part]
    return "/".join(["files", *parts])


def _write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
        file.write(text)


def load(folder: Path) -> Record:
    """Reads a capture. BadInput names the file that is missing or wrong."""
    index_path = folder / INDEX
    try:
        if index_path.stat().st_size > _INDEX_LIMIT:
            raise BadInput(f"{index_path} is too large for a capture's index")
        index = json.loads(index_path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"{folder} is no capture of wavesmith doctor: {INDEX}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise BadInput(f"{index_path} is not JSON; the capture is damaged") from None
    if not isinstance(index, dict) or index.get("version") != VERSION:
        raise BadInput(f"{index_path} is not of version {VERSION}, which this wavesmith reads")
    try:
        return _record(index, folder)
    except (TypeError, KeyError, ValueError, AttributeError):
        raise BadInput(f"{index_path} does not have the fields of a capture; see docs/doctor.md") from None


def _record(index: dict, folder: Path) -> Record:
    record = Record(
        files={str(path): _read_text(folder, name, FILE_LIMIT) for path, name in index["files"].items()},
        paths={str(path): PathInfo(**info) for path, info in index["paths"].items()},
        programs={str(name): str(path) for name, path in index["programs"].items()},
        environment={str(name): str(value) for name, value in index["environment"].items()},
        facts=dict(index["facts"]),
    )
    for tool in index["tools"]:
        status = tool["exit"]
        if status is not None and not isinstance(status, int):
            raise TypeError
        argv = tuple(str(word) for word in tool["command"])
        record.tools[argv] = ToolRun(status, _read_text(folder, tool["stdout"], OUTPUT_LIMIT), _read_text(folder, tool["stderr"], OUTPUT_LIMIT))
    return record


def _read_text(folder: Path, name: str, limit: int) -> str:
    """Text of a file of the capture; one that lies outside it, also through a link, is refused."""
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise BadInput(f"{folder / INDEX} names {name}, which is outside the capture")
    try:
        if not path.is_file():
            raise BadInput(f"{folder} lacks {name}, which {INDEX} names")
        with path.open("rb") as file:
            return file.read(4 * limit).decode("utf-8", "replace")
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from None
