"""A stand-in for a llama.cpp tree: the same targets and folders in a CMake project that builds in a second.

Its programs behave as far as a build's own checks look: `--list-devices` names the device unless WAVESMITH=0.
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
add_library(ggml-wavesmith SHARED module.cpp)
target_link_libraries(ggml-wavesmith PRIVATE ggml-base)
foreach (name llama-bench test-backend-ops llama-quantize llama-perplexity llama-completion)
    add_executable(${name} main.cpp)
    target_link_libraries(${name} PRIVATE ggml-wavesmith)
endforeach()
"""

_SOURCES = {
    "base.cpp": "int base() { return 1; }\n",
    "module.cpp": "int base();\nint module() { return base(); }\n",
    "main.cpp": (
        "#include <cstdio>\n#include <cstdlib>\n#include <cstring>\nint module();\n"
        'int main() { const char * on = std::getenv("WAVESMITH"); bool off = on && !std::strcmp(on, "0");\n'
        '    std::printf("Available devices:\\n  %s\\n", off ? "(none)" : "WAVESMITH: kernels"); return module() - 1; }\n'
    ),
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
