"""The planner's numbers against what a C++ compiler makes of the same rows: families, LDS bytes, choices."""

import pytest
from native_programs import build_program, compiler, run_program
from wavesmith.kernels import definitions, planner
from wavesmith.kernels.families import by_architecture, families

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C++ compiler")

QUANTS = {quant.name: quant for quant in definitions.quants()}


@pytest.fixture(scope="module")
def lines(tmp_path_factory) -> dict[str, list[list[str]]]:
    """kind of line -> its words."""
    folder = tmp_path_factory.mktemp("mmq_rows")
    includes = "".join(f'#include "quants/{quant.stem}.h"\n' for quant in QUANTS.values())
    types = " ".join(f"MMQ_QUANT({quant.struct})" for quant in QUANTS.values())
    (folder / "mmq_quants.inc").write_text(f"{includes}#define MMQ_QUANTS {types}\n")
    found: dict[str, list[list[str]]] = {}
    for line in run_program(build_program("mmq_rows.cpp", folder, "-I", str(folder))):
        kind, *words = line.split()
        found.setdefault(kind, []).append(words)
    return found


def test_families_are_those_of_the_headers(lines):
    printed = {words[0]: [int(word) for word in words[1:]] for words in lines["arch"]}
    assert len(printed) == len(families()) and len(lines["arch"]) == len(planner.table())
    for name, (*numbers, operand_words, copies, sums) in printed.items():
        family = by_architecture(name)
        step = family.step
        assert numbers == [family.wave_size, family.lds_bytes, step.m, step.n, step.rows, step.columns], name
        assert (copies, sums) == (step.copies, step.sums), name
        assert not step.held or operand_words == step.operand_words, name


def test_lds_bytes_are_the_kernels(lines):
    expected = [
        [quant.name, row.architecture, str(row.parts), row.name, str(planner.lds_bytes(row, quant, by_architecture(row.architecture)))]
        for quant in QUANTS.values()
        for row in planner.table()
        if row.parts == quant.parts
    ]
    assert lines["row"] == expected


def test_choices_are_the_planners(lines):
    for name, architecture, limit, m, n, plan in lines["choice"]:
        quant, family = QUANTS[name], by_architecture(architecture)
        rows = [row for row in planner.table_of(family, quant.parts) if planner.lds_bytes(row, quant, family) <= int(limit)]
        expected = planner.chosen(rows, int(m), int(n)).name if rows else "none"
        assert plan == expected, (name, architecture, limit, m, n)
    assert {words[-1] for words in lines["choice"]} == {"none", *(row.name for row in planner.table())}


def test_tallest_tile(lines):
    assert lines["tallest"] == [[str(max(row.tile_m for row in planner.table()))]]
