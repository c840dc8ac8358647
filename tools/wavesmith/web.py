"""HTTP as pip would do it: the user's proxy, certificates and credentials, with retries. Nothing else knows about sockets."""

from __future__ import annotations

import base64
import http.client
import netrc
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import unquote, urlsplit, urlunsplit

from . import __version__, settings
from .errors import DownloadFailed

TIMEOUT = 30.0  # seconds without a byte
ATTEMPTS = 5  # in a row that bring nothing
BACKOFF = 0.5  # seconds, doubled with every attempt
_TRANSIENT = (408, 425, 429, 500, 502, 503, 504)
# What a request that fails raises; an HTTPError is a URLError.
BROKEN = (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError, ssl.SSLError)

T = TypeVar("T")


@dataclass(frozen=True)
class Page:
    url: str  # after redirects
    content_type: str
    body: bytes


@dataclass(frozen=True)
class Client:
    """`cert`: a file of trusted certificates, "" for the system's. `proxy`: "" for the environment's."""

    cert: str = ""
    proxy: str = ""
    trusted_hosts: tuple[str, ...] = ()

    def get(self, url: str, accept: str = "*/*") -> Page:
        """A whole small page. DownloadFailed after the last attempt."""

        def fetch() -> Page:
            with self.open(url, {"Accept": accept}) as response:
                return Page(response.url or url, response.headers.get("Content-Type", ""), response.read())

        return retrying(url, fetch)

    @contextmanager
    def open(self, url: str, headers: dict[str, str]) -> Iterator:
        """One attempt: the response, closed afterwards. Raises what urllib raises; see `retrying`."""
        bare, credentials = _split_credentials(url)
        if urlsplit(bare).scheme == "file" and bare.endswith("/"):
            bare += "index.html"
        request = urllib.request.Request(bare, headers={"User-Agent": f"wavesmith/{__version__}", "Accept-Encoding": "identity", **headers})
        if credentials:
            # Not sent on to another host by a redirect.
            request.add_unredirected_header("Authorization", "Basic " + base64.b64encode(credentials.encode()).decode())
        with self._opener(bare).open(request, timeout=TIMEOUT) as response:
            yield response

    def _opener(self, url: str) -> urllib.request.OpenerDirector:
        proxies = {"http": self.proxy, "https": self.proxy} if self.proxy else None
        return urllib.request.build_opener(urllib.request.ProxyHandler(proxies), urllib.request.HTTPSHandler(context=self._context(url)))

    def _context(self, url: str) -> ssl.SSLContext:
        cert = self.cert or settings.get("PIP_CERT") or settings.get("REQUESTS_CA_BUNDLE")
        try:
            context = ssl.create_default_context(cafile=cert or None)
        except OSError as error:
            raise DownloadFailed(f"cannot read the certificates in {cert}: {error.strerror}") from error
        parts = urlsplit(url)
        if parts.hostname in self.trusted_hosts or parts.netloc in self.trusted_hosts:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


def retrying(url: str, fetch: Callable[[], T], measure: Callable[[], int] = lambda: 0) -> T:
    """The result of `fetch`, tried again where the connection breaks or the server is busy. DownloadFailed otherwise.

    measure: how much has arrived so far; attempts that bring more are not counted as failed.
    """
    failures = 0
    while True:
        before = measure()
        try:
            return fetch()
        except BROKEN as error:
            failures = failures + 1 if measure() <= before else 1
            if failures >= ATTEMPTS or not _is_transient(error):
                raise DownloadFailed(f"{without_credentials(url)}: {_reason(error)}{_through_proxy(url)}") from None
        time.sleep(BACKOFF * 2 ** (failures - 1))


def _is_transient(error: Exception) -> bool:
    if isinstance(error, urllib.error.HTTPError):
        return error.code in _TRANSIENT
    return not isinstance(getattr(error, "reason", None), (ssl.SSLCertVerificationError, FileNotFoundError))


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"{error.code} {error.reason}"
    return str(getattr(error, "reason", "") or error) or type(error).__name__


def _through_proxy(url: str) -> str:
    """Names the environment's proxy in a message: where that is wrong, the address alone would mislead."""
    parts = urlsplit(url)
    proxy = urllib.request.getproxies().get(parts.scheme)
    if not proxy or urllib.request.proxy_bypass(parts.hostname or ""):
        return ""
    return f" (through the proxy {without_credentials(proxy)} of {parts.scheme.upper()}_PROXY)"


def without_credentials(url: str) -> str:
    """For messages."""
    return _split_credentials(url, look_up=False)[0]


def with_credentials_of(url: str, index_url: str) -> str:
    """`url` with the user and password of `index_url`, where both are on one server and `url` has none of its own."""
    theirs, ours = urlsplit(index_url), urlsplit(url)
    if "@" not in theirs.netloc or "@" in ours.netloc or theirs.scheme != ours.scheme:
        return url
    user, _, server = theirs.netloc.rpartition("@")
    return urlunsplit(ours._replace(netloc=f"{user}@{ours.netloc}")) if server == ours.netloc else url


def _split_credentials(url: str, look_up: bool = True) -> tuple[str, str]:
    """The address without user and password, and "user:password" ("" for none; from the user's netrc file if it is there)."""
    parts = urlsplit(url)
    user, at, server = parts.netloc.rpartition("@")
    if at:
        name, _, password = user.partition(":")
        return urlunsplit(parts._replace(netloc=server)), f"{unquote(name)}:{unquote(password)}"
    if not look_up or parts.scheme not in ("http", "https"):
        return url, ""
    try:
        found = netrc.netrc().authenticators(parts.hostname or "")
    except (OSError, netrc.NetrcParseError):
        found = None
    return url, f"{found[0] or found[1]}:{found[2]}" if found else ""
