"""Every check of one product: errors against the reference, bits against repeated runs, integers, accesses, stock and the module."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from . import reference
from .errors import KernelFault
from .guarded import POISONS
from .stock_ggml import DeviceRefused, StockFailure, StockGgml
from .validate_case import Case
from .validate_report import FAILED, INVALID, Column, ProductReport

if TYPE_CHECKING:
    import numpy as np

STOCK_DEVICE, MODULE_DEVICE = "CPU", "WAVESMITH"

CHECKED_ROWS = 512
CHECKED_COLUMNS = 33
SUMS_BYTES = 1 << 26  # integer sums of one checked run

NMSE_LIMIT = 5e-4  # as upstream's test-backend-ops has it for MUL_MAT
STOCK_NMSE_LIMIT = 10 * NMSE_LIMIT  # stock against the reference: above it, one of the two computed something else
# One row wrong among thousands hides in the NMSE of all; its own error is of the order of 1.
WORST_ROW_LIMIT = 1e-2


class ProductChecks:
    """All checks of one product; what they find goes into `report`."""

    def __init__(self, case: Case, columns: tuple[int, ...], stock: StockGgml, has_module: bool, report: ProductReport):
        self.case = case
        self.columns = columns
        self.stock = stock
        self.has_module = has_module
        self.report = report
        self.results: dict[int, np.ndarray] = {}
        report.rows = case.m

    def run(self) -> None:
        import numpy as np

        if not np.isfinite(self.case.reference).all():
            self.report.status = INVALID
            self.report.reason = "the float64 reference has a NaN or an infinity: the weights are faulty"
            return
        try:
            self._run_ours()
            self._check_accesses()
            self._check_integers()
        except KernelFault as error:
            self._hold("checked", False, f"fault in the checked kernels: {error}")
        except (ValueError, MemoryError) as error:
            self._fail(f"the kernels stopped: {error}")
        self._compare_to_stock()
        self._compare_to_module()
        if self.report.failures:
            self.report.status = FAILED
            self.report.reason = self.report.failures[0]

    def _fail(self, failure: str) -> None:
        self.report.failures.append(failure)

    def _hold(self, check: str, holds: bool, failure: str) -> None:
        """Records a check that may be made several times: it holds if it did every time."""
        checks = self.report.checks
        setattr(checks, check, holds and getattr(checks, check) is not False)
        if not holds:
            self._fail(failure)

    # Ours ------------------------------------------------------------------------------------------------------------

    def _run_ours(self) -> None:
        for n in sorted(self.columns, reverse=True):
            run = self.case.run(n, POISONS[0])
            self.results[n] = run.out
            self._hold("guards", not run.damaged, f"N={n}: bytes around or in {', '.join(run.damaged)} changed")
            column = Column(n, run.kernel)
            self.report.columns.insert(0, column)
            self._judge(column, run.out)
            self._check_poison(n, run.out)
        self._check_columns()

    def _judge(self, column: Column, out: np.ndarray) -> None:
        n = column.n
        column.nmse, column.worst_row, column.worst_row_nmse = errors(out, self.case.reference[:n], self.case.expected_energy(n))
        column.worst_row = self.case.row_number(column.worst_row)
        if column.nmse is None:
            self._fail(f"N={n}: NaN or infinity in row {column.worst_row}")
            return
        if column.nmse > NMSE_LIMIT:
            self._fail(f"N={n}: NMSE {column.nmse:.2e} is over {NMSE_LIMIT:.0e}")
        if column.worst_row_nmse > WORST_ROW_LIMIT:
            self._fail(f"N={n}: row {column.worst_row} has NMSE {column.worst_row_nmse:.2e}, over {WORST_ROW_LIMIT:.0e}")

    def _check_poison(self, n: int, out: np.ndarray) -> None:
        again = self.case.run(n, POISONS[1])
        self._hold("guards", not again.damaged, f"N={n}: bytes around or in {', '.join(again.damaged)} changed")
        self._hold("poison", same_bits(out, again.out), f"N={n}: the result depends on bytes outside the operands")

    def _check_columns(self) -> None:
        largest = self.results[max(self.columns)]
        for n in self.columns:
            if n != max(self.columns):
                self._hold("columns", same_bits(self.results[n], largest[:n]), f"columns of N={n} and N={max(self.columns)} differ")

    def _check_accesses(self) -> None:
        """The checked kernels on a few rows of every expert: any access out of range is a KernelFault."""
        limit = max(2, CHECKED_ROWS // self.case.experts)
        n = min(CHECKED_COLUMNS, len(self.case.x))
        few = Case(self.case.product, n, self.case.family, limit, self.case.used)
        fast, checked = few.run(n, POISONS[0]), few.run(n, POISONS[0], checked=True)
        self._hold("guards", not checked.damaged, f"checked run: bytes around or in {', '.join(checked.damaged)} changed")
        self._hold("checked", same_bits(fast.out, checked.out), "the checked and the fast kernels differ")

    def _check_integers(self) -> None:
        """The checked kernels on some rows: integer sums against numpy, their float result against a bound and against the fast kernels."""
        case = self.case
        group = reference.scale_group(case.product.type_name)
        if not group:
            return
        n = min(CHECKED_COLUMNS, len(case.x))
        rows = case.checked_rows(CHECKED_ROWS)
        quantized = reference.quantize_activations(case.x[:n], case.product.type_name)
        step = max(1, SUMS_BYTES // (4 * n * (case.k // group)))
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            run, sums = case.run_integers(part, n)
            self._hold("guards", not run.damaged, f"checked run: bytes around {', '.join(run.damaged)} changed")
            self._check_sums(part, sums, quantized)
            self._check_float_part(part, run.out, quantized)
            if case.ids is None and n in self.results:
                self._hold("checked", same_bits(run.out, self.results[n][:, part]), "the checked and the fast kernels differ")
        self.report.checks.integer_rows = len(rows)

    def _check_sums(self, rows: np.ndarray, sums: np.ndarray, quantized: reference.QuantizedActivations) -> None:
        expected = reference.integer_sums(self.case.product.type_name, self.case.rows[rows], quantized.q)
        wrong = (sums != expected).any(axis=(0, 2))
        row = self.case.row_number(int(rows[wrong.argmax()]) % self.case.m)
        self._hold("integers", not wrong.any(), f"integer sums of {int(wrong.sum())} of {len(rows)} rows are wrong, first in row {row}")

    def _check_float_part(self, rows: np.ndarray, out: np.ndarray, quantized: reference.QuantizedActivations) -> None:
        """Given exact integers, what is left is f32 arithmetic, a few roundings per group and one per addition (kernels/mmq.h)."""
        import numpy as np

        name, k = self.case.product.type_name, self.case.k
        weights = reference.dequantize(name, self.case.rows[rows]).astype(np.float64)
        values = quantized.values[:, :k]
        magnitude = np.abs(weights)
        # A weight is scale * integer - minimum; both parts together are at most three times the largest weight of the row.
        magnitude += 2 * magnitude.max(axis=1, keepdims=True)
        roundings = k // reference.scale_group(name) + 8
        bound = roundings * 2.0**-24 * (np.abs(values) @ magnitude.T)
        error = np.abs(out - values @ weights.T)
        self._hold(
            "float_part", bool((error <= bound).all()), f"float part is {float((error / (bound + 1e-300)).max()):.2g} times over the bound of f32 rounding"
        )

    # Others ----------------------------------------------------------------------------------------------------------

    def _stored_weights(self) -> tuple[Path, int, int]:
        """Where the weights of the case lie as one piece: in the model's file, or in a copy of the sampled rows."""
        case = self.case
        tensor = case.product.tensors[0]
        if not case.is_sampled:
            return tensor.file.path.absolute(), tensor.offset, case.rows.nbytes
        copy = self.stock.folder / "weights"
        case.rows.tofile(copy)
        return copy, 0, case.rows.nbytes

    def _by_device(self, device: str) -> dict[int, np.ndarray]:
        case = self.case
        shape = (case.k, case.m, case.experts if case.has_experts else 0)
        return self.stock.products(device, case.product.type_number, self._stored_weights(), shape, case.x, list(self.columns), case.ids)

    def _compare_to_stock(self) -> None:
        try:
            results = self._by_device(STOCK_DEVICE)
        except StockFailure as error:
            self._fail(f"stock: {error}")
            return
        for column in self.report.columns:
            expected, energy = self.case.reference[: column.n], self.case.expected_energy(column.n)
            theirs = results[column.n]
            column.stock_nmse = errors(theirs, expected, energy)[0]
            column.nmse_to_stock = errors(self.results[column.n], theirs, energy)[0]
            if column.stock_nmse is None:
                self._fail(f"N={column.n}: stock's result has a NaN or an infinity")
            elif column.stock_nmse > STOCK_NMSE_LIMIT:
                self._fail(f"N={column.n}: stock's own NMSE {column.stock_nmse:.2e} is over {STOCK_NMSE_LIMIT:.0e}")
            elif column.nmse_to_stock is not None and column.nmse_to_stock > stock_limit(column.stock_nmse):
                self._fail(f"N={column.n}: NMSE to stock {column.nmse_to_stock:.2e} is over {stock_limit(column.stock_nmse):.2e}")

    def _compare_to_module(self) -> None:
        if not self.has_module:
            return
        try:
            results = self._by_device(MODULE_DEVICE)
        except DeviceRefused as error:
            self._hold("module", False, f"the module refused: {error}")
            return
        except StockFailure as error:
            self._hold("module", False, f"the module: {error}")
            return
        different = [n for n, ours in sorted(self.results.items()) if not same_bits(ours, results[n])]
        self._hold("module", not different, f"N={', '.join(map(str, different))}: the module's result has other bits than the host library's")


def stock_limit(stock_nmse: float) -> float:
    """Most NMSE between ours and stock: stock quantises activations more coarsely for some types, and its error is not ours."""
    return NMSE_LIMIT + 2 * stock_nmse


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Equality of float32 arrays bit for bit (NaN equals itself, 0 does not equal -0)."""
    import numpy as np

    return a.shape == b.shape and np.array_equal(np.ascontiguousarray(a).view(np.uint32), np.ascontiguousarray(b).view(np.uint32))


def errors(out: np.ndarray, expected: np.ndarray, energy: np.ndarray) -> tuple[float | None, int, float | None]:
    """(NMSE, worst row, its NMSE) of `out` against `expected`, both [..., M].

    NMSE is the sum of squared errors over the sum of squares of `expected`. A row's NMSE is its squared error over the larger of its own
    sum of squares and `energy` [M], what that sum would be on average; so a result near zero by chance does not look wrong. When a result
    is not finite both errors are None and the row is the first such. All zero against all zero has the error 0.
    """
    import numpy as np

    m = out.shape[-1]
    out = out.reshape(-1, m)
    expected = expected.reshape(-1, m)
    finite = np.isfinite(out).all(axis=0)
    if not finite.all():
        return None, int(finite.argmin()), None
    squared = np.square(out - expected, dtype=np.float64).sum(axis=0)
    own = np.square(expected, dtype=np.float64).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        rows = np.where(squared > 0, squared / np.maximum(own, energy), 0.0)
        total = squared.sum() / own.sum() if squared.any() else 0.0
    rows = np.minimum(rows, np.finfo(np.float64).max)
    worst = int(rows.argmax())
    return float(min(total, np.finfo(np.float64).max)), worst, float(rows[worst])
