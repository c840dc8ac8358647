"""The code that the patch adds to the GPU backend, compiled against a stand-in for that backend and run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from wavesmith import resources

GGML = """\
#pragma once
#include <stddef.h>
struct ggml_tensor { int x[8]; };
enum { GGML_OP_COUNT = 90, GGML_TYPE_COUNT = 40 };
"""
# What custom-kernels.cuh uses of the backend's common.cuh, with a pool that notices frees out of order.
COMMON = """\
#pragma once
#include <cstdarg>
#include <cstdlib>
#define GGML_LOG_ERROR(...) fprintf(stderr, "error: " __VA_ARGS__)
#define GGML_LOG_WARN(...)  fprintf(stderr, "warning: " __VA_ARGS__)
#define GGML_LOG_DEBUG(...) fprintf(stderr, "debug: " __VA_ARGS__)
#define GGML_UNUSED(x) (void) (x)
#define GGML_ASSERT(x) do { if (!(x)) { fprintf(stderr, "assertion: %s\\n", #x); abort(); } } while (0)
#define CUDA_CHECK(x) (void) (x)
#define GGML_CUDA_MAX_DEVICES 4
#define GGML_CUDA_CC_OFFSET_AMD 0x1000000
#define GGML_CUDA_CC_IS_AMD(cc) (cc >= GGML_CUDA_CC_OFFSET_AMD)
static int cudaGetLastError() { return 0; }
struct ggml_cgraph { int n_nodes; };
struct device_info { int cc, nsm; size_t smpbo; int warp_size; };
struct cuda_info { int device_count; device_info devices[GGML_CUDA_MAX_DEVICES]; };
static const cuda_info & ggml_cuda_info() {
    static const cuda_info info = { 3, { { 0x1001100, 96, 65536, 32 }, { 0x100090a, 104, 65536, 64 }, { 900, 132, 232448, 32 } } };
    return info;
}
struct ggml_cuda_pool {
    std::vector<void *> stack;
    void * alloc(size_t size, size_t * actual) {
        *actual = (size + 255) / 256 * 256;
        stack.push_back(malloc(*actual));
        return stack.back();
    }
    void free(void * pointer, size_t actual) {
        GGML_ASSERT(!stack.empty() && stack.back() == pointer && actual % 256 == 0 && actual > 0);
        stack.pop_back();
        ::free(pointer);
    }
};
struct ggml_backend_cuda_context {
    int device;
    ggml_cuda_pool pool_;
    ggml_cuda_pool & pool() { return pool_; }
    void * stream() { return this; }
};
"""
MAIN = """\
#include "ggml-cuda/custom-kernels.cuh"
#include <string>
static int answer = 0, calls = 0;
static ggml_custom_kernels_env seen;
static int ask(const ggml_custom_kernels_env * env, ggml_cgraph *, int) { seen = *env; calls++; return answer; }
static int never(const ggml_custom_kernels_env *, ggml_cgraph *, int) { return 0; }
static int greedy(const ggml_custom_kernels_env * env, ggml_cgraph *, int) {
    void * a = env->scratch_alloc(env, 100);
    void * b = env->scratch_alloc(env, 0);
    void * c = env->scratch_alloc(env, 5000);
    GGML_ASSERT(a && b && c && a != b && b != c);
    env->scratch_free(env, a);  // not on top: later
    env->scratch_free(env, c);
    env->scratch_alloc(env, 7);  // left for the backend
    return 1;
}
#define MODULE(name, function) { sizeof(ggml_custom_kernels_module), GGML_CUSTOM_KERNELS_ABI, GGML_CUSTOM_KERNELS_TREE, name, "1", function }
static const ggml_custom_kernels_module linked = MODULE("linked", never);
extern "C" const ggml_custom_kernels_module * ggml_custom_kernels_module_linked(void) { return &linked; }

int main(int, char ** argv) {
    const std::string what = argv[1];
    ggml_backend_cuda_context context = { what == "cuda" ? 2 : what == "cdna" ? 1 : 0, {} };
    ggml_cgraph graph = { 10 };
    ggml_custom_kernels_module module = MODULE("late", ask);
    if (what == "abi") module.abi = 77;
    if (what == "size") module.size = 88;
    if (what == "tree") module.tree.op_count = 91;
    if (what == "name") module.name = nullptr;
    if (what == "twin") module.name = "linked";
    if (what == "greedy") module.try_nodes = greedy;
    printf("before %d\\n", ggml_custom_kernels_try(context, &graph, 2, 8));
    printf("register %d\\n", ggml_custom_kernels_register(what == "null" ? nullptr : &module));
    printf("again %d\\n", ggml_custom_kernels_register(&module));
    answer = what == "too-many" ? 9 : 3;
    printf("nodes %d\\n", ggml_custom_kernels_try(context, &graph, 2, 8));
    printf("calls %d left %zu\\n", calls, context.pool_.stack.size());
    if (calls) {
        printf("env %u %u %d %d %x %d %d %d %zu %s %d\\n", seen.size == sizeof(seen), seen.abi, seen.platform, seen.device, seen.cc, seen.n_cu,
               seen.warp_size, seen.max_nodes, seen.lds_limit, seen.arch, seen.stream == &context);
    }
    if (what == "crowd") {
        static ggml_custom_kernels_module more[8];
        static std::string names[8];
        for (int i = 0; i < 8; ++i) {
            names[i] = "m" + std::to_string(i);
            more[i]  = module;
            more[i].name = names[i].c_str();
            printf("%d", ggml_custom_kernels_register(&more[i]));
        }
        printf("\\n");
    }
}
"""


@pytest.fixture(scope="module", params=["hip", "cuda"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """Runs the program with one argument: (exit status, lines of stdout, stderr)."""
    folder = tmp_path_factory.mktemp("hook")
    (folder / "ggml-cuda").mkdir()
    shutil.copy(resources.backend() / "hook/ggml-custom-kernels.h", folder)
    shutil.copy(resources.patches() / "files/custom-kernels.cuh", folder / "ggml-cuda")
    lists = "#define GGML_CUSTOM_KERNELS_HOST(X)\n#define GGML_CUSTOM_KERNELS_DEVICE(X) X(linked) X(absent)\n"
    for name, text in (("ggml.h", GGML), ("ggml-cuda/common.cuh", COMMON), ("main.cpp", MAIN), ("ggml-custom-kernels-list.h", lists)):
        (folder / name).write_text(text)
    define = ["-DGGML_USE_HIP"] if request.param == "hip" else []
    command = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Wno-missing-field-initializers", *define, f"-I{folder}", "main.cpp", "-o", "main", "-pthread"]
    subprocess.run(command, cwd=folder, check=True, timeout=120)

    def run(what: str) -> tuple[int, dict[str, str], str]:
        result = subprocess.run([folder / "main", what], capture_output=True, text=True, check=False, timeout=20)
        lines = (line.partition(" ") for line in result.stdout.splitlines())
        return result.returncode, {name: rest for name, _, rest in lines}, result.stderr

    run.platform = 1 if request.param == "hip" else 2
    return run


def test_header_is_c(tmp_path: Path) -> None:
    (tmp_path / "ggml.h").write_text(GGML)
    (tmp_path / "a.c").write_text('#include "ggml-custom-kernels.h"\nstruct ggml_custom_kernels_tree tree = GGML_CUSTOM_KERNELS_TREE;\n')
    command = ["gcc", "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{tmp_path}", f"-I{resources.backend() / 'hook'}", "-fsyntax-only", "a.c"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)


@pytest.mark.parametrize(("what", "device"), [("rdna3", "0 1001100 96 32 8 65536 gfx1100 1"), ("cdna", "1 100090a 104 64 8 65536 gfx90a 1")])
def test_module_is_asked_with_its_environment(program, what: str, device: str) -> None:
    status, lines, errors = program(what)
    assert status == 0
    assert (lines["before"], lines["register"], lines["again"], lines["nodes"], lines["calls"]) == ("0", "0", "0", "3", "1 left 0")
    assert lines["env"] == f"1 1 {program.platform} {device}"
    assert "absent is configured but not linked" in errors
    assert "linked 1" in errors


def test_arch_of_an_nvidia_card(program) -> None:
    assert program("cuda")[1]["env"].endswith("2 384 132 32 8 232448 sm_90 1")


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("abi", "module has ABI 77, this backend has ABI 1"),
        ("size", "module struct has 88 bytes, this backend expects 48"),
        ("tree", "(tensor size 32, 91 ops, 40 types), this one has tensor size 32, 90 ops, 40 types"),
        ("name", "without a name"),
        ("twin", "a module named linked is already registered"),
    ],
)
def test_module_that_does_not_fit_is_refused(program, what: str, message: str) -> None:
    status, lines, errors = program(what)
    assert status == 0
    assert (lines["register"], lines["nodes"], lines["calls"]) == ("1", "0", "0 left 0")
    assert message in errors


def test_no_module_at_all_is_refused(program) -> None:
    _, lines, errors = program("null")
    assert lines["register"] == "1"
    assert "no module given" in errors


def test_more_modules_than_there_is_room_for(program) -> None:
    status, lines, errors = program("crowd")
    assert status == 0
    assert "00000011" in lines
    assert "one module more than the 8" in errors


def test_taking_too_many_nodes_stops(program) -> None:
    status, _, errors = program("too-many")
    assert status != 0
    assert "took more nodes than it may" in errors


def test_scratch_goes_back_in_reverse_order(program) -> None:
    status, lines, errors = program("greedy")
    assert status == 0, errors
    assert (lines["nodes"], lines["calls"]) == ("1", "0 left 0")
