"""Environment variables that change what HIP, CMake or the dynamic loader do."""

from __future__ import annotations

import re

from .. import targets
from .findings import CANNOT_RUN, NOTE, WARNING, Finding, commands
from .gpu import Gpu
from .probe import Probe
from .rocm_installations import Installation

VARIABLES = (
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "CUDA_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "HSA_OVERRIDE_GFX_VERSION",
    "HIP_PATH",
    "ROCM_PATH",
    "HIP_CLANG_PATH",
    "HIP_PLATFORM",
    "HIP_DEVICE_LIB_PATH",
    "CMAKE_PREFIX_PATH",
    "CC",
    "CXX",
    "CPATH",
    "CPLUS_INCLUDE_PATH",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "GGML_BACKEND_PATH",
)
_VISIBLE = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")


def values(probe: Probe) -> dict[str, str]:
    return {name: value for name in VARIABLES if (value := probe.environ(name)) is not None}


def check(probe: Probe, gpus: list[Gpu], installations: list[Installation], chosen: Installation | None) -> list[Finding]:
    return [
        *_visibility(probe, gpus),
        *_override(probe, gpus),
        *_roots(probe, installations),
        *_library_path(probe, chosen),
        *_platform(probe, gpus),
        *_include_path(probe),
    ]


def _visibility(probe: Probe, gpus: list[Gpu]) -> list[Finding]:
    given = {name: value for name in _VISIBLE if (value := probe.environ(name)) is not None}
    findings = []
    if "ROCR_VISIBLE_DEVICES" in given and "HIP_VISIBLE_DEVICES" in given:
        what = f"ROCR_VISIBLE_DEVICES={given['ROCR_VISIBLE_DEVICES']} and HIP_VISIBLE_DEVICES={given['HIP_VISIBLE_DEVICES']} are both set"
        why = "HIP_VISIBLE_DEVICES counts within what ROCR_VISIBLE_DEVICES leaves, so the two together often hide every GPU"
        findings.append(Finding("visible-devices-both", WARNING, what, why, commands("unset ROCR_VISIBLE_DEVICES")))
    if "HIP_VISIBLE_DEVICES" in given and "CUDA_VISIBLE_DEVICES" in given and given["HIP_VISIBLE_DEVICES"] != given["CUDA_VISIBLE_DEVICES"]:
        what = f"HIP_VISIBLE_DEVICES={given['HIP_VISIBLE_DEVICES']} and CUDA_VISIBLE_DEVICES={given['CUDA_VISIBLE_DEVICES']} differ"
        findings.append(Finding("visible-devices-differ", WARNING, what, "HIP takes either, depending on its version", commands("unset CUDA_VISIBLE_DEVICES")))
    if given and gpus and all(gpu.index is None for gpu in gpus):
        what = f"every GPU is hidden by {', '.join(f'{name}={value}' for name, value in given.items())}"
        findings.append(Finding("all-gpus-hidden", CANNOT_RUN, what, "programs then see no GPU", commands(f"unset {' '.join(given)}")))
    return findings


def _override(probe: Probe, gpus: list[Gpu]) -> list[Finding]:
    value = probe.environ("HSA_OVERRIDE_GFX_VERSION")
    if value is None:
        return []
    fix = commands("unset HSA_OVERRIDE_GFX_VERSION")
    name = targets.from_override(value)
    if name is None:
        what = f"HSA_OVERRIDE_GFX_VERSION={value} is no version such as 10.3.0"
        return [Finding("override-malformed", WARNING, what, "HIP may ignore it or refuse to start", fix)]
    real = list(dict.fromkeys(gpu.target for gpu in gpus))
    if len(real) > 1:
        what = f"HSA_OVERRIDE_GFX_VERSION={value} makes every card ({', '.join(real)}) pass for {name}"
        why = "code for one is run on the other too, which faults or computes wrong results"
        return [Finding("override-mixed", WARNING, what, why, (*fix, *commands("export HIP_VISIBLE_DEVICES=<the card it is meant for>")))]
    if real and targets.family_of(real[0]) != targets.family_of(name):
        what = f"HSA_OVERRIDE_GFX_VERSION={value} makes {real[0]} pass for {name}, of another family"
        return [Finding("override-family", WARNING, what, "matrix instructions differ between families: wrong results or faults", fix)]
    if real and real[0] != name:
        what = f"HSA_OVERRIDE_GFX_VERSION={value} makes {real[0]} pass for {name}; builds are for {name}"
        return [Finding("override-active", NOTE, what, f"without it HIP loads only code for {real[0]}, which wavesmith can build as well", fix)]
    return []


def _roots(probe: Probe, installations: list[Installation]) -> list[Finding]:
    findings, reals = [], {}
    for name in ("ROCM_PATH", "HIP_PATH"):
        value = (probe.environ(name) or "").rstrip("/")
        if not value:
            continue
        info = probe.stat(value)
        if info is None:
            what = f"{name}={value} does not exist"
            findings.append(Finding("root-missing", WARNING, what, "CMake and hipcc follow it and fail", commands(f"unset {name}")))
        elif not any(installation.real_root == info.real for installation in installations):
            what = f"{name}={value} holds no ROCm"
            findings.append(Finding("root-empty", WARNING, what, "CMake and hipcc follow it and fail", commands(f"unset {name}")))
        else:
            reals[name] = info.real
    # HIP_PATH may be ROOT/hip, where ROCm up to 5 kept HIP.
    if len(reals) == 2 and reals["HIP_PATH"] not in (reals["ROCM_PATH"], f"{reals['ROCM_PATH']}/hip"):
        what = f"ROCM_PATH={probe.environ('ROCM_PATH')} and HIP_PATH={probe.environ('HIP_PATH')} are different installations"
        findings.append(Finding("roots-differ", WARNING, what, "a build would mix headers of one with libraries of the other", commands("unset HIP_PATH")))
    return findings


def _library_path(probe: Probe, chosen: Installation | None) -> list[Finding]:
    findings = []
    folders = [folder.rstrip("/") for folder in (probe.environ("LD_LIBRARY_PATH") or "").split(":") if folder.startswith(("/", "~"))]
    for folder in dict.fromkeys(folders):
        pattern = re.sub(r"([\[*?])", r"[\1]", folder)
        ggml = [path.rpartition("/")[2] for path in probe.glob(f"{pattern}/libggml*.so*") + probe.glob(f"{pattern}/libllama.so*")]
        if ggml:
            what = f"LD_LIBRARY_PATH has {folder}, which holds {', '.join(ggml[:3])}"
            why = "a built program would load that ggml in place of its own and crash or run without wavesmith"
            findings.append(Finding("old-ggml", WARNING, what, why, commands("unset LD_LIBRARY_PATH")))
        if chosen and probe.glob(f"{pattern}/libamdhip64.so*"):
            info = probe.stat(folder)
            if info and not info.real.startswith(chosen.real_root + "/"):
                what = f"LD_LIBRARY_PATH has {folder}, the HIP runtime of another ROCm than {chosen.root}"
                findings.append(
                    Finding("other-hip-runtime", WARNING, what, "programs built with one would run with the other", commands("unset LD_LIBRARY_PATH"))
                )
    if probe.environ("GGML_BACKEND_PATH"):
        what = f"GGML_BACKEND_PATH={probe.environ('GGML_BACKEND_PATH')} is set"
        findings.append(Finding("backend-path", NOTE, what, "every ggml program loads that backend as well", commands("unset GGML_BACKEND_PATH")))
    return findings


def _platform(probe: Probe, gpus: list[Gpu]) -> list[Finding]:
    value = probe.environ("HIP_PLATFORM")
    if value in (None, "", "amd") or not gpus:
        return []
    what = f"HIP_PLATFORM={value} on a machine with an AMD GPU"
    return [Finding("hip-platform", WARNING, what, "hipcc and CMake then build for another vendor", commands("unset HIP_PLATFORM"))]


def _include_path(probe: Probe) -> list[Finding]:
    findings = []
    for name in ("CPATH", "CPLUS_INCLUDE_PATH"):
        for folder in (probe.environ(name) or "").split(":"):
            if folder.startswith(("/", "~")) and (probe.exists(f"{folder.rstrip('/')}/hip/hip_version.h") or probe.exists(f"{folder.rstrip('/')}/ggml.h")):
                what = f"{name} has {folder}, which holds headers of HIP or ggml"
                findings.append(Finding("include-path", WARNING, what, "they are found before the right ones", commands(f"unset {name}")))
    return findings
