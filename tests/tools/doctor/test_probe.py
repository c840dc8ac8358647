"""Reading the machine: never a hang, never an exception, and everything recorded."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from wavesmith.doctor import capture, hip_info, report
from wavesmith.doctor.examine import examine
from wavesmith.doctor.probe import HIP_QUERY, OUTPUT_LIMIT, PathInfo, Probe, Record, SystemProbe, ToolRun
from wavesmith.errors import BadInput

from . import machines


@pytest.fixture
def probe():
    system = SystemProbe()
    yield system
    system.close()


def script(folder: Path, name: str, body: str) -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def test_files_and_what_is_not_one(probe, tmp_path):
    (tmp_path / "text").write_bytes(b"a\r\nb\xff\0c")
    os.mkfifo(tmp_path / "pipe")
    os.symlink("loop", tmp_path / "loop")
    assert probe.read(f"{tmp_path}/text") == "a\nb\ufffdc"
    for name in ("pipe", "loop", "missing", ".", "text/below"):
        assert probe.read(f"{tmp_path}/{name}") is None
    assert probe.read("/dev/zero") is None and probe.read("bad\0name") is None
    assert probe.stat(f"{tmp_path}/pipe").kind == "other" and probe.stat("/dev/null").kind == "device"
    assert probe.stat(str(tmp_path)).kind == "folder" and probe.stat(f"{tmp_path}/loop") is None


def test_a_large_file_is_read_in_part(probe, tmp_path):
    (tmp_path / "large").write_bytes(b"x" * (3 << 20))
    assert len(probe.read(f"{tmp_path}/large")) == 1 << 20


def test_glob_and_its_replay(probe, tmp_path):
    for name in ("rocm-6.2", "rocm-7.2", ".hidden", "other"):
        (tmp_path / name).mkdir()
    found = [f"{tmp_path}/rocm-6.2", f"{tmp_path}/rocm-7.2"]
    assert probe.glob(f"{tmp_path}/rocm*") == found and len(probe.glob(f"{tmp_path}/*")) == 3
    again = Probe(probe.record)
    assert again.glob(f"{tmp_path}/rocm*") == found and len(again.glob(f"{tmp_path}/*")) == 3
    assert again.exists(str(tmp_path)) and not again.exists(f"{tmp_path}/none")


def test_tools(probe, tmp_path):
    good = script(tmp_path, "good", 'echo "$1 out"; echo err >&2; exit 3')
    assert probe.run(good, "two words") == ToolRun(3, "two words out\n", "err\n")
    assert Probe(probe.record).run(good, "two words") == ToolRun(3, "two words out\n", "err\n")
    assert probe.run(f"{tmp_path}/missing") is None and probe.run(str(tmp_path)) is None
    (tmp_path / "notes").write_text("no program")
    (tmp_path / "notes").chmod(0o755)
    assert probe.run(f"{tmp_path}/notes") is None


def test_a_tool_that_hangs_is_stopped_with_its_children(probe, tmp_path):
    hanging = script(tmp_path, "hanging", f"echo started; sleep 60 & echo $! > {tmp_path}/child; wait")
    start = time.monotonic()
    run = probe.run(hanging, timeout=0.5)
    assert run.timed_out and run.stdout == "started\n" and time.monotonic() - start < 5
    child = int((tmp_path / "child").read_text())
    for _ in range(50):
        status = Path(f"/proc/{child}/status")
        if not status.exists() or "State:\tZ" in status.read_text():
            break
        time.sleep(0.05)
    else:
        pytest.fail("the child of the stopped tool still runs")


def test_a_grandchild_that_keeps_the_output_open_does_not_block(probe, tmp_path):
    leaving = script(tmp_path, "leaving", "sleep 5 & echo done")
    start = time.monotonic()
    assert probe.run(leaving).stdout == "done\n" and time.monotonic() - start < 3


def test_endless_output_is_cut(probe, tmp_path):
    endless = script(tmp_path, "endless", "head -c 6000000 /dev/zero | tr '\\0' x")
    assert len(probe.run(endless).stdout) == OUTPUT_LIMIT


def test_tools_run_side_by_side(probe, tmp_path):
    slow = script(tmp_path, "slow", "sleep 0.5; echo $1")
    start = time.monotonic()
    for number in "123456":
        probe.start(slow, number)
    assert [probe.run(slow, number).stdout for number in "123456"] == [f"{number}\n" for number in "123456"]
    assert time.monotonic() - start < 2.5


def test_closing_stops_what_still_runs(tmp_path):
    probe = SystemProbe()
    probe.start(script(tmp_path, "slow", f"echo $$ > {tmp_path}/number; exec sleep 60"))
    while not (tmp_path / "number").exists() or not (tmp_path / "number").read_text():
        time.sleep(0.02)
    probe.close()
    status = Path(f"/proc/{(tmp_path / 'number').read_text().strip()}/status")
    assert not status.exists() or "State:\tZ" in status.read_text()


def test_environment_is_redacted_and_paths_still_open(monkeypatch, tmp_path):
    home = tmp_path / "home folder"
    (home / "rocm").mkdir(parents=True)
    (home / "rocm" / "file").write_text("hello")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("ROCM_PATH", f"{home}/rocm")
    probe = SystemProbe()
    assert probe.environ("ROCM_PATH") == "~/rocm"
    assert probe.read("~/rocm/file") == "hello" and probe.glob("~/rocm/*") == ["~/rocm/file"]
    assert probe.stat("~/rocm").real == "~/rocm"
    assert str(home) not in repr(probe.record)


def test_disk_space_of_a_folder_that_is_not_there_yet(probe, tmp_path):
    assert probe.disk_free(f"{tmp_path}/a/b") > 0
    assert Probe(probe.record).disk_free(f"{tmp_path}/a/b") == probe.disk_free(f"{tmp_path}/a/b")


def test_this_machine_gives_the_same_from_its_capture(probe, tmp_path):
    before = report.as_json(examine(probe))
    capture.save(probe.record, tmp_path / "capture")
    assert report.as_json(examine(Probe(capture.load(tmp_path / "capture")))) == before


FAKE_HIP = """
#include <stddef.h>
#include <string.h>
static int current;
int hipGetDeviceCount(int *count) { *count = %d; return %d; }
int hipRuntimeGetVersion(int *version) { *version = 70200000; return 0; }
int hipDeviceGetName(char *name, int length, int device) { strncpy(name, device ? "Second" : "First", length); return 0; }
int hipDeviceGetPCIBusId(char *name, int length, int device) { strncpy(name, device ? "0000:0A:00.0" : "0000:03:00.0", length); return 0; }
int hipSetDevice(int device) { current = device; return 0; }
int hipMemGetInfo(size_t *available, size_t *total) { *available = 5u << current; *total = 20u << current; return 0; }
"""


def hip_library(folder: Path, count: int, status: int) -> str:
    source, library = folder / "hip.c", folder / "libamdhip64.so"
    source.write_text(FAKE_HIP % (count, status))
    subprocess.run(["g++", "-x", "c", "-shared", "-fPIC", "-o", library, source], check=True)
    return str(library)


def test_hip_is_asked_through_its_library(probe, tmp_path):
    first, second = hip_info.parse_query(probe.run(HIP_QUERY, hip_library(tmp_path, 2, 0)).stdout)
    assert (first.index, first.product, first.pci, first.memory) == (0, "First", "0000:03:00.0", {"hipMemGetInfo": 20, "hipMemGetInfo free": 5})
    assert (second.index, second.product, second.pci, second.memory) == (1, "Second", "0000:0a:00.0", {"hipMemGetInfo": 40, "hipMemGetInfo free": 10})


def test_hip_without_devices_and_without_a_library(probe, tmp_path):
    run = probe.run(HIP_QUERY, hip_library(tmp_path, 0, 100))
    assert run.returncode == 0 and json.loads(run.stdout)["error"] == "hipGetDeviceCount returned 100"
    assert hip_info.parse_query(run.stdout) == []
    assert probe.run(HIP_QUERY, f"{tmp_path}/missing.so").returncode != 0


def test_capture_is_plain_files(tmp_path):
    capture.save(machines.rx_7900_xtx(), tmp_path / "new" / "capture")
    folder = tmp_path / "new" / "capture"
    assert (folder / "files/sys/class/kfd/kfd/topology/nodes/1/properties").read_text().startswith("cpu_cores_count 0\n")
    assert any("Marketing Name:" in path.read_text() for path in (folder / "tools").glob("*-rocminfo.out.txt"))
    index = json.loads((folder / "capture.json").read_text())
    assert set(index) == {"version", "programs", "environment", "facts", "paths", "files", "tools"}
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["capture"]


def test_capture_keeps_odd_names_inside(tmp_path):
    record = Record(files={"/a/../../b": "up", "~/x y/ü": "home"}, tools={("/usr/bin/..",): ToolRun(None, "o", "e")}, paths={"/p": PathInfo("device", "/p")})
    capture.save(record, tmp_path / "capture")
    assert capture.load(tmp_path / "capture") == record
    assert not (tmp_path / "b").exists()


def test_capture_needs_a_new_folder(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("keep")
    (tmp_path / "file").write_text("keep")
    for name in ("full", "file"):
        with pytest.raises(BadInput, match="empty folder"):
            capture.save(Record(), tmp_path / name)
    with pytest.raises(BadInput, match="cannot write"):
        capture.save(Record(), tmp_path / "file" / "below")
    assert (tmp_path / "full" / "mine").read_text() == "keep"
    (tmp_path / "empty").mkdir()
    capture.save(Record(), tmp_path / "empty")
    assert capture.load(tmp_path / "empty") == Record()


GOOD = {"version": 1, "programs": {}, "environment": {}, "facts": {}, "paths": {}, "files": {}, "tools": []}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("not json", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ([], "version 1"),
        ({"version": 2}, "version 1"),
        ({"version": 1}, "fields"),
        ({**GOOD, "files": {"/x": "files/missing"}}, "lacks files/missing"),
        ({**GOOD, "files": {"/x": "../outside"}}, "outside the capture"),
        ({**GOOD, "files": {"/x": "/etc/passwd"}}, "outside the capture"),
        ({**GOOD, "files": {"/x": 7}}, "fields"),
        ({**GOOD, "paths": {"/x": {"color": 1}}}, "fields"),
        ({**GOOD, "tools": [{"command": ["x"], "exit": "0", "stdout": "a", "stderr": "b"}]}, "fields"),
        ({**GOOD, "environment": []}, "fields"),
    ],
)
def test_a_damaged_capture_is_one_clear_line(change, message, tmp_path):
    (tmp_path / "outside").write_text("secret")
    folder = tmp_path / "capture"
    folder.mkdir()
    (folder / "capture.json").write_text(change if isinstance(change, str) else json.dumps(change))
    with pytest.raises(BadInput, match=message) as caught:
        capture.load(folder)
    assert "\n" not in str(caught.value) and "secret" not in str(caught.value)


def test_no_capture_at_all(tmp_path):
    with pytest.raises(BadInput, match="no capture"):
        capture.load(tmp_path)
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "capture.json").write_text(json.dumps({**GOOD, "files": {"/x": "link"}}))
    with pytest.raises(BadInput, match="outside the capture"):
        capture.load(tmp_path)


def test_nothing_heavy_is_imported():
    code = "import sys; import wavesmith.commands.doctor; print([m for m in ('numpy', 'gguf', 'rich', 'wavesmith.doctor.examine') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
