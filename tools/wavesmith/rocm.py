"""The one ROCm that a build for AMD GPUs uses: its root, its compiler, and what CMake and the compilers must be told of them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .build_checks import Compiler
from .doctor import packages, rocm_installations
from .doctor.findings import Finding
from .doctor.probe import Probe
from .doctor.rocm_installations import Installation
from .errors import CannotBuild
from .targets import Target

# Variables that would bring another ROCm, or flags that were meant for host code, into the compilers of the build.
NOT_INHERITED = (
    "HIPFLAGS",
    "HIPCXX",
    "HIPCC_COMPILE_FLAGS_APPEND",
    "HIPCC_LINK_FLAGS_APPEND",
    "HIP_CLANG_PATH",
    "HIP_DEVICE_LIB_PATH",
    "DEVICE_LIB_PATH",
    "HIP_PLATFORM",
    "HIP_COMPILER",
    "HIP_ROCCLR_HOME",
    "HSA_PATH",
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "CCC_OVERRIDE_OPTIONS",
)


@dataclass(frozen=True)
class Rocm:
    """`prefixes` are the folders in which CMake finds hip, hipblas and rocblas, the root first."""

    root: str
    layout: str
    hip_version: str
    version_file: str
    compiler: Compiler
    device_libraries: str
    prefixes: tuple[str, ...]

    def options(self, targets: Sequence[Target]) -> dict[str, str]:
        """CMake options that make ggml's HIP backend for the targets with this ROCm and no other."""
        options = {
            "GGML_HIP": "ON",
            "GPU_TARGETS": ";".join(target.compiler_name for target in targets),
            "CMAKE_HIP_COMPILER": self.compiler.path,
            "CMAKE_HIP_COMPILER_ROCM_ROOT": self.root,
            "CMAKE_PREFIX_PATH": ";".join(self.prefixes),
            "CMAKE_HIP_FLAGS": " ".join(device_flags(targets)),
        }
        return {name: value for name, value in options.items() if value}

    def environment(self) -> dict[str, str]:
        """Variables that ggml's CMake files and the compiler read; they name this ROCm whatever the user's shell says."""
        return {"ROCM_PATH": self.root, "HIP_PATH": self.root, "HIP_PLATFORM": "amd", "HIP_DEVICE_LIB_PATH": self.device_libraries}

    def library_folders(self) -> list[str]:
        """Existing folders of this ROCm's shared libraries."""
        folders = [f"{prefix}/{name}" for prefix in self.prefixes for name in ("lib", "lib64")]
        return [folder for folder in folders if os.path.isdir(folder) and self.root != "/usr"]

    def lines(self) -> list[tuple[str, str]]:
        """(label, value) rows for people."""
        return [
            ("ROCm", f"{self.root} (HIP {self.hip_version}, from {self.version_file})"),
            ("HIP compiler", f"{self.compiler.path} ({self.compiler.version})"),
        ]


def device_flags(targets: Sequence[Target]) -> list[str]:
    """Flags of the HIP compiler alone; generic targets need a code object version that is not every compiler's default."""
    versions = [target.code_object_version for target in targets if target.code_object_version]
    return [f"-mcode-object-version={max(versions)}"] if versions else []


def candidates(probe: Probe, targets: Sequence[Target]) -> list[Rocm]:
    """The chosen ROCm once for each of its compilers, in the order in which they are to be tried.

    CannotBuild, with the command that helps, where there is no ROCm, where its HIP is too old or where parts are missing.
    """
    installations = rocm_installations.find(probe)
    chosen = rocm_installations.choose(probe, installations)
    if chosen is None:
        raise _cannot_build(rocm_installations.not_found(probe, targets[0].name))
    for finding in rocm_installations.completeness(probe, chosen):
        if finding.name in ("hip-too-old", "rocm-incomplete"):
            raise _cannot_build(finding)
    return [_rocm(probe, chosen, Compiler(probe.real(path), version)) for path, version in _compilers(probe, chosen)]


def choose(found: Sequence[Rocm], targets: Sequence[Target], trial: Callable[[Rocm, Sequence[Target]], str]) -> Rocm:
    """The first of `candidates` whose compiler passes the trial ("" means passed); CannotBuild with every reason where none does."""
    reasons = []
    for rocm in found:
        reason = trial(rocm, targets)
        if not reason:
            return rocm
        reasons.append(f"{rocm.compiler.path}: {reason}")
    raise CannotBuild(f"no HIP compiler of {found[0].root} (HIP {found[0].hip_version}) works for {_names(targets)}: {'; '.join(reasons)}")


def _names(targets: Sequence[Target]) -> str:
    return ", ".join(target.compiler_name for target in targets)


def _cannot_build(finding: Finding) -> CannotBuild:
    fixes = "; or ".join(fix.command for fix in finding.fixes)
    return CannotBuild(f"{finding.what}; {finding.why}" + (f"; mend it with: {fixes}" if fixes else ""))


def _compilers(probe: Probe, chosen: Installation) -> list[tuple[str, str]]:
    """(path, first line of --version): hipconfig's clang, ROOT/llvm/bin, ROOT/lib/llvm/bin, then what else the layout has."""
    first = [f"{chosen.root}/llvm/bin/clang++", f"{chosen.root}/lib/llvm/bin/clang++"]
    ordered = [*_hipconfig_compiler(probe, chosen), *(path for path in first if path in chosen.compilers), *chosen.compilers]
    found: dict[str, str] = {}
    for path in dict.fromkeys(ordered):
        run = probe.run(path, "--version")
        lines = run.stdout.splitlines() if run and run.returncode == 0 else []
        if lines:
            found[path] = lines[0].strip()
    if not found:
        tried = ", ".join(chosen.compilers)
        raise CannotBuild(f"no HIP compiler of {chosen.root} runs (tried {tried}); mend it with: {_reinstall(probe, chosen)}")
    return list(found.items())


def _reinstall(probe: Probe, chosen: Installation) -> str:
    return packages.install(probe, "hip", layout=chosen.layout) or packages.PIP_SDK


def _hipconfig_compiler(probe: Probe, chosen: Installation) -> list[str]:
    """The clang++ in the folder that `hipconfig --hipclangpath` names."""
    hipconfig = f"{chosen.root}/bin/hipconfig"
    run = probe.run(hipconfig, "--hipclangpath") if probe.exists(hipconfig) else None
    folder = run.stdout.strip().rstrip("/") if run and run.returncode == 0 else ""
    path = f"{folder}/clang++"
    return [path] if folder.startswith(("/", "~")) and "\n" not in folder and probe.exists(path) else []


def _rocm(probe: Probe, chosen: Installation, compiler: Compiler) -> Rocm:
    prefixes = [chosen.root, *(_prefix(path) for path in (chosen.hip_cmake, chosen.hipblas, chosen.rocblas) if path)]
    return Rocm(
        root=probe.real(chosen.root),
        layout=chosen.layout,
        hip_version=chosen.hip_version or "of unknown version",
        version_file=probe.real(chosen.version_file or "nowhere"),
        compiler=compiler,
        device_libraries=probe.real(chosen.device_libraries or ""),
        prefixes=tuple(dict.fromkeys(probe.real(prefix) for prefix in prefixes)),
    )


def _prefix(config: str) -> str:
    """ "/nix/store/x-hipblas-6.3" of ".../lib/cmake/hipblas/hipblas-config.cmake"."""
    return re.sub(r"/lib(64)?(/[^/]+-linux-gnu)?/cmake/.*$", "", config)
