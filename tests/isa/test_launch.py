"""Launching from a manifest entry: the grid rule's words, the arguments' sizes, and a clear message without an emulator."""

from __future__ import annotations

import numpy as np
import pytest
from wavesmith.errors import CannotRun
from wavesmith.kernels.device_source import units
from wavesmith.kernels.families import families

from . import emulator, launch
from .launch import NotLaunchable


def entry(grid: str = "x = 1, y = 1, z = 1", *args: tuple[str, str]) -> dict:
    return {"symbol": "kernel", "grid": grid, "args": [{"name": name, "type": kind, "meaning": f"meaning of {name}"} for name, kind in args]}


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("x = ceil(m / 64), y = ceil(n / 16), z = batches", (2, 1, 6)),
        ("x = ne1 * ne2 * ne3, y = ceil(k / 512), z = 1", (24, 3, 1)),
        ("x = ceil((m + 64) / (2 * 64)) - 1, y = 1, z = batches * 4", (1, 1, 24)),
        ("x = ceil(ceil(m / 2) / 32), y = n - n, z = 1", (2, 0, 1)),
    ],
)
def test_grid(rule, expected):
    assert launch.grid(entry(rule), {"m": 65, "n": 16, "batches": 6, "ne1": 2, "ne2": 3, "ne3": 4, "k": 1025}) == expected


@pytest.mark.parametrize(
    "rule",
    ["x = 1, y = 1", "x = m, y = 1, z = unknown", "x = m / 2, y = 1, z = 1", "x = m ** 2, y = 1, z = 1", "x = max(m, 2), y = 1, z = 1",
     "x = m.real, y = 1, z = 1", "x = , y = 1, z = 1", "x = 1 - m, y = 1, z = 1", "x = ceil(m / (m - m)), y = 1, z = 1", "x = 1.5, y = 1, z = 1"],
)  # fmt: skip
def test_grid_rules_that_are_none(rule):
    with pytest.raises(NotLaunchable, match="kernel: "):
        launch.grid(entry(rule), {"m": 65})


def test_arguments_in_order_and_size():
    buffer = np.zeros(4, np.uint8)
    kernel = entry("", ("b", "pointer"), ("n", "i32"), ("nb", "i64"), ("none", "pointer"))
    made = launch.arguments(kernel, {"nb": 1 << 40, "none": None, "n": 7, "b": buffer, "more": 1})
    assert made[0] is buffer and made[3] is None
    assert [value.dtype for value in made[1:3]] == [np.int32, np.int64] and made[1:3] == [7, 1 << 40]
    with pytest.raises(NotLaunchable, match="no value for the argument 'nb' .meaning of nb"):
        launch.arguments(kernel, {"b": buffer, "n": 7})
    with pytest.raises(NotLaunchable, match="is a pointer"):
        launch.arguments(kernel, {"b": 3, "n": 7, "nb": 1, "none": None})


@pytest.mark.parametrize("family", families())
def test_every_kernel_has_a_rule_over_its_own_arguments(family):
    for unit in units(family):
        for kernel in unit.kernels:
            numbers = {argument.name: 1000 for argument in kernel.arguments if argument.type.startswith("int")}
            x, y, z = launch.grid({"symbol": kernel.symbol, "grid": kernel.grid}, {**numbers, "batches": 3})
            assert x >= 1 and y >= 1 and z >= 1


def test_missing_emulator_is_explained(monkeypatch, tmp_path):
    emulator._module.cache_clear()
    monkeypatch.delenv("WAVESMITH_EMULATOR", raising=False)
    with pytest.raises(CannotRun, match="set WAVESMITH_EMULATOR"):
        emulator.require()
    (tmp_path / "run_co.py").write_text("import nothing_that_exists\n")
    monkeypatch.setenv("WAVESMITH_EMULATOR", str(tmp_path))
    monkeypatch.delenv("TINYGRAD", raising=False)
    with pytest.raises(CannotRun, match="set TINYGRAD"):
        emulator.require()
    monkeypatch.setenv("TINYGRAD", str(tmp_path))
    with pytest.raises(CannotRun, match="cannot be loaded"):
        emulator.require()
