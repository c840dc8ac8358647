"""The device side of the platform and of every family: compiled for all nine AMD targets and looked at as assembly."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from native_programs import BACKEND, TESTS

CLANG = shutil.which("clang++-22")
pytestmark = pytest.mark.skipif(CLANG is None, reason="clang++-22 is not installed; it compiles for AMD targets without ROCm")

WMMA = "v_wmma_i32_16x16x16_iu8"
# Target -> family, instruction of the kernel "product", dot4.
TARGETS = {
    "gfx906": ("Gcn", "v_dot4_i32_i8", "v_dot4_i32_i8"),
    "gfx90a": ("Cdna2", "v_mfma_i32_16x16x16i8", "v_dot4c_i32_i8"),
    "gfx942": ("Cdna3", "v_mfma_i32_16x16x32_i8", "v_dot4c_i32_i8"),
    "gfx950": ("Cdna4", "v_mfma_i32_32x32x32_i8", "v_dot4c_i32_i8"),
    "gfx1030": ("Rdna2", "v_dot4c_i32_i8", "v_dot4c_i32_i8"),
    "gfx1100": ("Rdna3", WMMA, "v_dot4_i32_iu8"),
    "gfx1151": ("Rdna3_5", WMMA, "v_dot4_i32_iu8"),
    "gfx1200": ("Rdna4", WMMA, "v_dot4_i32_iu8"),
    "gfx1201": ("Rdna4", WMMA, "v_dot4_i32_iu8"),
}
# Further kernels with an instruction of their own.
MORE = {
    "gfx90a": {"product_32x32x8": "v_mfma_i32_32x32x8i8"},
    "gfx942": {"product_32x32x16": "v_mfma_i32_32x32x16_i8"},
    "gfx950": {
        "product_32x32x16": "v_mfma_i32_32x32x16_i8",
        "product_16x16x32": "v_mfma_i32_16x16x32_i8",
        "product_16x16x64": "v_mfma_i32_16x16x64_i8",
    },
}
KERNELS = ("product", "ids", "exchange", "reverse", "reverse_static", "unaligned", "dot", "odd_size")


def compile_kernels(target: str, *arguments: str) -> subprocess.CompletedProcess:
    command = [CLANG, "-x", "hip", "-std=c++17", f"--offload-arch={target}", "-nogpulib", "-nogpuinc", "-O3", "-Wall", "-Wextra", "-Werror"]
    command += [f"-DTEST_FAMILY={TARGETS[target][0]}", "-I", str(BACKEND), "-I", str(TESTS), *arguments, str(TESTS / "device_kernel.hip")]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module", params=TARGETS)
def target(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def assembly(target, tmp_path_factory) -> dict[str, str]:
    """Kernel -> its assembly with the compiler's figures."""
    out: Path = tmp_path_factory.mktemp("device") / f"{target}.s"
    done = compile_kernels(target, "--cuda-device-only", "--no-gpu-bundle-output", "-S", "-o", str(out))
    assert done.returncode == 0, done.stderr
    parts = re.split(r"^(\w+):\s*; @\1$", out.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def count(assembly: str, mnemonic: str) -> int:
    return len(re.findall(rf"^\s+{mnemonic}(_e32|_e64)?\s", assembly, flags=re.MULTILINE))


def figures(assembly: str, name: str) -> int:
    (value,) = re.findall(rf"^; {name}: (\d+)$", assembly, flags=re.MULTILINE)
    return int(value)


def test_all_kernels_without_scratch_or_spills(assembly, target):
    assert set(assembly) == set(KERNELS) | set(MORE.get(target, {}))
    for name, text in assembly.items():
        assert figures(text, "ScratchSize") == 0, name
        assert not re.search(r"\sscratch_|\sbuffer_(load|store)", text), name
        assert not re.search(r"\sflat_(load|store)", text), f"{name}: an access through the generic address space"
    spills = re.findall(r"\.[sv]gpr_spill_count:\s*(\d+)", "".join(assembly.values()))
    assert spills == ["0"] * (2 * len(assembly))


def test_matrix_instructions(assembly, target):
    family, mnemonic, _ = TARGETS[target]
    times = 128 if family in ("Gcn", "Rdna2") else 1  # dot4: 4 x 4 results of 32 values
    assert count(assembly["product"], mnemonic) == times
    for name, mnemonic in MORE.get(target, {}).items():
        assert count(assembly[name], mnemonic) == 1


def test_matrix_operands_are_signed(assembly, target):
    """The iu8 forms take signedness as operand bits, and clamp must not be set."""
    for line in re.findall(r"^\s+v_wmma.*$", assembly["product"], flags=re.MULTILINE):
        assert "neg_lo:[1,1,0]" in line and "clamp" not in line
    (line,) = re.findall(r"^\s+v_dot4.*$", assembly["dot"], flags=re.MULTILINE)
    assert count(line + "\n", TARGETS[target][2]) == 1
    assert ("neg_lo:[1,1,0]" in line) == (TARGETS[target][2] == "v_dot4_i32_iu8") and "clamp" not in line


def test_wide_accesses(assembly, target):
    """16 bytes are one access, in LDS and in global memory, also at an address aligned to 2."""
    old = target.startswith("gfx9") or target == "gfx1030"
    lds_load, lds_store = ("ds_read_b128", "ds_write_b128") if old else ("ds_load_b128", "ds_store_b128")
    load, store = ("global_load_dwordx4", "global_store_dwordx4") if old else ("global_load_b128", "global_store_b128")
    for name in ("reverse", "reverse_static"):
        assert [count(assembly[name], mnemonic) for mnemonic in (load, lds_store, lds_load, store)] == [1, 1, 1, 1]
    assert count(assembly["unaligned"], load) == 1
    assert count(assembly["unaligned"], store) == 1


def test_barrier_shuffle_and_uniform_wave(assembly, target):
    rdna4 = target.startswith("gfx12")
    assert count(assembly["reverse"], "s_barrier_signal" if rdna4 else "s_barrier") == 1
    steps = 5 if target.startswith("gfx1") else 6
    assert count(assembly["exchange"], "ds_bpermute_b32") == steps + 1
    assert count(assembly["ids"], "v_readfirstlane_b32") >= 1


def test_static_lds_is_part_of_the_kernel(assembly):
    assert ".amdhsa_group_segment_fixed_size 4096\n" in assembly["reverse_static"]
    assert ".amdhsa_group_segment_fixed_size 0\n" in assembly["reverse"]


def test_the_cpu_side_parses_too(target):
    """A HIP build compiles every file for the CPU as well."""
    done = compile_kernels(target, "--cuda-host-only", "-fsyntax-only")
    assert done.returncode == 0, done.stderr
