"""The patch on the four supported llama.cpp trees: text, CMake, a tiny module built and registered, the GPU file compiled."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import mini_tree
import pytest
from wavesmith import hunks, lock, patching, source
from wavesmith.errors import PatchRefused

pytestmark = pytest.mark.build

VERSIONS = [entry.version for entry in lock.load().versions]
TOUCHED = sorted({insert.file for insert in hunks.load().inserts})
NVCC = shutil.which("nvcc")

WRAPPER = """\
cmake_minimum_required(VERSION 3.14)
project(wrapper C CXX)
if (NO_CUBLAS)
    foreach (name cublas cublas_static cublasLt_static cuda_driver)
        add_library(CUDA::${name} INTERFACE IMPORTED GLOBAL)
    endforeach()
endif()
add_subdirectory(${TREE}/ggml ggml)
if (NOT NO_MAIN)
    add_executable(list_backends main.cpp)
    target_link_libraries(list_backends PRIVATE ggml)
endif()
"""
MAIN = """\
#include <cstdio>
#include "ggml-backend.h"
int main(int, char ** argv) {
    for (int i = 0; i < 2; ++i) {
        ggml_backend_load_all_from_path(argv[1]);
    }
    for (size_t i = 0; i < ggml_backend_reg_count(); ++i) {
        printf("%s\\n", ggml_backend_reg_name(ggml_backend_reg_get(i)));
    }
}
"""
MODULE_CMAKE = """\
if (GGML_CUSTOM_KERNELS_PLATFORM STREQUAL "host")
    ggml_add_backend_library(ggml-NAME ${CMAKE_CURRENT_LIST_DIR}/host.cpp)
else()
    add_library(ggml-custom-kernels-NAME OBJECT ${CMAKE_CURRENT_LIST_DIR}/gpu.cpp)
endif()
"""
MODULE_HOST = """\
#include "ggml-backend-impl.h"
extern "C" {
GGML_BACKEND_API ggml_backend_reg_t ggml_backend_NAME_reg(void);
}
static const char * get_name(ggml_backend_reg_t) { return "NAME"; }
static size_t get_device_count(ggml_backend_reg_t) { return 0; }
static ggml_backend_dev_t get_device(ggml_backend_reg_t, size_t) { return nullptr; }
ggml_backend_reg_t ggml_backend_NAME_reg(void) {
    static ggml_backend_reg reg = {};
    reg.api_version            = GGML_BACKEND_API_VERSION;
    reg.iface.get_name         = get_name;
    reg.iface.get_device_count = get_device_count;
    reg.iface.get_device       = get_device;
    return &reg;
}
GGML_BACKEND_DL_IMPL(ggml_backend_NAME_reg)
"""
MODULE_GPU = """\
#include "ggml-custom-kernels.h"
static int try_nodes(const struct ggml_custom_kernels_env *, struct ggml_cgraph *, int) { return 0; }
static const struct ggml_custom_kernels_module module = {
    sizeof(module), GGML_CUSTOM_KERNELS_ABI, GGML_CUSTOM_KERNELS_TREE, "NAME", "1", try_nodes,
};
extern "C" const struct ggml_custom_kernels_module * ggml_custom_kernels_module_NAME(void) { return &module; }
"""
# Enough of cuBLAS's names to compile, not to link, ggml-cuda.cu.
CUBLAS = """\
#pragma once
#define CUBLAS_VER_MAJOR 13
#define CUBLAS_VER_MINOR 0
enum cublasStatus_t {
    CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_NOT_INITIALIZED, CUBLAS_STATUS_ALLOC_FAILED, CUBLAS_STATUS_INVALID_VALUE, CUBLAS_STATUS_ARCH_MISMATCH,
    CUBLAS_STATUS_MAPPING_ERROR, CUBLAS_STATUS_EXECUTION_FAILED, CUBLAS_STATUS_INTERNAL_ERROR, CUBLAS_STATUS_NOT_SUPPORTED
};
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T };
enum cublasMath_t { CUBLAS_TF32_TENSOR_OP_MATH, CUBLAS_TENSOR_OP_MATH };
enum cublasComputeType_t { CUBLAS_COMPUTE_16F, CUBLAS_COMPUTE_32F };
enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT_TENSOR_OP };
typedef struct cublasContext * cublasHandle_t;
const char * cublasGetStatusString(cublasStatus_t);
""" + "".join(
    f"template <class... T> cublasStatus_t cublas{name}(T...);\n"
    for name in ("Create", "Destroy", "SetStream", "SetMathMode", "SetWorkspace", "Sgemm", "GemmEx", "GemmBatchedEx", "GemmStridedBatchedEx", "LoggerConfigure")
)


@pytest.fixture(scope="session")
def fetched():
    """version -> its tree in the cache, fetched on first use."""
    trees: dict[str, Path] = {}

    def get(version: str) -> Path:
        if version not in trees:
            trees[version] = source.get(version, "sdist").path
        return trees[version]

    return get


@pytest.fixture
def copy(fetched, tmp_path: Path):
    """Copies of what the patch looks at in a version's tree."""

    def make(version: str) -> Path:
        for name in TOUCHED:
            (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(fetched(version) / name, tmp_path / "tree" / name)
        return tmp_path / "tree"

    return make


@pytest.fixture(scope="module")
def patched(fetched, tmp_path_factory: pytest.TempPathFactory):
    """version -> a patched copy of its ggml."""
    trees: dict[str, Path] = {}

    def make(version: str) -> Path:
        if version not in trees:
            trees[version] = tmp_path_factory.mktemp(f"llama-{version}")
            shutil.copytree(fetched(version) / "ggml", trees[version] / "ggml")
            patching.apply(trees[version])
        return trees[version]

    return make


@pytest.mark.parametrize("version", VERSIONS)
def test_apply_twice_and_revert(copy, version: str) -> None:
    tree = copy(version)
    before = mini_tree.contents(tree)
    assert patching.ggml_version(tree) == lock.load().by_version(version).ggml
    assert {state.state for state in patching.check(tree)} == {patching.APPLIES}
    assert patching.apply(tree)
    after = mini_tree.contents(tree)
    assert after != before
    assert not patching.apply(tree)
    assert mini_tree.contents(tree) == after
    assert patching.revert(tree)
    assert mini_tree.contents(tree) == before


@pytest.mark.parametrize("version", VERSIONS)
def test_refusals(copy, version: str) -> None:
    tree = copy(version)
    pristine = mini_tree.contents(tree)
    for insert in hunks.load().inserts:
        for new in ("gone", f"{insert.anchor}\n{insert.anchor}"):
            mini_tree.edit(tree, insert.file, insert.anchor, new)
            before = mini_tree.contents(tree)
            with pytest.raises(PatchRefused) as error:
                patching.apply(tree)
            assert insert.file in str(error.value)
            assert insert.anchor.strip().split("\n")[0] in str(error.value)
            assert mini_tree.contents(tree) == before
            (tree / insert.file).write_bytes(pristine[insert.file])
    function = "static void ggml_cuda_graph_evaluate_and_capture("
    mini_tree.edit(tree, "ggml/src/ggml-cuda/ggml-cuda.cu", function, "static void ggml_cuda_graph_evaluate(")
    with pytest.raises(PatchRefused, match="wrong function"):
        patching.apply(tree)


@pytest.mark.parametrize("version", VERSIONS)
def test_generated_diff_is_up_to_date_and_applies(copy, version: str) -> None:
    tree = copy(version)
    generated = hunks.resources.patches() / "generated" / f"{version}.patch"
    assert patching.unified_diff(tree) == generated.read_text(encoding="utf-8"), "regenerate with `wavesmith patch diff TREE`"
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tree.parent)}
    subprocess.run(["git", "apply", "--whitespace=error-all", str(generated)], cwd=tree, check=True, env=environment)
    assert {state.state for state in patching.check(tree)} == {patching.APPLIED}


def module(folder: Path, name: str = "probe") -> Path:
    """A tiny module of the given name."""
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in (("CMakeLists.txt", MODULE_CMAKE), ("host.cpp", MODULE_HOST), ("gpu.cpp", MODULE_GPU)):
        (folder / file).write_text(text.replace("NAME", name))
    return folder


def configure(folder: Path, tree: Path, *options: str) -> subprocess.CompletedProcess:
    """Configures ggml alone, in `folder`/build."""
    (folder / "CMakeLists.txt").write_text(WRAPPER)
    (folder / "main.cpp").write_text(MAIN)
    common = [f"-DTREE={tree}", "-DGGML_CPU=OFF", "-DBUILD_SHARED_LIBS=ON", "-DGGML_CCACHE=OFF", "-DCMAKE_RUNTIME_OUTPUT_DIRECTORY=" + str(folder / "bin")]
    return subprocess.run(
        ["cmake", "-S", folder, "-B", folder / "build", "-G", "Ninja", *common, *options], capture_output=True, text=True, check=False, timeout=300
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-DGGML_CUSTOM_KERNELS=probe"], "PROBE_PATH is not set"),
        (["-DGGML_CUSTOM_KERNELS=probe", "-DPROBE_PATH=/nowhere"], "PROBE_PATH: no CMakeLists.txt in /nowhere"),
        (["-DGGML_CUSTOM_KERNELS=probe;other", "-DPROBE_PATH=probe", "-DOTHER_PATH=other"], "lists 2 modules (probe, other)"),
        (["-DGGML_CUSTOM_KERNELS=probe;other", "-DGGML_CUSTOM_KERNELS_ORDER=other", "-DPROBE_PATH=probe", "-DOTHER_PATH=other"], "(now: other)"),
        (["-DGGML_CUSTOM_KERNELS=probe;probe", "-DPROBE_PATH=probe"], "names 'probe' twice"),
        (["-DGGML_CUSTOM_KERNELS=pro-be"], "'pro-be' is not a module name"),
        (["-DGGML_CUSTOM_KERNELS=base", "-DBASE_PATH=probe"], "target ggml-base already exists"),
        (["-DGGML_CUSTOM_KERNELS=third", "-DTHIRD_PATH=probe"], "does not define the target ggml-third for platform host"),
    ],
)
def test_cmake_refuses(patched, tmp_path: Path, options: list[str], message: str) -> None:
    for name in ("probe", "other"):
        module(tmp_path / name, name)
    run = configure(tmp_path, patched(VERSIONS[0]), *options)
    assert run.returncode != 0
    assert message in " ".join(run.stderr.split())


@pytest.mark.parametrize("version", VERSIONS)
def test_cmake_takes_a_module(patched, tmp_path: Path, version: str) -> None:
    module(tmp_path / "probe")
    run = configure(tmp_path, patched(version), "-DGGML_CUSTOM_KERNELS=probe", "-DPROBE_PATH=probe")
    assert run.returncode == 0, run.stderr
    assert "Including custom kernels probe (host)" in run.stdout


@pytest.mark.parametrize("version", VERSIONS)
def test_patched_tree_without_modules_is_stock(patched, tmp_path: Path, version: str) -> None:
    run = configure(tmp_path, patched(version), "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON")
    assert run.returncode == 0, run.stderr
    assert "GGML_CUSTOM_KERNELS" not in (tmp_path / "build/compile_commands.json").read_text()


@pytest.mark.parametrize("loading", ["-DGGML_BACKEND_DL=ON", "-DGGML_BACKEND_DL=OFF"])
def test_modules_are_registered_in_order_and_once(patched, tmp_path: Path, loading: str) -> None:
    for name in ("probe", "other"):
        module(tmp_path / name, name)
    options = ["-DGGML_CUSTOM_KERNELS=probe;other", "-DGGML_CUSTOM_KERNELS_ORDER=other;probe", "-DPROBE_PATH=probe", f"-DOTHER_PATH={tmp_path / 'other'}"]
    run = configure(tmp_path, patched(VERSIONS[0]), loading, "-DGGML_NATIVE=OFF", *options)
    assert run.returncode == 0, run.stderr
    built = subprocess.run(
        ["cmake", "--build", tmp_path / "build", "-j2", "--target", "list_backends"], capture_output=True, text=True, check=False, timeout=900
    )
    assert built.returncode == 0, built.stdout[-3000:]
    assert backends(tmp_path) == ["other", "probe"]

    elsewhere = tmp_path / "elsewhere" / "libggml-probe.so"
    elsewhere.parent.mkdir()
    shutil.copy(next(tmp_path.rglob("libggml-probe.so")), elsewhere)
    if loading.endswith("ON"):
        assert backends(tmp_path, GGML_BACKEND_PATH=str(elsewhere)) == ["other", "probe"]
    else:  # a library without ggml_backend_init is not loaded, and the one built in has made way
        assert backends(tmp_path, GGML_BACKEND_PATH=str(elsewhere)) == ["other"]


def backends(folder: Path, **environment: str) -> list[str]:
    run = subprocess.run(
        [folder / "bin/list_backends", folder / "bin"], capture_output=True, text=True, check=True, timeout=60, env={**os.environ, **environment}
    )
    return run.stdout.split()


@pytest.mark.slow
@pytest.mark.skipif(NVCC is None, reason="needs nvcc")
@pytest.mark.parametrize("version", VERSIONS)
def test_gpu_file_compiles(patched, tmp_path: Path, version: str) -> None:
    (tmp_path / "cublas_v2.h").write_text(CUBLAS)
    (tmp_path / "ggml-custom-kernels-list.h").write_text("#define GGML_CUSTOM_KERNELS_HOST(X)\n#define GGML_CUSTOM_KERNELS_DEVICE(X) X(probe) X(other)\n")
    folder = patched(version) / "ggml/src/ggml-cuda"
    defines = ["CUDA_USE_GRAPHS", "BACKEND_DL", "SHARED", "BACKEND_SHARED", "BACKEND_BUILD"]
    for custom in (["-DGGML_CUSTOM_KERNELS"], []):
        command = [NVCC, "-std=c++17", "-arch=sm_80", "-O0", "-w", *custom, *(f"-DGGML_{name}" for name in defines), "-extended-lambda", "-use_fast_math"]
        command += [f"-I{tmp_path}", "-I..", "-I../../include", "--compiler-options=-fPIC", "-c", "ggml-cuda.cu", "-o", tmp_path / "ggml-cuda.o"]
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=600)
        assert run.returncode == 0, run.stderr[-3000:]
        has_hook = b"ggml_custom_kernels_module_other" in (tmp_path / "ggml-cuda.o").read_bytes()
        assert has_hook == bool(custom)


@pytest.mark.slow
@pytest.mark.skipif(NVCC is None, reason="needs nvcc")
@pytest.mark.parametrize("host", ["ON", "OFF"])
@pytest.mark.parametrize("version", VERSIONS)
def test_cmake_with_a_gpu_backend(patched, tmp_path: Path, version: str, host: str) -> None:
    module(tmp_path / "probe")
    options = ["-DGGML_CUDA=ON", "-DNO_CUBLAS=ON", "-DNO_MAIN=ON", "-DCMAKE_CUDA_ARCHITECTURES=80", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"]
    options += ["-DGGML_CUSTOM_KERNELS=probe", "-DPROBE_PATH=probe", f"-DGGML_CUSTOM_KERNELS_HOST={host}"]
    run = configure(tmp_path, patched(version), *options)
    assert run.returncode == 0, run.stderr
    assert "custom kernels probe (cuda)" in run.stdout
    assert ("custom kernels probe (host)" in run.stdout) == (host == "ON")
    commands = json.loads((tmp_path / "build/compile_commands.json").read_text())
    with_hook = {Path(command["file"]).name for command in commands if "-DGGML_CUSTOM_KERNELS " in command["command"] + " "}
    assert with_hook == {"ggml-cuda.cu", "ggml-backend-reg.cpp"}
    assert ("host.cpp" in {Path(command["file"]).name for command in commands}) == (host == "ON")
    listed = next((tmp_path / "build").rglob("ggml-custom-kernels-list.h")).read_text().splitlines()
    assert listed[1].endswith("X(probe)") == (host == "ON")
    assert listed[2].endswith("X(probe)")
    linked = (tmp_path / "build/build.ninja").read_text()
    link = next(line for line in linked.splitlines() if line.startswith("build ") and "libggml-cuda.so" in line.split(":")[0])
    assert "gpu.cpp.o" in link
