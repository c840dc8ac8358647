"""The trial of a HIP compiler with a real clang, on a ROCm root of stand-ins: headers that declare what the kernel needs, empty device
libraries, a runtime library without a GPU behind it, and a bundler that writes nothing of use."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import fake_rocm
import pytest
from wavesmith import hip_trial, rocm, targets
from wavesmith.build_checks import Compiler

CLANG = shutil.which("clang++-22")
LLD = shutil.which("ld.lld-22")
pytestmark = pytest.mark.skipif((CLANG is None or LLD is None) and os.environ.get("CI") != "true", reason="clang++-22 or ld.lld-22 is not installed")

_HEADER = """\
#pragma once
#include <hip/hip_version.h>
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
struct dim3 { unsigned x, y, z; dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {} };
struct Index { __device__ operator unsigned() const { return __builtin_amdgcn_workitem_id_x(); } };
struct ThreadIndex { Index x; };
static const __device__ ThreadIndex threadIdx = {};
extern "C" {
typedef int hipError_t;
typedef struct ihipStream_t * hipStream_t;
hipError_t hipGetDeviceCount(int *);
hipError_t __hipPushCallConfiguration(dim3, dim3, unsigned long = 0, hipStream_t = nullptr);
hipError_t __hipPopCallConfiguration(dim3 *, dim3 *, unsigned long *, hipStream_t *);
hipError_t hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, hipStream_t);
}
"""
_RUNTIME = "".join(
    f"int {name}(void) {{ return 0; }}\n"
    for name in (
        "hipGetDeviceCount",
        "hipLaunchKernel",
        "__hipPushCallConfiguration",
        "__hipPopCallConfiguration",
        "__hipRegisterFatBinary",
        "__hipUnregisterFatBinary",
        "__hipRegisterFunction",
        "__hipRegisterVar",
    )
)
_BUNDLER = """#!/bin/sh
for word; do case $word in -output=*|--output=*) echo bundle > "${word#*=}" ;; esac; done
"""
_SWITCHES = ("finite_only", "daz_opt", "correctly_rounded_sqrt", "unsafe_math", "wavefrontsize64")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root, in a folder with a space; for gfx1100, gfx1030, gfx90a and gfx11-generic."""
    root = fake_rocm.write(tmp_path_factory.mktemp("real clang") / "rocm 7")
    (root / "include/hip/hip_runtime.h").write_text(_HEADER)
    (root / "runtime.c").write_text(_RUNTIME)
    subprocess.run(["gcc", "-shared", "-fPIC", root / "runtime.c", "-o", root / "lib/libamdhip64.so"], check=True)
    (root / "empty.ll").write_text('target triple = "amdgcn-amd-amdhsa"\n')
    bitcode = root / "amdgcn/bitcode"
    subprocess.run([CLANG, "--target=amdgcn-amd-amdhsa", "-nogpulib", "-x", "ir", "-emit-llvm", "-c", root / "empty.ll", "-o", bitcode / "ockl.bc"], check=True)
    names = ["ocml", "opencl", "hip", *(f"oclc_{switch}_{state}" for switch in _SWITCHES for state in ("on", "off"))]
    names += [f"oclc_abi_version_{version}" for version in (400, 500, 600)] + [f"oclc_isa_version_{isa}" for isa in ("1100", "1030", "90a", "11-generic")]
    for name in names:
        shutil.copyfile(bitcode / "ockl.bc", bitcode / f"{name}.bc")
    (root / "llvm/bin").mkdir(parents=True)
    _script(root / "llvm/bin/clang++", f'#!/bin/sh\nexec "{CLANG}" "-B$(dirname "$0")" "$@"\n')  # -B: with the tools beside it, as in a real root
    for name in ("lld", "ld.lld"):
        (root / "llvm/bin" / name).symlink_to(Path(LLD).resolve())
    _script(root / "llvm/bin/clang-offload-bundler", _BUNDLER)
    return root


def _script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def root(whole: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(whole, tmp_path / "rocm 7", symlinks=True))


def trial(root: Path, words: str = "gfx1100", version: str = "7.2.41134") -> str:
    header = f"{root}/include/hip/hip_version.h"
    compiler = Compiler(f"{root}/llvm/bin/clang++", "clang")
    return hip_trial.failure(rocm.Rocm(str(root), "opt", version, header, compiler, f"{root}/amdgcn/bitcode", (str(root),)), targets.resolve([words], []))


@pytest.mark.parametrize("words", ["gfx1100", "gfx1100,gfx1030,gfx90a:xnack-", "gfx11-generic"])
def test_a_whole_root_passes(whole: Path, words: str) -> None:
    assert trial(whole, words) == ""


def test_target_without_device_libraries(whole: Path) -> None:
    assert trial(whole, "gfx1201").startswith("it does not find the device libraries (")


def test_headers_of_another_version(whole: Path) -> None:
    assert trial(whole, version="6.4.43483").startswith("headers of another HIP shadow its own (")


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("include/hip/hip_runtime.h", "it does not find the HIP headers ("),
        ("include/hip/hip_version.h", "it cannot compile a two-line kernel ("),
        ("amdgcn/bitcode/ocml.bc", "it does not find the device libraries ("),
        ("lib/libamdhip64.so", "it does not find libamdhip64 when it links ("),
        ("llvm/bin/clang-offload-bundler", "it cannot run a tool that belongs to it (lld, clang-offload-bundler) ("),
    ],
)
def test_a_missing_part(root: Path, path: str, reason: str) -> None:
    (root / path).unlink()
    found = trial(root)
    assert found.startswith(reason), found
