"""ROCm installations: where they are, how complete they are for a build, and which one a build should use.

Layouts: AMD's packages and Arch in /opt/rocm*, distribution packages in /usr (Debian, Ubuntu, Fedora, openSUSE), one
Nix store path per component, and pip's rocm packages (folders _rocm_sdk_* beside other Python modules).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .. import targets
from . import packages
from .findings import CANNOT_BUILD, NOTE, WARNING, Finding, commands
from .gpu import Gpu
from .probe import Probe

OLDEST_HIP = (6, 1)  # older HIP lacks what ggml's HIP backend uses
_COMPILERS = ("llvm/bin/clang++", "lib/llvm/bin/clang++", "lib64/rocm/llvm/bin/clang++", "bin/amdclang++")


@dataclass(frozen=True)
class Installation:
    """One ROCm root. Paths are None where the part is missing. `compilers` exist, in the order to try them."""

    root: str
    layout: str  # "opt", "distribution", "nix", "pip" or "other"
    real_root: str
    hip_version: str | None  # such as "6.2.41134"
    version_file: str | None
    rocm_version: str | None
    compilers: tuple[str, ...]
    hip_cmake: str | None  # hip-config.cmake
    hip_lang_cmake: str | None  # hip-lang-config.cmake
    hip_header: str | None
    hipblas: str | None  # hipblas-config.cmake, with its header beside it
    rocblas: str | None
    device_libraries: str | None  # folder of ockl.bc
    hip_library: str | None

    @property
    def version(self) -> tuple[int, ...]:
        """HIP's version as numbers; () where it is not known."""
        return tuple(int(part) for part in re.findall(r"\d+", self.hip_version or "")[:3])

    @property
    def too_old(self) -> bool:
        return bool(self.version) and self.version[:2] < OLDEST_HIP

    @property
    def missing(self) -> tuple[str, ...]:
        """Parts that a build needs and that are not there."""
        parts = {
            "a HIP compiler": self.compilers,
            "hip/hip_runtime.h": self.hip_header,
            "hip-config.cmake": self.hip_cmake,
            "hip-lang-config.cmake": self.hip_lang_cmake,
            "the device libraries (ockl.bc)": self.device_libraries,
            "hipblas development files": self.hipblas,
            "rocblas development files": self.rocblas,
        }
        return tuple(name for name, found in parts.items() if not found)

    @property
    def usable(self) -> bool:
        return not self.missing and not self.too_old


def _escape(path: str) -> str:
    return re.sub(r"([\[*?])", r"[\1]", path)


def _first_existing(probe: Probe, *patterns: str) -> str | None:
    for pattern in patterns:
        found = probe.glob(pattern)
        if found:
            return found[-1]
    return None


def _library_folders(root: str) -> list[str]:
    root = _escape(root)
    return [f"{root}/lib", f"{root}/lib64", f"{root}/lib/*-linux-gnu"]


def candidates(probe: Probe) -> list[tuple[str, str]]:
    """(root, layout) of every place where a ROCm might be, the user's own choices first."""
    found = [(value, "other") for name in ("ROCM_PATH", "HIP_PATH") if (value := (probe.environ(name) or "").rstrip("/"))]
    found += [(path, "opt") for path in probe.glob("/opt/rocm") + probe.glob("/opt/rocm[-0-9]*")]
    found += [(path, "opt") for path in probe.glob("/opt/rocm/core-*")]
    found += [("/usr", "distribution"), ("/usr/local", "other")]
    found += [(path, "nix") for path in probe.glob("/nix/store/*-clr-[0-9]*") if not re.search(r"-(doc|icd)$|\.drv$", path)]
    folders = probe.fact("module folders")
    for folder in folders if isinstance(folders, list) else []:
        found += [(f"{folder}/{name}", "pip") for name in ("_rocm_sdk_devel", "_rocm_sdk_core") if probe.exists(f"{folder}/{name}")]
    return found


def _layout(root: str, guess: str) -> str:
    if guess != "other":
        return guess
    if root.startswith("/nix/store/"):
        return "nix"
    if "/_rocm_sdk_" in root:
        return "pip"
    return "opt" if root.startswith("/opt/rocm") else "distribution" if root == "/usr" else "other"


def find(probe: Probe) -> list[Installation]:
    """Every installation, each real root once, in the order of `candidates`."""
    installations: dict[str, Installation] = {}
    for root, layout in candidates(probe):
        info = probe.stat(root)
        if info is None or info.kind != "folder" or info.real in installations:
            continue
        installation = _examine(probe, root, _layout(root, layout), info.real)
        if installation:
            installations[info.real] = installation
    return list(installations.values())


def _examine(probe: Probe, root: str, layout: str, real_root: str) -> Installation | None:
    """None where the folder holds no HIP at all."""
    folders = _library_folders(root)
    hip_header = _first_existing(probe, f"{_escape(root)}/include/hip/hip_runtime.h")
    hip_library = _first_existing(probe, *(f"{folder}/libamdhip64.so{suffix}" for suffix in ("", ".[0-9]*") for folder in folders))
    driver = _first_existing(probe, f"{_escape(root)}/bin/hipcc", f"{_escape(root)}/bin/hipconfig")
    rocm_version = (probe.read(f"{root}/.info/version") or "").strip()[:40] or None
    if not (hip_header or hip_library or driver or rocm_version):
        return None
    hip_version, version_file = _hip_version(probe, root, folders)
    if hip_version is None and rocm_version:
        hip_version, version_file = rocm_version.partition("-")[0], f"{root}/.info/version"
    return Installation(
        root=root,
        layout=layout,
        real_root=real_root,
        hip_version=hip_version,
        version_file=version_file,
        rocm_version=rocm_version,
        compilers=_compilers(probe, root, layout),
        hip_cmake=_first_existing(probe, *(f"{folder}/cmake/hip/hip-config.cmake" for folder in folders)),
        hip_lang_cmake=_first_existing(probe, *(f"{folder}/cmake/hip-lang/hip-lang-config.cmake" for folder in folders)),
        hip_header=hip_header,
        hipblas=_blas(probe, root, layout, "hipblas"),
        rocblas=_blas(probe, root, layout, "rocblas"),
        device_libraries=_device_libraries(probe, root, layout, folders),
        hip_library=hip_library,
    )


def _hip_version(probe: Probe, root: str, folders: list[str]) -> tuple[str | None, str | None]:
    """HIP's version and the file that says so."""
    for path in (f"{root}/include/hip/hip_version.h", f"{root}/share/hip/version", f"{root}/bin/.hipVersion"):
        parts = dict(re.findall(r"HIP_VERSION_(MAJOR|MINOR|PATCH)[ \t=]+(\d{1,9})", probe.read(path) or ""))
        if "MAJOR" in parts and "MINOR" in parts:
            return ".".join(parts[key] for key in ("MAJOR", "MINOR", "PATCH") if key in parts), path
    path = _first_existing(probe, *(f"{folder}/cmake/hip/hip-config-version.cmake" for folder in folders))
    match = re.search(r'PACKAGE_VERSION\s+"(\d[\d.]{0,30})"', probe.read(path) or "") if path else None
    return (match[1], path) if match else (None, None)


def _compilers(probe: Probe, root: str, layout: str) -> tuple[str, ...]:
    """clang++ for HIP: HIP_CLANG_PATH, then the root's own, then the distribution's newest (only for its own layout)."""
    found = []
    chosen = (probe.environ("HIP_CLANG_PATH") or "").rstrip("/")
    if chosen and probe.exists(f"{chosen}/clang++"):
        found.append(f"{chosen}/clang++")
    found += [f"{root}/{name}" for name in _COMPILERS if probe.exists(f"{root}/{name}")]
    if layout == "distribution":
        versions = probe.glob("/usr/lib/llvm-[0-9]*/bin/clang++") + probe.glob("/usr/lib64/llvm[0-9]*/bin/clang++")
        found += sorted(versions, key=_number_in, reverse=True)
    if layout == "nix":
        found += probe.glob("/nix/store/*-rocm-llvm-clang-wrapper-*/bin/clang++") + probe.glob("/nix/store/*-rocm-toolchain*/bin/clang++")
    if layout == "pip":
        found += [path for path in [root.replace("_rocm_sdk_devel", "_rocm_sdk_core") + "/lib/llvm/bin/clang++"] if probe.exists(path)]
    return tuple(dict.fromkeys(found))


def _number_in(path: str) -> int:
    match = re.search(r"llvm-?(\d{1,4})", path)
    return int(match[1]) if match else 0


def _prefixes(probe: Probe, root: str, layout: str) -> list[str]:
    """Folders in which CMake finds packages: the root, then CMAKE_PREFIX_PATH, for Nix also the component's own path."""
    extra = [path.rstrip("/") for path in re.split("[:;]", probe.environ("CMAKE_PREFIX_PATH") or "") if path]
    if layout == "nix":
        extra += probe.glob("/nix/store/*-hipblas-[0-9]*") + probe.glob("/nix/store/*-rocblas-[0-9]*")
    return list(dict.fromkeys([root, *extra]))


def _blas(probe: Probe, root: str, layout: str, name: str) -> str | None:
    """CMake file of hipblas or rocblas, where its header is there too (a runtime package has neither)."""
    for prefix in _prefixes(probe, root, layout):
        header = _first_existing(probe, f"{_escape(prefix)}/include/{name}/{name}.h", f"{_escape(prefix)}/include/{name}.h")
        cmake = _first_existing(probe, *(f"{folder}/cmake/{name}/{name}-config.cmake" for folder in _library_folders(prefix)))
        if header and cmake:
            return cmake
    return None


def _device_libraries(probe: Probe, root: str, layout: str, folders: list[str]) -> str | None:
    """Folder of the device bitcode: its own, or inside the clang that ships it."""
    clangs = [f"{_escape(root)}/{llvm}/lib/clang/*" for llvm in ("llvm", "lib/llvm", "lib64/rocm/llvm")]
    if layout == "distribution":
        clangs += [f"{_escape(root)}/lib/llvm-[0-9]*/lib/clang/*", f"{_escape(root)}/lib/clang/*"]
    patterns = [f"{_escape(root)}/amdgcn/bitcode/ockl.bc", *(f"{folder}/amdgcn/bitcode/ockl.bc" for folder in folders)]
    patterns += [f"{clang}{library}/amdgcn/bitcode/ockl.bc" for clang in clangs for library in ("", "/lib")]
    if layout == "nix":
        patterns.append("/nix/store/*-rocm-device-libs-*/amdgcn/bitcode/ockl.bc")
    if layout == "pip":
        core = _escape(root.replace("_rocm_sdk_devel", "_rocm_sdk_core"))
        patterns += [f"{core}/lib/llvm/amdgcn/bitcode/ockl.bc", f"{core}/lib/llvm/lib/clang/*/lib/amdgcn/bitcode/ockl.bc"]
        patterns.append(f"{_escape(root)}/lib/llvm/amdgcn/bitcode/ockl.bc")
    path = _first_existing(probe, *patterns)
    return path.rpartition("/")[0] if path else None


def choose(probe: Probe, installations: list[Installation]) -> Installation | None:
    """The one root that builds use: ROCM_PATH's, HIP_PATH's, /opt/rocm where it is usable, else the newest usable one,
    else the newest. A root that a variable names is taken even where parts are missing: the user said so."""
    for name in ("ROCM_PATH", "HIP_PATH"):
        value = (probe.environ(name) or "").rstrip("/")
        info = probe.stat(value) if value else None
        for installation in installations:
            if info and installation.real_root == info.real:
                return installation
    default = next((installation for installation in installations if installation.root == "/opt/rocm" and installation.usable), None)
    newest = sorted(installations, key=lambda installation: (installation.usable, installation.version), reverse=True)
    return default or (newest[0] if newest else None)


def check(probe: Probe, installations: list[Installation], chosen: Installation | None, gpus: list[Gpu]) -> list[Finding]:
    """Findings about ROCm; what is missing for a build matters only where a GPU is to be built for."""
    wanted, _ = targets.choose(gpus)
    findings = _shadowing(installations, chosen)
    if not wanted:
        return findings
    if chosen is None:
        return [*findings, not_found(probe, wanted[0].target)]
    return [*findings, *completeness(probe, chosen), *_blas_kernels(probe, chosen, wanted)]


def not_found(probe: Probe, target: str) -> Finding:
    """What to say where a build for `target` finds no ROCm."""
    what = "no ROCm installation found (looked in ROCM_PATH, HIP_PATH, /opt/rocm*, /usr, the Nix store, Python's modules)"
    why = f"a build for {target} needs HIP; `wavesmith build --target host` works without it"
    fix = packages.install(probe, "hip", "hipblas", "rocblas") or packages.PIP_SDK
    return Finding("rocm-missing", CANNOT_BUILD, what, why, commands(fix))


def completeness(probe: Probe, chosen: Installation) -> list[Finding]:
    """What a build needs and the chosen installation lacks."""
    findings = []
    if chosen.too_old:
        what = f"HIP {chosen.hip_version} in {chosen.root} (says {chosen.version_file}) is too old"
        why = f"ggml's HIP backend needs HIP {'.'.join(str(part) for part in OLDEST_HIP)} or newer"
        fix = packages.install(probe, "hip", "hipblas", "rocblas", layout=chosen.layout)
        findings.append(Finding("hip-too-old", CANNOT_BUILD, what, why, commands(fix)))
    needs = {"hipblas" if "hipblas" in part else "rocblas" if "rocblas" in part else "hip" for part in chosen.missing}
    if needs:
        what = f"{chosen.root} lacks {', '.join(chosen.missing)}"
        why = "CMake stops without them; the runtime packages alone are not enough for a build"
        ordered = [need for need in ("hip", "hipblas", "rocblas") if need in needs]
        fix = packages.install(probe, *ordered, layout=chosen.layout)
        findings.append(Finding("rocm-incomplete", CANNOT_BUILD, what, why, commands(fix)))
    if not chosen.version:
        what = f"the HIP version of {chosen.root} is written nowhere"
        findings.append(Finding("hip-version-unknown", WARNING, what, "the build may fail later if it is older than 6.1", commands("hipconfig --version")))
    return findings


def _shadowing(installations: list[Installation], chosen: Installation | None) -> list[Finding]:
    if chosen is None or len(installations) < 2:
        return []
    others = [installation for installation in installations if installation is not chosen]
    told = ", ".join(f"{installation.root} (HIP {installation.hip_version or 'unknown'})" for installation in others)
    what = f"several ROCm installations; builds use {chosen.root} (HIP {chosen.hip_version or 'unknown'}), not {told}"
    findings = [
        Finding("several-rocm", NOTE, what, "headers and libraries of two versions must not mix", commands("export ROCM_PATH=<root> to choose another"))
    ]
    system = next((installation for installation in others if installation.root == "/usr" and installation.hip_header), None)
    if system and system.version[:2] != chosen.version[:2]:
        what = f"headers of HIP {system.hip_version or 'unknown'} in /usr/include/hip can shadow those of {chosen.root}"
        why = "a compile that searches /usr/include first mixes two versions and fails with strange errors"
        findings.append(Finding("shadowing-headers", WARNING, what, why))
    return findings


def _blas_kernels(probe: Probe, chosen: Installation, wanted: list[Gpu]) -> list[Finding]:
    """rocBLAS ships a kernel file per gfx target; one without makes stock's BLAS path abort at run time."""
    folders = [folder for base in _library_folders(chosen.root) for folder in (f"{base}/rocblas/library", f"{base}/rocblas/*/library")]
    files = [path.rpartition("/")[2] for folder in folders for path in probe.glob(f"{folder}/TensileLibrary_lazy_gfx*.dat")]
    if not files:
        return []
    findings = []
    for target in dict.fromkeys(gpu.build_target for gpu in wanted):
        if not any(re.search(rf"{target}(?![0-9a-f])", name) for name in files):
            what = f"the rocBLAS in {chosen.root} has no kernels for {target}"
            why = "where llama.cpp uses rocBLAS (large f16 products) it will abort with 'Cannot read TensileLibrary.dat'"
            fix = packages.install(probe, "rocblas", layout=chosen.layout)
            findings.append(Finding("rocblas-without-target", WARNING, what, f"{why}; a ROCm that supports it has them", commands(fix)))
    return findings
