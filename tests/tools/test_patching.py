"""The patch on a small made-up tree: apply, twice, revert, refuse."""

from __future__ import annotations

import os
import re
from pathlib import Path

import mini_tree
import pytest
from click.testing import CliRunner
from wavesmith import hunks, patching, replace_files
from wavesmith.commands.patch import command
from wavesmith.errors import BadInput, CannotBuild, PatchRefused

GPU = "ggml/src/ggml-cuda/ggml-cuda.cu"
REGISTRY = "ggml/src/ggml-backend-reg.cpp"
SKIP = """                if ((node->flags & GGML_TENSOR_FLAG_COMPUTE) == 0) {
                    continue;
                }
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return mini_tree.write(tmp_path / "tree")


def refused(tree: Path, action=patching.apply) -> str:
    """The message of a refusal, after checking that it changed nothing."""
    before = mini_tree.contents(tree)
    with pytest.raises(PatchRefused) as error:
        action(tree)
    assert mini_tree.contents(tree) == before
    assert "\n" not in str(error.value)
    return str(error.value)


def states(tree: Path) -> dict[str, str]:
    return {state.name: state.state for state in patching.check(tree)}


def test_apply_twice_and_revert(tree: Path) -> None:
    before = mini_tree.contents(tree)
    assert set(states(tree).values()) == {patching.APPLIES}
    assert patching.apply(tree)
    after = mini_tree.contents(tree)
    assert set(states(tree).values()) == {patching.APPLIED}
    assert not patching.apply(tree)
    assert mini_tree.contents(tree) == after
    assert set(after) - set(before) == {file.target for file in hunks.load().files}
    assert patching.revert(tree)
    assert mini_tree.contents(tree) == before
    assert not patching.revert(tree)


def test_text_lands_beside_its_anchor(tree: Path) -> None:
    patching.apply(tree)
    text = (tree / GPU).read_text()
    call = next(insert for insert in hunks.load().inserts if insert.name == "gpu call")
    assert text.count(call.text) == 1
    assert text.index(SKIP) + len(SKIP) == text.index(call.text)
    reg = (tree / REGISTRY).read_text()
    assert reg.index(">>> custom kernels: registry list") < reg.index("#ifdef GGML_USE_BLAS")
    assert reg.index(">>> custom kernels: registry load list") < reg.index('load_best("blas"')
    assert (tree / "ggml/src/ggml-custom-kernels.h").read_bytes() == (hunks.resources.backend() / "hook/ggml-custom-kernels.h").read_bytes()


@pytest.mark.parametrize("name", sorted(mini_tree.FILES))
def test_crlf_is_kept(tree: Path, name: str) -> None:
    path = tree / name
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    before = mini_tree.contents(tree)
    assert patching.apply(tree)
    assert not re.search(rb"[^\r]\n", path.read_bytes())
    assert not patching.apply(tree)
    patching.revert(tree)
    assert mini_tree.contents(tree) == before


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
def test_last_line_without_newline(tree: Path, ending: bytes) -> None:
    path = tree / "ggml/src/ggml-hip/CMakeLists.txt"
    path.write_bytes(path.read_bytes().replace(b"\n", ending).removesuffix(ending))
    before = mini_tree.contents(tree)
    patching.apply(tree)
    assert path.read_bytes().endswith(b"<<< custom kernels: cmake hip modules")
    assert not patching.apply(tree)
    patching.revert(tree)
    assert mini_tree.contents(tree) == before


def test_modes_are_kept(tree: Path) -> None:
    (tree / GPU).chmod(0o640)
    patching.apply(tree)
    assert (tree / GPU).stat().st_mode & 0o7777 == 0o640
    patching.revert(tree)
    assert (tree / GPU).stat().st_mode & 0o7777 == 0o640


def test_revert_keeps_other_edits(tree: Path) -> None:
    patching.apply(tree)
    mini_tree.edit(tree, GPU, "compute(node);", "compute(node); // \u00e4ndert\u00ff")
    mini_tree.edit(tree, "ggml/CMakeLists.txt", "add_subdirectory(src)\n", "add_subdirectory(src)\n\n\nmessage(x)")
    assert not patching.apply(tree)
    patching.revert(tree)
    assert mini_tree.contents(tree)[GPU] == mini_tree.FILES[GPU].replace("compute(node);", "compute(node); // \u00e4ndert\u00ff").encode()
    assert (tree / "ggml/CMakeLists.txt").read_text() == mini_tree.FILES["ggml/CMakeLists.txt"] + "\n\nmessage(x)"


@pytest.mark.parametrize("insert", hunks.load().inserts, ids=lambda insert: insert.name)
def test_missing_anchor_is_refused(tree: Path, insert: hunks.Insert) -> None:
    mini_tree.edit(tree, insert.file, insert.anchor, "\n".join("gone" for _ in insert.anchor.split("\n")))
    message = refused(tree)
    assert insert.file in message
    assert insert.anchor.split("\n")[0].strip() in message
    assert states(tree)[insert.name] == patching.MISSING


@pytest.mark.parametrize("insert", hunks.load().inserts, ids=lambda insert: insert.name)
def test_ambiguous_anchor_is_refused(tree: Path, insert: hunks.Insert) -> None:
    mini_tree.edit(tree, insert.file, insert.anchor, f"{insert.anchor}\n{insert.anchor}")
    message = refused(tree)
    assert insert.file in message
    assert insert.anchor.split("\n")[0].strip() in message
    assert states(tree)[insert.name] == patching.AMBIGUOUS


@pytest.mark.parametrize(
    ("name", "file", "old", "new"),
    [
        ("gpu call", GPU, "ggml_cuda_graph_evaluate_and_capture(context", "ggml_cuda_graph_evaluate(context"),
        ("gpu registration", GPU, "ggml_backend_cuda_reg_get_proc_address(", "ggml_backend_other_get_proc_address("),
        ("registry list", REGISTRY, "    ggml_backend_registry() {", "    void fill() {"),
        ("registry list", REGISTRY, "    ggml_backend_registry() {", "    ~ggml_backend_registry() {"),
        ("registry load list", REGISTRY, "ggml_backend_load_all_from_path(", "ggml_backend_load_some("),
        ("registry declarations", REGISTRY, "struct ggml_backend_registry {", "void f() {\nstruct ggml_backend_registry {"),
        ("gpu glue include", GPU, '#include "ggml-cuda/common.cuh"', 'void f() {\n#include "ggml-cuda/common.cuh"\n}'),
        ("gpu registration", GPU, '    if (strcmp(name, "ggml_backend_reg', '    // if (strcmp(name, "ggml_backend_reg'),
        ("gpu call", GPU, SKIP, f"#if 0\n{SKIP}#endif\n"),
        ("gpu glue include", GPU, '#include "ggml-cuda/common.cuh"', '#if 0\n#include "ggml-cuda/common.cuh"\n#endif'),
        ("registry declarations", REGISTRY, "struct ggml_backend_registry {", "#if 1\n#else\nstruct ggml_backend_registry {\n#endif"),
        ("cmake cuda modules", "ggml/src/ggml-cuda/CMakeLists.txt", "if (CUDAToolkit_FOUND)", "if (NOT CUDAToolkit_FOUND)"),
        ("cmake host modules", "ggml/src/CMakeLists.txt", "ggml_add_backend(OPENVINO)", "if (X)\nggml_add_backend(OPENVINO)\nendif()"),
        ("cmake options", "ggml/CMakeLists.txt", "option(GGML_HIP ", "# option(GGML_HIP "),
    ],
)
def test_anchor_in_the_wrong_place_is_refused(tree: Path, name: str, file: str, old: str, new: str) -> None:
    mini_tree.edit(tree, file, old, new)
    message = refused(tree)
    assert file in message
    assert name in message
    assert states(tree)[name] == patching.WRONG_PLACE


@pytest.mark.parametrize(
    ("action", "what"),
    [
        *((action, what) for action in (patching.apply, patching.revert) for what in ("text", "marker", "doubled", "installed file")),
        (patching.apply, "moved"),  # a revert takes the whole text out wherever it is
    ],
)
def test_edited_patch_is_refused(tree: Path, action, what: str) -> None:
    patching.apply(tree)
    call = next(insert for insert in hunks.load().inserts if insert.name == "gpu call")
    edits = {
        "text": (GPU, "i += custom_nodes - 1;", "i += custom_nodes;"),
        "marker": (GPU, "// <<< custom kernels: gpu call", "// custom kernels: gpu call"),
        "moved": (GPU, call.text, ""),
        "doubled": (GPU, call.text, call.text + call.text),
        "installed file": ("ggml/src/ggml-custom-kernels.h", "#pragma once", "#pragma twice"),
    }
    mini_tree.edit(tree, *edits[what])
    if what == "moved":
        mini_tree.edit(tree, GPU, "                compute(node);\n", "                compute(node);\n" + call.text)
    message = refused(tree, action)
    assert edits[what][0] in message
    assert patching.EDITED in message


@pytest.mark.parametrize("action", [patching.apply, patching.revert])
def test_partly_applied_patch_is_refused(tree: Path, action) -> None:
    patching.apply(tree)
    call = next(insert for insert in hunks.load().inserts if insert.name == "gpu call")
    mini_tree.edit(tree, GPU, call.text, "")
    message = refused(tree, action)
    assert "partly applied" in message
    assert "gpu call" in message
    assert not patching.can_apply(patching.check(tree))


def test_kernel_anvil_is_named(tree: Path) -> None:
    (tree / "ggml/src/ggml-cuda/smithy-config.h").write_text("#pragma once\n")
    assert "kernel-anvil" in refused(tree)


def test_include_of_kernel_anvil_is_named(tree: Path) -> None:
    (tree / "ggml/src/ggml-cuda/mmvq.cu").write_text('#include "smithy-config.h"\n')
    message = refused(tree)
    assert "kernel-anvil" in message
    assert "mmvq.cu" in message


def test_foreign_custom_kernels_are_named(tree: Path) -> None:
    mini_tree.edit(tree, "ggml/CMakeLists.txt", "add_subdirectory(src)", "set(GGML_CUSTOM_KERNELS x)\nadd_subdirectory(src)")
    assert "another GGML_CUSTOM_KERNELS patch" in refused(tree)


def test_foreign_patch_does_not_hinder_revert(tree: Path) -> None:
    before = mini_tree.contents(tree)
    patching.apply(tree)
    (tree / "ggml/src/ggml-cuda/smithy-config.h").write_text("#pragma once\n")
    assert patching.revert(tree)
    assert mini_tree.contents(tree) == {**before, "ggml/src/ggml-cuda/smithy-config.h": b"#pragma once\n"}


@pytest.mark.parametrize(("old", "new"), [("MINOR 25", "MINOR 8"), ("GGML_VERSION_MINOR 25", "GGML_MINOR 25")])
def test_unsupported_ggml_is_refused(tree: Path, old: str, new: str) -> None:
    mini_tree.edit(tree, "ggml/CMakeLists.txt", old, new)
    assert patching.UNSUPPORTED in refused(tree)


@pytest.mark.parametrize("action", [patching.check, patching.apply, patching.revert])
def test_not_a_tree(tmp_path: Path, action) -> None:
    for folder in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(BadInput, match=re.escape(str(folder))):
            action(folder)


@pytest.mark.parametrize("name", [GPU, "ggml/src/ggml-hip/CMakeLists.txt"])
def test_missing_file_is_refused(tree: Path, name: str) -> None:
    (tree / name).unlink()
    assert name in refused(tree)


def test_folder_in_place_of_a_file_is_refused(tree: Path) -> None:
    (tree / GPU).unlink()
    (tree / GPU).mkdir()
    assert GPU in refused(tree)


def test_link_out_of_the_tree_is_refused(tree: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.cu"
    (tree / GPU).rename(outside)
    (tree / GPU).symlink_to(outside)
    before = outside.read_bytes()
    assert "link out of the tree" in refused(tree)
    assert outside.read_bytes() == before


def test_binary_in_place_of_source_is_refused(tree: Path) -> None:
    (tree / GPU).write_bytes(bytes(range(256)) * 40)
    assert GPU in refused(tree)


@pytest.mark.parametrize("failing", range(1, 10))
@pytest.mark.parametrize("error", [OSError(30, "Read-only file system"), KeyboardInterrupt()], ids=["read-only", "interrupt"])
def test_failed_write_is_rolled_back(tree: Path, monkeypatch: pytest.MonkeyPatch, failing: int, error: BaseException) -> None:
    before = mini_tree.contents(tree)
    calls = 0
    real = os.replace

    def replace(source, target) -> None:
        nonlocal calls
        calls += 1
        if calls == failing:
            raise error
        real(source, target)

    monkeypatch.setattr(replace_files.os, "replace", replace)
    with pytest.raises(PatchRefused if isinstance(error, OSError) else KeyboardInterrupt):
        patching.apply(tree)
    assert mini_tree.contents(tree) == before


def test_full_disk_while_staging(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = mini_tree.contents(tree)

    def fsync(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(replace_files.os, "fsync", fsync)
    with pytest.raises(CannotBuild, match=r"cannot write \S+/ggml/CMakeLists.txt: No space left.*nothing was changed"):
        patching.apply(tree)
    assert mini_tree.contents(tree) == before


def test_patch_set_id_follows_the_data(tmp_path: Path) -> None:
    import shutil

    root = hunks.resources.data_root()
    for part in ("patches", "backend/hook"):
        shutil.copytree(root / part, tmp_path / part)
    toml = tmp_path / "patches/hunks.toml"
    assert hunks.read(toml, tmp_path).identity == patching.patch_set_id()
    seen = {patching.patch_set_id()}
    for name in ("patches/text/call.cu", "patches/files/custom-kernels.cuh", "backend/hook/ggml-custom-kernels.h", "patches/hunks.toml"):
        with open(tmp_path / name, "a") as file:
            file.write("# x\n" if name.endswith("toml") else "// x\n")
        seen.add(hunks.read(toml, tmp_path).identity)
    assert len(seen) == 5


def test_diff_can_be_applied_with_git(tree: Path) -> None:
    import subprocess

    (tree / "ggml/src/ggml-hip/CMakeLists.txt").write_text(mini_tree.FILES["ggml/src/ggml-hip/CMakeLists.txt"].rstrip("\n"))
    before = mini_tree.contents(tree)
    text = patching.unified_diff(tree)
    patching.apply(tree)
    after = mini_tree.contents(tree)
    assert patching.unified_diff(tree) == text
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tree.parent)}
    subprocess.run(["git", "apply", "-R"], cwd=tree, input=text, text=True, check=True, env=environment)
    assert mini_tree.contents(tree) == before
    subprocess.run(["git", "apply"], cwd=tree, input=text, text=True, check=True, env=environment)
    assert mini_tree.contents(tree) == after


def test_commands(tree: Path) -> None:
    run = CliRunner()
    assert run.invoke(command, ["check", str(tree)]).exit_code == 0
    assert run.invoke(command, ["apply", str(tree)]).output == "applied\n"
    assert run.invoke(command, ["apply", str(tree)]).output == "already applied, nothing changed\n"
    checked = run.invoke(command, ["check", str(tree)])
    assert checked.exit_code == 0
    assert all(state.name in checked.output for state in patching.check(tree))
    assert run.invoke(command, ["revert", str(tree)]).output == "reverted\n"
    assert run.invoke(command, ["revert", str(tree)]).output == "not applied, nothing changed\n"
    mini_tree.edit(tree, REGISTRY, 'ggml_backend_load_best("blas"', 'ggml_backend_load_best("open"')
    result = run.invoke(command, ["check", str(tree)])
    assert isinstance(result.exception, PatchRefused)
    assert patching.MISSING in result.output


@pytest.mark.parametrize("insert", hunks.load().inserts, ids=lambda insert: insert.name)
@pytest.mark.parametrize("change", ["edited", "doubled", "gone"])
def test_a_changed_anchor_does_not_hinder_revert(tree: Path, insert: hunks.Insert, change: str) -> None:
    new = {"edited": insert.anchor + " // mine", "doubled": f"{insert.anchor}\n{insert.anchor}", "gone": "mine"}[change]
    mini_tree.edit(tree, insert.file, insert.anchor, new)
    wanted = mini_tree.contents(tree)
    mini_tree.edit(tree, insert.file, new, insert.anchor)
    patching.apply(tree)
    mini_tree.edit(tree, insert.file, insert.anchor, new)
    assert patching.revert(tree)
    assert mini_tree.contents(tree) == wanted


def test_a_moved_text_is_taken_out(tree: Path) -> None:
    before = mini_tree.contents(tree)
    patching.apply(tree)
    call = next(insert for insert in hunks.load().inserts if insert.name == "gpu call")
    mini_tree.edit(tree, GPU, call.text, "")
    mini_tree.edit(tree, GPU, "                compute(node);\n", "                compute(node);\n" + call.text)
    assert patching.revert(tree)
    assert mini_tree.contents(tree) == before


@pytest.mark.parametrize("file", hunks.load().files, ids=lambda file: file.name)
@pytest.mark.parametrize("change", ["deleted", "line endings"])
def test_an_added_file_that_is_gone_or_converted_does_not_hinder_revert(tree: Path, file: hunks.File, change: str) -> None:
    before = mini_tree.contents(tree)
    patching.apply(tree)
    path = tree / file.target
    if change == "deleted":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    said: list[str] = []
    assert patching.revert(tree, said.append)
    assert mini_tree.contents(tree) == before
    (line,) = said
    assert line.startswith(file.target) and ("gone" if change == "deleted" else "line endings") in line


def test_added_files_that_are_left_alone_are_taken_out(tree: Path) -> None:
    before = mini_tree.contents(tree)
    patching.apply(tree)
    for name, content in before.items():
        (tree / name).write_bytes(content)
    said: list[str] = []
    assert patching.revert(tree, said.append)
    assert mini_tree.contents(tree) == before
    assert said == ["only files that the patch adds were left of it"]
    assert not patching.revert(tree)
