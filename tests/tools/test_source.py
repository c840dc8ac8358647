"""Trees from sdists, repositories and folders; no network."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile
from pathlib import Path

import index_server
import mini_tree
import pytest
from click.testing import CliRunner
from wavesmith import cache, git, lock, package_index, sdist, source
from wavesmith.commands.source import command
from wavesmith.errors import BadInput, DownloadFailed, HashMismatch

ROOT = "llama_cpp_python-9.9.9"
TREE = f"{ROOT}/vendor/llama.cpp"


def archive(extra: list[tarfile.TarInfo] = (), tree: dict[str, str] = mini_tree.FILES) -> bytes:
    """A made-up sdist; `extra` members come last."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        files = {f"{ROOT}/setup.py": "x", f"{TREE}/.git": "gitdir: ../../.git/modules/x", f"{TREE}/scripts/run.sh": "#!/bin/sh\n"}
        files.update({f"{TREE}/{name}": text for name, text in tree.items()})
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.mode = len(text.encode()), 1_600_000_000, 0o755 if name.endswith(".sh") else 0o600
            tar.addfile(member, io.BytesIO(text.encode()))
        for member in extra:
            tar.addfile(member, io.BytesIO(b"x" * member.size) if member.isreg() else None)
    return buffer.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", size: int = 0) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, size
    return info


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A git repository with a tagged made-up tree and one commit after it."""
    folder = mini_tree.write(tmp_path / "upstream")
    run = lambda *arguments: subprocess.run(["git", "-C", folder, *arguments], check=True, capture_output=True, text=True).stdout.strip()
    run("init", "--quiet", "-b", "master")
    run("config", "user.name", "x")
    run("config", "user.email", "x@x.invalid")
    run("config", "uploadpack.allowFilter", "true")
    run("config", "uploadpack.allowAnySHA1InWant", "true")
    run("add", ".")
    run("commit", "--quiet", "-m", "one")
    run("tag", "b4321")
    mini_tree.edit(folder, "ggml/CMakeLists.txt", "add_subdirectory(src)", "add_subdirectory(src) # later")
    run("commit", "--quiet", "-am", "two")
    return folder


@pytest.fixture
def locked(repository: Path, monkeypatch: pytest.MonkeyPatch) -> lock.Version:
    """A lock with one version: the tagged commit of the repository, and an sdist of the same tree."""
    commit = subprocess.run(["git", "-C", repository, "rev-parse", "b4321"], check=True, capture_output=True, text=True).stdout.strip()
    content = archive()
    entry = lock.Version("9.9.9", commit, "0.25.3", "llama_cpp_python-9.9.9.tar.gz", len(content), hashlib.sha256(content).hexdigest())
    value = lock.Lock(repository.as_uri(), "llama-cpp-python", (entry,))
    monkeypatch.setattr(lock, "load", lambda: value)
    return entry


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAVESMITH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch):
    behaviour = index_server.Behaviour({"llama-cpp-python": {"llama_cpp_python-9.9.9.tar.gz": archive()}})
    with index_server.serve(behaviour) as url:
        monkeypatch.setattr(package_index, "from_pip", lambda: package_index.Index((url,)))
        yield behaviour


def no_git(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git, "answers", lambda repository: "no network")


def sources() -> set[str]:
    return {path.name for path in cache.folder("sources").iterdir() if path.suffix != ".lock"}


def test_lock_file_is_complete() -> None:
    loaded = lock.load()
    assert [entry.version for entry in loaded.versions] == ["0.3.36", "0.3.30", "0.3.26", "0.3.20"]
    for entry in loaded.versions:
        assert len(entry.commit) == 40
        assert len(entry.sha256) == 64
        assert entry.size > 50_000_000
        assert entry.sdist == f"llama_cpp_python-{entry.version}.tar.gz"


def test_table_of_supported_versions_follows_the_lock() -> None:
    text = (source.patching.hunks.resources.patches() / "README.md").read_text(encoding="utf-8")
    rows = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in text.splitlines() if line.startswith("| 0.")]
    assert rows == [(entry.version, entry.commit, entry.ggml, f"generated/{entry.version}.patch") for entry in lock.load().versions]


def test_sdist_tree(locked, index, monkeypatch: pytest.MonkeyPatch) -> None:
    no_git(monkeypatch)
    said = []
    found = source.get(say=said.append)
    assert (found.version, found.commit, found.via) == ("9.9.9", locked.commit, "sdist")
    assert found.path.name == f"9.9.9-{locked.commit[:9]}-{locked.sha256[:12]}"
    files = mini_tree.contents(found.path)
    assert files.pop("scripts/run.sh") == b"#!/bin/sh\n"
    assert files == {name: text.encode() for name, text in mini_tree.FILES.items()}
    assert (found.path / "scripts/run.sh").stat().st_mode & 0o777 == 0o755
    assert (found.path / "ggml/CMakeLists.txt").stat().st_mode & 0o777 == 0o644
    assert sources() == {found.path.name, f"{found.path.name}.json"}
    assert any("no network" in line for line in said)
    seen = len(index.requests)
    assert source.get("9.9.9") == found
    assert source.get(locked.commit[:8]) == found
    assert len(index.requests) == seen
    (found.path / "ggml/src/new").write_text("x")
    assert source.get(fresh=True) == found
    assert not (found.path / "ggml/src/new").exists()


def test_unfinished_tree_is_made_again(locked, index, monkeypatch: pytest.MonkeyPatch) -> None:
    found = source.get(via="sdist")
    found.path.with_name(found.path.name + ".json").unlink()
    (found.path / "ggml/CMakeLists.txt").unlink()
    assert (source.get(via="sdist").path / "ggml/CMakeLists.txt").is_file()


def test_interrupted_unpacking_leaves_nothing(locked, index, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    real = sdist._write

    def write(*arguments) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        real(*arguments)

    monkeypatch.setattr(sdist, "_write", write)
    with pytest.raises(KeyboardInterrupt):
        source.get(via="sdist")
    assert sources() == set()


def test_wrong_sdist_is_thrown_away(locked, index) -> None:
    index.files["llama-cpp-python"][locked.sdist] = archive(tree={"ggml/CMakeLists.txt": "x"})
    with pytest.raises(HashMismatch, match=locked.sha256):
        source.get(via="sdist")
    assert sources() == set()


@pytest.mark.parametrize(
    "bad",
    [
        member("/etc/passwd"),
        member("../outside"),
        member(f"{TREE}/../../../../outside"),
        member(f"{TREE}/a/../../b"),
        member(f"{TREE}/link", tarfile.SYMTYPE, "/etc/passwd"),
        member(f"{TREE}/link", tarfile.SYMTYPE, "../../outside"),
        member(f"{TREE}/a/link", tarfile.SYMTYPE, "b/../../../x"),
        member(f"{TREE}/hard", tarfile.LNKTYPE, "/etc/passwd"),
        member(f"{TREE}/pipe", tarfile.FIFOTYPE),
        member(f"{TREE}/device", tarfile.CHRTYPE),
        member(f"{TREE}/ggml/CMakeLists.txt", size=1),
    ],
    ids=lambda info: f"{info.name} {info.linkname}".strip(),
)
def test_hostile_archive_is_refused(tmp_path: Path, bad: tarfile.TarInfo) -> None:
    path = tmp_path / "bad.tar.gz"
    path.write_bytes(archive([bad]))
    before = {entry.name for entry in tmp_path.iterdir()}
    (tmp_path / "tree").mkdir()
    with pytest.raises(DownloadFailed, match="bad.tar.gz is damaged|refused archive member"):
        sdist.extract_tree(path, tmp_path / "tree")
    assert {entry.name for entry in tmp_path.iterdir()} == before | {"tree"}


def test_write_through_a_link_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.tar.gz"
    path.write_bytes(archive([member(f"{TREE}/l", tarfile.SYMTYPE, "scripts"), member(f"{TREE}/l/x", size=1)]))
    (tmp_path / "tree").mkdir()
    with pytest.raises(DownloadFailed, match="behind a link"):
        sdist.extract_tree(path, tmp_path / "tree")
    assert (tmp_path / "tree/l").is_symlink()
    assert not (tmp_path / "tree/scripts/x").exists()


@pytest.mark.parametrize("keep", [0.99, 0.5, 0.1])
def test_truncated_archive_is_refused(tmp_path: Path, keep: float) -> None:
    content = archive()
    path = tmp_path / "short.tar.gz"
    path.write_bytes(content[: int(len(content) * keep)])
    (tmp_path / "tree").mkdir()
    with pytest.raises(DownloadFailed, match=r"short\.tar\.gz"):
        sdist.extract_tree(path, tmp_path / "tree")


def test_archive_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        tar.addfile(member("other/setup.py"))
    (tmp_path / "tree").mkdir()
    with pytest.raises(DownloadFailed, match="holds no vendor/llama.cpp"):
        sdist.extract_tree(path, tmp_path / "tree")


def test_git_tree_of_a_supported_version(locked) -> None:
    found = source.get()
    assert (found.version, found.commit, found.via, found.build_number) == ("9.9.9", locked.commit, "git", 0)
    assert mini_tree.contents(found.path) == {name: text.encode() for name, text in mini_tree.FILES.items()}
    assert source.get(via="git") == found
    assert sources() == {found.path.name, f"{found.path.name}.json"}


def test_git_tag_and_commits(locked, repository: Path) -> None:
    said = []
    tag = source.get("b4321", say=said.append)
    assert (tag.version, tag.commit, tag.build_number) == ("b4321", locked.commit, 4321)
    assert any("not a supported version" in line for line in said)
    head = subprocess.run(["git", "-C", repository, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    for spec in (head, head[:10]):
        found = source.get(spec)
        assert found.commit == head
        assert "# later" in (found.path / "ggml/CMakeLists.txt").read_text()


def test_git_without_that_tag_or_commit(locked) -> None:
    for spec in ("b1", "0123456789", "0" * 40):
        with pytest.raises(DownloadFailed, match=f"cannot fetch {spec}"):
            source.get(spec)
    assert sources() == set()


def test_git_that_does_not_answer(locked, monkeypatch: pytest.MonkeyPatch) -> None:
    no_git(monkeypatch)
    with pytest.raises(DownloadFailed, match=r"no network.*9\.9\.9"):
        source.get("b4321")
    with pytest.raises(DownloadFailed, match="no network"):
        source.get(via="git")
    with pytest.raises(DownloadFailed, match=r"only be fetched with git.*9\.9\.9"):
        source.get("b4321", via="sdist")


def test_git_probe(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert git.answers(repository.as_uri()) == ""
    assert git.answers((tmp_path / "nothing").as_uri()).startswith("fatal:")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git.answers(repository.as_uri()) == "git is not installed"


def test_git_that_delivers_another_commit(locked, monkeypatch: pytest.MonkeyPatch) -> None:
    def checkout(repository: str, revision: str, destination: Path) -> str:
        mini_tree.write(destination)
        return "f" * 40

    monkeypatch.setattr(git, "checkout", checkout)
    with pytest.raises(HashMismatch) as error:
        source.get()
    assert "f" * 40 in str(error.value)
    assert locked.commit in str(error.value)
    assert sources() == set()


def test_folder(locked, tmp_path: Path) -> None:
    tree = mini_tree.write(tmp_path / "mine")
    found = source.get(str(tree))
    assert (found.path, found.version, found.via) == (tree, "local", "folder")
    assert found.commit.startswith("tree-")
    assert source.resolve(str(tree)).commit == found.commit
    mini_tree.edit(tree, "ggml/CMakeLists.txt", "add_subdirectory(src)", "")
    assert source.resolve(str(tree)).commit != found.commit


def test_fetched_folder_keeps_its_identity(locked) -> None:
    found = source.get()
    again = source.get(str(found.path))
    assert (again.path, again.version, again.commit, again.via) == (found.path, found.version, found.commit, "folder")


@pytest.mark.parametrize("spec", ["1.2.3", "nothing-here", "v1", "master", ""])
def test_unknown_specification(locked, spec: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput):
        source.get(spec)


def test_folder_without_llama(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="not a llama.cpp tree"):
        source.get(str(tmp_path))


def test_command_prints_the_path_last(locked) -> None:
    result = CliRunner().invoke(command, ["get", "--llama", "9.9.9", "--via", "git"])
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == str(source.get().path)
    marker = json.loads(source.get().path.with_name(source.get().path.name + ".json").read_text())
    assert (marker["version"], marker["commit"], marker["via"]) == ("9.9.9", locked.commit, "git")


def test_an_empty_version_is_refused() -> None:
    with pytest.raises(BadInput, match="^'': not a supported"):
        source.resolve("")
