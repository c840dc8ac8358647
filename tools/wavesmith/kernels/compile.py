"""`wavesmith kernels compile`: every kernel of the chosen targets as plain code objects with a manifest."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ..errors import BadInput, BuildFailed
from ..targets import Target
from . import compiler as clang
from . import manifest
from .device_source import Unit, units


def compile_targets(
    targets: list[Target],
    out: Path,
    *,
    jobs: int | None = None,
    only: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[dict]:
    """Compiles all units (or those whose name contains `only`) of `targets` into `out`; returns the manifest's kernels.

    Nothing appears in `out` unless everything compiled. Files are `<target>-<unit>.co`.
    """
    device = [target for target in targets if target.platform == "hip"]
    if len(device) != len(targets) or not device:
        raise BadInput("code objects are for gfx targets: " + ", ".join(target.name for target in targets if target.platform != "hip"))
    compiler = clang.find()
    work = [(target, unit) for target in device for unit in units(target.family or "") if only is None or only in unit.name]
    if not work:
        raise BadInput(f"no kernel matches '{only}'")
    _writable(out)
    kernels: list[dict] = []
    with tempfile.TemporaryDirectory(prefix=".kernels-", dir=out.parent) as scratch, ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        for done, found in enumerate(pool.map(lambda item: _compile(compiler, Path(scratch), *item), work), start=1):
            kernels += found
            if progress:
                progress(done, len(work))
        out.mkdir(exist_ok=True)
        for file in sorted(Path(scratch).glob("*.co")):
            file.replace(out / file.name)
    manifest.write(out, compiler.version, kernels)
    return kernels


def _writable(out: Path) -> None:
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"{out}: {error.strerror}") from None
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out}: not a folder")


def _compile(compiler: clang.Compiler, scratch: Path, target: Target, unit: Unit) -> list[dict]:
    file = f"{target.compiler_name.replace(':', '_')}-{unit.name}.co"
    source = scratch / f"{file}.hip"
    source.write_text(unit.text, encoding="utf-8")
    clang.compile_unit(compiler, source, target.compiler_name, scratch / file, target.code_object_version)
    found = clang.resources_of(compiler, scratch / file)
    missing = [kernel.symbol for kernel in unit.kernels if kernel.symbol not in found]
    if missing:
        raise BuildFailed(f"{file}: no metadata for {', '.join(missing)}")
    return [manifest.entry(kernel, target.name, file, found[kernel.symbol]) for kernel in unit.kernels]
