"""Takes personal details out of what the doctor reads, the same way every time, before anything looks at it.

Home folders become `~`, user and host names `$USER` and `$HOSTNAME` (as a shell would write them, so that printed
commands still work), serial numbers `removed`, unique ids and UUIDs small numbers: equal ids stay equal, so that
KFD, rocminfo and ROCR_VISIBLE_DEVICES can still be matched.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

# Names that say nothing about a person and occur in what the tools print.
_PLAIN_NAMES = (
    " root user users admin test nobody default guest build builder docker container amd amdgpu gpu rocm hip hsa kfd render video linux localhost "
    "debian ubuntu fedora arch archlinux nixos opensuse suse tumbleweed manjaro cachyos wsl ci runner node host home server desktop "
)
_UUID = re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")
_GPU_ID = re.compile(r"\bGPU-([0-9a-fA-F]{8,16})\b")
_KFD_ID = re.compile(r"\b(unique_id|hive_id)([ \t]+)([1-9][0-9]*)\b")
_JSON_SERIAL = re.compile(r'("[a-z_ ]{0,40}(?:serial|fru_id|unique_id)[a-z_ ]{0,40}"\s{0,8}:\s{0,8})("[^"\n]*"|[0-9]+)', re.IGNORECASE)
_TEXT_SERIAL = re.compile(r"^([\w \t]{0,80}(?:serial|fru_id)[\w ]{0,40}:[ \t]*)(\S[^\n]*)$", re.IGNORECASE | re.MULTILINE)


@dataclass
class Redactor:
    """`text` redacts; `real` turns a redacted path back into the one to open on this machine."""

    user: str = ""
    host: str = ""
    home: str = ""
    _ids: dict[str, int] = field(default_factory=dict)
    _homes: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.user, self.host = ("" if _is_plain(name) else name for name in (self.user, self.host))
        if self.home in ("", "/"):
            self.home = ""

    def text(self, text: str) -> str:
        if self.home:
            text = re.sub(rf"(?<![\w./~-]){re.escape(self.home)}(?=[/\s:;,'\"]|$)", "~", text)
        text = re.sub(r"(?<![\w.~-])/home/([^/\s:;,'\"$]+)", self._other_home, text)
        for name, word in ((self.user, "$USER"), (self.host, "$HOSTNAME")):
            if name:
                text = re.sub(rf"(?<![\w.$-]){re.escape(name)}(?![\w-])", lambda _, word=word: word, text)
        text = _JSON_SERIAL.sub(lambda match: match[1] + ('"removed"' if _says_something(match[2].strip('"')) else match[2]), text)
        text = _TEXT_SERIAL.sub(lambda match: match[1] + ("removed" if _says_something(match[2]) else match[2]), text)
        text = _UUID.sub(lambda match: f"00000000-0000-0000-0000-{self._number(match[0].lower()):012d}", text)
        text = _GPU_ID.sub(lambda match: f"GPU-{self._number(str(int(match[1], 16))):016x}", text)
        return _KFD_ID.sub(lambda match: f"{match[1]}{match[2]}{self._number(match[3])}", text)

    def real(self, path: str) -> str:
        if path == "~" or path.startswith("~/"):
            path = self.home + path[1:]
        for placeholder, original in self._homes.items():
            if path == placeholder or path.startswith(placeholder + "/"):
                path = original + path[len(placeholder) :]
        if self.user:
            path = path.replace("$USER", self.user)
        return path.replace("$HOSTNAME", self.host) if self.host else path

    def _number(self, identity: str) -> int:
        """Small number of an id; an id that already is a small number, as in a redacted text, keeps it."""
        if identity.isdigit() and int(identity) < 4096:
            return int(identity)
        if identity.startswith("00000000-0000-0000-0000-"):
            return int(identity[24:]) if identity[24:].isdigit() else 0
        return self._ids.setdefault(identity, len(self._ids) + 1)

    def _other_home(self, match: re.Match[str]) -> str:
        original = match[0]
        if match[1] == self.user or re.fullmatch(r"user\d+", match[1]):
            return original
        for placeholder, known in self._homes.items():
            if known == original:
                return placeholder
        placeholder = f"/home/user{len(self._homes) + 1}"
        self._homes[placeholder] = original
        return placeholder


def _is_plain(name: str) -> bool:
    return len(name) < 2 or f" {name.lower()} " in _PLAIN_NAMES


def _says_something(value: str) -> bool:
    return value.strip().lower() not in ("", "n/a", "none", "unknown", "removed", "0", "0x0", "0x0000000000000000")
