"""A made-up tree with the places that the patch looks for in llama.cpp, and the code around them that can mislead it."""

from __future__ import annotations

from pathlib import Path

FILES = {
    "ggml/CMakeLists.txt": """\
cmake_minimum_required(VERSION 3.14)
project("ggml" C CXX)
set(GGML_VERSION_MAJOR 0)
set(GGML_VERSION_MINOR 25)
set(GGML_VERSION_PATCH 3)
option(GGML_CUDA                            "ggml: use CUDA"                                  OFF)
option(GGML_HIP                             "ggml: use HIP"                                   OFF)
add_subdirectory(src)
""",
    "ggml/src/CMakeLists.txt": """\
if (MSVC)
    message(STATUS "a ) in a string")
endif()
add_library(ggml ggml-backend-reg.cpp)

function(ggml_add_backend backend)
    string(TOUPPER "GGML_${backend}" backend_id)
endfunction()

ggml_add_backend(CPU)
ggml_add_backend(OPENVINO)

foreach (target ggml)
    target_compile_features(${target} PRIVATE cxx_std_17)
endforeach()
""",
    "ggml/src/ggml-hip/CMakeLists.txt": """\
find_package(hip REQUIRED)
if (GGML_STATIC)
    message(FATAL_ERROR "not static")
endif()
target_link_libraries(ggml-hip PRIVATE ggml-base hip::host roc::rocblas roc::hipblas)
""",
    "ggml/src/ggml-cuda/CMakeLists.txt": """\
find_package(CUDAToolkit)

if (CUDAToolkit_FOUND)
    set(CUDA_FLAGS -use_fast_math)
    if (GGML_STATIC)
        message(STATUS "static")
    endif()
    target_compile_options(ggml-cuda PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:${CUDA_FLAGS}>")
else()
    message(FATAL_ERROR "CUDA Toolkit not found")
endif()
""",
    "ggml/src/ggml-cuda/common.cuh": "#pragma once\n",
    "ggml/src/ggml-cuda/ggml-cuda.cu": """\
#include "ggml-cuda.h"

#include "ggml-cuda/common.cuh"
#include "ggml-cuda/mmq.cuh"

static bool is_skipped(const ggml_tensor * node) {
    return (node->flags & GGML_TENSOR_FLAG_COMPUTE) == 0;  // a { in a comment
}

static void ggml_cuda_graph_evaluate_and_capture(context * cuda_ctx, ggml_cgraph * cgraph) {
    const char * brace = "}";
    bool done = false;
    while (!done) {
        if (!cuda_ctx->captured) {
            for (int i = 0; i < cgraph->n_nodes; i++) {
                ggml_tensor * node = cgraph->nodes[i];
                if ((node->flags & GGML_TENSOR_FLAG_COMPUTE) == 0) {
                    continue;
                }

                compute(node);
            }
        }
#ifdef USE_CUDA_GRAPH
        if (cuda_ctx->captured) {
            done = true;
        }
    }
    if (cuda_ctx->captured) {
#else
        done = true;
#endif
    }
}

static void * ggml_backend_cuda_reg_get_proc_address(ggml_backend_reg_t reg, const char * name) {
    if (strcmp(name, "ggml_backend_register_host_buffer") == 0) {
        return (void *)ggml_backend_cuda_register_host_buffer;
    }
    return nullptr;
}
""",
    "ggml/src/ggml-backend-reg.cpp": """\
#include <string>

namespace fs = std::filesystem;

struct ggml_backend_registry {
    std::vector<ggml_backend_reg_entry> backends;

    ggml_backend_registry() {
#ifdef GGML_USE_CUDA
        register_backend(ggml_backend_cuda_reg());
#endif
#ifdef GGML_USE_BLAS
        register_backend(ggml_backend_blas_reg());
#endif
    }

    ~ggml_backend_registry() {
        backends.clear();
    }
};

void ggml_backend_load_all_from_path(const char * dir_path) {
    bool silent = true;
    ggml_backend_load_best("blas", silent, dir_path);
    ggml_backend_load_best("cpu", silent, dir_path);
}
""",
}


def write(folder: Path) -> Path:
    """Writes the tree into `folder` and returns it."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below `folder`, hidden ones included."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def edit(folder: Path, name: str, old: str, new: str) -> None:
    """Replaces a text that must be there."""
    path = folder / name
    text = path.read_bytes().decode()
    assert old in text
    path.write_bytes(text.replace(old, new).encode())
