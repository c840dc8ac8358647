"""Downloads from a loopback index: found, resumed, checked, refused."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import index_server
import pytest
from wavesmith import cache, download, package_index, progress_bar, web
from wavesmith.errors import CannotBuild, DownloadFailed, HashMismatch
from wavesmith.package_index import Index

CONTENT = random.Random(1).randbytes(3_000_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
NAME = "a_thing-1.0.tar.gz"


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAVESMITH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(web, "BACKOFF", 0.001)


@pytest.fixture
def behaviour() -> index_server.Behaviour:
    return index_server.Behaviour({"a-thing": {"a_thing-0.9.tar.gz": b"old", NAME: CONTENT}})


@pytest.fixture
def url(behaviour: index_server.Behaviour):
    with index_server.serve(behaviour) as address:
        yield address


def fetch(url: str, sha256: str = SHA256, **options) -> Path:
    return download.fetch_from_index("A_Thing", NAME, sha256, index=Index((url,)), **options)


def downloads() -> set[str]:
    return {path.name for path in cache.folder("downloads").iterdir() if path.suffix != ".lock"}


def part() -> Path:
    return cache.folder("downloads") / f"{NAME}.part"


def file_requests(behaviour: index_server.Behaviour) -> list[str]:
    return [ranges for path, ranges in behaviour.requests if path.startswith("/files")]


@pytest.mark.parametrize("page", ["json", "html"])
def test_file_is_found_and_kept(behaviour, url: str, page: str) -> None:
    behaviour.page = page
    path = fetch(url, size=len(CONTENT))
    assert path.read_bytes() == CONTENT
    assert downloads() == {NAME}
    seen = len(behaviour.requests)
    assert fetch(url) == path
    assert len(behaviour.requests) == seen


def test_damaged_file_in_the_cache_is_fetched_again(url: str) -> None:
    fetch(url).write_bytes(CONTENT[:-1] + b"x")
    assert fetch(url).read_bytes() == CONTENT


def test_broken_connections_are_resumed(behaviour, url: str) -> None:
    behaviour.break_after = [1_000_000, 0, 500_000]
    assert fetch(url).read_bytes() == CONTENT
    assert file_requests(behaviour) == ["", "bytes=1000000-", "bytes=1000000-", "bytes=1500000-"]


def test_part_of_an_earlier_run_is_continued(behaviour, url: str) -> None:
    part().write_bytes(CONTENT[:2_000_000])
    assert fetch(url).read_bytes() == CONTENT
    assert file_requests(behaviour) == ["bytes=2000000-"]


def test_whole_part_is_used_as_it_is(behaviour, url: str) -> None:
    part().write_bytes(CONTENT)
    assert fetch(url, size=len(CONTENT)).read_bytes() == CONTENT
    assert file_requests(behaviour) == [f"bytes={len(CONTENT)}-"]


@pytest.mark.parametrize("old", [b"x" * 2_000_000, CONTENT + b"more"], ids=["other bytes", "too long"])
def test_wrong_part_is_started_over(url: str, old: bytes) -> None:
    part().write_bytes(old)
    assert fetch(url).read_bytes() == CONTENT


def test_server_without_ranges(behaviour, url: str) -> None:
    behaviour.ranges = False
    behaviour.break_after = [2_500_000]
    assert fetch(url).read_bytes() == CONTENT


def test_connection_that_never_brings_anything(behaviour, url: str) -> None:
    behaviour.break_after = [0] * 20
    with pytest.raises(DownloadFailed, match=NAME):
        fetch(url)
    assert len(file_requests(behaviour)) == web.ATTEMPTS


def test_busy_server_is_asked_again(behaviour, url: str) -> None:
    behaviour.statuses = [503, 429, 500]
    assert fetch(url).read_bytes() == CONTENT


def test_wrong_hash_names_both_and_leaves_nothing(url: str) -> None:
    with pytest.raises(HashMismatch) as error:
        download.fetch_from_index("a-thing", "a_thing-0.9.tar.gz", "0" * 64, index=Index((url,)))
    assert "0" * 64 in str(error.value)
    assert hashlib.sha256(b"old").hexdigest() in str(error.value)
    assert downloads() == set()


def test_wrong_bytes_behind_a_right_listing(behaviour, url: str) -> None:
    behaviour.listed_sha256 = SHA256
    behaviour.files["a-thing"][NAME] = CONTENT[:-1] + b"!"
    with pytest.raises(HashMismatch) as error:
        fetch(url)
    assert SHA256 in str(error.value)
    assert hashlib.sha256(CONTENT[:-1] + b"!").hexdigest() in str(error.value)
    assert downloads() == set()


def test_unknown_project_and_file(url: str) -> None:
    with pytest.raises(DownloadFailed, match="404"):
        download.fetch_from_index("other", NAME, SHA256, index=Index((url,)))
    with pytest.raises(DownloadFailed, match=r"a_thing-2.0.tar.gz.*does not list it"):
        download.fetch_from_index("a-thing", "a_thing-2.0.tar.gz", SHA256, index=Index((url,)))


def test_bad_listing(behaviour, url: str) -> None:
    behaviour.page = "bad"
    with pytest.raises(DownloadFailed, match="not a package list"):
        fetch(url)


def test_server_that_is_not_there() -> None:
    with pytest.raises(DownloadFailed, match=r"127\.0\.0\.1:9"):
        fetch("http://127.0.0.1:9/simple")


def test_next_index_is_tried(url: str) -> None:
    index = Index((url.replace("/simple", "/empty"), url))
    assert download.fetch_from_index("a-thing", NAME, SHA256, index=index).read_bytes() == CONTENT


def test_find_links_come_first(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(CONTENT)
    for place in (str(tmp_path), tmp_path.as_uri()):
        index = Index((), (str(tmp_path / "nothing"), place))
        fetched = download.fetch_from_index("a-thing", lambda name: name.endswith("1.0.tar.gz"), SHA256, index=index)
        assert fetched.read_bytes() == CONTENT
        fetched.unlink()


def test_index_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a-thing").mkdir()
    (tmp_path / NAME).write_bytes(CONTENT)
    (tmp_path / "a-thing/index.html").write_text(f'<a href="../{NAME}">{NAME}</a>')
    assert fetch(tmp_path.as_uri()).read_bytes() == CONTENT


def test_credentials_are_sent_and_never_shown(behaviour, url: str) -> None:
    behaviour.credentials = "me@work:s3 cret"
    with pytest.raises(DownloadFailed, match="401"):
        fetch(url)
    assert fetch(url.replace("//", "//me%40work:s3%20cret@")).read_bytes() == CONTENT
    behaviour.statuses = [404]
    with pytest.raises(DownloadFailed) as error:
        download.fetch_from_index("b", "b.whl", SHA256, index=Index((url.replace("//", "//me%40work:s3%20cret@"),)))
    assert "cret" not in str(error.value)


def test_credentials_stay_with_their_server() -> None:
    assert web.with_credentials_of("http://a:80/x", "http://u:p@a:80/simple") == "http://u:p@a:80/x"
    assert web.with_credentials_of("http://b/x", "http://u:p@a/simple") == "http://b/x"
    assert web.with_credentials_of("https://a/x", "http://u:p@a/simple") == "https://a/x"


def test_credentials_of_netrc(behaviour, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    behaviour.credentials = "me:secret"
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password secret\n")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert fetch(url).read_bytes() == CONTENT


def test_certificates_that_cannot_be_read(url: str, tmp_path: Path) -> None:
    index = Index((url,), client=web.Client(cert=str(tmp_path / "no.pem")))
    with pytest.raises(DownloadFailed, match=r"no\.pem"):
        download.fetch_from_index("a-thing", NAME, SHA256, index=index)


def test_pip_is_asked_for_its_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "pip.conf"
    config.write_text("[global]\nindex-url = http://one.invalid/simple\n[install]\nextra-index-url = http://two.invalid/simple\n")
    for name in list(os.environ):
        if name.startswith("PIP_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    package_index.from_pip.cache_clear()
    try:
        urls = package_index.from_pip().urls
        monkeypatch.setenv("PIP_INDEX_URL", "http://three.invalid/simple")
        package_index.from_pip.cache_clear()
        chosen = package_index.from_pip().urls
    finally:
        package_index.from_pip.cache_clear()
    assert (urls[0], urls[1:]) == ("http://one.invalid/simple", ("http://two.invalid/simple",))
    assert chosen[0] == "http://three.invalid/simple"


def test_without_any_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package_index, "_ask_pip", lambda interpreter: None)
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    package_index.from_pip.cache_clear()
    try:
        with pytest.raises(DownloadFailed, match="PIP_INDEX_URL"):
            package_index.from_pip()
        monkeypatch.setenv("PIP_INDEX_URL", "http://one.invalid/simple")
        assert package_index.from_pip().urls == ("http://one.invalid/simple",)
    finally:
        package_index.from_pip.cache_clear()


def test_two_processes_fetch_once(behaviour, url: str) -> None:
    code = f"from wavesmith import download, package_index as p; download.fetch_from_index('a-thing', '{NAME}', '{SHA256}', index=p.Index(('{url}',)))"
    environment = {**os.environ, "PYTHONPATH": str(Path(download.__file__).parent.parent)}
    runs = [subprocess.Popen([sys.executable, "-c", code], env=environment) for _ in range(2)]
    assert [run.wait(60) for run in runs] == [0, 0]
    assert len(file_requests(behaviour)) == 1
    assert downloads() == {NAME}


def test_interrupt_leaves_a_part_that_is_continued(behaviour, url: str) -> None:
    def interrupt(done: int, total: int | None) -> None:
        assert total == len(CONTENT)
        if done > 1_000_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(url, on_progress=interrupt)
    assert downloads() == {part().name}
    length = part().stat().st_size
    assert fetch(url).read_bytes() == CONTENT
    assert file_requests(behaviour)[-1] == f"bytes={length}-"


def test_full_disk_is_one_clear_error(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def __init__(self, path, mode) -> None:
            self.file = open(path, mode)  # noqa: SIM115

        def __enter__(self):
            return self

        def __exit__(self, *_error) -> None:
            self.file.close()

        def seek(self, position: int) -> None:
            self.file.seek(position)

        def write(self, chunk: bytes) -> None:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(download, "open", Full, raising=False)
    with pytest.raises(CannotBuild, match="no space left"):
        fetch(url)


def test_progress_without_a_terminal(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_bar, "_PLAIN_INTERVAL", 0.0)
    with progress_bar.of_bytes("thing") as report:
        report(5 << 20, 10 << 20)
        report(6 << 20, None)
    captured = capsys.readouterr()
    assert captured.err.splitlines() == ["fetching thing", "    5 of 10 MiB", "    6 MiB"]
    assert captured.out == ""


def test_threads_of_one_process_share(behaviour, url: str) -> None:
    threads = [threading.Thread(target=fetch, args=(url,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(file_requests(behaviour)) == 1
