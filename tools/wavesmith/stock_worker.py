"""The process in which a build's ggml libraries run (see stock_ggml.py): reads one JSON request per line, answers each with one line."""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

_F32, _I32 = 0, 26
_GRAPH_TENSORS = 8


class _InitParams(ctypes.Structure):
    """struct ggml_init_params (ggml/include/ggml.h)."""

    _fields_ = (("mem_size", ctypes.c_size_t), ("mem_buffer", ctypes.c_void_p), ("no_alloc", ctypes.c_bool))


class _Refused(Exception):
    """The device does not support the product."""


_P, _I, _I64, _SIZE, _TEXT = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, ctypes.c_size_t, ctypes.c_char_p

# Function -> result and arguments (ggml/include/ggml.h, ggml-alloc.h, ggml-backend.h); the same in every supported version.
SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "ggml_init": (_P, (_InitParams,)),
    "ggml_free": (None, (_P,)),
    "ggml_tensor_overhead": (_SIZE, ()),
    "ggml_graph_overhead": (_SIZE, ()),
    "ggml_nbytes": (_SIZE, (_P,)),
    "ggml_new_tensor_2d": (_P, (_P, _I, _I64, _I64)),
    "ggml_new_tensor_3d": (_P, (_P, _I, _I64, _I64, _I64)),
    "ggml_mul_mat": (_P, (_P, _P, _P)),
    "ggml_mul_mat_id": (_P, (_P, _P, _P, _P)),
    "ggml_new_graph": (_P, (_P,)),
    "ggml_build_forward_expand": (None, (_P, _P)),
    "ggml_backend_load_all_from_path": (None, (_TEXT,)),
    "ggml_backend_dev_count": (_SIZE, ()),
    "ggml_backend_dev_get": (_P, (_SIZE,)),
    "ggml_backend_dev_name": (_TEXT, (_P,)),
    "ggml_backend_dev_by_name": (_P, (_TEXT,)),
    "ggml_backend_dev_init": (_P, (_P, _TEXT)),
    "ggml_backend_dev_backend_reg": (_P, (_P,)),
    "ggml_backend_dev_supports_op": (ctypes.c_bool, (_P, _P)),
    "ggml_backend_reg_get_proc_address": (_P, (_P, _TEXT)),
    "ggml_backend_alloc_ctx_tensors": (_P, (_P, _P)),
    "ggml_backend_buffer_free": (None, (_P,)),
    "ggml_backend_tensor_set": (None, (_P, _P, _SIZE, _SIZE)),
    "ggml_backend_tensor_get": (None, (_P, _P, _SIZE, _SIZE)),
    "ggml_backend_graph_compute": (_I, (_P, _P)),
}


def _declare(library: ctypes.CDLL) -> ctypes.CDLL:
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class _Context:
    """A ggml context and, once `place` was called, the backend buffer of its tensors."""

    def __init__(self, ggml: ctypes.CDLL):
        self._ggml = ggml
        self._buffer: int | None = None
        memory = ggml.ggml_tensor_overhead() * _GRAPH_TENSORS + ggml.ggml_graph_overhead() + 4096
        self.handle = ggml.ggml_init(_InitParams(memory, None, True))

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        if self._buffer:
            self._ggml.ggml_backend_buffer_free(self._buffer)
        self._ggml.ggml_free(self.handle)

    def place(self, backend: int) -> None:
        self._buffer = self._ggml.ggml_backend_alloc_ctx_tensors(self.handle, backend)
        if not self._buffer:
            raise MemoryError("the backend has no memory for the tensors")


class Worker:
    """Answers requests with the ggml at `library`."""

    def __init__(self, library: Path):
        self.folder = library.parent
        self.ggml = _declare(ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL))
        self._loaded = False
        self._backends: dict[str, int] = {}

    def devices(self, _request: dict[str, Any]) -> dict[str, Any]:
        self._load_all()
        count = self.ggml.ggml_backend_dev_count()
        return {"devices": [self.ggml.ggml_backend_dev_name(self.ggml.ggml_backend_dev_get(i)).decode() for i in range(count)]}

    def products(self, request: dict[str, Any]) -> dict[str, Any]:
        import numpy as np

        device, backend = self._backend(request["device"], request["threads"])
        k, m, experts = request["shape"]
        file, offset, size = request["weights"]
        data = np.memmap(file, np.uint8, "r", offset, (size,))
        with _Context(self.ggml) as context, open(request["out"], "wb") as out:
            weights = self.ggml.ggml_new_tensor_3d(context.handle, request["type"], k, m, max(1, experts))
            expected = self.ggml.ggml_nbytes(weights)
            if expected != size:
                return {"error": f"stock ggml wants {expected} bytes for type {request['type']} [{k}, {m}], the file has {size}"}
            context.place(backend)
            self._set(weights, data)
            for n in request["columns"]:
                try:
                    self._product(device, backend, weights, request, n).tofile(out)
                except _Refused as reason:
                    return {"refused": str(reason)}
        return {}

    def _product(self, device: int, backend: int, weights: int, request: dict[str, Any], n: int):
        import numpy as np

        ggml = self.ggml
        (k, m, _), used = request["shape"], request["used"]
        with _Context(ggml) as context:
            if used:
                x = ggml.ggml_new_tensor_3d(context.handle, _F32, k, 1, n)
                ids = ggml.ggml_new_tensor_2d(context.handle, _I32, used, n)
                result = ggml.ggml_mul_mat_id(context.handle, weights, x, ids)
            else:
                x = ggml.ggml_new_tensor_2d(context.handle, _F32, k, n)
                result = ggml.ggml_mul_mat(context.handle, weights, x)
            if not ggml.ggml_backend_dev_supports_op(device, result):
                raise _Refused(f"does not support type {request['type']}, M={m}, N={n}, K={k}")
            graph = ggml.ggml_new_graph(context.handle)
            ggml.ggml_build_forward_expand(graph, result)
            context.place(backend)
            self._set(x, np.fromfile(request["x"], np.float32, n * k))
            if used:
                self._set(ids, np.fromfile(request["ids"], np.int32, n * used))
            # NaN everywhere first: an element the device does not write must not look like a result.
            out = np.full(n * max(1, used) * m, np.nan, np.float32)
            self._set(result, out)
            status = ggml.ggml_backend_graph_compute(backend, graph)
            if status != 0:
                raise RuntimeError(f"ggml_backend_graph_compute returned {status}")
            ggml.ggml_backend_tensor_get(result, out.ctypes.data, 0, out.nbytes)
            return out

    def _set(self, tensor: int, data) -> None:
        self.ggml.ggml_backend_tensor_set(tensor, data.ctypes.data, 0, data.nbytes)

    def _load_all(self) -> None:
        """Backends that are files of their own (GGML_BACKEND_DL, GGML_BACKEND_PATH)."""
        if not self._loaded:
            self._loaded = True
            if self.ggml.ggml_backend_dev_count() == 0 or os.environ.get("GGML_BACKEND_PATH"):
                self.ggml.ggml_backend_load_all_from_path(str(self.folder).encode())

    def _backend(self, name: str, threads: int) -> tuple[int, int]:
        self._load_all()
        device = self.ggml.ggml_backend_dev_by_name(name.encode())
        if not device:
            raise RuntimeError(f"the build has no device {name}")
        if name not in self._backends:
            backend = self.ggml.ggml_backend_dev_init(device, None)
            if not backend:
                raise RuntimeError(f"device {name} cannot be used")
            self._backends[name] = backend
            registry = self.ggml.ggml_backend_dev_backend_reg(device)
            set_threads = self.ggml.ggml_backend_reg_get_proc_address(registry, b"ggml_backend_set_n_threads")
            if set_threads:
                ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int)(set_threads)(backend, threads)
        return device, self._backends[name]


def main(library: str) -> None:
    """Serve requests until stdin ends. What the libraries print goes to stderr, answers to the original stdout."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    worker: Worker | None = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            worker = worker or Worker(Path(library))
            handler: Callable[[dict[str, Any]], dict[str, Any]] = getattr(worker, request["op"])
            answer = handler(request)
        except (OSError, RuntimeError, AttributeError, MemoryError, ValueError) as error:
            answer = {"error": str(error) or type(error).__name__}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
