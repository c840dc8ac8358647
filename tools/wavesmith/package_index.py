"""The Python package index that the user's pip is set up for, and the files it lists.

pip itself is asked for its settings, so that its configuration files, environment variables and default all count. No
index is named in this code.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote, unquote, urldefrag, urljoin, urlsplit
from urllib.request import url2pathname

from . import settings, web
from .errors import DownloadFailed

_ASK_PIP = """
import json
from pip._internal.commands import create_command
options, _ = create_command("install").parse_args([])
print("wavesmith:" + json.dumps({
    "urls": ([] if options.no_index else [options.index_url, *options.extra_index_urls]),
    "find_links": options.find_links, "cert": options.cert, "proxy": options.proxy, "trusted_hosts": options.trusted_hosts,
}))
"""
_ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"


@dataclass(frozen=True)
class Index:
    """Where files are looked for, in this order: `find_links` (folders), then `urls`."""

    urls: tuple[str, ...]
    find_links: tuple[str, ...] = ()
    client: web.Client = field(default_factory=web.Client)


@dataclass(frozen=True)
class Listed:
    """One file of a project as an index lists it."""

    name: str
    url: str
    sha256: str = ""  # "" where the index does not say


@cache
def from_pip() -> Index:
    """The index of the user's pip. DownloadFailed where neither a pip nor PIP_INDEX_URL can be found."""
    interpreters = dict.fromkeys(filter(None, [sys.executable, shutil.which("python3"), shutil.which("python")]))
    for interpreter in interpreters:
        answer = _ask_pip(interpreter)
        if answer is not None:
            client = web.Client(answer["cert"] or "", answer["proxy"] or "", tuple(answer["trusted_hosts"]))
            return Index(tuple(answer["urls"]), tuple(answer["find_links"]), client)
    chosen = settings.get("PIP_INDEX_URL")
    if chosen:
        return Index((chosen,))
    raise DownloadFailed("no package index is known: no Python here has pip; set PIP_INDEX_URL")


def find(index: Index, project: str, wanted) -> Listed:
    """The first file of `project` that `wanted` (a file name, or a function of one) accepts.

    DownloadFailed where no index has it; the message names what each one answered.
    """
    accepts = wanted if callable(wanted) else lambda name: name == wanted
    tried = []
    for folder in index.find_links:
        path = Path(url2pathname(urlsplit(folder).path)) if folder.startswith("file:") else Path(folder)
        matches = sorted(entry for entry in path.iterdir() if accepts(entry.name)) if path.is_dir() else []
        if matches:
            return Listed(matches[0].name, matches[0].absolute().as_uri())
    for base in index.urls:
        url = f"{base.rstrip('/')}/{normalise(project)}/"
        try:
            match = next((file for file in _list(index.client, url) if accepts(file.name)), None)
        except DownloadFailed as error:
            tried.append(str(error))
            continue
        if match is not None:
            return match
        tried.append(f"{web.without_credentials(url)} does not list it")
    what = project if callable(wanted) else wanted
    raise DownloadFailed(f"cannot fetch {what}: {'; '.join(tried) or 'pip is set up to use no index'}")


def normalise(project: str) -> str:
    """The name under which an index keeps a project."""
    return quote(re.sub(r"[-_.]+", "-", project).lower())


def _list(client: web.Client, url: str) -> list[Listed]:
    page = client.get(url, accept=_ACCEPT)
    if page.content_type.split(";")[0].strip() == "application/vnd.pypi.simple.v1+json":
        return _from_json(page)
    parser = _Anchors()
    parser.feed(page.body.decode("utf-8", "replace"))
    return [_from_link(urljoin(page.url, link)) for link in parser.links]


def _from_json(page: web.Page) -> list[Listed]:
    try:
        rows = json.loads(page.body)["files"]
        return [Listed(row["filename"], urljoin(page.url, row["url"]), row.get("hashes", {}).get("sha256", "")) for row in rows]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DownloadFailed(f"{web.without_credentials(page.url)} is not a package list: {error}") from error


def _from_link(url: str) -> Listed:
    address, fragment = urldefrag(url)
    digest = re.fullmatch(r"sha256=([0-9a-f]{64})", fragment)
    return Listed(unquote(urlsplit(address).path.rpartition("/")[2]), address, digest[1] if digest else "")


class _Anchors(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        link = dict(attrs).get("href")
        if tag == "a" and link:
            self.links.append(link)


def _ask_pip(interpreter: str) -> dict | None:
    try:
        run = subprocess.run([interpreter, "-c", _ASK_PIP], capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    line = next((line for line in run.stdout.splitlines() if line.startswith("wavesmith:")), None)
    return json.loads(line.removeprefix("wavesmith:")) if line and run.returncode == 0 else None
