"""One matrix product made ready for checking: weights, activations and expert ids in guarded buffers, and its float64 reference."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from . import host_library, reference
from .census import MUL_MAT_ID, Product
from .gguf_types import gguf_type
from .guarded import POISONS, GuardedRows
from .host_library import Operand

if TYPE_CHECKING:
    import numpy as np

_F32, _I32 = 0, 26
_ACTIVATION_PADDING = 12  # bytes: rows then start at addresses that are multiples of 4 only
_OUTPUT_PADDING = 12
_IDS_PADDING = 4
_DEFAULT_USED = 2


@dataclass(frozen=True)
class Run:
    """Result of one call of the kernels. out: float32 [N, M], or [n, used, M] with experts. damaged: buffers written where they must not be."""

    out: np.ndarray
    kernel: str
    damaged: tuple[str, ...]


def activations(n: int, k: int, seed: int) -> np.ndarray:
    """float32 [n, K] as hidden states look: normal, each token at a scale of its own, a few channels larger than the rest."""
    import numpy as np

    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, k), dtype=np.float32)
    x *= np.exp(rng.normal(0.0, 0.5, (n, 1))).astype(np.float32)
    channels = rng.choice(k, size=max(1, k // 128), replace=False)
    x[:, channels] *= rng.uniform(1.5, 4.0, (1, len(channels))).astype(np.float32)
    return x


def expert_ids(n: int, used: int, experts: int, seed: int) -> np.ndarray:
    """int32 [n, used]: as a router chooses, with two cases that are easily got wrong: expert E-1 has no token (where others suffice) and
    token 0 has its first expert twice."""
    import numpy as np

    rng = np.random.default_rng(seed)
    choice = experts - 1 if experts > used else experts
    ids = np.argsort(rng.random((n, choice)), axis=1)[:, :used].astype(np.int32)
    if used > 1 and n > 0:
        ids[0, -1] = ids[0, 0]
    return ids


def sample_rows(m: int, limit: int | None, seed: int) -> np.ndarray | None:
    """Sorted indices of `limit` (at least 2) of `m` rows, the first and the last ones among them; None for all."""
    import numpy as np

    if limit is None or m <= limit:
        return None
    edge = min(64, max(1, limit // 4))
    inner = np.random.default_rng(seed).choice(m - 2 * edge, size=limit - 2 * edge, replace=False) + edge
    return np.sort(np.concatenate((np.arange(edge), inner, np.arange(m - edge, m))))


class Case:
    """A product of a model with the largest number of columns that will be asked for; smaller ones use the first of them."""

    def __init__(self, product: Product, columns: int, family: str, row_limit: int | None = None, used: int | None = None, seed: int = 1):
        import numpy as np

        self.product = product
        self.family = family
        self.has_experts = product.op == MUL_MAT_ID
        self.experts = max(1, product.experts)
        self.used = min(used or _DEFAULT_USED, product.experts) if self.has_experts else 1
        self.row_indices = sample_rows(product.m, row_limit, seed)
        self.m = product.m if self.row_indices is None else len(self.row_indices)
        self.k = product.k
        stored = product.tensors[0].data[: product.m * self.experts].reshape(self.experts, product.m, -1)
        self.rows = (stored if self.row_indices is None else stored[:, self.row_indices]).reshape(self.experts * self.m, -1)
        self.x = activations(columns, self.k, seed)
        self.ids = expert_ids(columns, self.used, self.experts, seed) if self.has_experts else None
        self._block_bytes = gguf_type(product.type_name).block_bytes
        self._weights = GuardedRows(self.rows, self._block_bytes, POISONS[0])
        self._squares = np.empty(self.experts * self.m)

    @property
    def is_sampled(self) -> bool:
        return self.row_indices is not None

    def row_number(self, index: int) -> int:
        """The model's row for a row of this case."""
        return index if self.row_indices is None else int(self.row_indices[index])

    @cached_property
    def reference(self) -> np.ndarray:
        """float64, shaped as Run.out for all columns."""
        import numpy as np

        name = self.product.type_name
        if self.ids is None:
            return reference.mul_mat(name, self.rows, self.x, self._squares)
        out = np.empty((len(self.x), self.used, self.m))
        for expert in range(self.experts):
            tokens, places = np.nonzero(self.ids == expert)
            if len(tokens):
                span = slice(expert * self.m, (expert + 1) * self.m)
                out[tokens, places] = reference.mul_mat(name, self.rows[span], self.x[tokens], self._squares[span])
        return out

    def expected_energy(self, n: int) -> np.ndarray:
        """float64 [M]: what sum over columns of result squared would be if weights and activations were unrelated: |w|^2 |x|^2 / K."""
        import numpy as np

        energy = np.einsum("nk,nk->n", self.x[:n], self.x[:n], dtype=np.float64) / self.k
        if self.ids is None:
            return self._squares * energy.sum()
        per_expert = np.zeros(self.experts)
        np.add.at(per_expert, self.ids[:n].ravel(), np.repeat(energy, self.used))
        chosen = per_expert > 0
        return per_expert[chosen] @ self._squares.reshape(self.experts, self.m)[chosen]

    def run(self, n: int, poison: int, *, checked: bool = False) -> Run:
        """The kernels on the first n columns, everything around the operands filled with `poison`. KernelFault from checked kernels."""
        import numpy as np

        self._weights.poison(poison)
        x = GuardedRows(_bytes(self.x[:n]), _ACTIVATION_PADDING, poison)
        out = GuardedRows(np.full((n * self.used, self.m * 4), poison, np.uint8), _OUTPUT_PADDING, poison)
        ids = GuardedRows(_bytes(self.ids[:n]), _IDS_PADDING, poison) if self.ids is not None else None
        kernel = self._call(x, out, ids, n, checked)
        named = {"weights": self._weights, "activations": x, "output": out, "ids": ids}
        damaged = [name for name, rows in named.items() if rows is not None and not rows.untouched()]
        inputs = {"weights": (self._weights, self.rows), "activations": (x, _bytes(self.x[:n]))}
        damaged += [f"values of {name}" for name, (rows, before) in inputs.items() if not np.array_equal(rows.rows, before)]
        result = np.ascontiguousarray(out.rows).view(np.float32)
        return Run(result.reshape((n, self.used, self.m) if self.ids is not None else (n, self.m)), kernel, tuple(damaged))

    def _call(self, x: GuardedRows, out: GuardedRows, ids: GuardedRows | None, n: int, checked: bool) -> str:
        m, k = self.m, self.k
        weights = Operand(self.product.type_number, self._weights.buffer, (k, m, self.experts, 1), _strides(self._block_bytes, self._weights, m, self.experts))
        if ids is None:
            activation = Operand(_F32, x.buffer, (k, n, 1, 1), _strides(4, x, n, 1))
            output = Operand(_F32, out.buffer, (m, n, 1, 1), _strides(4, out, n, 1))
            return host_library.mul_mat_raw(weights, activation, output, family=self.family, checked=checked)
        activation = Operand(_F32, x.buffer, (k, 1, n, 1), _strides(4, x, 1, n))
        output = Operand(_F32, out.buffer, (m, self.used, n, 1), _strides(4, out, self.used, n))
        chosen = Operand(_I32, ids.buffer, (self.used, n, 1, 1), _strides(4, ids, n, 1))
        return host_library.mul_mat_raw(weights, activation, output, chosen, family=self.family, checked=checked)

    def checked_rows(self, limit: int) -> np.ndarray:
        """Indices into `rows` for the integer check: the first and the last, `limit` at most; of the last expert where there are several."""
        import numpy as np

        start = (self.experts - 1) * self.m
        count = min(limit, self.m)
        return start + np.concatenate((np.arange(count - count // 2), np.arange(self.m - count // 2, self.m)))

    def run_integers(self, rows: np.ndarray, n: int) -> tuple[Run, np.ndarray]:
        """A plain product of some rows by the checked kernels, and its int32 sums [n, len(rows), K / group]."""
        import numpy as np

        group = reference.scale_group(self.product.type_name)
        weights = GuardedRows(self.rows[rows], self._block_bytes, POISONS[0])
        x = GuardedRows(_bytes(self.x[:n]), _ACTIVATION_PADDING, POISONS[0])
        out = GuardedRows(np.full((n, len(rows) * 4), POISONS[0], np.uint8), _OUTPUT_PADDING, POISONS[0])
        # A value no sum can have: what the kernel leaves out is seen.
        sums = np.full((n, len(rows), self.k // group), np.iinfo(np.int32).min, np.int32)
        kernel = host_library.mul_mat_raw(
            Operand(self.product.type_number, weights.buffer, (self.k, len(rows), 1, 1), _strides(self._block_bytes, weights, len(rows), 1)),
            Operand(_F32, x.buffer, (self.k, n, 1, 1), _strides(4, x, n, 1)),
            Operand(_F32, out.buffer, (len(rows), n, 1, 1), _strides(4, out, n, 1)),
            family=self.family,
            integer_sums=sums,
        )
        damaged = tuple(name for name, b in (("weights", weights), ("activations", x), ("output", out)) if not b.untouched())
        return Run(np.ascontiguousarray(out.rows).view(np.float32), kernel, damaged), sums


def _bytes(array: np.ndarray) -> np.ndarray:
    import numpy as np

    return np.ascontiguousarray(array).view(np.uint8).reshape(len(array), -1)


def _strides(element: int, rows: GuardedRows, count: int, batches: int) -> tuple[int, int, int, int]:
    return (element, rows.stride, rows.stride * count, rows.stride * count * batches)
