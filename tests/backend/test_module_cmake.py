"""How backend/CMakeLists.txt refuses what it cannot build, and where it can be used from."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import module_builds
import pytest
from wavesmith import __version__, lock, resources, source


def refusal(sources: Path, folder: Path, **options: str) -> str:
    result = module_builds.configure(sources, folder, options, check=False)
    assert result.returncode != 0
    return " ".join(result.stderr.split())


def test_version_is_the_package_version():
    text = (resources.backend() / "CMakeLists.txt").read_text()
    assert re.search(r"set\(WAVESMITH_VERSION (\S+)\)", text)[1] == __version__


def test_tree_that_is_none_is_refused(tmp_path):
    message = refusal(resources.backend(), tmp_path / "build", WAVESMITH_GGML_TREE=str(tmp_path))
    assert f"WAVESMITH_GGML_TREE={tmp_path} is no llama.cpp source tree" in message


def test_missing_library_is_refused(tmp_path):
    header = tmp_path / "tree" / "ggml" / "src" / "ggml-backend-impl.h"
    header.parent.mkdir(parents=True)
    header.touch()
    message = refusal(resources.backend(), tmp_path / "build", WAVESMITH_GGML_TREE=str(tmp_path / "tree"), WAVESMITH_GGML_LIBRARY="/missing/libggml-base.so")
    assert "WAVESMITH_GGML_LIBRARY=/missing/libggml-base.so does not exist" in message


def test_backend_without_its_cmake_folder_is_refused(tmp_path):
    shutil.copytree(resources.backend(), tmp_path / "backend")
    assert "needs wavesmith's cmake folder beside it" in refusal(tmp_path / "backend", tmp_path / "build")


def test_copy_of_backend_and_cmake_configures(tmp_path):
    for folder in ("backend", "cmake"):
        shutil.copytree(resources.data_root() / folder, tmp_path / folder)
    module_builds.configure(tmp_path / "backend", tmp_path / "build", {})
    types = {path.stem for path in (resources.backend() / "quants").glob("*.h")}
    instances = {path.stem.removeprefix("mmq_") for path in (tmp_path / "build" / "instances").glob("mmq_*.cpp")}
    assert instances == types and len(types) >= 12


@pytest.mark.build
@pytest.mark.parametrize("version", module_builds.VERSIONS)
def test_glue_compiles_against_every_supported_tree(version, tmp_path):
    tree = source.get(version).path
    script = tmp_path / "tree.cmake"
    script.write_text(
        f'include("{resources.data_root()}/cmake/WavesmithGgmlTree.cmake")\n'
        f'wavesmith_read_ggml_version("{tree}/ggml" version)\n'
        f'wavesmith_read_op_names("{tree}/ggml" names)\n'
        'list(JOIN names ", " names)\n'
        f'file(WRITE "{tmp_path}/wavesmith-ggml-tree.h" "static const char built_version[] = \\"${{version}}\\";\n'
        'static const char built_commit[] = \\"unknown\\";\nstatic const char * const built_op_names[] = { ${names} };\n")\n'
        "message(${version})\n"
    )
    assert module_builds.run(module_builds.build_checks.program("cmake"), "-P", script).stderr.strip() == lock.load().by_version(version).ggml
    compiler = module_builds.build_checks.compilers()[1].path
    definitions = ["GGML_BACKEND_DL", "GGML_SHARED", "GGML_BACKEND_SHARED", "GGML_BACKEND_BUILD", 'WAVESMITH_VERSION="0"']
    includes = [tmp_path, resources.backend(), tree / "ggml" / "include", tree / "ggml" / "src"]
    sources = sorted((resources.backend() / "ggml").glob("*.cpp"))
    assert len(sources) >= 7
    for path in sources:
        options = [*(f"-D{name}" for name in definitions), *(f"-I{folder}" for folder in includes)]
        module_builds.run(compiler, "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", *options, path)
