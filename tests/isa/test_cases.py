"""The cases without an emulator: they give every argument that a kernel's manifest entry names, and their checks notice what is wrong."""

from __future__ import annotations

import numpy as np
import pytest
from wavesmith.kernels import manifest
from wavesmith.kernels.compiler import Resources
from wavesmith.kernels.device_source import Kernel, units

from . import cases, launch
from .emulator import Outcome
from .figures import per_million
from .problems import GAP, Mismatch, Product, Quantization, Slots, slots_by_expert

FAMILY = "rdna3"


def entry(kernel: Kernel) -> dict:
    return manifest.entry(kernel, "gfx1100", "none.co", Resources(kernel.symbol, 0, 0, 0, 0, 0, 0, 0, 32))


KERNELS = {kernel.symbol: entry(kernel) for unit in units(FAMILY) for kernel in unit.kernels}


@pytest.mark.parametrize("symbol", KERNELS)
def test_every_case_can_be_launched(symbol):
    kernel = KERNELS[symbol]
    made = cases.cases(kernel, FAMILY)
    assert len({case.title for case in made}) == len(made) >= 7
    assert sum(case.seed is not None for case in made) >= 3
    for case in made:
        if cases.FULL_TILE not in case.name or case.seed is None:
            problem = case.problem()
            assert len(launch.arguments(kernel, problem.values)) == len(kernel["args"])
            assert min(launch.grid(kernel, problem.values)) >= 1


def test_products_read_the_layout_that_their_manifest_names():
    layouts = {kernel["type"]: cases.layout_of(kernel) for kernel in KERNELS.values() if kernel["op"] == "MUL_MAT"}
    assert (layouts["f16"], layouts["q4_K"], layouts["q2_K"]) == (None, "d4s8", "d2s8")


def product(ids: np.ndarray | None = None) -> Product:
    make = cases.maker_of(KERNELS[next(symbol for symbol in KERNELS if symbol.startswith("mmq_q4_k_"))], FAMILY)
    w, x = make.weights(4 if ids is not None else 1, 30, 256), cases.ordinary(1, 1 if ids is None else 9, 9 if ids is None else 1, 256)
    made = make.product(w, x, ids)
    assert isinstance(made, Product)
    made.output[..., :-GAP] = made._host()
    return made


@pytest.mark.parametrize("ids", [None, cases.chosen(9, 2, 3)], ids=["plain", "experts"])
def test_check_of_a_product(ids):
    made = product(ids)
    error = made.check()
    assert error is not None and 0 < error < 5e-4
    made.output[0, 0, -1, 3] = np.nextafter(made.output[0, 0, -1, 3], np.float32(np.inf))
    with pytest.raises(Mismatch, match="1 of .* values differ"):
        made.check()
    made = product(ids)
    made.output[0, 0, 0, -1] = 0
    with pytest.raises(Mismatch, match="between the columns"):
        made.check()
    made = product(ids)
    made.output[0, 0, 0, 0] = np.nan
    with pytest.raises(Mismatch, match="nan for"):
        made.check()


def test_check_of_quantised_blocks():
    made = Quantization(cases.extreme(12, 300)[None, None], "d2s8", FAMILY)
    made.output[:] = made.expected
    made.check()
    made.output[1, 3, 40] ^= 1
    with pytest.raises(Mismatch, match="1 bytes differ"):
        made.check()


def test_check_of_slots():
    ids = cases.chosen(20, 2, 4)
    made = Slots(ids, 4)
    slots, bounds = slots_by_expert(ids, 4)
    made.slots[:], made.bounds[:] = slots, bounds
    made.check()
    made.slots[[0, 1]] = made.slots[[1, 0]]
    with pytest.raises(Mismatch, match="in order"):
        made.check()
    made.bounds[2] += 1
    with pytest.raises(Mismatch, match="bounds"):
        made.check()


def test_figures_are_extrapolated_to_k_of_4096():
    """A made-up kernel: 7 instructions before the loop and, per 128 values of K, what a 16x16 tile needs in matrix instructions and more."""
    kernel = {"type": "q8_0", "plan": {"tile_m": 16, "tile_n": 16, "tile_k": 128, "waves": 2}}

    def run(k: int) -> Outcome:
        turns = k // 128
        opcodes = {
            "S_MOV_B32": 7,
            "V_WMMA_I32_16X16X16_IU8": 8 * turns,
            "V_DUAL_FMA": 5 * turns,
            "S_DELAY_ALU": 90 * turns,
            "S_BARRIER_SIGNAL": 4 * turns,
            "S_BARRIER_WAIT": 4 * turns,
        }
        classes = {"matrix": 8 * turns, "valu_dual": 5 * turns, "barrier": 8 * turns}
        memory = {"lds_conflicts": 3 + 2 * turns, "lds_cycles": turns, "global_bytes": 16 * 160 * turns + 2 * 16 * 34 * 4 * turns}
        return Outcome(0, classes, opcodes, memory, {})

    found = per_million(kernel, run, (512, 1024))
    millions = 16 * 16 * 4096 / 1e6
    assert found["issue"] == pytest.approx((7 + 32 * 21) / millions, abs=1e-3)
    assert found["matrix"] == pytest.approx(244.141, abs=1e-3)
    assert (found["matrix_ratio"], found["barriers_per_step"], found["weights_loaded"]) == (1.0, 2.0, 2.0)
    assert found["conflicts_in_loop"] == pytest.approx(64 / millions, abs=1e-3)
