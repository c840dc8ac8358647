"""Matrix products by the ggml libraries of a build, on any of its devices ("CPU" is stock, "WAVESMITH" our module).

The libraries run in a process of their own (stock_worker.py): when stock aborts or crashes, the caller gets a StockFailure with its
last words and a fresh process for the next product.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import CannotRun, WavesmithError
from .gguf_file import printable

if TYPE_CHECKING:
    import numpy as np

_PLACES = ("", "bin", "lib", "lib64", "src", "build/bin", "ggml/src")
_START_SECONDS = 120.0
_MOST_LAST_WORDS = 300


class StockFailure(WavesmithError):
    """The build's ggml refused a product, aborted, crashed or did not finish."""


class DeviceRefused(StockFailure):
    """The device says that it does not support the product."""


def find_library(build: Path) -> Path:
    """libggml.so of a build: in the folder itself or where CMake puts libraries below it. CannotRun when there is none."""
    for place in _PLACES:
        found = sorted((build / place).glob("libggml.so*"))
        if found:
            return found[0]
    raise CannotRun(f"{printable(build)} holds no libggml.so (looked in it and in {', '.join(p for p in _PLACES if p)})")


class StockGgml:
    """The ggml of one build. Use as a context manager; products are computed one at a time.

    environment: for the worker process, e.g. Build.environment(family). threads: of the CPU backend. timeout: seconds per product.
    """

    def __init__(self, build: Path, environment: dict[str, str] | None = None, threads: int | None = None, timeout: float = 900.0):
        self.library = find_library(build)
        self._environment = dict(os.environ if environment is None else environment)
        self._environment.setdefault("OMP_WAIT_POLICY", "passive")
        self._threads = threads or len(os.sched_getaffinity(0))
        self._timeout = timeout
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="wavesmith-")
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        if self._folder is not None:
            self._folder.cleanup()

    @property
    def folder(self) -> Path:
        """A temporary folder for operands; gone when the context ends."""
        if self._folder is None:
            raise RuntimeError("StockGgml is used outside its context")
        return Path(self._folder.name)

    def devices(self) -> list[str]:
        """Names of the build's devices."""
        return self._ask({"op": "devices"}, _START_SECONDS)["devices"]

    def products(
        self,
        device: str,
        type_number: int,
        weights: tuple[Path, int, int],
        shape: tuple[int, int, int],
        x: np.ndarray,
        columns: list[int],
        ids: np.ndarray | None = None,
    ) -> dict[int, np.ndarray]:
        """MUL_MAT, or MUL_MAT_ID when `ids` is given, of one weight tensor with the first n rows of `x`, for each n of `columns`.

        weights: (file, offset, bytes) of the contiguous tensor. shape: (K, M, experts), experts 0 for MUL_MAT. x: float32 [N, K].
        ids: int32 [N, used]. Returns for each n float32 [n, M], or [n, used, M] with ids. DeviceRefused, StockFailure.
        """
        import numpy as np

        x_file, ids_file, out_file = (self.folder / name for name in ("x", "ids", "out"))
        np.ascontiguousarray(x, np.float32).tofile(x_file)
        used = 1
        if ids is not None:
            np.ascontiguousarray(ids, np.int32).tofile(ids_file)
            used = ids.shape[1]
        request = {"op": "products", "device": device, "type": type_number, "shape": shape, "used": used if ids is not None else 0}
        request |= {"weights": [str(weights[0]), weights[1], weights[2]], "columns": columns, "threads": self._threads}
        request |= {"x": str(x_file), "ids": str(ids_file), "out": str(out_file)}
        reply = self._ask(request, self._timeout)
        if "refused" in reply:
            raise DeviceRefused(f"device {device}: {reply['refused']}")
        results, start = {}, 0
        for n in columns:
            size = n * used * shape[1]
            flat = np.fromfile(out_file, np.float32, size, offset=start * 4)
            results[n] = flat.reshape((n, used, shape[1]) if ids is not None else (n, shape[1]))
            start += size
        out_file.unlink()
        return results

    # The worker ------------------------------------------------------------------------------------------------------

    @property
    def _log(self) -> Path:
        return self.folder / "stderr"

    def _start(self) -> subprocess.Popen[bytes]:
        # -c: the worker must find this very package, installed or not.
        package = Path(__file__).resolve().parent.parent
        code = f"import sys; sys.path.insert(0, {str(package)!r}); from wavesmith import stock_worker; stock_worker.main(sys.argv[1])"
        with open(self._log, "wb") as log:
            return subprocess.Popen(
                [sys.executable, "-c", code, str(self.library)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=self._environment,
            )

    def _ask(self, request: dict[str, Any], timeout: float) -> dict[str, Any]:
        if self._process is None:
            self._process = self._start()
        process = self._process
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            line = self._read_line(process, timeout)
        except BrokenPipeError:
            line = b""
        except BaseException:
            self._stop()
            raise
        if not line:
            raise StockFailure(self._last_words(process))
        reply = json.loads(line)
        if "error" in reply:
            raise StockFailure(reply["error"])
        return reply

    def _read_line(self, process: subprocess.Popen[bytes], timeout: float) -> bytes:
        """The worker's answer; empty when it ended without one."""
        end = time.monotonic() + timeout
        received = b""
        while not received.endswith(b"\n"):
            ready, _, _ = select.select([process.stdout], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                process.kill()
                self._stop()
                raise StockFailure(f"stock ggml did not finish within {timeout:g} s")
            more = os.read(process.stdout.fileno(), 1 << 16)
            if not more:
                return b""
            received += more
        return received

    def _last_words(self, process: subprocess.Popen[bytes]) -> str:
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        status = process.returncode
        self._stop()
        ending = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with exit code {status}"
        lines = [line.strip() for line in self._log.read_text(errors="replace").splitlines() if line.strip()]
        telling = [line for line in lines if "GGML_ASSERT" in line or "Error" in line or "error" in line] or lines[-1:]
        words = printable(telling[-1])[:_MOST_LAST_WORDS] if telling else ""
        return f"stock ggml {ending}" + (f": {words}" if words else "")

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.stdin.close()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
