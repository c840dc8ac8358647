"""Tries a HIP compiler with a two-line kernel, so that a compiler that cannot work is found out before CMake starts."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .rocm import NOT_INHERITED, Rocm, device_flags
from .targets import Target

_SECONDS = 180.0
_KERNEL = """\
#include <hip/hip_runtime.h>
__global__ void trial(float * x) {{ x[threadIdx.x] *= 2.0f; }}
{check}int main() {{ int count = 0; (void) hipGetDeviceCount(&count); trial<<<1, 1>>>(nullptr); }}
"""
_CHECK = 'static_assert(HIP_VERSION_MAJOR == {major} && HIP_VERSION_MINOR == {minor}, "these are the headers of another HIP");\n'

# What the compiler says, and what that means. The compiler's own line is added.
_MEANINGS = (
    (r"these are the headers of another HIP", "headers of another HIP shadow its own"),
    (r"hip/hip_runtime\.h' file not found|cannot find HIP runtime", "it does not find the HIP headers"),
    (
        r"[Uu]nsupported (HIP )?gpu architecture|invalid target ID|unknown target (CPU|ID)|not a valid (offload|GPU) arch|unsupported CUDA gpu",
        "it does not know the target",
    ),
    (r"cannot find ROCm device library|cannot find ABI version", "it does not find the device libraries"),
    (r"'(cmath|cstdlib|new|utility|type_traits|cstddef)' file not found", "it does not find the C++ library (libstdc++) of a gcc"),
    (r"unable to find library -lamdhip64|cannot find -lamdhip64", "it does not find libamdhip64 when it links"),
    (r"unable to find library -lstdc\+\+|cannot find -lstdc\+\+", "it does not find libstdc++ when it links"),
    (r"lld.*(not found|No such file)|unable to execute command", "it cannot run a tool that belongs to it (lld, clang-offload-bundler)"),
)


def failure(rocm: Rocm, targets: Sequence[Target]) -> str:
    """Why the compiler of `rocm` cannot build for the targets, in one phrase; "" where it can."""
    with tempfile.TemporaryDirectory(prefix="wavesmith-") as folder:
        source = Path(folder) / "trial.hip"
        source.write_text(_source(rocm))
        common = [f"--rocm-path={rocm.root}", *([f"--rocm-device-lib-path={rocm.device_libraries}"] if rocm.device_libraries else [])]
        architectures = [f"--offload-arch={target.compiler_name}" for target in targets]
        compile_ = [rocm.compiler.path, "-x", "hip", "-std=c++17", "-O1", *common, *architectures, *device_flags(targets), "-c", str(source)]
        link = [rocm.compiler.path, "--hip-link", *common, *architectures, "trial.o", "-o", "trial"]
        return _run(rocm, [*compile_, "-o", "trial.o"], folder, "compile") or _run(rocm, link, folder, "link")


def _source(rocm: Rocm) -> str:
    """With a check of the version where the root's own header has told it: then other headers would be a mixture."""
    numbers = re.findall(r"\d+", rocm.hip_version)
    told = rocm.version_file.endswith("/hip_version.h") and len(numbers) >= 2
    return _KERNEL.format(check=_CHECK.format(major=numbers[0], minor=numbers[1]) if told else "")


def _run(rocm: Rocm, command: list[str], folder: str, what: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in NOT_INHERITED} | rocm.environment() | {"LC_ALL": "C"}
    try:
        result = subprocess.run(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False
        )
    except OSError as error:
        return f"it cannot be started: {error.strerror}"
    except subprocess.TimeoutExpired:
        return f"it did not {what} a two-line kernel within {_SECONDS:g} s"
    return "" if result.returncode == 0 else _describe(result.stderr + result.stdout, result.returncode, what)


def _describe(output: str, status: int, what: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    shown = next((line for line in lines if re.search(r"\berror\b", line)), lines[0] if lines else f"exit code {status} without a word")
    for pattern, meaning in _MEANINGS:
        match = next((line for line in lines if re.search(pattern, line)), None)
        if match:
            return f"{meaning} ({match})"
    return f"it cannot {what} a two-line kernel ({shown})"
