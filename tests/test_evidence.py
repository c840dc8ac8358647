"""The recorded evidence: well formed, honest about what is stale, and no document claims more."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import pytest
from isa import count, evidence, sources, table
from isa.emulator import TARGETS
from wavesmith.errors import BadInput
from wavesmith.kernels import definitions
from wavesmith.kernels.device_source import units

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def states() -> list[evidence.State]:
    return evidence.states(evidence.read())


def test_evidence_is_well_formed_and_what_is_stale_is_named(states):
    """A stale record is not a failure: it is shown as stale, here and in docs/support.md, until the kernels are run again."""
    assert {state.target for state in states} == set(TARGETS)
    waiting = [f"{state.target} {state.kernel.symbol}: {state.state}" for state in states if state.state != "fresh"]
    if waiting:
        shown = "\n".join(waiting[:20]) + (f"\nand {len(waiting) - 20} more" if len(waiting) > 20 else "")
        warnings.warn(f"isa evidence to be renewed with python -m tests.isa.record ({len(waiting)} of {len(states)}):\n{shown}", stacklevel=1)


def test_no_recorded_kernel_has_failed(states):
    """A fresh record that says "failed" means a wrong kernel in the checkout."""
    assert not [f"{state.target} {state.kernel.symbol}" for state in states if state.state == "failed"]


def test_support_table_is_up_to_date():
    assert table.PAGE.read_text() == table.page(), "run python -m tests.isa.table"


def test_counts_page_is_up_to_date():
    assert count.PAGE.read_text() == count.page(), "run python -m tests.isa.count --table"


# What documents claim ------------------------------------------------------------------------------------------------


def unproven(row: str, states: list[evidence.State]) -> list[str]:
    """What a table row that claims `isa` says without a fresh record: about the types and targets it names, or all of them."""
    words = {word.casefold() for word in re.findall(r"\w+", row)}
    types = {state.kernel.type.casefold() for state in states}
    named_types, named_targets = types & words, set(TARGETS) & words
    if re.search(r"`?mmq`?", row) and not named_types:
        named_types = {quant.name.casefold() for quant in definitions.quants()}
    return [
        f"{state.target} {state.kernel.symbol}: {state.state}"
        for state in states
        if (not named_types or state.kernel.type.casefold() in named_types) and (not named_targets or state.target in named_targets) and state.state != "fresh"
    ]


def claims(text: str) -> list[str]:
    """Table rows whose last cell says `isa`."""
    return [line for line in text.splitlines() if re.match(r"\|.*\|[^|]*`isa`[^|]*\|\s*$", line)]


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")) if path != table.PAGE)])
def test_no_page_claims_isa_without_a_fresh_record(page, states):
    for row in claims((ROOT / page).read_text()):
        assert not unproven(row, states), row


def test_a_claim_without_a_record_is_found(states):
    missing = [evidence.State(state.target, state.kernel, "missing") for state in states]
    assert claims("| `mmq` for Q4_K | gfx1100 | `host`, `isa` |\n| `isa` | is a word |")[0].startswith("| `mmq`")
    found = unproven("| `mmq` for Q4_K | gfx1100 | `isa` |", missing)
    assert found and all(line.startswith("gfx1100 mmq_q4_k_") for line in found)
    assert len(unproven("| everything | all | `isa` |", missing)) == len(states)
    fresh = [evidence.State(state.target, state.kernel, "fresh") for state in states]
    assert not unproven("| everything | all | `isa` |", fresh)


# The record's form ---------------------------------------------------------------------------------------------------

ROW = {"target": "gfx1100", "symbol": "mmq_q4_k_64x16", "op": "MUL_MAT", "type": "q4_K", "sources": "0" * 64, "code": "1" * 64, "compiler": "clang 22",
       "cases": ["full tile"], "result": "pass", "nmse": 0.0, "instructions": {"valu": 1}}  # fmt: skip


def saved(tmp_path: Path, *rows: object) -> Path:
    file = tmp_path / "isa.json"
    file.write_text(json.dumps({"schema": 1, "by": "", "kernels": rows}))
    return file


def test_written_evidence_is_read_back(tmp_path):
    entries = evidence.read(saved(tmp_path, ROW, {**ROW, "target": "gfx942", "result": "tail: differs", "cases": [], "instructions": {}}))
    evidence.write(entries, tmp_path / "again.json")
    assert evidence.read(tmp_path / "again.json") == entries
    assert (entries["gfx1100", "mmq_q4_k_64x16"].passed, entries["gfx942", "mmq_q4_k_64x16"].passed) == (True, False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cases": []}, "passes without cases"),
        ({"cases": [""]}, "passes without cases"),
        ({"instructions": {}}, "passes without cases"),
        ({"cases": "all"}, "'cases' is of the wrong kind"),
        ({"sources": "abc"}, "no hash"),
        ({"target": "gfx906"}, "target"),
        ({"result": ""}, "no result"),
        ({"more": 1}, "not the fields"),
    ],
)
def test_malformed_evidence_is_refused(tmp_path, change, message):
    with pytest.raises(BadInput, match=message):
        evidence.read(saved(tmp_path, {**ROW, **change}))


def test_other_malformed_files_are_refused(tmp_path):
    for text, message in (("{", "not JSON"), ("[]", "schema"), ('{"schema": 1, "kernels": 3}', "schema")):
        (tmp_path / "isa.json").write_text(text)
        with pytest.raises(BadInput, match=message):
            evidence.read(tmp_path / "isa.json")
    with pytest.raises(BadInput, match="twice"):
        evidence.read(saved(tmp_path, ROW, ROW))
    assert evidence.read(tmp_path / "none.json") == {}


# Hashes --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def copy_of_backend(tmp_path, monkeypatch):
    """A copy of backend/ that may be changed."""
    import shutil

    from wavesmith import resources

    folder = tmp_path / "backend"
    shutil.copytree(resources.backend(), folder)
    monkeypatch.setattr(resources, "backend", lambda: folder)
    sources.forget()
    yield folder
    sources.forget()


def hashes(family: str = "rdna3") -> dict[str, str]:
    sources.forget()
    return {kernel.symbol: sources.source_hash(unit, kernel) for unit in units(family) for kernel in unit.kernels}


def changed_symbols(file: Path, old: str, new: str, family: str = "rdna3") -> set[str]:
    before = hashes(family)
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    after = hashes(family)
    return {symbol for symbol in before if before[symbol] != after[symbol]}


def test_a_change_makes_stale_what_includes_it_and_nothing_else(copy_of_backend):
    everything = set(hashes())
    q4_k = {symbol for symbol in everything if symbol.startswith("mmq_q4_k_")}
    assert q4_k
    assert changed_symbols(copy_of_backend / "quants/q4_k.h", "namespace wavesmith", "struct Other;\nnamespace wavesmith") == q4_k
    assert changed_symbols(copy_of_backend / "arch/rdna4.h", "namespace wavesmith", "struct Other;\nnamespace wavesmith") == set()
    mmq = {symbol for symbol in everything if symbol.startswith("mmq_")}
    assert changed_symbols(copy_of_backend / "kernels/mmq_tile.h", "namespace wavesmith", "struct Other;\nnamespace wavesmith") == mmq
    assert changed_symbols(copy_of_backend / "platform/hip/simt.h", "namespace wavesmith", "struct Other;\nnamespace wavesmith") == everything
    assert changed_symbols(copy_of_backend / "platform/host/simt.h", "namespace wavesmith", "struct Other;\nnamespace wavesmith") == set()


def test_comments_and_layout_make_nothing_stale(copy_of_backend):
    assert changed_symbols(copy_of_backend / "kernels/mmq.h", "#pragma once", "// More to read.\n#pragma once   /* and\nmore */\n") == set()
