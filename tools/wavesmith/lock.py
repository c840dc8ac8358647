"""The supported llama.cpp versions, pinned by commit and by the sdist's hash (`llama-versions.toml`)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from . import toml


@dataclass(frozen=True)
class Version:
    version: str  # of the package that holds the tree, e.g. "0.3.36"
    commit: str  # 40 hexadecimal digits
    ggml: str  # version of ggml in the tree
    sdist: str  # file name
    size: int  # of the sdist, bytes
    sha256: str  # of the sdist


@dataclass(frozen=True)
class Lock:
    repository: str
    project: str
    versions: tuple[Version, ...]  # newest first

    @property
    def newest(self) -> Version:
        return self.versions[0]

    def names(self) -> str:
        """The supported versions for messages: "0.3.36, 0.3.30, ..."."""
        return ", ".join(version.version for version in self.versions)

    def by_version(self, version: str) -> Version | None:
        return next((entry for entry in self.versions if entry.version == version), None)

    def by_commit(self, commit: str) -> Version | None:
        """The version with this commit; `commit` may be abbreviated."""
        return next((entry for entry in self.versions if entry.commit.startswith(commit)), None)


@cache
def load() -> Lock:
    return read(Path(__file__).with_name("llama-versions.toml"))


def read(path: Path) -> Lock:
    data = toml.loads(path.read_text(encoding="utf-8"))
    return Lock(data["repository"], data["project"], tuple(Version(**row) for row in data["version"]))
