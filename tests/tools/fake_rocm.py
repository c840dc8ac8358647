"""ROCm roots made of real, empty files and a shell script for a compiler, in the layouts that fit below any folder."""

from __future__ import annotations

from pathlib import Path

# The script is asked for its version, and to compile or link the trial; `-o FILE` is its last argument.
_COMPILER = """#!/bin/sh
case "$*" in
    *--version*) echo "{version}"; exit 0 ;;
esac
echo "$@" >> "{log}"
env > "{log}.env"
{body}
for last; do :; done
: > "$last"
"""

WORKS = ""
NO_HEADERS = "echo \"clang++: error: cannot find HIP runtime; provide its path via '--rocm-path'\" >&2; exit 1"
NO_TARGET = """case "$*" in *gfx950*) echo "clang++: error: unsupported HIP gpu architecture: gfx950" >&2; exit 1 ;; esac"""
NO_LINK = 'case "$*" in *--hip-link*) echo "ld.lld: error: unable to find library -lamdhip64" >&2; exit 1 ;; esac'
SHADOWED = "echo \"trial.hip:3:1: error: static assertion failed due to requirement '5 == 7 && 7 == 2': these are the headers of another HIP\" >&2; exit 1"
NO_CXX_LIBRARY = "echo \"/opt/rocm/include/hip/hip_runtime.h:26:10: fatal error: 'cmath' file not found\" >&2; exit 1"
SILENT = "exit 3"


def compiler(path: Path, body: str = WORKS, version: str = "AMD clang version 22.0.0git") -> Path:
    """A compiler at `path`; what it is called with is in `path`.log, its environment in `path`.log.env."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_COMPILER.format(version=version, log=f"{path}.log", body=body))
    path.chmod(0o755)
    return path


def calls(path: Path) -> list[str]:
    """The command lines that a compiler was called with to compile or link."""
    log = Path(f"{path}.log")
    return log.read_text().splitlines() if log.exists() else []


def write(root: Path, version: str = "7.2.41134", *, library: str = "lib", bitcode: str = "amdgcn/bitcode", blas: bool = True, hipconfig: str = "") -> Path:
    """A root without a compiler. hipconfig: the folder that `hipconfig --hipclangpath` names."""
    major, minor, patch = version.split(".")
    header = f"#define HIP_VERSION_MAJOR {major}\n#define HIP_VERSION_MINOR {minor}\n#define HIP_VERSION_PATCH {patch}\n"
    contents = {
        "include/hip/hip_version.h": header,
        "include/hip/hip_runtime.h": "",
        f"{bitcode}/ockl.bc": "",
        f"{library}/libamdhip64.so": "",
        f"{library}/cmake/hip/hip-config.cmake": "",
        f"{library}/cmake/hip-lang/hip-lang-config.cmake": "",
        "bin/hipcc": "",
    }
    if blas:
        for name in ("hipblas", "rocblas"):
            contents |= {f"include/{name}/{name}.h": "", f"{library}/cmake/{name}/{name}-config.cmake": ""}
    if hipconfig:
        contents["bin/hipconfig"] = f"#!/bin/sh\nprintf %s '{hipconfig}'\n"
    for name, text in contents.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    if hipconfig:
        (root / "bin/hipconfig").chmod(0o755)
    return root
