"""What counts as another ggml: each of the four checks of backend/ggml/tree_identity.cpp, against a real ggml library."""

from __future__ import annotations

from pathlib import Path

import module_builds
import pytest
from wavesmith import build_checks, resources

pytestmark = pytest.mark.build

_MAIN = '#include "tree_identity.h"\nint main() { return wavesmith::is_for_running_ggml() && wavesmith::is_for_running_ggml() ? 0 : 1; }\n'


@pytest.fixture(scope="module")
def ggml(cache_folder: Path) -> module_builds.PlainGgml:
    return module_builds.plain_ggml(module_builds.NEWEST, cache_folder)


@pytest.fixture(scope="module")
def op_names(ggml, tmp_path_factory) -> list[str]:
    """What cmake/WavesmithGgmlTree.cmake reads from the tree."""
    script = tmp_path_factory.mktemp("names") / "names.cmake"
    include = resources.data_root() / "cmake" / "WavesmithGgmlTree.cmake"
    script.write_text(f'include("{include}")\nwavesmith_read_op_names("{ggml.tree}/ggml" names)\nmessage("${{names}}")\n')
    return [name.strip('"') for name in module_builds.run(build_checks.program("cmake"), "-P", script).stderr.strip().split(";")]


def refusal(ggml, folder: Path, version: str, commit: str, op_names: list[str], *options: str) -> str | None:
    """Compile the check for a tree with these marks and run it in `ggml`: None if it agrees, else its line."""
    names = ", ".join(f'"{name}"' for name in op_names)
    (folder / "wavesmith-ggml-tree.h").write_text(
        f'static const char built_version[] = "{version}";\n'
        f'static const char built_commit[] = "{commit}";\n'
        f"static const char * const built_op_names[] = {{ {names} }};\n"
    )
    (folder / "main.cpp").write_text(_MAIN)
    sources = [folder / "main.cpp", *(resources.backend() / "ggml" / name for name in ("tree_identity.cpp", "log.cpp"))]
    program = folder / "check"
    module_builds.compile_program(
        program, sources, ggml.tree, ggml.libraries, f"-I{folder}", f"-I{resources.backend()}/ggml", *options, libraries=("ggml-base",)
    )
    result = module_builds.run(program, check=False)
    lines = result.stderr.splitlines()
    assert (result.returncode, len(lines)) in ((0, 0), (1, 1))
    return lines[0] if lines else None


def test_the_same_tree_agrees(ggml, tmp_path, op_names):
    assert refusal(ggml, tmp_path, ggml.ggml_version, ggml.commit, op_names) is None


def test_an_unknown_or_longer_commit_agrees(ggml, tmp_path, op_names):
    assert refusal(ggml, tmp_path, ggml.ggml_version, "unknown", op_names) is None
    assert refusal(ggml, tmp_path, ggml.ggml_version, ggml.commit[:7], op_names) is None
    assert refusal(ggml, tmp_path, ggml.ggml_version, ggml.commit + "abc", op_names) is None


def test_another_version_is_refused(ggml, tmp_path, op_names):
    line = refusal(ggml, tmp_path, "0.1.2", ggml.commit, op_names)
    assert "built for ggml 0.1.2" in line and f"runs ggml {ggml.ggml_version}" in line and line.endswith("versions differ")


def test_another_commit_is_refused(ggml, tmp_path, op_names):
    line = refusal(ggml, tmp_path, ggml.ggml_version, "0123456ab", op_names)
    assert "(0123456ab)" in line and f"({ggml.commit})" in line and line.endswith("commits differ")


def test_another_operation_number_is_refused(ggml, tmp_path, op_names):
    swapped = [*op_names[:20], op_names[21], op_names[20], *op_names[22:]]
    line = refusal(ggml, tmp_path, ggml.ggml_version, ggml.commit, swapped)
    assert line.endswith(f"operation 20 is not {op_names[21]}")


def test_another_tensor_struct_is_refused(ggml, tmp_path, op_names):
    # Programs do build ggml with room for longer names.
    line = refusal(ggml, tmp_path, ggml.ggml_version, ggml.commit, op_names, "-DGGML_MAX_NAME=128")
    assert line.endswith("the layout of a tensor differs")
