"""What a build will be, decided before anything is fetched or written: the plan, and the key that names its folder."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from . import build_checks, cache, resources
from .build_checks import Compiler
from .errors import BadInput

TARGETS = ("host",)
PROGRAMS = ("llama-bench", "test-backend-ops", "llama-quantize", "llama-perplexity", "llama-completion")
MODULE = "wavesmith"

_MODULE_FOLDERS = ("backend", "cmake")
_NOT_SOURCE = {"__pycache__", ".git", "build"}

# What every target shares: shared libraries with relative run paths, nothing that is not needed, nothing that asks the network.
_COMMON_OPTIONS = {
    "CMAKE_BUILD_TYPE": "Release",
    "BUILD_SHARED_LIBS": "ON",
    "CMAKE_BUILD_RPATH_USE_ORIGIN": "ON",
    "CMAKE_UNITY_BUILD_RELOCATABLE": "ON",  # else generated files name the build's folder, and ccache finds none of them elsewhere
    "GGML_CCACHE": "OFF",  # the launchers that `launchers` sets serve the module too
    "GGML_BACKEND_DL": "OFF",
    "LLAMA_OPENSSL": "OFF",
    "LLAMA_BUILD_UI": "OFF",
    "LLAMA_USE_PREBUILT_UI": "OFF",
    "LLAMA_BUILD_EXAMPLES": "OFF",
    "LLAMA_BUILD_APP": "OFF",
    "LLAMA_BUILD_SERVER": "OFF",
    "GGML_CUSTOM_KERNELS": MODULE,
}
_TARGET_OPTIONS = {"host": {"GGML_NATIVE": "ON"}}


@dataclass(frozen=True)
class Plan:
    """One resolved build. Two plans with the same `key` give the same programs."""

    target: str
    llama_version: str
    llama_commit: str
    source: str  # what source.get takes
    patch_set: str
    module_hash: str
    c_compiler: Compiler
    cxx_compiler: Compiler
    options: dict[str, str]
    programs: tuple[str, ...]
    prefix: Path

    @property
    def key(self) -> str:
        return _key(self)

    def as_json(self) -> dict:
        return {**asdict(self), "prefix": str(self.prefix), "programs": list(self.programs), "key": self.key}

    def lines(self) -> list[tuple[str, str]]:
        """(label, value) rows for people."""
        return [
            ("target", self.target),
            ("llama.cpp", f"{self.llama_version} ({self.llama_commit})"),
            ("patch set", self.patch_set),
            ("module", f"{MODULE} {self.module_hash}"),
            ("C compiler", f"{self.c_compiler.path} ({self.c_compiler.version})"),
            ("C++ compiler", f"{self.cxx_compiler.path} ({self.cxx_compiler.version})"),
            ("ccache", build_checks.ccache() or "not there"),
            ("options", " ".join(f"-D{name}={value}" for name, value in self.options.items())),
            ("programs", " ".join(self.programs)),
            ("prefix", str(self.prefix)),
        ]


def resolve(target: str = "host", llama: str | None = None, out: Path | None = None) -> Plan:
    """Decide everything about a build without fetching or writing anything.

    target: one of TARGETS. llama: a version, tag, commit or folder; None is the newest supported version. out: folder of
    the build in place of the cache's. Raises BadInput for an unknown target or version, CannotBuild without a compiler.
    """
    from . import patching, source

    if target not in TARGETS:
        raise BadInput(f"no target {target}: this version builds {', '.join(TARGETS)}")
    identity = source.resolve(llama)
    c_compiler, cxx_compiler = build_checks.compilers()
    plan = Plan(
        target=target,
        llama_version=identity.version,
        llama_commit=identity.commit,
        source=identity.spec,
        patch_set=patching.patch_set_id(),
        module_hash=module_hash(),
        c_compiler=c_compiler,
        cxx_compiler=cxx_compiler,
        options={**_COMMON_OPTIONS, **_TARGET_OPTIONS[target]},
        programs=PROGRAMS,
        prefix=out.absolute() if out else Path(),
    )
    if out:
        return plan
    folder = cache.root() / "builds" / f"{plan.target}-{plan.llama_version}-{plan.key}"
    return Plan(**{**plan.__dict__, "prefix": folder})


def launchers(ccache: str | None) -> dict[str, str]:
    """CMake options that put ccache before the compilers; no part of the key, since the result is the same."""
    return {"CMAKE_C_COMPILER_LAUNCHER": ccache, "CMAKE_CXX_COMPILER_LAUNCHER": ccache} if ccache else {}


def module_files(root: Path | None = None) -> list[Path]:
    """The files of `backend/` and `cmake/` that a build reads, sorted; paths relative to `root`."""
    root = root or resources.data_root()
    files = (path for folder in _MODULE_FOLDERS for path in (root / folder).rglob("*") if path.is_file())
    relative = (path.relative_to(root) for path in files)
    return sorted(path for path in relative if not _NOT_SOURCE.intersection(path.parts) and path.suffix not in {".o", ".so", ".pyc"})


def module_hash(root: Path | None = None) -> str:
    """The first 12 hex digits of a sha256 over names and contents of `module_files`."""
    root = root or resources.data_root()
    digest = hashlib.sha256()
    for path in module_files(root):
        content = (root / path).read_bytes()
        digest.update(f"{path.as_posix()}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:12]


def _key(plan: Plan) -> str:
    parts = {
        "llama": plan.llama_commit,
        "patch": plan.patch_set,
        "module": plan.module_hash,
        "target": plan.target,
        "compilers": [asdict(plan.c_compiler), asdict(plan.cxx_compiler)],
        "options": plan.options,
        "programs": plan.programs,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]
