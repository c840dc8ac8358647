"""One real build of the newest supported llama.cpp, as `wavesmith build` makes it."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from wavesmith import build, cmake_file_api, lock

pytestmark = pytest.mark.build


def test_it_is_the_newest_supported_version(host_build) -> None:
    newest = lock.load().newest
    assert (host_build.llama_version, host_build.commit) == (newest.version, newest.commit)


def test_finding_it_again_is_quick(host_build) -> None:
    started = time.monotonic()
    assert build.ensure() == host_build
    assert time.monotonic() - started < 5.0  # it takes about 0.1 s; a rebuild would take minutes


@pytest.mark.parametrize("name", ["llama-bench", "test-backend-ops", "llama-quantize", "llama-perplexity", "llama-completion"])
def test_programs_find_their_libraries_from_anywhere(host_build, name: str) -> None:
    """With no LD_LIBRARY_PATH, from an unrelated folder, and also after the folder was moved: run paths are relative."""
    result = subprocess.run(["ldd", host_build.program(name)], cwd="/", env={"PATH": os.defpath}, capture_output=True, text=True, check=True)
    ours = [line.split("=>")[1].split()[0] for line in result.stdout.splitlines() if "libggml" in line or "libllama" in line]
    assert ours and "not found" not in result.stdout
    assert all(Path(path).resolve().is_relative_to(host_build.prefix.resolve()) for path in ours)
    dynamic = subprocess.run(["readelf", "-d", host_build.program(name)], capture_output=True, text=True, check=True).stdout
    paths = [line for line in dynamic.splitlines() if "RUNPATH" in line or "RPATH" in line]
    assert paths and all("$ORIGIN" in line and str(host_build.prefix) not in line for line in paths)


def test_module_is_part_of_the_build(host_build) -> None:
    reply = cmake_file_api.read(host_build.prefix / "build")
    assert reply.artifact("ggml-wavesmith").is_file()
    assert reply.cache["GGML_CUSTOM_KERNELS"] == "wavesmith"
    assert Path(reply.cache["WAVESMITH_PATH"]).is_relative_to(host_build.prefix)


def test_manifest_names_commit_patch_and_compilers(host_build) -> None:
    manifest = json.loads((host_build.prefix / build.MANIFEST).read_text())
    assert manifest["plan"]["llama_commit"] == host_build.commit
    assert manifest["plan"]["patch_set"] and manifest["plan"]["module_hash"]
    assert set(manifest["compilers"]) >= {"C", "CXX"}


def test_programs_know_their_commit(host_build) -> None:
    result = subprocess.run([host_build.program("llama-completion"), "--version"], capture_output=True, text=True, check=True, env=host_build.environment())
    assert host_build.commit[:9] in result.stdout + result.stderr
