"""A sample on the emulator itself, where it is at hand; the whole is recorded by python -m tests.isa.record."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from wavesmith.errors import CannotBuild, CannotRun
from wavesmith.kernels import compile as kernels_compile
from wavesmith.kernels import compiler, manifest
from wavesmith.targets import resolve

from . import cases, emulator, evidence, record

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def tools() -> None:
    try:
        emulator.require()
        compiler.find()
    except (CannotRun, CannotBuild) as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module", params=emulator.TARGETS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("code") / request.param
    kernels_compile.compile_targets(resolve([request.param], []), out, jobs=1, only="mmq_q4_0")
    return out


def test_tiles_of_q4_0_pass(folder: Path) -> None:
    kernels = manifest.read(folder)["kernels"]
    assert kernels
    for kernel in kernels:
        entry = evidence.Entry(kernel["target"], kernel["symbol"], kernel["op"], kernel["type"], "0" * 64, "", "", [], "pass", 0.0)
        planned = cases.cases(kernel, evidence.family_of(kernel["target"]))
        record.run_cases(kernel, folder, planned, entry)
        assert entry.cases == [case.title for case in planned]
        assert entry.instructions["matrix"] > 0


def test_a_wrong_launch_is_noticed(folder: Path) -> None:
    """Strides that lie by one row: the last row is read from beyond the buffer, or the results are others'."""
    kernel = manifest.read(folder)["kernels"][0]
    names = [argument["name"] for argument in kernel["args"]]
    first, second = names.index("nb01"), names.index("nb1")
    wrong = {**kernel, "args": list(kernel["args"])}
    wrong["args"][first], wrong["args"][second] = kernel["args"][second], kernel["args"][first]
    planned = cases.cases(kernel, evidence.family_of(kernel["target"]))
    entry = evidence.Entry(kernel["target"], kernel["symbol"], kernel["op"], kernel["type"], "0" * 64, "", "", [], "pass", 0.0)
    with pytest.raises(record.Failed):
        record.run_cases(wrong, folder, planned, entry)
    assert Counter(entry.cases) == Counter()


BYTES = """
extern "C" __attribute__((global)) void kernel(const int * words, float * values) {
    const int t = __builtin_amdgcn_workitem_id_x(), word = words[t];
    for (int i = 0; i < 4; ++i) values[4 * t + i] = (float) (signed char) (word >> (8 * i));
}
"""


def test_sign_of_byte_operands(tmp_path: Path) -> None:
    """What the adapter corrects: CDNA converts signed bytes with one instruction (SDWA)."""
    source, output = tmp_path / "bytes.hip", tmp_path / "bytes.co"
    source.write_text(BYTES)
    compiler.compile_unit(compiler.find(), source, "gfx942", output)
    words = np.random.default_rng(0).integers(-(2**31), 2**31, 64).astype(np.int32)
    values = np.zeros(256, np.float32)
    outcome = emulator.CodeObject(output).run("kernel", (1, 1, 1), (64, 1, 1), [words, values], 0, None)
    assert any(name.startswith("V_CVT_F32_I32") for name in outcome.opcodes)
    assert values.tolist() == words.view(np.int8).tolist()
