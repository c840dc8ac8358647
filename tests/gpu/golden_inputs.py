"""Inputs of the products whose outputs on a GPU are kept in tests/golden: made again from the case alone."""

from __future__ import annotations

import sys
import zlib
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from wavesmith.random_weights import random_weights


def inputs(kind: str, m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights as uint8 rows of whole blocks of ggml type `kind`, and activations float32 [n, k]."""
    rng = np.random.default_rng(zlib.crc32(f"{kind} {m} {n} {k}".encode()))
    weights = random_weights(kind.upper(), m, k, rng)
    return weights.view(np.uint8).reshape(m, -1), rng.standard_normal((n, k)).astype(np.float32)
