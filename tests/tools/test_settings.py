"""Settings: environment over config file over default; a wrong config file is one clear line."""

import os
import subprocess
import sys

import pytest
from wavesmith import settings
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
