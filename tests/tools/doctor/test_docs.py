"""The pages docs/doctor.md and docs/exit-codes.md say what the code does."""

import re
from pathlib import Path

from wavesmith import cli, errors
from wavesmith.doctor import report

ROOT = Path(__file__).resolve().parents[3]


def _classes(base: type) -> list[type]:
    return [base, *(found for child in base.__subclasses__() for found in _classes(child))]


def test_exit_codes_are_those_of_the_error_classes():
    page = (ROOT / "docs" / "exit-codes.md").read_text()
    documented = {}
    for code, names in re.findall(r"^\| (\d+) \| ([^|]*) \|", page, re.MULTILINE):
        documented.update(dict.fromkeys(re.findall(r"`(\w+)`", names), int(code)))
    assert documented == {error.__name__: error.exit_code for error in _classes(errors.WavesmithError) if error.__module__ == errors.__name__}
    assert re.search(rf"^\| {cli.EXIT_UNEXPECTED} \|", page, re.MULTILINE)


def test_doctor_page_lists_its_exit_codes():
    page = (ROOT / "docs" / "doctor.md").read_text()
    assert {int(code) for code in re.findall(r"^\| (\d) \|", page, re.MULTILINE)} == set(report.VERDICTS)


def _code_names() -> set[str]:
    source = "".join(path.read_text() for path in (ROOT / "tools" / "wavesmith" / "doctor").glob("*.py"))
    names = set(re.findall(r'Finding\(\s*"([a-z-]+)"', source))
    return names | {"cmake-missing", "ninja-missing"}  # these two are put together from the tool's name


def test_every_finding_is_documented_and_tested():
    page = (ROOT / "docs" / "doctor.md").read_text().partition("## Findings")[2].partition("\n## ")[0]
    assert set(re.findall(r"`([a-z-]+-[a-z-]+)`", page)) == _code_names()
    tests = (Path(__file__).with_name("test_machines.py").read_text()) + Path(__file__).with_name("machines.py").read_text()
    assert [name for name in _code_names() if f'"{name}"' not in tests] == []
