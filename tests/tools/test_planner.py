"""The tile planner: its table is checked in, every row fits and can be chosen, none is missing, and sizes are written nowhere else."""

import re
import shutil
from dataclasses import replace

import pytest
from click.testing import CliRunner
from wavesmith import resources
from wavesmith.commands.kernels import command
from wavesmith.errors import BadInput, CheckFailed
from wavesmith.kernels import definitions, planner
from wavesmith.kernels.families import by_architecture, families

ROWS = planner.table()


def a_row(architecture: str = "Rdna3", parts: int = 1, width: int = 128):
    (row,) = [row for row in ROWS if (row.architecture, row.parts, row.tile_n) == (architecture, parts, width)]
    return row


def test_checked_in_table_is_the_planners():
    assert (resources.backend() / planner.FILE).read_text() == planner.text(ROWS), f"run `{planner.COMMAND}`"
    assert definitions.plans() == ROWS


def test_checked_in_table_has_no_problem():
    assert planner.problems(definitions.plans()) == []


def test_every_family_has_rows_for_every_number_of_parts():
    assert {(row.architecture, row.parts) for row in ROWS} == {(family.architecture, parts) for family in families().values() for parts in planner.by_parts()}
    assert len({(row.architecture, row.parts, row.name) for row in ROWS}) == len(ROWS)


def test_few_rows_narrow_and_wide():
    for family in families().values():
        for parts in planner.by_parts():
            widths = [row.tile_n for row in planner.table_of(family, parts)]
            assert len(widths) <= 5 and widths[-1] == max(planner.WIDTHS)
            assert widths == [width for width in planner.WIDTHS if width % family.step.n == 0]


def test_row_too_large_for_lds_is_found():
    row = a_row()
    rows = [replace(row, stages=2) if other == row else other for other in ROWS]
    found = planner.problems(rows)
    assert any(re.fullmatch(rf"rdna3, 1 part, {row.name}: q2_K: \d+ bytes of LDS, a workgroup has 65536", line) for line in found), found


def test_row_with_too_many_registers_or_threads_is_found():
    row = a_row()
    few, many = replace(row, waves_m=1, waves_n=1), replace(row, waves_m=8, waves_n=2)
    assert any("accumulators" in line for line in planner.problems([*ROWS, few]))
    assert any("threads" in line for line in planner.problems([*ROWS, many]))


def test_waves_that_do_not_cover_the_tile_are_found():
    assert any("do not cover the tile exactly" in line for line in planner.problems([*ROWS, replace(a_row(), waves_m=3)]))


def test_row_that_is_never_chosen_is_found():
    second = replace(a_row(width=48), stages=1)
    assert planner.problems([*ROWS, second]) == [f"rdna3, 1 part: {kind}{second.name} is never chosen" for kind in ("", "the host's ")]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.architecture}-{row.parts}-{row.name}")
def test_missing_row_is_found(row):
    rows = [other for other in ROWS if other != row]
    name = by_architecture(row.architecture).name
    assert any(re.fullmatch(rf"{re.escape(name)}, {row.parts} parts?: no row of {row.tile_n} columns", line) for line in planner.problems(rows))


def test_row_of_an_unknown_family_is_found():
    assert any("no such family or type" in line for line in planner.problems([*ROWS, replace(a_row(), architecture="Nothing")]))


def test_family_without_a_row_for_the_host_is_found():
    rows = [replace(row, host=False) if row.architecture == "Gcn" else row for row in ROWS]
    assert "gcn, 1 part: no row for the host" in planner.problems(rows)


@pytest.mark.parametrize(("n", "width"), [(1, 16), (16, 16), (17, 32), (33, 48), (48, 48), (49, 64), (65, 48), (97, 128), (128, 128), (512, 128)])
def test_the_cheapest_cover_is_chosen(n, width):
    assert planner.chosen(planner.table_of(families()["rdna3"], 1), 4096, n).tile_n == width


def test_low_tile_for_few_rows():
    assert planner.chosen(planner.table_of(families()["rdna3"], 1), 64, 128).tile_m == 64


def test_occupancy_counts_whole_granules():
    family, row = families()["rdna3"], a_row()
    quant = definitions.quant("q8_0")
    at_most = family.vgprs // 4 // family.vgpr_granule * family.vgpr_granule
    assert planner.needs(row, quant, family, vgprs=at_most).by_registers == 4 * family.simds // row.waves
    assert planner.needs(row, quant, family, vgprs=at_most + 1).by_registers == 3 * family.simds // row.waves


# A size of a tile in code or prose, but not a matrix instruction's shape (16x16x16) or a number such as 0x40.
TILE_NAME = re.compile(r"(?<![\w.])[1-9]\d+x\d+(?![\dx])")
TILE_ARGUMENTS = re.compile(r"MmqTile<\s*\d|MMQ_PLAN\(\s*\w+,\s*\d|\btile_[mn]\s*=\s*\d{2}|\bcolumns?_tile\s*=")


def test_no_other_place_holds_a_tile_size(repository):
    found = []
    # The planner's rules are for AMD's register files and LDS; the rows of `cuda` come from measurement, and so do their costs.
    measured = {repository / "backend/plan" / name for name in ("mmq_plans_cuda.inc", "mmq_costs.inc")}
    for folder in ("backend", "tools"):
        for path in sorted((repository / folder).rglob("*")):
            if path.suffix in (".h", ".cpp", ".in", ".inc", ".py", ".toml", ".json") and path not in {repository / "backend" / planner.FILE, *measured}:
                lines = enumerate(path.read_text().splitlines(), 1)
                found += [f"{path.relative_to(repository)}:{number}: {line.strip()}" for number, line in lines if _names_a_tile(line)]
    assert not found


def _names_a_tile(line: str) -> bool:
    return bool(TILE_NAME.search(line) or TILE_ARGUMENTS.search(line))


@pytest.mark.parametrize("line", ['return "64x16";', "MmqTile<128, 128, 4, 2, 1>", "MMQ_PLAN(Gcn, 1, 64, 16", "constexpr int tile_m = 64;"])
def test_a_tile_size_would_be_found(line):
    assert _names_a_tile(line)


def test_staging_columns_are_those_of_the_choice():
    text = (resources.backend() / "plan/mmq_choice.h").read_text()
    assert f"constexpr int mmq_staging_columns = {planner.STAGING_COLUMNS};" in text


# The command


@pytest.fixture
def backend_copy(tmp_path, monkeypatch):
    copy = tmp_path / "backend"
    shutil.copytree(resources.backend(), copy)
    monkeypatch.setattr(resources, "backend", lambda: copy)
    return copy


def invoke(*arguments: str):
    return CliRunner().invoke(command, ["plan", *arguments])


def test_command_prints_the_table():
    result = invoke("--check")
    assert result.exit_code == 0, result.output
    assert "LDS bytes" in result.output and f"{len(ROWS)} rows" in result.output
    for row in ROWS:
        assert row.name in result.output and str(planner.worst_needs(row).lds) in result.output


def test_command_finds_an_edited_table_and_writes_it_anew(backend_copy):
    file = backend_copy / planner.FILE
    written = file.read_text()
    file.write_text(written.replace(f"{a_row().tile}, ", f"{replace(a_row(), stages=2).tile}, ").replace("128, 128, 4, 2, 1", "128, 128, 4, 2, 2"))
    assert file.read_text() != written
    result = invoke("--check")
    assert isinstance(result.exception, CheckFailed)
    assert "bytes of LDS" in str(result.exception) and planner.COMMAND in str(result.exception) and "\n" not in str(result.exception)
    assert invoke("--write").exit_code == 0
    assert file.read_text() == written
    assert not list(file.parent.glob("*.part"))


def test_command_that_cannot_write_says_so(tmp_path, monkeypatch):
    rows = planner.table()
    monkeypatch.setattr(resources, "backend", lambda: tmp_path / "none")
    with pytest.raises(BadInput, match="No such file"):
        planner.write(rows)


def test_type_without_a_number_is_named(backend_copy):
    header = backend_copy / "quants/q4_k.h"
    header.write_text(re.sub(r".*constexpr int minimums.*\n", "", header.read_text()))
    with pytest.raises(BadInput, match=r"backend/quants/q4_k\.h: no 'static constexpr int minimums = …;'"):
        definitions.quant("q4_k")
