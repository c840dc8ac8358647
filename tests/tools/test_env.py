"""`wavesmith env` shows every setting and what it is now."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from wavesmith import settings
from wavesmith.commands.env import command


def test_json_has_every_setting_with_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAVESMITH_LOG", "debug")
    monkeypatch.delenv("WAVESMITH_KERNELS", raising=False)
    rows = {row["name"]: row for row in json.loads(CliRunner().invoke(command, ["--json"]).output)}
    assert list(rows) == [setting.name for setting in settings.SETTINGS]
    assert (rows["WAVESMITH_LOG"]["value"], rows["WAVESMITH_LOG"]["source"]) == ("debug", "environment")
    assert (rows["WAVESMITH_KERNELS"]["value"], rows["WAVESMITH_KERNELS"]["source"]) == (rows["WAVESMITH_KERNELS"]["default"], "default")


def test_table_shows_values_literally(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAVESMITH_LEDGER", "[red]ledger.jsonl")
    output = CliRunner().invoke(command, []).output
    assert "[red]ledger.jsonl" in output
    for setting in settings.SETTINGS:
        assert setting.name in output
