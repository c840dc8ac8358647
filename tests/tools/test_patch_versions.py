"""`wavesmith patch check --all`: every supported version, and anchors that moved; on made-up trees."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import mini_tree
import pytest
from click.testing import CliRunner
from wavesmith import cli, lock, patch_versions, patching, source
from wavesmith.commands.patch import command
from wavesmith.errors import DownloadFailed

GPU = "ggml/src/ggml-cuda/ggml-cuda.cu"
NEWEST, *OLDER = [version.version for version in lock.load().versions]


@pytest.fixture
def trees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """A small tree for every supported version, in place of the real ones. A version that is taken out cannot be fetched."""
    found = {version: mini_tree.write(tmp_path / version) for version in (NEWEST, *OLDER)}

    def get(version: str, say=None) -> SimpleNamespace:
        if version not in found:
            raise DownloadFailed("the index does not answer")
        return SimpleNamespace(path=found[version])

    monkeypatch.setattr(source, "get", get)
    return found


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    return mini_tree.write(tmp_path / "mine")


def edit(tree: Path, old: str, new: str) -> None:
    text = (tree / GPU).read_text()
    assert text.count(old) == 1
    (tree / GPU).write_text(text.replace(old, new))


def invoke(*arguments: str) -> tuple[int, list[str], str]:
    """Exit code, stdout's lines, stderr."""
    from contextlib import redirect_stderr, redirect_stdout
    from io import StringIO

    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = cli.main(["patch", "check", *arguments])
    return code, out.getvalue().splitlines(), err.getvalue()


def changes(tree: Path) -> dict[str, patch_versions.AnchorChange]:
    return {change.insert.name: change for change in patch_versions.compare(tree, patch_versions.check_supported())}


def test_every_supported_version_is_tried(trees) -> None:
    code, lines, _ = invoke("--all")
    assert code == 0
    assert [line.split()[1] for line in lines] == [NEWEST, *OLDER]
    assert all(line.endswith("the patch applies") for line in lines)


def test_a_patched_tree_in_the_cache_counts_as_well(trees) -> None:
    patching.apply(trees[NEWEST])
    assert invoke("--all")[0] == 0


def test_version_that_the_patch_does_not_fit_is_named(trees) -> None:
    edit(trees[OLDER[0]], "GGML_TENSOR_FLAG_COMPUTE) == 0) {\n                    continue;", "GGML_TENSOR_FLAG_COMPUTE) == 0) {\n                    break;")
    code, lines, message = invoke("--all")
    assert code == 7
    assert f"error: llama.cpp {OLDER[0]}: {GPU}: hunk" in message and "anchor not found" in message
    assert len(lines) == len(trees)


def test_version_that_cannot_be_fetched_does_not_hide_the_others(trees) -> None:
    del trees[OLDER[-1]]
    code, lines, message = invoke("--all")
    assert code == 5
    assert lines[-1].endswith("not fetched: the index does not answer")
    assert f"could not be fetched: llama.cpp {OLDER[-1]}" in message


def test_anchors_that_only_shifted_fit(trees, mine: Path) -> None:
    edit(mine, '#include "ggml-cuda.h"\n', '// one more line\n#include "ggml-cuda.h"\n')
    code, lines, _ = invoke("--all", str(mine))
    assert code == 0
    shifted = next(change for change in changes(mine).values() if change.insert.file == GPU and change.insert.inside)
    assert (shifted.verdict, shifted.since) == (patch_versions.FITS, NEWEST)
    assert shifted.now[0].line == shifted.before.line + 1
    assert sum(": fits: line " in line for line in lines) == len(changes(mine))


def test_anchor_in_another_function_has_moved(trees, mine: Path) -> None:
    edit(mine, "static void ggml_cuda_graph_evaluate_and_capture(", "static void ggml_cuda_evaluate(")
    code, lines, message = invoke("--all", str(mine))
    assert code == 7 and "not in ggml_cuda_graph_evaluate_and_capture" in message
    moved = [line for line in lines if f": moved since {NEWEST}: now line " in line]
    assert len(moved) == 1
    assert (
        "in static void ggml_cuda_evaluate(context" in moved[0] and "was line" in moved[0] and "in static void ggml_cuda_graph_evaluate_and_capture" in moved[0]
    )


def test_anchor_that_is_gone_shows_the_line_most_like_it(trees, mine: Path) -> None:
    """Gone in the newest two supported versions as well: it is compared with the one where it was last."""
    old = '    if (strcmp(name, "ggml_backend_register_host_buffer") == 0) {'
    new = '    if (!strcmp(name, "ggml_backend_register_host_buffer2")) {'
    for tree in (mine, trees[NEWEST], trees[OLDER[0]]):
        edit(tree, old, new)
    gone = [change for change in changes(mine).values() if change.verdict == patch_versions.GONE]
    assert [change.since for change in gone] == [OLDER[1]]
    assert gone[0].nearest[1] == new.strip() and gone[0].before.where.startswith("in static void * ggml_backend_cuda_reg_get_proc_address")


def test_anchor_that_is_there_twice(trees, mine: Path) -> None:
    text = (mine / "ggml/src/CMakeLists.txt").read_text()
    (mine / "ggml/src/CMakeLists.txt").write_text(text + "ggml_add_backend(OPENVINO)\n")
    change = changes(mine)["cmake host modules"]
    assert change.verdict == patch_versions.AMBIGUOUS and len(change.now) == 2


def test_file_that_is_gone(trees, mine: Path) -> None:
    (mine / "ggml/src/ggml-hip/CMakeLists.txt").unlink()
    assert changes(mine)["cmake hip modules"].verdict == patch_versions.UNREADABLE
    assert any("its file is gone since" in line for line in invoke("--all", str(mine))[1])


def test_a_folder_that_is_no_tree_is_refused_before_anything_is_fetched(trees, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "get", lambda *_, **__: pytest.fail("fetched"))
    code, _, message = invoke("--all", str(tmp_path))
    assert code == 2 and "not a llama.cpp tree" in message


def test_nothing_to_compare_with(trees, mine: Path) -> None:
    trees.clear()
    code, _, message = invoke("--all", str(mine))
    assert code == 2 and "no supported version could be fetched" in message


def test_tree_or_all_is_needed() -> None:
    result = CliRunner().invoke(command, ["check"])
    assert result.exit_code == 2 and "TREE" in result.output
