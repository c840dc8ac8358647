"""Settings: environment over config file over default; a wrong config file is one clear line."""

import json
import os
import subprocess
import sys

import pytest
from wavesmith import cli, settings
from wavesmith.errors import BadInput


@pytest.fixture
def config(monkeypatch, tmp_path):
    """Writes a config file, forgetting what was read before."""
    monkeypatch.setenv("WAVESMITH_CONFIG", str(tmp_path / "config.toml"))
    for setting in settings.SETTINGS:
        if setting.name != "WAVESMITH_CONFIG":
            monkeypatch.delenv(setting.name, raising=False)
    monkeypatch.setattr(settings, "_applied", set())

    def write(text: str | bytes) -> None:
        (tmp_path / "config.toml").write_bytes(text.encode() if isinstance(text, str) else text)
        settings._load.cache_clear()

    settings._load.cache_clear()
    yield write
    settings._load.cache_clear()


def test_keys_are_distinct_and_plain():
    keys = [setting.key for setting in settings.SETTINGS]
    assert len(keys) == len(set(keys)) and all(key.replace("_", "").isalpha() and key == key.lower() for key in keys)


def test_default_without_a_file(config):
    setting = settings.BY_NAME["WAVESMITH_HOST_FAMILY"]
    assert (setting.value, setting.source, setting.is_set) == ("rdna3", "default", False)


def test_order(config, monkeypatch):
    config('host_family = "rdna4"\nenabled = false\nkernels = ["mmq", "mmvq"]\nhost_order = 7\n')
    setting = settings.BY_NAME["WAVESMITH_HOST_FAMILY"]
    assert (setting.value, setting.source, setting.is_set) == ("rdna4", "config file", True)
    assert (settings.get("WAVESMITH"), settings.get("WAVESMITH_KERNELS"), settings.get("WAVESMITH_HOST_ORDER")) == ("0", "mmq,mmvq", "7")
    monkeypatch.setenv("WAVESMITH_HOST_FAMILY", "gcn")
    assert (setting.value, setting.source) == ("gcn", "environment")


def test_apply_hands_the_file_to_children(config, monkeypatch):
    config('host_family = "rdna4"\nlog = "debug"\n')
    monkeypatch.setenv("WAVESMITH_LOG", "info")
    monkeypatch.setattr(os, "environ", os.environ.copy())
    settings.apply()
    assert (os.environ["WAVESMITH_HOST_FAMILY"], os.environ["WAVESMITH_LOG"]) == ("rdna4", "info")
    assert settings.BY_NAME["WAVESMITH_HOST_FAMILY"].source == "config file"


def test_default_place_is_the_users_config_folder(config, monkeypatch, tmp_path):
    monkeypatch.delenv("WAVESMITH_CONFIG")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "x"))
    assert settings.config_path() == tmp_path / "x" / "wavesmith" / "config.toml"
    assert settings.configured() == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('host_famly = "rdna4"', "unknown key 'host_famly'; did you mean host_family?"),
        ('zzz = "x"', "unknown key 'zzz'"),
        ('config = "x"', "unknown key 'config'"),
        ("log = debug", "not TOML"),
        ("log = 1.5", "'log' must be"),
        ("log = [[1]]", "'log' must be"),
        ("[log]\nlevel = 1", "'log' must be"),
        (b"\xff\xfe", "not UTF-8"),
        ("#" * (2 << 20), "too large"),
    ],
)
def test_wrong_files(config, text, message, tmp_path):
    config(text)
    with pytest.raises(BadInput) as caught:
        settings.get("WAVESMITH_HOST_FAMILY")
    assert message in str(caught.value) and str(tmp_path / "config.toml") in str(caught.value) and "\n" not in str(caught.value)


def test_a_folder_is_no_config_file(config, tmp_path):
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(BadInput, match="cannot read the config file"):
        settings.get("WAVESMITH_LOG")


def test_the_command_line_reports_a_wrong_file(tmp_path):
    (tmp_path / "bad.toml").write_text("nonsense")
    environment = {**os.environ, "WAVESMITH_CONFIG": str(tmp_path / "bad.toml")}
    run = subprocess.run([sys.executable, "-m", "wavesmith", "env"], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 2 and run.stderr.startswith("error: ") and run.stderr.count("\n") == 1
    assert subprocess.run([sys.executable, "-m", "wavesmith", "--help"], env=environment, capture_output=True, check=False).returncode == 0


WRONG = {
    "WAVESMITH": ["maybe", "true", "2", " 1"],
    "WAVESMITH_KERNELS": ["zzz", "mmq,zzz", "--mmq", "-"],
    "WAVESMITH_LDS_LIMIT": ["64K", "-1", "4294967295"],
    "WAVESMITH_LOG": ["loud", "WARN"],
    "WAVESMITH_HOST_FAMILY": ["zz", "gfx1100"],
    "WAVESMITH_HOST_CHECKED": ["x", "2"],
    "WAVESMITH_HOST_RACECHECK": ["2"],
    "WAVESMITH_HOST_ORDER": ["abc", "-1", "7x", "18446744073709551616", "9" * 5000, "\u0661"],
}
RIGHT = {
    "WAVESMITH": ["", "0", "1"],
    "WAVESMITH_KERNELS": ["", "mmq", "-mmq", "mmq, mmvq,", ","],
    "WAVESMITH_LDS_LIMIT": ["", "0", "65536"],
    "WAVESMITH_LOG": ["", "error", "debug"],
    "WAVESMITH_HOST_FAMILY": ["", "gcn", "rdna3.5"],
    "WAVESMITH_HOST_CHECKED": ["", "0", "1"],
    "WAVESMITH_HOST_RACECHECK": ["", "1"],
    "WAVESMITH_HOST_ORDER": ["", "0", "007", "18446744073709551615"],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_wrong_values(config, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    with pytest.raises(BadInput) as caught:
        settings.check()
    assert name in str(caught.value) and settings.BY_NAME[name].expected in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in RIGHT.items() for value in values])
def test_right_values(config, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    settings.check()


def test_defaults_are_right(config):
    settings.check()
    assert set(WRONG) == {setting.name for setting in settings.SETTINGS if setting.expected}


def test_wrong_value_in_the_file(config, tmp_path):
    config("host_racecheck = 2")
    with pytest.raises(BadInput, match="WAVESMITH_HOST_RACECHECK is '2'; expected 0 or 1") as caught:
        settings.check()
    assert str(tmp_path / "config.toml") in str(caught.value)


@pytest.mark.parametrize("command", ["validate", "bench", "quickstart", "build"])
@pytest.mark.parametrize("where", ["environment", "file"])
def test_commands_refuse_wrong_values(config, monkeypatch, capsys, command, where):
    monkeypatch.setattr(os, "environ", os.environ.copy())
    if where == "file":
        config('log = "loud"')
    else:
        os.environ["WAVESMITH_LOG"] = "loud"
    assert cli.main([command]) == 2
    message = capsys.readouterr().err
    assert message.startswith("error: WAVESMITH_LOG is 'loud'; expected error") and message.count("\n") == 1


def test_env_marks_wrong_values(config, monkeypatch, capsys):
    monkeypatch.setenv("WAVESMITH_LOG", "loud")
    assert cli.main(["env"]) == 0
    assert "loud (invalid: expected error, warn, info or debug)" in capsys.readouterr().out
    assert cli.main(["env", "--json"]) == 0
    problems = {row["name"]: row["problem"] for row in json.loads(capsys.readouterr().out)}
    assert [name for name, problem in problems.items() if problem] == ["WAVESMITH_LOG"]


def test_unset_puts_back(monkeypatch):
    monkeypatch.setenv("WAVESMITH", "0")
    with settings.unset(["WAVESMITH", "WAVESMITH_KERNELS"]):
        assert "WAVESMITH" not in os.environ
    assert os.environ["WAVESMITH"] == "0"
