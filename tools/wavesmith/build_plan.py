"""What a build will be, decided before anything is fetched or written: the plan, and the key that names its folder."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from . import build_checks, cache, resources, target_choice
from . import targets as target_words
from .build_checks import Compiler
from .targets import HOST, Target

if TYPE_CHECKING:
    from .rocm import Rocm

MANIFEST = "build.json"  # in a build's folder; written last
TARGETS = ("host",)  # whose programs a machine without a GPU can run: what validate and bench offer
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
_NATIVE = {"GGML_NATIVE": "ON"}
_HOST_BESIDE_GPU = {"GGML_CUSTOM_KERNELS_HOST": "ON"}
_LONGEST_LABEL = 60  # characters of a folder's name that targets may take


@dataclass(frozen=True)
class Plan:
    """One resolved build. Two plans with the same `key` give the same programs."""

    target: str  # names of the targets, joined by commas
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
    targets: tuple[Target, ...] = (HOST,)
    rocm: Rocm | None = None  # of a build for AMD GPUs
    notes: tuple[str, ...] = ()  # sentences for the user; no part of the key

    @property
    def key(self) -> str:
        return _key(self)

    @property
    def has_host(self) -> bool:
        """Whether the kernels also run on the CPU, as the device WAVESMITH."""
        return any(target.platform == "host" for target in self.targets)

    def as_json(self) -> dict:
        """JSON types only: what a manifest and plan.json hold."""
        plain = {**asdict(self), "prefix": str(self.prefix), "key": self.key}
        return json.loads(json.dumps({name: value for name, value in plain.items() if name != "notes"}))

    def lines(self) -> list[tuple[str, str]]:
        """(label, value) rows for people."""
        return [
            ("target", self.target),
            ("llama.cpp", f"{self.llama_version} ({self.llama_commit})"),
            ("patch set", self.patch_set),
            ("module", f"{MODULE} {self.module_hash}"),
            ("C compiler", f"{self.c_compiler.path} ({self.c_compiler.version})"),
            ("C++ compiler", f"{self.cxx_compiler.path} ({self.cxx_compiler.version})"),
            *(self.rocm.lines() if self.rocm else []),
            ("ccache", build_checks.ccache() or "not there"),
            ("options", " ".join(f"-D{name}={value}" for name, value in self.options.items())),
            *([("environment", " ".join(f"{name}={value}" for name, value in self.rocm.environment().items()))] if self.rocm else []),
            ("programs", " ".join(self.programs)),
            ("prefix", str(self.prefix)),
            *(("note", note) for note in self.notes),
        ]


def resolve(
    target: str | Sequence[Target] = "host",
    llama: str | None = None,
    out: Path | None = None,
    *,
    notes: Sequence[str] = (),
) -> Plan:
    """Decide everything about a build without fetching or writing anything.

    target: targets, or words for them as `targets.resolve` takes them. llama: a version, tag, commit or folder; None is the
    newest supported version. out: folder of the build in place of the cache's. notes: what the user is to be told.
    Raises BadInput for an unknown target or version, CannotBuild without a compiler or, for GPUs, without a ROCm that works.
    """
    from . import patching, source

    chosen = tuple(target_words.resolve([target], []) if isinstance(target, str) else target)
    target_choice.check(list(chosen))
    identity = source.resolve(llama)
    c_compiler, cxx_compiler = build_checks.compilers()
    plan = Plan(
        target=",".join(one.compiler_name for one in chosen),
        llama_version=identity.version,
        llama_commit=identity.commit,
        source=identity.spec,
        patch_set=patching.patch_set_id(),
        module_hash=module_hash(),
        c_compiler=c_compiler,
        cxx_compiler=cxx_compiler,
        options={**_COMMON_OPTIONS, **_NATIVE},
        programs=PROGRAMS,
        prefix=out.absolute() if out else Path(),
        targets=chosen,
        notes=(*notes, *source.warnings(identity)),
    )
    gpus = [one for one in chosen if one.platform == "hip"]
    return _for_gpus(plan, gpus, out) if gpus else _with_prefix(plan, out)


def _for_gpus(plan: Plan, gpus: list[Target], out: Path | None) -> Plan:
    """The plan with the first HIP compiler that works. A finished build proves that its compiler does: then none is tried."""
    from . import hip_trial, rocm
    from .doctor.probe import SystemProbe

    probe = SystemProbe()
    try:
        found = rocm.candidates(probe, gpus)
    finally:
        probe.close()
    plans = [_with_rocm(plan, gpus, candidate, out) for candidate in found]
    finished = next((candidate for candidate in plans if is_finished(candidate)), None)
    return finished or _with_rocm(plan, gpus, rocm.choose(found, gpus, hip_trial.failure), out)


def _with_rocm(plan: Plan, gpus: list[Target], chosen: Rocm, out: Path | None) -> Plan:
    options = {**plan.options, **chosen.options(gpus), **(_HOST_BESIDE_GPU if plan.has_host else {})}
    return _with_prefix(replace(plan, options=options, rocm=chosen), out)


def _with_prefix(plan: Plan, out: Path | None) -> Plan:
    if out:
        return plan
    return replace(plan, prefix=cache.root() / "builds" / f"{_folder_label(plan.targets)}-{plan.llama_version}-{plan.key}")


def _folder_label(chosen: Sequence[Target]) -> str:
    """The targets as part of a folder's name; many are counted. Which they are is in the plan, and in the key."""
    label = re.sub(r"[^\w.+-]", "_", "+".join(target.compiler_name for target in chosen))
    return label if len(label) <= _LONGEST_LABEL else f"{chosen[0].name}+{len(chosen) - 1}-more"


def is_finished(plan: Plan) -> bool:
    """Whether the folder of the plan says that this very build has passed its checks."""
    try:
        return json.loads((plan.prefix / MANIFEST).read_text())["plan"]["key"] == plan.key
    except (OSError, ValueError, KeyError, TypeError):
        return False


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
    if plan.rocm:
        parts["rocm"] = asdict(plan.rocm)
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]
