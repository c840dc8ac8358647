"""The table of known failures, row by row, on captured output of CMake and compilers (`logs/NAME.log`)."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from wavesmith import build_verify, cmake_file_api, known_failures, process
from wavesmith.doctor import probe
from wavesmith.errors import BuildFailed, CannotBuild

LOGS = Path(__file__).with_name("logs")
ROWS = {row.name: row for row in known_failures.load()}
NO_ROW = {"options-unused", "plain-error"}  # told in another way, or not known

# Log -> row, and the line that shows the first real error.
EXPECTED = {
    "hipblas-files-missing": ('CMake Error at CMakeLists.txt:3 (find_package): By not providing "Findhipblas.cmake"', "hipblas"),
    "rocblas-files-missing": ('CMake Error at CMakeLists.txt:3 (find_package): By not providing "Findrocblas.cmake"', "rocblas"),
    "hip-lang-missing": ("CMakeDetermineHIPCompiler.cmake:257 (message): The ROCm root directory:", "hip-lang-config.cmake"),
    "hip-files-missing": ("CMake Error at ggml/src/ggml-hip/CMakeLists.txt:46 (find_package)", "no HIP development files"),
    "hip-too-old": ("At least ROCM/HIP V6.1 is required", "ROCM_PATH"),
    "old-headers-first": ("/usr/include/hip/amd_detail/amd_hip_bf16.h:1204:12: error:", "before those of /opt/rocm-7.2.0"),
    "target-unknown-to-compiler": ("clang++: error: unsupported HIP gpu architecture: gfx950", "newer ROCm"),
    "device-libraries-missing": ("clang++: error: cannot find ROCm device library", "ockl.bc"),
    "hip-headers-missing": ("clang++: error: cannot find HIP runtime", "no HIP headers"),
    "cxx-library-missing": ("cuda_wrappers/cmath:27:15: fatal error: 'cmath' file not found", "libstdc++"),
    "out-of-memory": ("g++: fatal error: Killed signal terminated program cc1plus", "--jobs 4"),
    "out-of-memory-hip": ("clang++: error: unable to execute command: Killed", "--jobs 4"),
    "disk-full": ("No space left on device", "wavesmith builds rm"),
    "cmake-too-old": ("CMake 9.28 or higher is required.  You are running version 4.4.5", "install --upgrade cmake"),
    "cmake-too-new": ("Compatibility with CMake < 3.5 has been removed", "cmake<4"),
    "hip-compiler-broken": ("CMakeTestHIPCompiler.cmake:73 (message): The HIP compiler", "offload bundler"),
    "no-gpu-kernels": ("backend/CMakeLists.txt:36 (message)", "--target host"),
    "compiler-crash": ("json-schema-to-grammar.cpp:402:7: internal compiler error", "--jobs 1"),
    "clock-wrong": ("still dirty after 100 tries", "timedatectl"),
    "folder-not-writable": ("Permission denied", "WAVESMITH_CACHE"),
}


def failure(log: str, tmp_path: Path, jobs: int = 8, root: str = "/opt/rocm-7.2.0") -> Exception:
    """The error of a program that prints the log and fails."""
    with pytest.raises((BuildFailed, CannotBuild)) as caught:
        process.run(
            ["sh", "-c", f"cat '{LOGS / log}.log'; exit 1"],
            tmp_path / "compile.log",
            what="the build",
            explain=lambda output: known_failures.explain(output, jobs=jobs, root=root),
        )
    return caught.value


@pytest.mark.parametrize("log", EXPECTED)
def test_known_failure(log: str, tmp_path: Path) -> None:
    row = ROWS[log.removesuffix("-hip") if log not in ROWS else log]
    shown, fix = EXPECTED[log]
    error = failure(log, tmp_path)
    message = str(error)
    assert type(error) is row.error
    assert shown in message and fix in message
    assert f"(log: {tmp_path / 'compile.log'})" in message
    assert "\n" not in message and "{" not in message


def test_every_row_has_a_log_and_every_log_a_test() -> None:
    assert {path.stem for path in LOGS.glob("*.log")} == set(EXPECTED) | NO_ROW
    assert set(ROWS) <= set(EXPECTED)


def test_an_unknown_failure_shows_the_first_real_error_with_its_file(tmp_path: Path) -> None:
    error = failure("plain-error", tmp_path)
    assert type(error) is BuildFailed
    assert "exit code 1: /home/user/llama/ggml/src/gguf.cpp:14:9: error: 'missing' was not declared in this scope (log: " in str(error)


def test_headers_of_the_root_itself_do_not_shadow_it(tmp_path: Path) -> None:
    assert "before those of" not in str(failure("old-headers-first", tmp_path, root="/usr"))


@pytest.mark.parametrize(("root", "package"), [("/usr", "libhipblas-dev"), ("/opt/rocm", "hipblas-dev"), ("/x/_rocm_sdk_devel", "pip install")])
def test_install_command_is_of_this_machine_and_this_layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: str, package: str) -> None:
    monkeypatch.setattr(probe.SystemProbe, "read", lambda self, path: "ID=ubuntu\n")
    assert re.search(rf"(?<![\w-]){package}", str(failure("hipblas-files-missing", tmp_path, root=root)))


def test_fewer_jobs_never_means_none(tmp_path: Path) -> None:
    assert "--jobs 1`" in str(failure("out-of-memory", tmp_path, jobs=1))


def test_options_that_cmake_ignored_are_found_in_its_own_words() -> None:
    with pytest.raises(BuildFailed, match="did not use GGML_HIP, GPU_TARGETS: the build would silently be without a GPU"):
        build_verify.check_options_used(LOGS / "options-unused.log")
    for path in LOGS.glob("*.log"):
        if path.stem != "options-unused":
            build_verify.check_options_used(path)


def test_page_lists_every_row_with_its_exit_code() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "failures.md").read_text()
    listed = {name: int(code) for name, code in re.findall(r"^\| `([a-z-]+)` \| [^|]+ \| (\d) \|$", page, re.MULTILINE)}
    assert listed == {name: row.error.exit_code for name, row in ROWS.items()}


@pytest.fixture
def gpu_plan() -> SimpleNamespace:
    return SimpleNamespace(rocm=SimpleNamespace(compiler=SimpleNamespace(path="/opt/rocm/llvm/bin/clang++")), has_host=False)


def reply(*targets: str, compiler: str = "Clang 19.0.0") -> cmake_file_api.Reply:
    made = {name: cmake_file_api.Target(name, "OBJECT_LIBRARY", ()) for name in targets}
    return cmake_file_api.Reply(made, {}, {"CXX": "GNU 14.2.0", "HIP": compiler})


def test_a_tree_without_the_gpu_backend_is_refused_before_it_is_compiled(gpu_plan, tmp_path: Path) -> None:
    (tmp_path / "log").touch()
    build_verify.check_configured(gpu_plan, reply("ggml-hip", "ggml-custom-kernels-wavesmith"), tmp_path / "log")
    with pytest.raises(BuildFailed, match="CMake made no target ggml-hip: the build would silently be without a GPU"):
        build_verify.check_configured(gpu_plan, reply("ggml-custom-kernels-wavesmith"), tmp_path / "log")
    with pytest.raises(BuildFailed, match="no target ggml-custom-kernels-wavesmith: .* or our kernels"):
        build_verify.check_configured(gpu_plan, reply("ggml-hip"), tmp_path / "log")


def test_a_hip_compiler_that_cmake_cannot_name_is_refused(gpu_plan, tmp_path: Path) -> None:
    """CMake carries on with a compiler it does not recognise, and drops -O3 and -x hip."""
    (tmp_path / "log").touch()
    with pytest.raises(BuildFailed, match=r"does not recognise /opt/rocm/llvm/bin/clang\+\+ as a HIP compiler"):
        build_verify.check_configured(gpu_plan, reply("ggml-hip", "ggml-custom-kernels-wavesmith", compiler="? ?"), tmp_path / "log")
