"""The texts of an exported folder: how to use it, and the scripts that set its environment. None names a path of this machine."""

from __future__ import annotations

import shlex

from .built import Build

RUN_SCRIPT = """#!/bin/sh
# ./run.sh PROGRAM [arguments]: runs a program of this folder with its environment set.
wavesmith_folder=$(cd -- "$(dirname -- "$0")" && pwd) || exit 1
. "$wavesmith_folder/env.sh"
if [ $# -eq 0 ] || [ ! -x "$wavesmith_folder/bin/$1" ]; then
    echo "usage: $0 PROGRAM [arguments]; programs:" "$(cd "$wavesmith_folder/bin" && for file in *; do case $file in *.so*) ;; *) printf '%s ' "$file" ;; esac; done)" >&2
    exit 2
fi
program=$1
shift
exec "$wavesmith_folder/bin/$program" "$@"
"""

_ENVIRONMENT = """# For bash: `source env.sh` puts this folder's programs on PATH and its libraries first.
if [ -z "${{wavesmith_folder:-}}" ]; then
    wavesmith_folder=$(cd -- "$(dirname -- "${{BASH_SOURCE:-$0}}")" && pwd)
fi
export PATH="$wavesmith_folder/bin:$PATH"
export LD_LIBRARY_PATH="$wavesmith_folder/bin${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}{rocm}"
"""
_ROCM = ":${{ROCM_PATH:-{root}}}/lib"

_README = """# llama.cpp {version} with the wavesmith kernels

llama.cpp {version} (commit {commit}), patched, with the wavesmith kernels, built for: {target}.

    ./run.sh llama-bench -m MODEL.gguf          # runs a program with its environment set
    source env.sh && llama-bench -m MODEL.gguf  # the same for the rest of a bash session

Programs, in `bin/`: {programs}. The folder may be moved and copied; nothing in it refers to where it was made.

`WAVESMITH=0` in front of a program leaves every operation to llama.cpp's own kernels. `WAVESMITH_LEDGER=-` prints at exit which kernel ran what.

## What it needs

- Linux, and these libraries of the system or of ROCm: {libraries}
- {hardware}
- A CPU with the instructions of the one it was compiled on; on an older one the programs stop with "Illegal instruction".

## How it was made

| part | version |
|---|---|
{parts}

llama.cpp and wavesmith are under the MIT licence.
"""


def environment_script(root: str) -> str:
    """env.sh; `root` is the ROCm root of the build, "" for none. ROCM_PATH says where ROCm lies on another machine."""
    return _ENVIRONMENT.format(
        rocm=_ROCM.format(root="/opt/rocm" if root.startswith("/opt/rocm") else shlex.quote(root)) if root.startswith(("/opt/", "/usr")) else ""
    )


def readme(build: Build, manifest: dict, system: list[str]) -> str:
    plan = manifest["plan"]
    rocm = plan.get("rocm")
    gpus = [target for target in build.target.split(",") if target != "host"]
    hardware = f"ROCm with HIP {rocm['hip_version']} or a compatible one, and a GPU of {', '.join(gpus)}" if rocm else "No GPU: the kernels run on the CPU"
    parts = [("llama.cpp", build.commit), ("patch", plan["patch_set"]), ("wavesmith module", plan["module_hash"])]
    parts += [(f"{language} compiler", version) for language, version in sorted(manifest["compilers"].items())]
    return _README.format(
        version=build.llama_version,
        commit=build.commit,
        target=build.target,
        programs=", ".join(sorted(build.programs)),
        libraries=", ".join(system) or "none",
        hardware=hardware,
        parts="\n".join(f"| {part} | {version} |" for part, version in parts),
    )
