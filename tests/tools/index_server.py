"""A package index on the loopback interface that can misbehave."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Behaviour:
    """files: project -> {file name: content}. The rest are faults and what was seen."""

    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    page: str = "json"  # "json", "html" or "bad"
    listed_sha256: str = ""  # lie about the hash
    ranges: bool = True
    break_after: list[int] = field(default_factory=list)  # per request for a file: bytes sent before the connection closes
    statuses: list[int] = field(default_factory=list)  # answers of the next requests, in place of the right ones
    credentials: str = ""  # "user:password" that must be sent
    requests: list[tuple[str, str]] = field(default_factory=list)  # (path, Range header)


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        behaviour: Behaviour = self.server.behaviour
        behaviour.requests.append((self.path, self.headers.get("Range", "")))
        if behaviour.credentials:
            expected = "Basic " + base64.b64encode(behaviour.credentials.encode()).decode()
            if self.headers.get("Authorization") != expected:
                return self._status(401)
        if behaviour.statuses:
            return self._status(behaviour.statuses.pop(0))
        parts = self.path.strip("/").split("/")
        if parts[0] == "simple" and len(parts) == 2 and parts[1] in behaviour.files:
            return self._page(behaviour, parts[1])
        if parts[0] == "files" and len(parts) == 3 and parts[2] in behaviour.files.get(parts[1], {}):
            return self._file(behaviour, behaviour.files[parts[1]][parts[2]])
        return self._status(404)

    def _page(self, behaviour: Behaviour, project: str) -> None:
        files = behaviour.files[project]
        if behaviour.page == "html":
            rows = [
                f'<a href="../../files/{project}/{name}#sha256={behaviour.listed_sha256 or hashlib.sha256(content).hexdigest()}">{name}</a>'
                for name, content in files.items()
            ]
            return self._answer(200, f"<!DOCTYPE html><html><body>{''.join(rows)}</body></html>".encode(), "text/html")
        if behaviour.page == "bad":
            return self._answer(200, b'{"files": 3}', "application/vnd.pypi.simple.v1+json")
        rows = [
            {"filename": name, "url": f"../../files/{project}/{name}", "hashes": {"sha256": behaviour.listed_sha256 or hashlib.sha256(content).hexdigest()}}
            for name, content in files.items()
        ]
        return self._answer(200, json.dumps({"files": rows}).encode(), "application/vnd.pypi.simple.v1+json")

    def _file(self, behaviour: Behaviour, content: bytes) -> None:
        start = int(self.headers["Range"].removeprefix("bytes=").rstrip("-")) if behaviour.ranges and self.headers.get("Range") else 0
        if start >= len(content) > 0:
            return self._status(416)
        body = content[start:]
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if behaviour.break_after:
            self.wfile.write(body[: behaviour.break_after.pop(0)])
            self.wfile.flush()
            self.close_connection = True
            return None
        self.wfile.write(body)
        return None

    def _status(self, status: int) -> None:
        self._answer(status, b"no", "text/plain")

    def _answer(self, status: int, body: bytes, content_type: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments) -> None:
        pass


@contextmanager
def serve(behaviour: Behaviour):
    """Yields the URL of the index."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.behaviour = behaviour
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/simple"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
