"""The kernels on the host platform against what stock's kernels computed on a GPU (tests/golden)."""

import sys
from pathlib import Path

import numpy as np
import pytest
from wavesmith import ops

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "gpu"))

from golden_inputs import inputs

CASES = sorted(np.load(TESTS / "golden/stock-mmq-cuda.npz").files)
# Types whose minimum stock multiplies with a sum of activations rounded to f16, or rounds scales on the way: this is stock's error.
ROUNDED = {"q2_K", "q4_K", "q5_K", "q4_0", "q4_1", "q5_1"}


def test_every_type_has_its_cases():
    assert len(CASES) == 36 and len({name.split("-")[0] for name in CASES}) == 12


@pytest.mark.parametrize("name", CASES)
def test_host_agrees_with_stock_on_a_gpu(name):
    kind, *sizes = name.split("-")
    m, n, k = map(int, sizes)
    weights, activations = inputs(kind, m, n, k)
    expected = np.load(TESTS / "golden/stock-mmq-cuda.npz")[name].reshape(n, m).astype(np.float64)
    result = ops.mul_mat(kind.upper(), weights, activations, family="cuda").astype(np.float64)
    error = ((result - expected) ** 2).sum() / (expected**2).sum()
    assert error < (5e-4 if kind in ROUNDED else 1e-9), error
