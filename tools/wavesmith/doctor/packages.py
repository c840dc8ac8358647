"""Which command installs what on which distribution, as data."""

from __future__ import annotations

import re

from .probe import Probe

_COMMANDS = {
    "apt": "sudo apt install {}",
    "dnf": "sudo dnf install {}",
    "pacman": "sudo pacman -S {}",
    "zypper": "sudo zypper install {}",
    "nix": "nix-shell -p {}",
}
# Families of distributions by the ID and ID_LIKE of /etc/os-release, in the order in which they are looked for.
_MANAGERS = {
    "nixos": "nix",
    "arch": "pacman",
    "debian": "apt",
    "ubuntu": "apt",
    "fedora": "dnf",
    "rhel": "dnf",
    "centos": "dnf",
    "suse": "zypper",
    "opensuse": "zypper",
    "opensuse-tumbleweed": "zypper",
    "opensuse-leap": "zypper",
    "sles": "zypper",
}
_PACKAGES = {
    "compiler": {"apt": "g++", "dnf": "gcc-c++", "pacman": "gcc", "zypper": "gcc-c++", "nix": "gcc"},
    "hip": {
        "apt": "hipcc libamdhip64-dev rocm-device-libs",
        "dnf": "hipcc rocm-hip-devel rocm-device-libs",
        "pacman": "rocm-hip-sdk",
        "zypper": "hipcc rocm-hip-devel rocm-device-libs",
        "nix": "rocmPackages.clr rocmPackages.hipblas rocmPackages.rocblas",
    },
    "hipblas": {"apt": "libhipblas-dev", "dnf": "hipblas-devel", "pacman": "hipblas", "zypper": "hipblas-devel", "nix": "rocmPackages.hipblas"},
    "rocblas": {"apt": "librocblas-dev", "dnf": "rocblas-devel", "pacman": "rocblas", "zypper": "rocblas-devel", "nix": "rocmPackages.rocblas"},
}
# Names in AMD's own repositories, whose packages live in /opt/rocm.
_AMD_PACKAGES = {
    "hip": {"apt": "rocm-hip-sdk", "dnf": "rocm-hip-sdk", "zypper": "rocm-hip-sdk"},
    "hipblas": {"apt": "hipblas-dev", "dnf": "hipblas-devel", "zypper": "hipblas-devel"},
    "rocblas": {"apt": "rocblas-dev", "dnf": "rocblas-devel", "zypper": "rocblas-devel"},
}
PIP_SDK = 'python3 -m pip install "rocm[libraries,devel]" && rocm-sdk init'


def os_release(probe: Probe) -> dict[str, str]:
    text = probe.read("/etc/os-release") or probe.read("/usr/lib/os-release") or ""
    return {match[1]: match[2].strip().strip("\"'") for match in re.finditer(r"^([A-Z_]+)=(.*)$", text, re.MULTILINE)}


def distribution(probe: Probe) -> str:
    release = os_release(probe)
    return release.get("PRETTY_NAME") or release.get("ID") or "unknown distribution"


def manager(probe: Probe) -> str | None:
    """One of "apt", "dnf", "pacman", "zypper" and "nix"; None where the distribution is not known."""
    release = os_release(probe)
    for name in [release.get("ID", ""), *release.get("ID_LIKE", "").split()]:
        if name in _MANAGERS:
            return _MANAGERS[name]
    return None


def install(probe: Probe, *needs: str, layout: str = "distribution") -> str:
    """The command that installs the needs; "" where the distribution is not known."""
    if layout == "pip":
        return PIP_SDK
    name = manager(probe)
    if name is None:
        return ""
    table = {**_PACKAGES, **(_AMD_PACKAGES if layout == "opt" and name in ("apt", "dnf", "zypper") else {})}
    packages = list(dict.fromkeys(package for need in needs for package in table[need][name].split()))
    return _COMMANDS[name].format(" ".join(packages))
