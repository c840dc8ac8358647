"""The config file: TOML, one key per setting, in the platform's user config folder (XDG) / wavesmith / config.toml."""

from __future__ import annotations

import sys
from pathlib import Path

from .errors import BadInput

_LARGEST = 1 << 20  # bytes; a config file is a few lines


def default_path() -> Path:
    import platformdirs

    return Path(platformdirs.user_config_dir("wavesmith", appauthor=False)) / "config.toml"


def load(path: Path, names: dict[str, str]) -> dict[str, str]:
    """Values by setting name; `names` maps each known key to its setting. {} where there is no file. BadInput names the
    file and what is wrong with it: an unknown key is an error, because it would otherwise be ignored silently."""
    try:
        if path.stat().st_size > _LARGEST:
            raise BadInput(f"{path}: too large for a config file")
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise BadInput(f"cannot read the config file {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path}: not UTF-8") from None
    return {_name(path, key, names): _text(path, key, value) for key, value in _parse(path, text).items()}


def _parse(path: Path, text: str) -> dict[str, object]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadInput(f"{path}: not TOML: {error}") from None


def _name(path: Path, key: str, names: dict[str, str]) -> str:
    if key in names:
        return names[key]
    import difflib

    close = difflib.get_close_matches(key, names, n=1)
    raise BadInput(f"{path}: unknown key '{key}'{f'; did you mean {close[0]}?' if close else ''} (`wavesmith env` lists the settings)")


def _text(path: Path, key: str, value: object) -> str:
    """As the environment variable would be written: true is 1, a list is joined by commas."""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, (str, int)):
        return str(value)
    if isinstance(value, list) and all(isinstance(item, (str, int)) and not isinstance(item, bool) for item in value):
        return ",".join(str(item) for item in value)
    raise BadInput(f"{path}: '{key}' must be a text, a number, true or false, or a list of texts")
