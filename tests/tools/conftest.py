"""A finished build of the stand-in for llama.cpp, made once; most tests get a copy of it in a cache folder of their own."""

from __future__ import annotations

import shutil
from pathlib import Path

import fake_llama
import pytest


@pytest.fixture(scope="session")
def fake_build_template(tmp_path_factory: pytest.TempPathFactory):
    """The build itself, in its own cache folder whose name has a space and a letter outside ASCII."""
    from wavesmith import build, patching, source
    from wavesmith.progress import Steps

    root = tmp_path_factory.mktemp("fake build")
    tree = fake_llama.write(root / "tree")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WAVESMITH_CACHE", str(root / "my cäche"))
        patch.setattr(source, "resolve", lambda llama: source.Identity("1.0", "1.0", "abcdef123456"))
        patch.setattr(build, "_fetch", lambda plan, via, step: tree)
        patch.setattr(patching, "apply", lambda folder: (folder / "patched").touch())
        patch.setattr(patching, "refuse_other_patches", lambda folder: None)
        return build.ensure(steps=Steps("build", quiet=True))


@pytest.fixture
def fake_cache(fake_build_template, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder with a copy of that build, called host-1.0-copy: moved from where it was made, as users may do."""
    cache = tmp_path / "cache"
    shutil.copytree(fake_build_template.prefix, cache / "builds" / "host-1.0-copy", symlinks=True)
    monkeypatch.setenv("WAVESMITH_CACHE", str(cache))
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    return cache
