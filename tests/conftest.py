"""What all tests share: the order of the tiers, a cache folder of their own, one real build and one real model."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_TIERS = ("build", "slow")  # after the unmarked tests, in this order


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Fast tests first, then those that need a real build, so that a plain mistake shows within seconds."""
    items.sort(key=_tier)


def _tier(item: pytest.Item) -> int:
    return max((position for position, name in enumerate(_TIERS, 1) if item.get_closest_marker(name)), default=0)


@pytest.fixture(scope="session", autouse=True)
def cache_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache of the whole run: $WAVESMITH_CACHE, else a folder that pytest keeps between runs; never the user's own."""
    chosen = os.environ.get("WAVESMITH_CACHE")
    if chosen:
        return Path(chosen)
    kept = getattr(request.config, "cache", None)
    folder = Path(kept.mkdir("wavesmith")) if kept else tmp_path_factory.mktemp("wavesmith")
    os.environ["WAVESMITH_CACHE"] = str(folder)
    return folder


@pytest.fixture(scope="session")
def host_build(cache_folder: Path):
    """The newest supported llama.cpp, patched and built for the host target; made on first use, which takes minutes."""
    from wavesmith import build

    return build.ensure("host")


@pytest.fixture(scope="session")
def smollm2(cache_folder: Path) -> Path:
    """Path of a small real model, SmolLM2-135M; fetched on first use."""
    from wavesmith import model

    return model.smollm2()


@pytest.fixture(scope="session")
def repository() -> Path:
    """Root of the checkout that the tests lie in."""
    return Path(__file__).resolve().parent.parent
