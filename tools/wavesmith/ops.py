"""The kernels as numpy functions, run on the CPU by the host model of a gfx family. Sizes: M rows of weights, N columns, K reduction.

Families: gcn, cdna2, cdna3, cdna4, rdna2, rdna3, rdna3.5, rdna4. Every function raises ValueError, saying what was expected and what
came, for a wrong rank, dtype, size or name; `errors.KernelFault` when the checked build finds a faulty access; `errors.CannotRun` when
the host library is not there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import host_library
from .gguf_types import GgufType, gguf_type
from .host_library import FAMILIES, Operand, Unsupported

if TYPE_CHECKING:
    import numpy as np
    from gguf.constants import GGMLQuantizationType

LAYOUTS = ("d4", "ds4", "d2s6")
WEIGHT_TYPES = (
    *("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "Q1_0", "Q2_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"),
    *("IQ1_S", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ4_NL", "IQ4_XS", "MXFP4", "NVFP4"),
    *("F16", "BF16", "F32"),
)

_F32, _I32 = 0, 26
_MAX_SIZE = 2**31 - 1


def quantize_q8_1(x: np.ndarray, layout: str) -> np.ndarray:
    """Activations quantised to int8 in one of stock's three matrix layouts.

    x: float32 [N, K] with K >= 1, need not be contiguous. layout: "d4", "ds4" or "d2s6".
    Returns uint8 [ceil(K / 128), N, 144] in stock's byte order: 16 bytes of scales and sums, then 128 int8; values past K are zero.
    Scales: d4 four float32, one per 32 values; ds4 four pairs of float16 (scale, sum of the 32 values); d2s6 two float16 scales, one per
    64 values, and six float16 sums of 16 values. A sum past float16's range becomes +-65504; a group with a NaN has the scale NaN.
    """
    import numpy as np

    _one_of("layout", layout, LAYOUTS)
    x = _activations(x)
    n, k = x.shape
    out = np.empty((-(-k // 128), n, 144), np.uint8)
    if n:
        host_library.quantize_q8_1_raw(_flat(x), k, k * 4, layout, "rdna3", out)
    return out


def mul_mat(wtype: str | GGMLQuantizationType, w: np.ndarray, x: np.ndarray, *, family: str = "rdna3", variant: str | None = None) -> np.ndarray:
    """Quantised (or float) weights times activations: ggml's MUL_MAT.

    wtype: type of the weights, a name such as "Q4_K" in either case, or gguf's GGMLQuantizationType. w: uint8 [M, row_bytes], rows in
    GGUF's block format. x: float32 [N, K] with K >= 1. variant: name of a tile plan, None for the planner's choice.
    Returns float32 [N, M]; empty when M or N is 0.
    """
    import numpy as np

    kind = _weight_type(wtype)
    _one_of("family", family, FAMILIES)
    x = _activations(x)
    w = _weights(w, 2, "[M, row_bytes]", kind, x.shape[1])
    _known_variant(variant, kind, family)
    (m, row_bytes), (n, k) = w.shape, x.shape
    out = np.zeros((n, m), np.float32)
    if out.size:
        _run(
            Operand(kind.number, _flat(w), (k, m, 1, 1), _weight_strides(kind, row_bytes, m, 1)),
            Operand(_F32, _flat(x), (k, n, 1, 1), (4, 4 * k, 4 * k * n, 4 * k * n)),
            Operand(_F32, _flat(out), (m, n, 1, 1), (4, 4 * m, 4 * m * n, 4 * m * n)),
            None,
            family,
            variant,
        )
    return out


def mul_mat_id(wtype: str | GGMLQuantizationType, w: np.ndarray, x: np.ndarray, ids: np.ndarray, *, family: str = "rdna3") -> np.ndarray:
    """Each token times the experts chosen for it: ggml's MUL_MAT_ID. An expert may have no token, and a token the same expert twice.

    wtype: as for mul_mat. w: uint8 [E, M, row_bytes], E experts. x: float32 [n, K], n tokens, K >= 1. ids: int32 [n, used], each 0 ... E-1.
    Returns float32 [n, used, M]; empty when n, used or M is 0.
    """
    import numpy as np

    kind = _weight_type(wtype)
    _one_of("family", family, FAMILIES)
    x = _activations(x)
    w = _weights(w, 3, "[E, M, row_bytes]", kind, x.shape[1])
    (experts, m, row_bytes), (n, k) = w.shape, x.shape
    ids = _expert_ids(ids, n, experts)
    used = ids.shape[1]
    out = np.zeros((n, used, m), np.float32)
    if out.size:
        _run(
            Operand(kind.number, _flat(w), (k, m, experts, 1), _weight_strides(kind, row_bytes, m, experts)),
            Operand(_F32, _flat(x), (k, 1, n, 1), (4, 4 * k, 4 * k, 4 * k * n)),
            Operand(_F32, _flat(out), (m, used, n, 1), (4, 4 * m, 4 * m * used, 4 * m * used * n)),
            Operand(_I32, _flat(ids), (used, n, 1, 1), (4, 4 * used, 4 * used * n, 4 * used * n)),
            family,
            None,
        )
    return out


def _run(weights: Operand, activations: Operand, output: Operand, ids: Operand | None, family: str, variant: str | None) -> None:
    try:
        host_library.mul_mat_raw(weights, activations, output, ids, family=family, variant=variant)
    except Unsupported as error:
        raise ValueError(f"expected a product that the {family} kernels take, got {error}") from None


def _weight_type(wtype: Any) -> GgufType:
    from gguf.constants import GGMLQuantizationType

    name = wtype.name if isinstance(wtype, GGMLQuantizationType) else wtype.upper() if isinstance(wtype, str) else None
    if name not in WEIGHT_TYPES:
        raise ValueError(f"expected wtype to be one of {', '.join(WEIGHT_TYPES)}, got {wtype!r}")
    return gguf_type(name)


def _one_of(what: str, value: Any, allowed: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"expected {what} to be one of {', '.join(allowed)}, got {value!r}")


def _array(what: str, value: Any, dtype: str, rank: int, shape: str) -> np.ndarray:
    """`value` itself, C-contiguous, in native byte order."""
    import numpy as np

    if not isinstance(value, np.ndarray):
        raise ValueError(f"expected {what} to be a numpy array {dtype} {shape}, got {type(value).__name__}")  # noqa: TRY004 - one error class for callers
    if value.dtype != np.dtype(dtype):
        raise ValueError(f"expected {what} of dtype {dtype}, got {value.dtype}")
    if value.ndim != rank:
        raise ValueError(f"expected {what} to have {rank} dimensions {shape}, got shape {list(value.shape)}")
    if max(value.shape) > _MAX_SIZE:
        raise ValueError(f"expected sizes of {what} up to {_MAX_SIZE}, got shape {list(value.shape)}")
    return np.ascontiguousarray(value)


def _activations(x: Any) -> np.ndarray:
    x = _array("x", x, "float32", 2, "[N, K]")
    if x.shape[1] == 0:
        raise ValueError(f"expected x [N, K] with K of at least 1, got shape {list(x.shape)}")
    return x


def _weights(w: Any, rank: int, shape: str, kind: GgufType, k: int) -> np.ndarray:
    w = _array("w", w, "uint8", rank, shape)
    if k % kind.block_values:
        raise ValueError(f"expected K to be a multiple of {kind.name}'s block of {kind.block_values}, got x with K = {k}")
    row_bytes = k // kind.block_values * kind.block_bytes
    if w.shape[-1] != row_bytes:
        raise ValueError(f"expected w {shape} with row_bytes = {row_bytes} ({k} values of {kind.name}), got shape {list(w.shape)}")
    return w


def _expert_ids(ids: Any, tokens: int, experts: int) -> np.ndarray:
    ids = _array("ids", ids, "int32", 2, "[n, used]")
    if len(ids) != tokens:
        raise ValueError(f"expected ids [n, used] with n = {tokens} as in x, got shape {list(ids.shape)}")
    if ids.size and (ids.min() < 0 or ids.max() >= experts):
        wrong = int(ids.min()) if ids.min() < 0 else int(ids.max())
        raise ValueError(f"expected ids from 0 to {experts - 1} ({experts} experts), got {wrong}")
    return ids


def _known_variant(variant: Any, kind: GgufType, family: str) -> None:
    if variant is None:
        return
    names = host_library.variants(kind.number, family)
    if variant not in names:
        raise ValueError(f"expected variant to be None or one of {', '.join(names) or 'none'} ({kind.name} on {family}), got {variant!r}")


def _weight_strides(kind: GgufType, row_bytes: int, rows: int, experts: int) -> tuple[int, int, int, int]:
    return (kind.block_bytes, row_bytes, row_bytes * rows, row_bytes * rows * experts)


def _flat(array: np.ndarray) -> np.ndarray:
    import numpy as np

    return array.view(np.uint8).reshape(-1)
