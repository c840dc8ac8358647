"""docs/failures.md names a class, an exit code and a test for every kind of failure; all three are real."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from wavesmith import cli, errors

HERE = Path(__file__).parent
PAGE = (HERE.parents[1] / "docs" / "failures.md").read_text()
ROWS = re.findall(r"^\| ([^|]+) \| (?:`(\w+)`)? ?\| (\d+) \| `([\w./]+)::(\w+)` \|$", PAGE, re.MULTILINE)
CLASSES = {name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and kind is not errors.WavesmithError}


def test_the_table_is_found() -> None:
    assert len(ROWS) == len(re.findall(r"^\| .*::\w+` \|$", PAGE, re.MULTILINE)) >= 25


@pytest.mark.parametrize(("what", "name", "code", "file", "test"), ROWS, ids=[row[0][:40] for row in ROWS])
def test_row(what: str, name: str, code: str, file: str, test: str) -> None:
    assert re.search(rf"^def {test}\(", (HERE / file).read_text(), re.MULTILINE)
    if name:
        assert CLASSES[name].exit_code == int(code)


def test_every_class_and_every_exit_code_has_a_row() -> None:
    assert {row[1] for row in ROWS} - {""} == set(CLASSES)
    assert {int(row[2]) for row in ROWS} == {kind.exit_code for kind in CLASSES.values()} | {cli.EXIT_UNEXPECTED}
