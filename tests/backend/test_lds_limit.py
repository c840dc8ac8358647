"""WAVESMITH_LDS_LIMIT on the host platform: a lower row, or none and the reason; the same numbers whichever row runs."""

import os
import shutil
import subprocess

import numpy as np
import pytest
from wavesmith import host_library, ops, resources
from wavesmith.host_library import FAMILIES, Operand, Unsupported
from wavesmith.kernels import definitions, planner
from wavesmith.kernels.families import families
from wavesmith.random_weights import random_weights

LIMIT = "WAVESMITH_LDS_LIMIT"
PLANNED = tuple(family for family in FAMILIES if family in families())  # `cuda` has rows chosen by measurement
QUANTS = {quant.struct: quant for quant in definitions.quants()}
M, N, K = 130, 100, 256


def operands(name: str, rows: int = M) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    return random_weights(name, rows, K, rng).view(np.uint8).reshape(rows, -1), rng.standard_normal((N, K)).astype(np.float32)


def run(name: str, family: str, rows: int = M, columns: int = N, variant: str | None = None) -> tuple[str, bytes]:
    """Name of the plan that ran, and the output's bytes."""
    w, x = operands(name, rows)
    x = np.ascontiguousarray(x[:columns])
    out = np.empty((columns, rows), np.float32)
    quant = QUANTS[name]
    kernel = host_library.mul_mat_raw(
        Operand(quant.ggml_type, w.reshape(-1), (K, rows, 1, 1), (quant.block_bytes, w.strides[0], w.nbytes, w.nbytes)),
        Operand(0, x.view(np.uint8).reshape(-1), (K, columns, 1, 1), (4, 4 * K, x.nbytes, x.nbytes)),
        Operand(0, out.view(np.uint8).reshape(-1), (rows, columns, 1, 1), (4, 4 * rows, out.nbytes, out.nbytes)),
        family=family,
        variant=variant,
    )
    return kernel.split()[-1], out.tobytes()


def host_rows(name: str, family: str) -> dict[str, int]:
    """The rows of the library -> LDS bytes."""
    quant = QUANTS[name]
    names = host_library.variants(quant.ggml_type, family)
    rows = {row.name: row for row in planner.table_of(families()[family], quant.parts)}
    return {plan: planner.lds_bytes(rows[plan], quant, families()[family]) for plan in names}


@pytest.mark.parametrize("family", PLANNED)
def test_the_library_has_the_rows_that_the_table_gives_it(family):
    for quant in QUANTS.values():
        expected = {row.name for row in planner.table_of(families()[family], quant.parts) if row.host}
        assert set(host_library.variants(quant.ggml_type, family)) >= expected


@pytest.mark.parametrize("name", ["Q4_K", "Q6_K", "Q8_0"])
def test_every_measured_row_gives_the_same_bits(name):
    assert set(FAMILIES) - set(PLANNED) == {"cuda"}
    plans = host_library.variants(QUANTS[name].ggml_type, "cuda")
    assert len(plans) > 1
    assert len({run(name, "cuda", variant=plan) for plan in plans}) == len(plans)
    assert {run(name, "cuda", variant=plan)[1] for plan in plans} == {run(name, "rdna3")[1]}


@pytest.mark.parametrize("family", PLANNED)
@pytest.mark.parametrize("name", ["Q4_K", "Q6_K", "Q8_0"])
def test_every_row_gives_the_same_bits_and_the_limit_lowers_the_choice(name, family, monkeypatch):
    quant, kind = QUANTS[name], families()[family]
    rows = host_rows(name, family)
    table = [row for row in planner.table_of(kind, quant.parts) if row.name in rows]
    expected, first = planner.chosen(table, M, N).name, run(name, family)
    assert first[0] == expected
    for plan in rows:
        assert run(name, family, variant=plan) == (plan, first[1])
    for limit in sorted({size - 1 for size in rows.values()}, reverse=True):
        monkeypatch.setenv(LIMIT, str(limit))
        allowed = [row for row in table if rows[row.name] <= limit]
        if allowed:
            assert run(name, family) == (planner.chosen(allowed, M, N).name, first[1])
        else:
            with pytest.raises(Unsupported, match="LDS"):
                run(name, family)


@pytest.mark.parametrize(("columns", "width"), [(1, 16), (17, 32), (33, 48), (49, 64), (100, 128)])
def test_the_host_follows_the_table_for_every_width(columns, width):
    quant = QUANTS["Q4_K"]
    (row,) = [row for row in planner.table_of(families()["rdna3"], quant.parts) if row.tile_n == width]
    assert run("Q4_K", "rdna3", rows=128, columns=columns)[0] == row.name


def test_a_limit_that_a_row_just_meets_allows_it(monkeypatch):
    plan, size = max(host_rows("Q4_K", "rdna3").items(), key=lambda item: item[1])
    monkeypatch.setenv(LIMIT, str(size))
    assert run("Q4_K", "rdna3", variant=plan)[0] == plan
    monkeypatch.setenv(LIMIT, str(size - 1))
    with pytest.raises(Unsupported, match=f"tile {plan} of q4_K needs {size} bytes of LDS, {LIMIT} is {size - 1}"):
        run("Q4_K", "rdna3", variant=plan)


def test_too_small_a_limit_is_the_reason(monkeypatch):
    w, x = operands("Q4_K")
    least = min(host_rows("Q4_K", "rdna3").values())
    monkeypatch.setenv(LIMIT, "1000")
    with pytest.raises(ValueError, match=f"smallest tile of q4_K on rdna3 needs {least} bytes of LDS, {LIMIT} is 1000"):
        ops.mul_mat("Q4_K", w, x)


def test_kernels_without_lds_run_under_any_limit(monkeypatch):
    x = operands("Q4_K")[1]
    w = np.ones((3, K), np.float16).view(np.uint8)
    monkeypatch.setenv(LIMIT, "0")
    assert ops.mul_mat("F16", w, x).shape == (N, 3)


def test_the_limit_counts_for_experts(monkeypatch):
    w, x = operands("Q4_K")
    ids = np.zeros((N, 1), np.int32)
    monkeypatch.setenv(LIMIT, "0")
    with pytest.raises(ValueError, match="expert_slots needs .* bytes of LDS"):
        ops.mul_mat_id("Q4_K", w[None], x, ids)


@pytest.mark.parametrize("value", ["64k", "-1", "0x100", " 1", "4294967295", "99999999999999999999"])
def test_malformed_limit_is_one_clear_line(value, monkeypatch):
    w, x = operands("Q4_K")
    monkeypatch.setenv(LIMIT, value)
    with pytest.raises(ValueError) as caught:
        ops.mul_mat("Q4_K", w, x)
    assert str(caught.value) == f"{LIMIT} is {value!r}; expected a number of bytes below 2^32 - 1"


def test_empty_limit_is_none(monkeypatch):
    monkeypatch.setenv(LIMIT, "")
    assert run("Q4_K", "rdna3")[0] == planner.chosen(planner.table_of(families()["rdna3"], 1), M, N).name


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_rows_that_are_for_gpus_alone_give_the_same_bits(tmp_path, monkeypatch):
    """A library with every row of the table, each of them run for every type and family."""
    configure = ["cmake", "-S", str(resources.backend()), "-B", str(tmp_path), "-DCMAKE_BUILD_TYPE=Release", "-DWAVESMITH_ALL_ROWS=ON"]
    launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    subprocess.run([*configure, *launcher], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", str(tmp_path), "--parallel", str(os.cpu_count())], check=True, capture_output=True)
    monkeypatch.setenv("WAVESMITH_HOST_LIBRARY", str(tmp_path / "libwavesmith-host.so"))
    for family, kind in families().items():
        for name, quant in QUANTS.items():
            rows = [row.name for row in planner.table_of(kind, quant.parts)]
            assert host_library.variants(quant.ggml_type, family) == rows
            outputs = {run(name, family, variant=row)[1] for row in rows}
            assert len(outputs) == 1, (name, family)
