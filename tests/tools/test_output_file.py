"""Files that the user names: replaced whole, but devices, pipes and links stay what they are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from wavesmith import output_file
from wavesmith.errors import BadInput


def test_a_new_file_and_one_that_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    output_file.write_json(path, {"a": 1})
    path.chmod(0o640)
    output_file.write_json(path, {"a": 2})
    assert json.loads(path.read_text()) == {"a": 2}
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["r.json"]


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_and_its_target_is_written(tmp_path: Path, there: bool) -> None:
    (tmp_path / "data").mkdir()
    target, link, second = tmp_path / "data" / "r.json", tmp_path / "link", tmp_path / "second"
    if there:
        target.write_text("old")
    link.symlink_to("data/r.json")
    second.symlink_to(link)
    output_file.check_writable(second)
    output_file.write(second, b"new")
    assert second.is_symlink() and link.is_symlink() and target.read_bytes() == b"new"
    assert os.listdir(tmp_path / "data") == ["r.json"]


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to(pipe)
    received = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    output_file.check_writable(tmp_path / "link")
    output_file.write(tmp_path / "link", b"through")
    reader.join(10)
    assert received == [b"through"] and pipe.is_fifo()


def test_a_device_is_written_to(tmp_path: Path) -> None:
    link = tmp_path / "null"
    link.symlink_to("/dev/null")
    output_file.check_writable(link)
    output_file.write(link, b"gone")
    assert link.is_symlink() and Path("/dev/null").is_char_device()


@pytest.mark.parametrize("redirected", [True, False])
def test_standard_output_by_its_name(tmp_path: Path, redirected: bool) -> None:
    link = tmp_path / "stdout"
    link.symlink_to("/dev/stdout")  # a link of our own: the machine's one must outlive a failing test
    code = f"from pathlib import Path; from wavesmith import output_file; print('text'); output_file.write(Path({str(link)!r}), b'result\\n'); print('end')"
    if redirected:
        with open(tmp_path / "out", "wb") as file:
            subprocess.run([sys.executable, "-c", code], stdout=file, check=True)
        printed = (tmp_path / "out").read_text()
    else:
        printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed == "text\nresult\nend\n"
    assert link.is_symlink()


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.json"
    path.write_text("before")

    def fsync(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(output_file.os, "fsync", fsync)
    with pytest.raises(OSError, match="No space left") as error:
        output_file.write(path, b"after")
    assert error.value.filename == str(path)
    assert path.read_text() == "before" and os.listdir(tmp_path) == ["r.json"]


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "to folder").symlink_to(tmp_path)
    (tmp_path / "file").write_text("")
    for name in ("loop", "to folder", "none/r.json", "file/r.json", "."):
        with pytest.raises(BadInput, match="cannot write"):
            output_file.check_writable(tmp_path / name)
        with pytest.raises(BadInput, match="cannot write"):
            output_file.write(tmp_path / name, b"x")
    with pytest.raises(ValueError, match="not JSON compliant"):
        output_file.write_json(tmp_path / "r.json", float("nan"))
    assert sorted(os.listdir(tmp_path)) == ["file", "loop", "to folder"]
