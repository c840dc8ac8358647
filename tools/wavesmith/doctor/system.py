"""The machine itself: disk space and memory for a build, and how many compile jobs that memory carries."""

from __future__ import annotations

import re

from .findings import CANNOT_BUILD, WARNING, Finding, commands
from .probe import PathInfo, Probe

GIB = 1 << 30
# Source tree 0.2 GiB, CPU build 0.1 GiB; a HIP build keeps about 0.5 GiB per target beside them.
_DISK_LEAST = 1 * GIB
_DISK_PER_TARGET = GIB // 2
_MEMORY_PER_JOB = 2 * GIB  # what one HIP compile of a large template file takes


def memory(probe: Probe) -> dict[str, int]:
    """Bytes by name ("total", "available", "swap"), as far as /proc/meminfo says them."""
    text = probe.read("/proc/meminfo") or ""
    names = {"MemTotal": "total", "MemAvailable": "available", "SwapFree": "swap"}
    return {names[match[1]]: int(match[2]) * 1024 for match in re.finditer(r"^(\w+):\s*(\d{1,15}) kB", text, re.MULTILINE) if match[1] in names}


def jobs(probe: Probe) -> int:
    """Compile jobs at once: one per processor, as many as the available memory carries, at least one."""
    processors = probe.fact("processors")
    available = memory(probe).get("available")
    most = processors if isinstance(processors, int) and processors > 0 else 1
    return max(1, min(most, available // _MEMORY_PER_JOB)) if available else most


def _nearest_folder(probe: Probe, path: str) -> tuple[str, PathInfo] | None:
    """The path itself, or the closest folder above it that exists."""
    while path:
        info = probe.stat(path)
        if info:
            return path, info
        path = path.rpartition("/")[0]
    return None


def check(probe: Probe, gpu_targets: int) -> list[Finding]:
    """`gpu_targets` is how many GPU targets a build would be for."""
    findings = []
    folder = str(probe.fact("cache folder") or "")
    free = probe.disk_free(folder)
    wanted = _DISK_LEAST + gpu_targets * _DISK_PER_TARGET
    if free is not None and free < wanted:
        what = f"{free / GIB:.1f} GiB free for {folder}"
        why = f"sources and builds take about {wanted / GIB:.1f} GiB"
        fix = commands("export WAVESMITH_CACHE=<folder on a larger disk>", "wavesmith builds list    # and 'builds rm' for what is no longer needed")
        findings.append(Finding("disk-small", CANNOT_BUILD if free < wanted // 2 else WARNING, what, why, fix))
    place = _nearest_folder(probe, folder)
    if place and not place[1].writable:
        fix = commands("export WAVESMITH_CACHE=<a folder you may write to>")
        findings.append(Finding("cache-read-only", CANNOT_BUILD, f"no permission to write to {place[0]}", f"sources and builds go to {folder}", fix))
    available = memory(probe).get("available")
    if available is not None and available < _MEMORY_PER_JOB:
        what = f"{available / GIB:.1f} GiB of memory available"
        why = "one compile job can take 2 GiB, and the system kills a compiler that finds none"
        findings.append(Finding("memory-small", WARNING, what, why, commands("close other programs, or add swap")))
    return findings
