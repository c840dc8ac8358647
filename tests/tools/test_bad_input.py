"""What users get wrong or cannot help, all the way through the command line: one clear line, nothing half-done."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import fake_llama
import mini_tree
import pytest
from wavesmith import build, cli, package_index, patching, source, web
from wavesmith.progress import Steps

READ_ONLY = Path("/sys/wavesmith")  # nobody, not even root, makes folders there


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("WAVESMITH_CACHE", str(tmp_path / "cache"))
    package_index.from_pip.cache_clear()
    yield tmp_path / "cache"
    package_index.from_pip.cache_clear()


@pytest.fixture
def fake(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The stand-in for llama.cpp as the newest version."""
    tree = fake_llama.write(tmp_path / "tree")
    monkeypatch.setattr(source, "resolve", lambda llama: source.Identity("1.0", "1.0", "abcdef123456"))
    monkeypatch.setattr(build, "_fetch", lambda plan, via, step: tree)
    monkeypatch.setattr(patching, "apply", lambda folder: (folder / "patched").touch())
    monkeypatch.setattr(patching, "refuse_other_patches", lambda folder: None)
    return tree


def line(capsys: pytest.CaptureFixture[str]) -> str:
    """The error line, which must be the only one."""
    errors = [text for text in capsys.readouterr().err.splitlines() if text.startswith(("error:", "Traceback"))]
    assert len(errors) == 1 and errors[0].startswith("error: ")
    return errors[0]


def test_read_only_cache_folder(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("WAVESMITH_CACHE", str(READ_ONLY))
    assert cli.main(["source", "get"]) == 2
    assert f"cannot use the cache folder {READ_ONLY}/sources: " in (message := line(capsys))
    assert "choose another with WAVESMITH_CACHE" in message


def test_read_only_build_folder(fake: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(build.build_checks, "check_disk", lambda folder: None)  # /sys has no free space either
    assert cli.main(["build", "--target", "host", "--out", str(READ_ONLY)]) == 2
    assert f"cannot make the folder {READ_ONLY}: " in line(capsys)


def test_read_only_export_folder(fake_cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["export", str(READ_ONLY)]) == 2
    assert str(READ_ONLY) in line(capsys)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS], ids=errno.errorcode.get)
def test_any_other_write_that_is_not_allowed(fake: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int) -> None:
    def refuse(*_) -> None:
        raise OSError(number, os.strerror(number), "/some/file")

    monkeypatch.setattr(build, "write_json", refuse)
    assert cli.main(["build", "--target", "host"]) == 2
    assert line(capsys) == f"error: no permission for /some/file: {os.strerror(number)}"


def test_folder_that_is_not_llama(cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "photos").mkdir()
    assert cli.main(["build", "--target", "host", "--llama", str(tmp_path / "photos")]) == 2
    assert "photos: not a llama.cpp tree (ggml/CMakeLists.txt is missing)" in line(capsys)
    assert not cache.exists()


def test_folder_that_is_not_there(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["build", "--target", "host", "--llama", "/no/such/tree"]) == 2
    assert "/no/such/tree: not a supported llama.cpp version" in line(capsys)


def test_dirty_tree_is_built_as_it_is_and_that_is_said(cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = mini_tree.write(tmp_path / "my llama")
    git = ["git", "-C", str(tree), "-c", "user.name=n", "-c", "user.email=e@x"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "all"], check=True)
    assert cli.main(["build", "--target", "host", "--llama", str(tree), "--plan"]) == 0
    clean = capsys.readouterr().out
    (tree / "ggml/src/CMakeLists.txt").write_text((tree / "ggml/src/CMakeLists.txt").read_text() + "# mine\n")
    assert cli.main(["build", "--target", "host", "--llama", str(tree), "--plan"]) == 0
    dirty = capsys.readouterr().out
    assert "uncommitted" not in clean and f"{tree} has 1 uncommitted change(s), which are part of this build" in dirty
    prefix = [[row for row in text.splitlines() if row.startswith("prefix")] for text in (clean, dirty)]
    assert prefix[0] != prefix[1]


def test_half_patched_tree_is_refused(cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = mini_tree.write(tmp_path / "tree")
    patching.apply(tree)
    (tree / "ggml/src/ggml-custom-kernels.cmake").unlink()
    before = mini_tree.contents(tree)
    assert cli.main(["build", "--target", "host", "--llama", str(tree)]) == 7
    assert "the patch is only partly applied" in line(capsys)
    assert mini_tree.contents(tree) == before
    assert [path.name for path in (cache / "builds").glob("host-*/*")] == ["plan.json"]


def test_no_network(cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither git nor the index answers: the port is closed."""
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setattr("wavesmith.git.answers", lambda repository: "no answer within 10 s")
    monkeypatch.setattr(web, "BACKOFF", 0.0)
    assert cli.main(["build", "--target", "host"]) == 5
    assert "127.0.0.1:9" in line(capsys)
    assert not list((cache / "sources").glob("0*/"))


def test_proxy_that_is_not_there_is_named(cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://index.invalid/simple")
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(web, "BACKOFF", 0.0)
    assert cli.main(["source", "get", "--via", "sdist"]) == 5
    assert "http://index.invalid/simple/llama-cpp-python/: " in (message := line(capsys))
    assert message.endswith("(through the proxy http://127.0.0.1:9 of HTTP_PROXY)")


@pytest.mark.parametrize("point", ["fetch", "copy of the tree", "copy of the module", "configure", "check", "last write"])
def test_ctrl_c_at_any_point_leaves_a_build_that_goes_on(fake: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], point: str) -> None:
    def interrupt(*_, **__) -> None:
        raise KeyboardInterrupt

    real = build.write_json
    with monkeypatch.context() as patch:
        if point == "fetch":
            patch.setattr(build, "_fetch", interrupt)
        elif point == "copy of the tree":
            patch.setattr(patching, "apply", interrupt)
        elif point == "copy of the module":
            patch.setattr(build, "_copy_module", interrupt)
        elif point == "configure":
            patch.setattr(build.process, "run", interrupt)
        elif point == "check":
            patch.setattr(build.process, "capture", interrupt)
        else:
            patch.setattr(build, "write_json", lambda path, content: interrupt() if path.name == build.MANIFEST else real(path, content))
        assert cli.main(["build", "--target", "host"]) == 130
        assert line(capsys) == "error: interrupted"
    assert build.find() is None
    assert not list(build.build_plan.resolve().prefix.glob("*.partial"))
    if point in ("configure", "last write"):
        assert build.ensure(steps=Steps("build", quiet=True)) == build.find()


def test_output_that_no_terminal_takes_is_still_one_line(cache: Path) -> None:
    """A locale without UTF-8 must not turn a path with an umlaut into a traceback."""
    command = [sys.executable, "-m", "wavesmith", "build", "--target", "host", "--llama", "/no/größer"]
    environment = {**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    result = subprocess.run(command, capture_output=True, check=False, env=environment)
    assert result.returncode == 2
    assert result.stderr.startswith(b"error: ") and result.stderr.count(b"\n") == 1


def test_damaged_lists_of_builds_do_not_stop_anything(fake_cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (fake_cache / "builds" / "default.json").write_text("{")
    (fake_cache / "builds" / "stray file").write_text("")
    assert cli.main(["builds", "list", "--json"]) == 0
    assert [row["state"] for row in json.loads(capsys.readouterr().out)] == ["finished"]
