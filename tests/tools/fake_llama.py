"""A stand-in for a llama.cpp tree: the same targets and folders in a CMake project that builds in a second.

Its programs behave as far as a build's own checks look: `--list-devices` names the device unless WAVESMITH=0. Besides, `exit N` ends
with that status, `wait` waits for a signal, `show NAME` prints a variable and `echo WORD…` the words.
"""

from __future__ import annotations

from pathlib import Path

_CMAKE = """
cmake_minimum_required(VERSION 3.18)
project(fake CXX)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
if (NOT EXISTS ${CMAKE_SOURCE_DIR}/patched)
    message(FATAL_ERROR "this tree is not patched")
endif()
execute_process(COMMAND git rev-parse HEAD WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}/ggml OUTPUT_FILE ${CMAKE_BINARY_DIR}/commit.txt ERROR_QUIET)
if (NOT GGML_CUSTOM_KERNELS STREQUAL "wavesmith" OR NOT EXISTS "${WAVESMITH_PATH}")
    message(FATAL_ERROR "no custom kernels")
endif()
add_library(ggml-base SHARED base.cpp)
if (GGML_HIP AND GPU_TARGETS)
    add_library(ggml-custom-kernels-wavesmith OBJECT module.cpp)
    set_target_properties(ggml-custom-kernels-wavesmith PROPERTIES POSITION_INDEPENDENT_CODE ON)
    add_library(ggml-hip SHARED $<TARGET_OBJECTS:ggml-custom-kernels-wavesmith>)
    target_link_libraries(ggml-hip PRIVATE ggml-base)
    set(module ggml-hip)
    file(WRITE ${CMAKE_BINARY_DIR}/hip.txt "$ENV{ROCM_PATH}\n${GPU_TARGETS}\n${CMAKE_HIP_COMPILER}\n$ENV{HIPFLAGS}\n")
endif()
if (NOT GGML_HIP OR GGML_CUSTOM_KERNELS_HOST)
    add_library(ggml-wavesmith SHARED module.cpp)
    target_link_libraries(ggml-wavesmith PRIVATE ggml-base)
    set(module ggml-wavesmith)
endif()
foreach (name llama-bench test-backend-ops llama-quantize llama-perplexity llama-completion)
    add_executable(${name} main.cpp)
    target_link_libraries(${name} PRIVATE ${module})
endforeach()
if (LLAMA_BUILD_SERVER)
    add_executable(llama-server main.cpp)
    target_link_libraries(llama-server PRIVATE ${module})
endif()
"""

_SOURCES = {
    "base.cpp": "int base() { return 1; }\n",
    "module.cpp": "int base();\nint module() { return base(); }\n",
    "main.cpp": (
        "#include <cstdio>\n#include <cstdlib>\n#include <cstring>\n#include <unistd.h>\nint module();\n"
        "int main(int count, char ** words) {\n"
        '    const char * what = count > 1 ? words[1] : "";\n'
        '    if (!std::strcmp(what, "exit")) { return std::atoi(words[2]); }\n'
        '    if (!std::strcmp(what, "wait")) { std::puts("waiting"); std::fflush(stdout); pause(); return 1; }\n'
        '    if (!std::strcmp(what, "show")) { const char * value = std::getenv(words[2]); std::puts(value ? value : "(not set)"); return 0; }\n'
        '    if (!std::strcmp(what, "echo") || !std::strcmp(what, "-m")) { for (int i = 1; i < count; ++i) { std::puts(words[i]); } return 0; }\n'
        '    const char * on = std::getenv("WAVESMITH"); bool off = on && !std::strcmp(on, "0");\n'
        '    std::printf("Available devices:\\n  %s\\n", off ? "(none)" : "WAVESMITH: kernels"); return module() - 1; }\n'
    ),
    "LICENSE": "MIT\n",
    "ggml/keep.txt": "a folder for the git question\n",
    "models/large.bin": "not needed by a build\n",
    ".git": "gitdir: ../nowhere\n",
}


def write(folder: Path) -> Path:
    """Create the tree in `folder` and return it."""
    for name, text in {"CMakeLists.txt": _CMAKE, **_SOURCES}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder
