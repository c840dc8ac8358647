"""The cache folder: a place that cannot be used is bad input."""

from __future__ import annotations

from pathlib import Path

import pytest
from wavesmith import cache, cli
from wavesmith.errors import BadInput


@pytest.mark.parametrize("place", ["file", "file/below", "loop", "x" * 300])
def test_unusable_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    monkeypatch.setenv("WAVESMITH_CACHE", str(tmp_path / place))
    with pytest.raises(BadInput, match=r"cannot use the cache folder .*WAVESMITH_CACHE"):
        cache.folder("logs")


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAVESMITH_CACHE", str(tmp_path))
    assert cache.folder("logs") == tmp_path / "logs"
    monkeypatch.setattr(cache.os, "access", lambda path, mode: False)
    with pytest.raises(BadInput, match="no permission"):
        cache.folder("logs")


def test_full_disk_is_no_bad_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def mkdir(*_arguments: object, **_options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setenv("WAVESMITH_CACHE", str(tmp_path))
    monkeypatch.setattr(cache.Path, "mkdir", mkdir)
    with pytest.raises(OSError, match="No space left"):
        cache.folder("logs")


@pytest.mark.parametrize("arguments", [["source", "get"], ["validate"], ["build"], ["bench"], ["quickstart"]])
def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("WAVESMITH_CACHE", str(tmp_path / "file"))
    assert cli.main(arguments) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1 and message.startswith("error: cannot use the cache folder")
