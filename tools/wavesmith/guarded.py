"""Buffers surrounded by known bytes: what a kernel reads past a row shows in its result, what it writes there shows here."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

# As float32, float16 and bfloat16 0xFF... is NaN and 0x7F... is huge or NaN: neither can be read without a trace.
POISONS = (0xFF, 0x7F)
_GUARD = 4096  # bytes before and after


class GuardedRows:
    """A matrix of byte rows with `padding` bytes after each row and a guard before the first and after the last.

    contents: uint8 [rows, row_bytes], copied. buffer: what a kernel is given, from the first byte of the first row to the last byte of
    the last one; stride: bytes between rows.
    """

    def __init__(self, contents: np.ndarray, padding: int, poison: int):
        import numpy as np

        self._rows, self._row_bytes = contents.shape
        self._padding = padding
        self.stride = self._row_bytes + padding
        self._memory = np.empty(2 * _GUARD + self._rows * self.stride, np.uint8)
        self._all = self._memory[_GUARD : _GUARD + self._rows * self.stride].reshape(self._rows, self.stride)
        self.rows = self._all[:, : self._row_bytes]
        self.rows[...] = contents
        self.poison(poison)

    @property
    def buffer(self) -> np.ndarray:
        return self._memory[_GUARD : _GUARD + self._rows * self.stride - self._padding]

    def poison(self, value: int) -> None:
        """Fills everything but the rows themselves with `value`."""
        self._value = value
        for surrounding in self._surroundings():
            surrounding[...] = value

    def untouched(self) -> bool:
        """Whether every guard and padding byte still has its value."""
        return all(bool((surrounding == self._value).all()) for surrounding in self._surroundings())

    def _surroundings(self) -> tuple[np.ndarray, ...]:
        return self._memory[:_GUARD], self._all[:, self._row_bytes :], self._memory[len(self._memory) - _GUARD :]
