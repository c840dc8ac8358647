"""stock_ggml: products by a real build, and failures of the libraries that must not become ours."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from wavesmith import reference, stock_worker
from wavesmith.errors import CannotRun
from wavesmith.gguf_types import gguf_type
from wavesmith.random_weights import random_weights
from wavesmith.stock_ggml import StockFailure, StockGgml, find_library

FUNCTIONS = [
    "init",
    "free",
    "tensor_overhead",
    "graph_overhead",
    "nbytes",
    "new_tensor_2d",
    "new_tensor_3d",
    "mul_mat",
    "mul_mat_id",
    "new_graph",
    "build_forward_expand",
    "backend_load_all_from_path",
    "backend_dev_get",
    "backend_dev_name",
    "backend_dev_by_name",
    "backend_dev_init",
    "backend_dev_backend_reg",
    "backend_dev_supports_op",
    "backend_reg_get_proc_address",
    "backend_alloc_ctx_tensors",
    "backend_buffer_free",
    "backend_tensor_set",
    "backend_tensor_get",
    "backend_graph_compute",
]


def broken_build(folder: Path, body: str) -> Path:
    """A folder with a libggml.so in which every function is there, and counting the devices does `body`."""
    source = folder / "ggml.c"
    stubs = "".join(f"void ggml_{name}(void) {{}}\n" for name in FUNCTIONS)
    source.write_text(f"#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n{stubs}\nsize_t ggml_backend_dev_count(void) {{ {body} }}\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "libggml.so", source], check=True)
    return folder


@pytest.mark.parametrize("place", ["", "bin", "lib", "build/bin"])
def test_find_library(tmp_path, place):
    (tmp_path / place).mkdir(parents=True, exist_ok=True)
    (tmp_path / place / "libggml.so.0").touch()
    (tmp_path / place / "libggml-cpu.so").touch()
    assert find_library(tmp_path) == tmp_path / place / "libggml.so.0"


def test_no_library(tmp_path):
    with pytest.raises(CannotRun, match="holds no libggml.so"):
        StockGgml(tmp_path)


def test_a_file_that_is_no_library(tmp_path):
    (tmp_path / "libggml.so").write_text("text")
    with StockGgml(tmp_path) as stock, pytest.raises(StockFailure, match="libggml.so"):
        stock.devices()


def test_a_library_without_the_functions(tmp_path):
    (tmp_path / "e.c").write_text("int nothing;")
    subprocess.run(["cc", "-shared", "-o", tmp_path / "libggml.so", tmp_path / "e.c"], check=True)
    with StockGgml(tmp_path) as stock, pytest.raises(StockFailure, match="ggml_init"):
        stock.devices()


def test_an_abort_is_a_failure_with_its_last_words(tmp_path):
    broken_build(tmp_path, 'fprintf(stderr, "ggml.c:7: GGML_ASSERT(false) failed\\n"); abort();')
    with StockGgml(tmp_path) as stock:
        for _ in range(2):  # the second time in a fresh process
            with pytest.raises(StockFailure, match=r"was killed by SIGABRT: ggml.c:7: GGML_ASSERT\(false\) failed"):
                stock.devices()


def test_an_exit_is_a_failure(tmp_path):
    broken_build(tmp_path, "exit(7);")
    with StockGgml(tmp_path) as stock, pytest.raises(StockFailure, match="ended with exit code 7"):
        stock.devices()


def test_a_hang_is_a_failure(tmp_path):
    broken_build(tmp_path, "sleep(600); return 0;")
    with StockGgml(tmp_path, timeout=1.0) as stock:
        (tmp_path / "w").write_bytes(b"\0" * 128)
        with pytest.raises(StockFailure, match="did not finish within 1 s"):
            stock.products("CPU", 0, (tmp_path / "w", 0, 128), (32, 1, 0), np.zeros((1, 32), np.float32), [1])


def test_what_the_library_prints_is_no_answer(tmp_path):
    broken_build(tmp_path, 'printf("hello\\n"); fflush(stdout); return 0;')
    with StockGgml(tmp_path) as stock:
        assert stock.devices() == []


def test_nothing_is_left_behind(tmp_path):
    broken_build(tmp_path, "return 0;")
    with StockGgml(tmp_path) as stock:
        stock.devices()
        folder, process = stock.folder, stock._process
        assert folder.is_dir()
    assert not folder.exists()
    assert process.returncode is not None


def test_the_stubs_name_every_function_the_worker_uses():
    used = {name for name in stock_worker.SIGNATURES if name != "ggml_backend_dev_count"}
    assert used == {f"ggml_{name}" for name in FUNCTIONS}


@pytest.mark.build
@pytest.mark.parametrize("name", ["F32", "F16", *reference.INTEGER_TYPES])
@pytest.mark.parametrize("device", ["CPU", "WAVESMITH"])
def test_products_of_a_real_build(host_build, tmp_path, name, device):
    rng = np.random.default_rng(1)
    rows, x = random_weights(name, 24, 256, rng), rng.standard_normal((7, 256)).astype(np.float32)
    (tmp_path / "w").write_bytes(b"\0" * 64 + rows.tobytes())
    weights, kind = (tmp_path / "w", 64, rows.nbytes), gguf_type(name).number
    ids = np.array([[0, 1], [2, 2], [1, 0]], np.int32)
    with StockGgml(host_build.lib_dir, host_build.environment("rdna3")) as stock:
        assert {"CPU", "WAVESMITH"} <= set(stock.devices())
        plain = stock.products(device, kind, weights, (256, 24, 0), x, [1, 7])
        by_id = stock.products(device, kind, weights, (256, 8, 3), x[:3], [3], ids)[3]
    expected = reference.mul_mat(name, rows, x)
    assert np.square(plain[7] - expected).sum() < 5e-4 * np.square(expected).sum()
    assert np.array_equal(plain[1], plain[7][:1]) or device == "CPU"
    experts = np.stack([[reference.mul_mat(name, rows.reshape(3, 8, -1)[e], x[i : i + 1])[0] for e in ids[i]] for i in range(3)])
    assert np.square(by_id - experts).sum() < 5e-4 * np.square(experts).sum()


@pytest.mark.build
def test_unknown_device_and_type_of_a_real_build(host_build, tmp_path):
    (tmp_path / "w").write_bytes(b"\0" * 128)
    arguments = ((tmp_path / "w", 0, 128), (32, 1, 0), np.zeros((1, 32), np.float32), [1])
    with StockGgml(host_build.lib_dir) as stock:
        with pytest.raises(StockFailure, match="the build has no device NONE"):
            stock.products("NONE", 0, *arguments)
        with pytest.raises(StockFailure, match="was killed by"):
            stock.products("CPU", 999, *arguments)
        with pytest.raises(StockFailure, match="stock ggml wants 64 bytes"):
            stock.products("CPU", 1, *arguments)
        assert "CPU" in stock.devices()
