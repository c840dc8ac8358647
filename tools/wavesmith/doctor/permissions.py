"""Whether this user may open the GPU's device files."""

from __future__ import annotations

from .findings import CANNOT_RUN, WARNING, Finding, commands
from .gpu import Gpu
from .probe import PathInfo, Probe

KFD = "/dev/kfd"
_CONTAINERS = ("/.dockerenv", "/run/.containerenv")
_CONTAINER_FIX = "docker run --device /dev/kfd --device /dev/dri --group-add video --group-add render …"


def render_nodes(probe: Probe) -> list[str]:
    return probe.glob("/dev/dri/renderD*")


def in_container(probe: Probe) -> bool:
    return any(probe.exists(path) for path in _CONTAINERS)


def facts(probe: Probe) -> dict[str, object]:
    """For the report: each device file with its group, mode and whether this process may open it; the user's groups."""
    devices = {}
    for path in (KFD, "/dev/dxg", *render_nodes(probe)):
        info = probe.stat(path)
        if info:
            devices[path] = {"group": info.group, "mode": info.mode, "accessible": info.readable and info.writable}
    return {"devices": devices, "groups": probe.fact("groups") or [], "container": in_container(probe)}


def check(probe: Probe, gpus: list[Gpu]) -> list[Finding]:
    if not gpus:
        return []
    if probe.exists("/dev/dxg") and not probe.exists(KFD):
        info = probe.stat("/dev/dxg")
        return [_closed(probe, [("/dev/dxg", info)])] if info and not _open(info) else []
    info = probe.stat(KFD)
    if info is None:
        why = "HIP opens it to reach the GPU"
        if in_container(probe):
            return [Finding("kfd-missing", CANNOT_RUN, f"there is a GPU, but this container has no {KFD}", why, commands(_CONTAINER_FIX))]
        return [Finding("kfd-missing", CANNOT_RUN, f"there is a GPU, but {KFD} does not exist", why, commands("sudo modprobe amdgpu", "sudo udevadm trigger"))]
    findings = []
    closed = [(KFD, info)] if not _open(info) else []
    nodes = [(path, node) for path in render_nodes(probe) if (node := probe.stat(path))]
    if nodes and not any(_open(node) for _, node in nodes):
        closed += nodes
    if closed:
        findings.append(_closed(probe, closed))
    elif not nodes:
        what = "no render node in /dev/dri"
        findings.append(
            Finding(
                "render-node-missing",
                CANNOT_RUN,
                what,
                "HIP allocates memory through it",
                commands(_CONTAINER_FIX if in_container(probe) else "ls -l /dev/dri"),
            )
        )
    elif not all(_open(node) for _, node in nodes):
        told = ", ".join(path for path, node in nodes if not _open(node))
        findings.append(Finding("render-node-closed", WARNING, f"{told}: no permission", "a GPU behind it cannot be used", commands("ls -l /dev/dri")))
    return findings


def _open(info: PathInfo) -> bool:
    return info.readable and info.writable


def _closed(probe: Probe, closed: list[tuple[str, PathInfo]]) -> Finding:
    groups = list(dict.fromkeys(info.group for _, info in closed if info.group and info.group != "root")) or ["render", "video"]
    what = f"no permission to open {', '.join(path for path, _ in closed)} (group {', '.join(groups)})"
    current, later = (value if isinstance(value := probe.fact(name), list) else [] for name in ("groups", "groups after login"))
    if all(group in later for group in groups) and not all(group in current for group in groups):
        why = "your account is in the group already, but you logged in before that"
        return Finding("permission-relogin", CANNOT_RUN, what, why, commands(f"newgrp {groups[0]}    # or log out and in again"))
    if in_container(probe):
        why = "the container runs without the groups that own the GPU's device files"
        return Finding("permission-denied", CANNOT_RUN, what, why, commands(_CONTAINER_FIX))
    why = "HIP then finds no GPU, or aborts"
    return Finding("permission-denied", CANNOT_RUN, what, why, commands(f"sudo usermod -aG {','.join(groups)} $USER    # then log out and in again"))
