"""What a build must show before it counts as finished: that CMake took every option, and that the programs run."""

from __future__ import annotations

import os
import re
from pathlib import Path

from . import build_plan, cmake_file_api, process
from .build_plan import Plan
from .built import MANIFEST_VERSION
from .errors import BuildFailed, CannotRun
from .progress import Step

DEVICE = "WAVESMITH"

# Options without which a build would succeed and be for the CPU alone, or without our kernels.
_MUST_BE_USED = ("GGML_HIP", "GPU_TARGETS", "GGML_CUSTOM_KERNELS", "GGML_CUSTOM_KERNELS_HOST", "WAVESMITH_PATH", "CMAKE_HIP_COMPILER")
_UNUSED = re.compile(r"Manually-specified variables were not used by the project:\s*\n((?:[ \t]*\n|[ \t]+\S+[ \t]*\n)*)")


def check_options_used(log: Path) -> None:
    """BuildFailed where CMake's output, in `log`, says that it ignored an option that decides what is built."""
    text = log.read_text(encoding="utf-8", errors="replace") + "\n"
    ignored = [name for block in _UNUSED.findall(text) for name in block.split() if name in _MUST_BE_USED]
    if ignored:
        names = ", ".join(dict.fromkeys(ignored))
        raise BuildFailed(f"this llama.cpp's CMake files did not use {names}: the build would silently be without a GPU or our kernels (log: {log})")


def check_configured(plan: Plan, reply: cmake_file_api.Reply, log: Path) -> None:
    """BuildFailed where CMake was content with a tree that is not what was asked for; before minutes of compiling."""
    check_options_used(log)
    if not plan.rocm:
        return
    wanted = ("ggml-hip", f"ggml-custom-kernels-{build_plan.MODULE}")
    missing = [name for name in wanted if name not in reply.targets]
    if missing:
        raise BuildFailed(f"CMake made no target {', '.join(missing)}: the build would silently be without a GPU or our kernels (log: {log})")
    compiler = reply.compilers.get("HIP", "none")
    if "Clang" not in compiler:
        raise BuildFailed(f"CMake does not recognise {plan.rocm.compiler.path} as a HIP compiler ({compiler}) and would drop its flags (log: {log})")


def manifest(plan: Plan, reply: cmake_file_api.Reply, step: Step) -> dict:
    """Run what was built from an unrelated folder and with an empty environment; return the content of the manifest."""
    programs = {name: reply.artifact(name) for name in plan.programs}
    for name, path in programs.items():
        if not path.is_file():
            raise BuildFailed(f"{name} was not built: {path} is missing")
    module = reply.artifact(f"ggml-{build_plan.MODULE}") if plan.has_host else reply.artifact("ggml-hip")
    _check_devices(plan, programs["llama-bench"], step)
    return {
        "version": MANIFEST_VERSION,
        "plan": plan.as_json(),
        "programs": {name: str(path.relative_to(plan.prefix)) for name, path in programs.items()},
        "module": str(module.relative_to(plan.prefix)),
        "bin_dir": str(programs["llama-bench"].parent.relative_to(plan.prefix)),
        "lib_dir": str(reply.artifact("ggml-base").parent.relative_to(plan.prefix)),
        "rocm_libraries": plan.rocm.library_folders() if plan.rocm else [],
        "environment": plan.rocm.environment() if plan.rocm else {},
        "compilers": reply.compilers,
    }


def _check_devices(plan: Plan, bench: Path, step: Step) -> None:
    """llama-bench starts and, for the host target, lists our device unless it is switched off. A GPU need not be there."""
    bare = {"PATH": os.defpath}
    listing = process.capture([bench, "--list-devices"], step.log, cwd=Path("/"), environment=bare, timeout=60, failure=BuildFailed)
    if not plan.has_host:
        return
    if DEVICE not in listing:
        raise BuildFailed(f"the built llama-bench does not list the device {DEVICE} (log: {step.log})")
    off = {**bare, "WAVESMITH": "0"}
    listing = process.capture([bench, "--list-devices"], step.log, cwd=Path("/"), environment=off, timeout=60, failure=CannotRun)
    if DEVICE in listing:
        raise BuildFailed(f"WAVESMITH=0 does not switch the device {DEVICE} off (log: {step.log})")
