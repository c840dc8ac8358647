"""What a build can be for: the one table of gfx architectures, and the words a user may name them by.

`resolve` turns the words (`gfx1100`, `gfx11*`, `rdna3`, `all`, `host`, `cuda`, lists of them) into targets; with no word
at all it takes what the doctor found. Families, members and the instructions they share: LLVM's AMDGPU usage page.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .errors import BadInput

if TYPE_CHECKING:
    from .doctor.gpu import Gpu

# Generic code objects exist since code object version 6; older ones cannot be loaded or even written for them.
GENERIC_CODE_OBJECT_VERSION = 6


@dataclass(frozen=True)
class Architecture:
    """One gfx name the compiler knows.

    `family` is None where wavesmith has no kernels, and `reason` says why. `kernel_target` is the architecture whose
    kernels and plan rows it runs. `devices` maps PCI device ids of vendor 0x1002 to product names.
    """

    name: str
    family: str | None
    kernel_target: str | None
    integrated: bool = False
    generic: bool = False
    reason: str = ""
    devices: dict[int, str] = field(default_factory=dict, hash=False)

    @property
    def supported(self) -> bool:
        return self.family is not None

    @property
    def code_object_version(self) -> int | None:
        """The code object version it needs; None where the compiler's default serves."""
        return GENERIC_CODE_OBJECT_VERSION if self.generic else None


@dataclass(frozen=True)
class Target:
    """One thing to build for. `note` is a sentence for the user where the choice needs one."""

    name: str
    platform: str  # "hip", "host" or "cuda"
    family: str | None = None
    kernel_target: str | None = None
    features: tuple[str, ...] = ()  # such as ("xnack-",)
    code_object_version: int | None = None
    note: str = ""

    @property
    def compiler_name(self) -> str:
        """The name as the compiler's --offload-arch and GPU_TARGETS want it, e.g. "gfx90a:xnack-"."""
        return ":".join((self.name, *self.features))


_NO_DOT4 = "it has no dot4 instruction, so stock's kernels run"
_NO_MFMA = "it is a GCN APU without dot4 and without MFMA (not a CDNA part), so stock's kernels run"
_RDNA1 = "RDNA1 members do not all have dot4, so stock's kernels run"


def _architectures() -> tuple[Architecture, ...]:
    arch = Architecture
    return (
        arch("gfx900", None, None, reason=_NO_DOT4, devices={0x687F: "Radeon RX Vega 56/64", 0x6860: "Radeon Instinct MI25"}),
        arch("gfx902", None, None, integrated=True, reason=_NO_MFMA, devices={0x15DD: "Radeon Vega (Raven)", 0x15D8: "Radeon Vega (Picasso)"}),
        arch("gfx904", None, None, reason=_NO_DOT4, devices={0x69A0: "Radeon Pro Vega 12"}),
        arch("gfx906", "gcn", "gfx906", devices={0x66A0: "Radeon Instinct MI50", 0x66A1: "Radeon Instinct MI50/MI60", 0x66AF: "Radeon VII"}),
        arch("gfx908", None, None, reason="CDNA1 has no plan rows, so stock's kernels run", devices={0x738C: "Instinct MI100"}),
        arch("gfx909", None, None, integrated=True, reason=_NO_MFMA),
        arch("gfx90a", "cdna2", "gfx90a", devices={0x7408: "Instinct MI250X", 0x740C: "Instinct MI250", 0x740F: "Instinct MI210"}),
        arch("gfx90c", None, None, integrated=True, reason=_NO_MFMA, devices={0x1636: "Radeon Graphics (Renoir)", 0x1638: "Radeon Graphics (Cezanne)"}),
        arch(
            "gfx942",
            "cdna3",
            "gfx942",
            devices={0x74A0: "Instinct MI300A", 0x74A1: "Instinct MI300X", 0x74A2: "Instinct MI308X", 0x74A5: "Instinct MI325X"},
        ),
        arch("gfx950", "cdna4", "gfx950", devices={0x75A0: "Instinct MI350X", 0x75A3: "Instinct MI355X"}),
        arch("gfx1010", None, None, reason=_RDNA1, devices={0x731F: "Radeon RX 5600/5700"}),
        arch("gfx1011", None, None, reason=_RDNA1, devices={0x7360: "Radeon Pro 5600M"}),
        arch("gfx1012", None, None, reason=_RDNA1, devices={0x7340: "Radeon RX 5500"}),
        arch("gfx1013", None, None, integrated=True, reason=_RDNA1),
        arch(
            "gfx1030",
            "rdna2",
            "gfx1030",
            devices={0x73BF: "Radeon RX 6800/6900", 0x73AF: "Radeon RX 6900 XT", 0x73A5: "Radeon RX 6950 XT", 0x73A3: "Radeon Pro W6800"},
        ),
        arch("gfx1031", "rdna2", "gfx1030", devices={0x73DF: "Radeon RX 6700/6750"}),
        arch("gfx1032", "rdna2", "gfx1030", devices={0x73FF: "Radeon RX 6600", 0x73EF: "Radeon RX 6650"}),
        arch("gfx1033", "rdna2", "gfx1030", integrated=True, devices={0x163F: "Van Gogh APU"}),
        arch("gfx1034", "rdna2", "gfx1030", devices={0x743F: "Radeon RX 6400/6500"}),
        arch("gfx1035", "rdna2", "gfx1030", integrated=True, devices={0x1681: "Radeon 660M/680M"}),
        arch(
            "gfx1036",
            "rdna2",
            "gfx1030",
            integrated=True,
            devices={0x164E: "Radeon Graphics (Raphael)", 0x13C0: "Radeon Graphics (Granite Ridge)"},
        ),
        arch(
            "gfx1100",
            "rdna3",
            "gfx1100",
            devices={0x744C: "Radeon RX 7900", 0x7448: "Radeon Pro W7900", 0x744B: "Radeon Pro W7900D", 0x745E: "Radeon Pro W7800"},
        ),
        arch("gfx1101", "rdna3", "gfx1100", devices={0x747E: "Radeon RX 7700/7800 XT", 0x7470: "Radeon Pro W7700"}),
        arch("gfx1102", "rdna3", "gfx1100", devices={0x7480: "Radeon RX 7600", 0x7489: "Radeon Pro W7500"}),
        arch("gfx1103", "rdna3", "gfx1100", integrated=True, devices={0x15BF: "Radeon 780M", 0x1900: "Radeon 780M", 0x15C8: "Radeon 740M"}),
        arch("gfx1150", "rdna3.5", "gfx1151", integrated=True, devices={0x150E: "Radeon 880M/890M"}),
        arch("gfx1151", "rdna3.5", "gfx1151", integrated=True, devices={0x1586: "Radeon 8050S/8060S"}),
        arch("gfx1152", "rdna3.5", "gfx1151", integrated=True, devices={0x1114: "Radeon 840M/860M"}),
        arch("gfx1153", "rdna3.5", "gfx1151", integrated=True),
        arch("gfx1200", "rdna4", "gfx1200", devices={0x7590: "Radeon RX 9060"}),
        arch("gfx1201", "rdna4", "gfx1201", devices={0x7550: "Radeon RX 9070", 0x7551: "Radeon AI PRO R9700"}),
        # Generic targets: one code object for several members. They run the row of the member with the fewest features.
        arch("gfx9-generic", None, None, generic=True, reason="its members do not all have dot4, so stock's kernels run"),
        arch("gfx9-4-generic", "cdna3", "gfx942", generic=True),
        arch("gfx10-1-generic", None, None, generic=True, reason=_RDNA1),
        arch("gfx10-3-generic", "rdna2", "gfx1030", generic=True),
        arch("gfx11-generic", "rdna3", "gfx1100", generic=True),
        arch("gfx12-generic", "rdna4", "gfx1200", generic=True),
    )


ARCHITECTURES = {architecture.name: architecture for architecture in _architectures()}
KERNEL_TARGETS = ("gfx906", "gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1151", "gfx1200", "gfx1201")
FAMILIES = ("gcn", "cdna2", "cdna3", "cdna4", "rdna2", "rdna3", "rdna3.5", "rdna4")
HOST = Target("host", "host")
CUDA = Target("cuda", "cuda")
_WORDS = ("host", "cuda", "all")
_FEATURE = re.compile(r"(?:sramecc|xnack)[+-]")


def canonical(text: str) -> tuple[str, tuple[str, ...]] | None:
    """Splits a target id into name and features: "amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-" gives
    ("gfx90a", ("sramecc+", "xnack-")). None where no gfx name is in it."""
    name, *features = text.strip().lower().rpartition("--")[2].split(":")
    if not re.fullmatch(r"gfx\d[0-9a-f]+|gfx\d+(-\d+)?-generic", name):
        return None
    return name, tuple(feature for feature in features if _FEATURE.fullmatch(feature))


def from_kfd_version(version: int) -> str | None:
    """Name of KFD's gfx_target_version: major * 10000 + minor * 100 + step, where the name writes minor and step as
    one hexadecimal digit each (90010 is gfx90a). None for 0 (a CPU) and for numbers that are no version."""
    major, minor, step = version // 10000, version // 100 % 100, version % 100
    if not 3 <= major <= 99 or minor > 15 or step > 15:
        return None
    return f"gfx{major}{minor:x}{step:x}"


def from_override(text: str) -> str | None:
    """Name meant by a value of HSA_OVERRIDE_GFX_VERSION ("10.3.0" is gfx1030); None where it is malformed."""
    match = re.fullmatch(r"\s*(\d{1,2})\.(\d{1,2})\.(\d{1,2})\s*", text)
    if not match:
        return None
    major, minor, step = (int(part) for part in match.groups())
    return from_kfd_version(major * 10000 + minor * 100 + step)


def by_device(device_id: int) -> Architecture | None:
    """Architecture of a PCI device id of vendor 0x1002; None where the table does not know it."""
    return next((architecture for architecture in ARCHITECTURES.values() if device_id in architecture.devices), None)


def family_of(name: str) -> str | None:
    architecture = ARCHITECTURES.get(name)
    return architecture.family if architecture else None


def nearest(word: str) -> list[str]:
    """Up to three names like `word`, best first: targets, families and the other words; products lead to their target."""
    import difflib

    word = word[:60]
    plain = _plain(word)
    if len(plain) >= 3:
        products = [arch.name for arch in ARCHITECTURES.values() if any(plain in _plain(product) for product in arch.devices.values())]
        products = products or [arch.name for arch in ARCHITECTURES.values() if any(_names_product(plain, product) for product in arch.devices.values())]
        if products and not plain.startswith("gfx"):
            return products[:3]
    names = [*KERNEL_TARGETS, *FAMILIES, *_WORDS]
    names += [name for name, architecture in ARCHITECTURES.items() if architecture.supported and name not in names]
    likeness = {name: difflib.SequenceMatcher(None, word.lower(), name).ratio() for name in names}
    return sorted((name for name in names if likeness[name] >= 0.6), key=lambda name: -likeness[name])[:3]


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def _names_product(plain: str, product: str) -> bool:
    """Whether a word such as "rx7900xtx" holds the model number of a product."""
    return any(number in plain for number in re.findall(r"[a-z]*\d{3,4}[a-z]*", product.lower()))


def _target(architecture: Architecture, features: tuple[str, ...] = ()) -> Target:
    note = ""
    if architecture.generic:
        note = f"{architecture.name} needs code object version {GENERIC_CODE_OBJECT_VERSION}, which a ROCm older than 6.3 cannot load"
    elif architecture.name != architecture.kernel_target:
        note = f"{architecture.name} runs the {architecture.family} kernels, which are checked on {architecture.kernel_target}"
    return Target(architecture.name, "hip", architecture.family, architecture.kernel_target, features, architecture.code_object_version, note)


def _unknown(word: str) -> BadInput:
    close = nearest(word)
    offer = f"; did you mean {', '.join(close)}?" if close else f"; known are gfx names, {', '.join(FAMILIES)}, {', '.join(_WORDS)}"
    return BadInput(f"unknown target {word[:60]!r}{offer}")


def _expand(word: str) -> list[Target]:
    """Targets of one word; BadInput where it names none."""
    import fnmatch

    lower = word.lower()
    if lower == "host":
        return [HOST]
    if lower == "cuda":
        return [CUDA]
    if lower == "all":
        return [_target(ARCHITECTURES[name]) for name in KERNEL_TARGETS]
    members = [arch for arch in ARCHITECTURES.values() if arch.supported and not arch.generic]
    if lower in FAMILIES:
        return [_target(arch) for arch in members if arch.family == lower]
    if any(character in lower for character in "*?["):
        matching = [_target(arch) for arch in members if fnmatch.fnmatchcase(arch.name, lower)]
        if not matching:
            raise BadInput(f"no supported target matches {word[:60]!r}; supported are {', '.join(arch.name for arch in members)}")
        return matching
    split = canonical(lower)
    architecture = ARCHITECTURES.get(split[0]) if split else None
    if architecture is None:
        raise _unknown(word)
    if len(split[1]) != lower.count(":"):
        raise BadInput(f"unknown feature in target {word[:60]!r}; known are sramecc+, sramecc-, xnack+ and xnack-")
    if not architecture.supported:
        raise BadInput(f"there are no wavesmith kernels for {architecture.name}: {architecture.reason}")
    return [_target(architecture, split[1])]


def choose(found: list[Gpu]) -> tuple[list[Gpu], str]:
    """The GPUs a build should be for, and why in one sentence: the visible discrete ones that have kernels, else the
    visible integrated ones, else none (the host target)."""
    visible = [gpu for gpu in found if gpu.index is not None] or list(found)
    able = [gpu for gpu in visible if family_of(gpu.build_target)]
    discrete = [gpu for gpu in able if not gpu.integrated]
    integrated = [gpu for gpu in able if gpu.integrated]
    if discrete and integrated:
        left_out = ", ".join(gpu.label for gpu in integrated)
        return discrete, f"{_labels(discrete)}; the integrated {left_out} is left out because the discrete GPU is faster"
    if able:
        return able, _labels(able)
    if not found:
        return [], "no AMD GPU was found, so the kernels run on the CPU (host)"
    return [], f"there are no kernels for {_labels(visible)}, so the kernels run on the CPU (host)"


def _labels(gpus: list[Gpu]) -> str:
    counts: dict[str, int] = {}
    for gpu in gpus:
        counts[gpu.label] = counts.get(gpu.label, 0) + 1
    return ", ".join(f"{count} x {label}" if count > 1 else label for label, count in counts.items())


def resolve(requests: list[str] | None, found: list[Gpu]) -> list[Target]:
    """Targets of the user's words, in their order, each once; without words, those of the GPUs found.

    A word may be a list (commas, semicolons, blanks). BadInput for an unknown word (nearest names offered), for one
    without kernels and for an empty list.
    """
    if requests is None or len(requests) == 0:
        chosen, why = choose(found)
        targets = [_target(ARCHITECTURES[gpu.build_target]) for gpu in chosen]
        return list(dict.fromkeys(targets)) or [Target("host", "host", note=why)]
    words = [word for request in requests for word in re.split(r"[,;\s]+", request) if word]
    if not words:
        raise BadInput(f"no target given; known are gfx names, {', '.join(FAMILIES)}, {', '.join(_WORDS)}")
    return list(dict.fromkeys(target for word in words for target in _expand(word)))
