"""Reads what CMake says about a build tree through its file API (cmake-file-api(7)), so that nothing is taken from printed output.

`request` before configuring writes a stateful query; `read` afterwards returns the reply. Objects used: codemodel v2
(targets and their artefacts), cache v2 (the options in effect) and toolchains v1 (the compilers).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from .errors import BuildFailed

_CLIENT = "client-wavesmith"
_OBJECTS = {"codemodel": 2, "cache": 2, "toolchains": 1}


@dataclass(frozen=True)
class Target:
    """One CMake target: `kind` is CMake's type (EXECUTABLE, SHARED_LIBRARY, …), `artifacts` absolute paths, main one first."""

    name: str
    kind: str
    artifacts: tuple[Path, ...]


@dataclass(frozen=True)
class Reply:
    targets: dict[str, Target]
    cache: dict[str, str]
    compilers: dict[str, str]  # language -> "ID VERSION"

    def artifact(self, target: str) -> Path:
        """Main artefact of a target; BuildFailed when the tree has no such target or it makes no file."""
        found = self.targets.get(target)
        if found is None or not found.artifacts:
            raise BuildFailed(f"the CMake tree has no target {target} that makes a file")
        return found.artifacts[0]


def request(build: Path) -> None:
    """Ask CMake's next configure run in `build` for the objects that `read` needs."""
    folder = build / ".cmake" / "api" / "v1" / "query" / _CLIENT
    folder.mkdir(parents=True, exist_ok=True)
    requests = [{"kind": kind, "version": version} for kind, version in _OBJECTS.items()]
    (folder / "query.json").write_text(json.dumps({"requests": requests}))


def read(build: Path) -> Reply:
    """The newest reply in `build`; BuildFailed when there is none or CMake could not answer."""
    folder = build / ".cmake" / "api" / "v1" / "reply"
    indexes = sorted(folder.glob("index-*.json"))
    if not indexes:
        raise BuildFailed(f"CMake left no file API reply in {folder}")
    answers = json.loads(indexes[-1].read_text())["reply"].get(_CLIENT, {}).get("query.json", {}).get("responses", [])
    objects = {answer["kind"]: json.loads((folder / answer["jsonFile"]).read_text()) for answer in answers if "jsonFile" in answer}
    missing = sorted(set(_OBJECTS) - set(objects))
    if missing:
        raise BuildFailed(f"CMake's file API did not answer for {', '.join(missing)} (cmake 3.20 or newer is needed)")
    return Reply(_targets(folder, build, objects["codemodel"]), _cache(objects["cache"]), _compilers(objects["toolchains"]))


def _targets(folder: Path, build: Path, codemodel: dict) -> dict[str, Target]:
    targets = {}
    for entry in codemodel["configurations"][0]["targets"]:
        details = json.loads((folder / entry["jsonFile"]).read_text())
        artifacts = _main_first(details, [build / artifact["path"] for artifact in details.get("artifacts", [])])
        targets[details["name"]] = Target(details["name"], details["type"], tuple(artifacts))
    return targets


def _main_first(details: dict, artifacts: list[Path]) -> list[Path]:
    """`nameOnDisk` is the file the linker wrote; a library's other artefacts are import files."""
    return sorted(artifacts, key=lambda path: path.name != details.get("nameOnDisk"))


def _cache(cache: dict) -> dict[str, str]:
    return {entry["name"]: entry["value"] for entry in cache["entries"]}


def _compilers(toolchains: dict) -> dict[str, str]:
    return {t["language"]: f"{t['compiler'].get('id', '?')} {t['compiler'].get('version', '?')}" for t in toolchains["toolchains"]}
