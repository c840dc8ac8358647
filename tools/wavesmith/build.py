"""Builds llama.cpp with the wavesmith kernels into a folder of its own, and finds builds made before.

A build is `<cache>/builds/<target>-<version>-<key>/`: `src` (patched copy), `module` (our sources), `build` (CMake's tree)
and, once everything has passed, `build.json`. Only a folder with a `build.json` is a finished build; anything else is
continued where it stopped.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from . import build_checks, build_environment, build_lock, build_plan, build_verify, cmake_file_api, known_failures, process, resources
from .build_plan import MANIFEST, Plan
from .build_verify import DEVICE
from .built import MANIFEST_VERSION, Build, open_folder
from .errors import BadInput, CannotBuild
from .progress import Step, Steps

__all__ = ["DEVICE", "MANIFEST", "MANIFEST_VERSION", "Build", "ensure", "find", "make", "write_json"]

_PLAN = "plan.json"
_LEFT_OUT = (".git", "build", ".github", ".devops", "docs", "media", "models", "gguf-py", "benches")  # of the llama.cpp tree: nothing that CMake reads


def find(target: str = "host", llama: str | None = None, out: Path | None = None) -> Build | None:
    """The finished build that `ensure` would return at once, or None. Fetches and writes nothing."""
    return _load(build_plan.resolve(target, llama, out))


def ensure(
    target: str = "host",
    llama: str | None = None,
    *,
    via: str = "auto",
    jobs: int | None = None,
    out: Path | None = None,
    steps: Steps | None = None,
) -> Build:
    """Return the build for `target` and `llama`, made first when there is none. Safe to call from several processes at once.

    via: how source.get fetches the tree. jobs: parallel compilers, default the usable CPUs. steps: where to show progress.
    """
    return make(build_plan.resolve(target, llama, out), via=via, jobs=jobs, steps=steps)


def make(plan: Plan, *, via: str = "auto", jobs: int | None = None, steps: Steps | None = None) -> Build:
    """`ensure` for a plan resolved before."""
    steps = steps or Steps("build")
    found = _load(plan)
    if found:
        return found
    _refuse_foreign_folder(plan.prefix)
    with build_lock.held(plan.prefix, steps):
        found = _load(plan)  # another process may have finished it while we waited
        if found:
            return found
        build_checks.check_compiler(plan.cxx_compiler)
        build_checks.check_disk(plan.prefix)
        _prepare(plan, via, steps)
        reply = _compile(plan, jobs or build_checks.usable_cpus(), steps)
        with steps.step("check the build") as step:
            manifest = build_verify.manifest(plan, reply, step)
        write_json(plan.prefix / MANIFEST, manifest)
    return _load(plan)


def _load(plan: Plan) -> Build | None:
    """The finished build of `plan`: in its folder, of the same key."""
    found = open_folder(plan.prefix)
    return found if found and found.key == plan.key else None


def _refuse_foreign_folder(prefix: Path) -> None:
    """A folder given with --out must be new, empty, or one that an earlier build made."""
    if prefix.is_dir() and any(prefix.iterdir()) and not (prefix / _PLAN).is_file():
        raise BadInput(f"{prefix} is not empty and holds no wavesmith build")
    if prefix.exists() and not prefix.is_dir():
        raise BadInput(f"{prefix} is not a folder")


def _prepare(plan: Plan, via: str, steps: Steps) -> None:
    """Fill the folder with a patched copy of the tree and our sources; what an interrupted run left is kept if it is whole."""
    from . import patching

    _discard_other_plan(plan)
    _make_folder(plan.prefix)
    write_json(plan.prefix / _PLAN, plan.as_json())
    if not (plan.prefix / "src").is_dir():
        with steps.step("fetch llama.cpp", unit="bytes") as step:
            tree = _fetch(plan, via, step)
        patching.refuse_other_patches(tree)
        with steps.step("copy and patch llama.cpp"):
            _copy_patched(tree, plan.prefix / "src")
    if not (plan.prefix / "module").is_dir():
        _copy_module(plan.prefix / "module")


def _make_folder(prefix: Path) -> None:
    try:
        prefix.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise CannotBuild(f"no space left on the disk for {prefix}") from None
        raise BadInput(f"cannot make the folder {prefix}: {error.strerror}; choose another with --out or WAVESMITH_CACHE") from None


def _fetch(plan: Plan, via: str, step: Step) -> Path:
    from . import source

    found = source.get(plan.source, via, on_progress=step.update, say=step.write)
    step.note = found.via
    return found.path


def _discard_other_plan(plan: Plan) -> None:
    """Empty a folder that was last used for a build of another key."""
    try:
        same = json.loads((plan.prefix / _PLAN).read_text())["key"] == plan.key
    except (FileNotFoundError, ValueError, KeyError):
        same = not plan.prefix.exists()
    if not same:
        (plan.prefix / MANIFEST).unlink(missing_ok=True)
        for name in ("src", "module", "build"):
            shutil.rmtree(plan.prefix / name, ignore_errors=True)


def _copy_patched(tree: Path, destination: Path) -> None:
    """Copy the tree beside `destination`, patch the copy, then rename it: `destination` is whole or absent."""
    from . import patching

    with _staging(destination) as partial:
        ignore = lambda folder, _names: _LEFT_OUT if Path(folder) == tree else ()
        shutil.copytree(tree, partial, symlinks=True, ignore=ignore, copy_function=_copy_file)
        patching.apply(partial)


def _copy_file(source: str | Path, destination: str | Path) -> None:
    """Copy content and mode. A full disk stops the whole copy at once: copytree would collect one error per file."""
    try:
        shutil.copy(source, destination)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise CannotBuild(f"no space left on the disk while writing {destination}") from error
        raise


def _copy_module(destination: Path) -> None:
    root = resources.data_root()
    with _staging(destination) as partial:
        for path in build_plan.module_files(root):
            (partial / path).parent.mkdir(parents=True, exist_ok=True)
            _copy_file(root / path, partial / path)


@contextlib.contextmanager
def _staging(destination: Path) -> Iterator[Path]:
    partial = destination.with_name(destination.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        yield partial
        partial.rename(destination)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _compile(plan: Plan, jobs: int, steps: Steps) -> cmake_file_api.Reply:
    tree = plan.prefix / "build"
    environment = build_environment.variables(plan.prefix, plan.rocm.environment() if plan.rocm else {})
    explain = functools.partial(known_failures.explain, jobs=jobs, root=plan.rocm.root if plan.rocm else "")
    cmake_file_api.request(tree)
    with steps.step("configure") as step:
        process.run(_configure_command(plan), step.log, environment=environment, what="cmake", explain=explain)
        build_verify.check_configured(plan, cmake_file_api.read(tree), step.log)
    with steps.step("compile") as step:
        command = [build_checks.program("ninja"), "-C", tree, f"-j{jobs}", *plan.programs]
        process.run(command, step.log, environment=environment, on_progress=step.update, what="the build", explain=explain)
    return cmake_file_api.read(tree)


def _configure_command(plan: Plan) -> list[str | Path]:
    options = {
        **plan.options,
        "CMAKE_MAKE_PROGRAM": build_checks.program("ninja"),
        "CMAKE_C_COMPILER": plan.c_compiler.path,
        "CMAKE_CXX_COMPILER": plan.cxx_compiler.path,
        **build_plan.launchers(build_checks.ccache()),
        f"{build_plan.MODULE.upper()}_PATH": str(plan.prefix / "module" / "backend"),
        "LLAMA_BUILD_NUMBER": "0",
        "LLAMA_BUILD_COMMIT": plan.llama_commit[:9],
    }
    definitions = [f"-D{name}={value}" for name, value in options.items()]
    return [build_checks.program("cmake"), "-S", plan.prefix / "src", "-B", plan.prefix / "build", "-G", "Ninja", *definitions]


def write_json(path: Path, content: dict) -> None:
    """Write atomically: the file is whole or as before."""
    partial = path.with_name(path.name + ".partial")
    try:
        with open(partial, "w", encoding="utf-8") as file:
            json.dump(content, file, indent=2)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
