"""The host library of the kernels (C interface: backend/api/wavesmith.h), loaded with ctypes.

`ops` is the friendly form; this one takes raw buffers with explicit strides and can return the integer sums.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from . import settings
from .errors import CannotRun, KernelFault, WavesmithError

if TYPE_CHECKING:
    import numpy as np

API_VERSION = 1
FAMILIES = settings.HOST_FAMILIES
_FILE = "libwavesmith-host.so"
_READ_BY_LIBRARY = ("WAVESMITH_HOST_CHECKED", "WAVESMITH_HOST_RACECHECK", "WAVESMITH_HOST_ORDER", "WAVESMITH_LDS_LIMIT")
_environment_lock = threading.Lock()
_OK, _UNSUPPORTED, _INVALID_ARGUMENT, _FAULT, _OUT_OF_MEMORY = range(5)


class Unsupported(WavesmithError, ValueError):
    """The kernels do not take this type, shape or stride."""


class OutOfMemory(WavesmithError, MemoryError):
    """The host library could not get the memory a call needs."""


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int32),
        ("data", ctypes.c_void_p),
        ("bytes", ctypes.c_size_t),
        ("ne", ctypes.c_int64 * 4),
        ("nb", ctypes.c_int64 * 4),
    )


class _Problem(ctypes.Structure):
    _fields_ = (
        ("weights", _Tensor),
        ("activations", _Tensor),
        ("output", _Tensor),
        ("ids", _Tensor),
        ("integer_sums", ctypes.c_void_p),
        ("integer_sums_bytes", ctypes.c_size_t),
        ("family", ctypes.c_char_p),
        ("variant", ctypes.c_char_p),
    )


@dataclass(frozen=True)
class Operand:
    """A tensor in memory, with ggml's words: type number, sizes `ne` in elements, strides `nb` in bytes.

    buffer: one-dimensional uint8 array that starts at the tensor's first byte; the kernels may touch no byte outside it.
    """

    type_number: int
    buffer: np.ndarray
    ne: tuple[int, int, int, int]
    nb: tuple[int, int, int, int]

    def _as_c(self) -> _Tensor:
        return _Tensor(self.type_number, self.buffer.ctypes.data, self.buffer.nbytes, (ctypes.c_int64 * 4)(*self.ne), (ctypes.c_int64 * 4)(*self.nb))


def path() -> Path:
    """$WAVESMITH_HOST_LIBRARY, else the library installed in the package. The file need not exist."""
    chosen = settings.get("WAVESMITH_HOST_LIBRARY")
    return Path(chosen) if chosen else Path(__file__).resolve().parent / "lib" / _FILE


@cache
def _load(file: Path) -> ctypes.CDLL:
    if not file.is_file():
        raise CannotRun(f"the host library {file} does not exist (install wavesmith as a package, or set WAVESMITH_HOST_LIBRARY)")
    try:
        library = ctypes.CDLL(str(file.absolute()))
        version = library.wavesmith_api_version()
    except (OSError, AttributeError) as error:
        raise CannotRun(f"cannot load the host library {file}: {error}") from None
    if version != API_VERSION:
        raise CannotRun(f"the host library {file} has interface version {version}, this wavesmith needs {API_VERSION}")
    _declare(library)
    return library


def _declare(library: ctypes.CDLL) -> None:
    i64, size, text, pointer = ctypes.c_int64, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_void_p
    for name in ("wavesmith_version", "wavesmith_last_error", "wavesmith_last_kernel"):
        getattr(library, name).restype = text
        getattr(library, name).argtypes = ()
    library.wavesmith_set_threads.argtypes = (ctypes.c_int,)
    library.wavesmith_set_threads.restype = None
    library.wavesmith_scale_group.argtypes = (ctypes.c_int,)
    library.wavesmith_variants.argtypes = (ctypes.c_int, text)
    library.wavesmith_variants.restype = text
    library.wavesmith_mul_mat.argtypes = (ctypes.POINTER(_Problem),)
    library.wavesmith_quantize_q8_1.argtypes = (pointer, size, i64, i64, i64, text, text, pointer, size)


def load() -> ctypes.CDLL:
    """The library, loaded once. CannotRun when it is not there, cannot be loaded or has another interface version."""
    return _load(path())


def version() -> str:
    return load().wavesmith_version().decode()


def set_threads(count: int) -> None:
    """Threads that later calls use; 0 for all CPUs this process may use."""
    load().wavesmith_set_threads(count)


def scale_group(type_number: int) -> int:
    """Values per scale group of a weight type (16 or 32); 0 for float types and those the kernels do not take."""
    return load().wavesmith_scale_group(type_number)


def variants(type_number: int, family: str) -> list[str]:
    """Names of the tile plans that can run a weight type on a family; empty for a type without any."""
    names = load().wavesmith_variants(type_number, family.encode())
    return [name for name in (names or b"").decode().split(",") if name]


@contextmanager
def _checked_kernels(wanted: bool) -> Iterator[None]:
    """The library looks at WAVESMITH_HOST_CHECKED at each call, and only its checked kernels record integer sums."""
    if not wanted:
        yield
        return
    name = "WAVESMITH_HOST_CHECKED"
    with _environment_lock:
        before = os.environ.get(name)
        os.environ[name] = "1"
        try:
            yield
        finally:
            if before is None:
                del os.environ[name]
            else:
                os.environ[name] = before


def _check_options() -> None:
    """ValueError for an environment variable that the library would refuse: the kernels are not at fault."""
    for setting in settings.SETTINGS:
        problem = setting.problem(os.environ.get(setting.name, "")) if setting.name in _READ_BY_LIBRARY else ""
        if problem:
            raise ValueError(problem)


def _check(status: int) -> None:
    if status == _OK:
        return
    message = (load().wavesmith_last_error() or b"").decode(errors="replace") or f"status {status}"
    if status == _UNSUPPORTED:
        raise Unsupported(message)
    if status == _FAULT:
        raise KernelFault(message)
    if status == _OUT_OF_MEMORY:
        raise OutOfMemory(message)
    raise ValueError(message)


def mul_mat_raw(
    weights: Operand,
    activations: Operand,
    output: Operand,
    ids: Operand | None = None,
    *,
    family: str = "rdna3",
    variant: str | None = None,
    integer_sums: np.ndarray | None = None,
    checked: bool = False,
) -> str:
    """ggml's MUL_MAT (or MUL_MAT_ID with `ids`) on buffers as they are, written to `output.buffer`.

    weights: ne = [K, M, ne02, ne03]; activations: float32, ne = [K, N, ne12, ne13], any strides; output: float32 [M, N, ne12, ne13],
    nb[0] = 4. With ids: weights [K, M, E], activations [K, 1 or used, n], output [M, used, n], ids int32 [used, n].
    integer_sums: C-contiguous int32 [N, M, K / scale_group], filled; plain 2D products only, implies `checked`.
    checked: run the kernels that check every access (as WAVESMITH_HOST_CHECKED=1 does for all calls).
    Returns the name of the kernel and plan that ran. Raises Unsupported (a ValueError), ValueError for contradictory sizes or a wrong setting,
    KernelFault for an access out of range, a race or a diverging wave, OutOfMemory.
    """
    problem = _Problem(weights._as_c(), activations._as_c(), output._as_c())
    if ids is not None:
        problem.ids = ids._as_c()
    if integer_sums is not None:
        problem.integer_sums = integer_sums.ctypes.data
        problem.integer_sums_bytes = integer_sums.nbytes
    problem.family = family.encode()
    problem.variant = variant.encode() if variant is not None else None
    library = load()
    _check_options()
    with _checked_kernels(checked or integer_sums is not None):
        _check(library.wavesmith_mul_mat(ctypes.byref(problem)))
    return (library.wavesmith_last_kernel() or b"").decode()


def quantize_q8_1_raw(x: np.ndarray, k: int, row_stride: int, layout: str, family: str, out: np.ndarray) -> None:
    """x: uint8 buffer whose rows of `k` float32 lie `row_stride` bytes apart; out: uint8 [ceil(k / 128), n, block bytes], filled.

    Blocks of d4, ds4 and d2s6 (stock's) have 144 bytes, those of d4s8 and d2s8 (our own mmq's) 160.
    """
    n = out.shape[1]
    _check_options()
    status = load().wavesmith_quantize_q8_1(x.ctypes.data, x.nbytes, n, k, row_stride, layout.encode(), family.encode(), out.ctypes.data, out.nbytes)
    _check(status)
