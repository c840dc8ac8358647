"""What is in the installed package and in the sdist: everything that works without a checkout beside it, and nothing else."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from wavesmith import build_plan, host_library, resources

PACKAGED = ("backend", "cmake", "patches")


@pytest.fixture(scope="module")
def distribution() -> importlib.metadata.Distribution:
    """The installed wavesmith; skipped when the tests run from a checkout (PYTHONPATH=tools)."""
    import wavesmith

    try:
        found = importlib.metadata.distribution("wavesmith")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("wavesmith is not installed, the checkout is used")
    if Path(str(found.locate_file("wavesmith"))).resolve() != Path(wavesmith.__file__).resolve().parent:
        pytest.skip("the checkout is used in place of the installed package")
    return found


def tracked(root: Path, folder: str) -> set[str]:
    listing = subprocess.run(["git", "-C", str(root), "ls-files", folder], capture_output=True, text=True, check=True).stdout
    return set(listing.split("\n")) - {""}


def installed(distribution: importlib.metadata.Distribution) -> set[str]:
    return {file.as_posix() for file in distribution.files}


def test_continuous_integration_tests_the_installed_package() -> None:
    if os.environ.get("CI") != "true":
        pytest.skip("only where CI=true")
    assert host_library.path().is_file()
    assert resources.data_root().name == "data"


def test_sources_are_packaged_as_they_are(distribution, repository: Path) -> None:
    for folder in PACKAGED:
        wanted = tracked(repository, folder)
        assert {f"wavesmith/data/{name}" for name in wanted} <= installed(distribution)
        for name in wanted:
            assert Path(str(distribution.locate_file(f"wavesmith/data/{name}"))).read_bytes() == (repository / name).read_bytes(), name


def test_python_modules_and_data_are_packaged(distribution, repository: Path) -> None:
    wanted = {name.removeprefix("tools/") for name in tracked(repository, "tools/wavesmith")}
    assert wanted <= installed(distribution)


def test_host_library_is_packaged(distribution) -> None:
    assert "wavesmith/lib/libwavesmith-host.so" in installed(distribution)


def test_nothing_else_is_packaged(distribution) -> None:
    strange = {name for name in installed(distribution) if not name.startswith(("wavesmith/", "wavesmith-", "../../../bin/"))}
    assert not strange
    assert not {name for name in installed(distribution) if name.startswith("wavesmith/data/") and name.split("/")[2] not in (*PACKAGED, "LICENSE")}


def test_wheel_is_for_any_python_3_on_this_platform(distribution) -> None:
    tags = [line.split(": ")[1] for line in distribution.read_text("WHEEL").splitlines() if line.startswith("Tag: ")]
    assert len(tags) == 1
    python, abi, platform = tags[0].split("-")
    assert (python, abi) == ("py3", "none")
    assert platform.startswith(("linux_", "manylinux"))


def test_module_hash_is_the_checkouts(distribution, repository: Path) -> None:
    assert build_plan.module_hash() == build_plan.module_hash(repository)


def test_sdist_has_the_sources(repository: Path, tmp_path: Path) -> None:
    pytest.importorskip("scikit_build_core")
    code = "import sys; from scikit_build_core.build import build_sdist; print(build_sdist(sys.argv[1]))"
    result = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=repository, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    with tarfile.open(tmp_path / result.stdout.split()[-1]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for folder in (*PACKAGED, "tools", "tests", "pyproject.toml", "README.md", "LICENSE"):
        assert tracked(repository, folder) <= names
    assert not {name for name in names if name.startswith((".ci/", "build/", ".venv/"))}
