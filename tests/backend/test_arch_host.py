"""The int8 matrix products of every family on the CPU: exact results and the documented lane layouts."""

from collections import defaultdict
from pathlib import Path

import pytest
from native_programs import build_program, compiler, run_program

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C++ compiler")

# Result row of lane l and register r by AMD's documentation; the column is l % n.
DOCUMENTED_ROW = {
    "rdna3": lambda lane, r: 2 * r + lane // 16,
    "rdna3.5": lambda lane, r: 2 * r + lane // 16,
    "rdna4": lambda lane, r: 8 * (lane // 16) + r,
    "cdna2": lambda lane, r: 4 * (lane // 16) + r,
    "cdna2_32x32x8": lambda lane, r: 8 * (r // 4) + 4 * (lane // 32) + r % 4,
    "cdna3": lambda lane, r: 4 * (lane // 16) + r,
    "cdna3_32x32x16": lambda lane, r: 8 * (r // 4) + 4 * (lane // 32) + r % 4,
    "cdna4": lambda lane, r: 8 * (r // 4) + 4 * (lane // 32) + r % 4,
    "cdna4_32x32x16": lambda lane, r: 8 * (r // 4) + 4 * (lane // 32) + r % 4,
    "cdna4_16x16x64": lambda lane, r: 4 * (lane // 16) + r,
}
# Wave size, m, n, k and result registers.
SHAPES = {
    "rdna3": (32, 16, 16, 16, 8),
    "rdna3.5": (32, 16, 16, 16, 8),
    "rdna4": (32, 16, 16, 16, 8),
    "cdna2": (64, 16, 16, 16, 4),
    "cdna2_32x32x8": (64, 32, 32, 8, 16),
    "cdna3": (64, 16, 16, 32, 4),
    "cdna3_32x32x16": (64, 32, 32, 16, 16),
    "cdna4": (64, 32, 32, 32, 16),
    "cdna4_32x32x16": (64, 32, 32, 16, 16),
    "cdna4_16x16x64": (64, 16, 16, 64, 4),
}


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    return build_program("arch_test.cpp", tmp_path_factory.mktemp("arch"), "-march=native")


@pytest.fixture(scope="module")
def layouts(program) -> dict[str, dict[str, list[tuple[int, ...]]]]:
    """kind -> product -> the numbers of its lines."""
    table: dict[str, dict[str, list[tuple[int, ...]]]] = defaultdict(lambda: defaultdict(list))
    for line in run_program(program, "layouts"):
        kind, name, *numbers = line.split()
        table[kind][name].append(tuple(map(int, numbers)))
    return table


def test_steps_are_exact(program):
    run_program(program, "steps")


@pytest.mark.parametrize("environment", [{}, {"WAVESMITH_HOST_ORDER": "3"}, {"WAVESMITH_HOST_RACECHECK": "1"}], ids=["plain", "order", "racecheck"])
def test_products_are_exact(program, environment):
    run_program(program, "products", environment=environment)


# The baseline of a build for any x86-64 CPU, and the code for CPUs without an instruction for pairs of products.
@pytest.mark.parametrize("flags", [(), ("-U__SSE2__", "-U__AVX2__", "-U__AVX512BW__")], ids=["baseline", "plain"])
def test_products_are_exact_for_other_cpus(tmp_path, flags):
    run_program(build_program("arch_test.cpp", tmp_path, *flags), "products")


def test_dot4_is_exact(program):
    run_program(program, "dot4")


def test_shapes(layouts):
    assert {name: numbers for name, (numbers,) in layouts["shape"].items()} == SHAPES


@pytest.mark.parametrize("name", SHAPES)
def test_every_result_has_one_place(layouts, name):
    _, m, n, _, _ = SHAPES[name]
    places = [(row, column) for _, _, row, column in layouts["result"][name]]
    assert sorted(places) == [(row, column) for row in range(m) for column in range(n)]


@pytest.mark.parametrize("name", DOCUMENTED_ROW)
def test_results_lie_where_documented(layouts, name):
    n = SHAPES[name][2]
    for lane, r, row, column in layouts["result"][name]:
        assert (row, column) == (DOCUMENTED_ROW[name](lane, r), lane % n)


@pytest.mark.parametrize("name", DOCUMENTED_ROW)
def test_operands_lie_where_documented(layouts, name):
    wave_size, _, n, k, _ = SHAPES[name]
    lanes_of_k = 1 if name in ("rdna3", "rdna3.5") else wave_size // n  # lane groups that share k; RDNA3's repeat it
    assert len(layouts["operand"][name]) == wave_size
    for _, _, _, operand_bytes, lane, row, first_k in layouts["operand"][name]:
        assert operand_bytes == k // lanes_of_k
        assert (row, first_k) == (lane % n, operand_bytes * (lane // n) if lanes_of_k > 1 else 0)
