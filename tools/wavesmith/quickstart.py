"""The main job in one go: fetch, patch and build llama.cpp, get a model, validate the kernels on it, bench both sides.

Every part is kept: the build by its key, the model in the cache, and what validate and bench found under
`results/` by everything that could change it. So a second run only reads.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import __version__, bench, build, cache, validate, validate_report
from . import model as models
from .build import Build, write_json
from .progress import Steps


@dataclass(frozen=True)
class Outcome:
    """What quickstart shows. The two results are the documents that `validate --json` and `bench --json` write."""

    build: Build
    model: models.ModelFile
    validation: dict
    comparison: dict
    validation_kept: bool  # True: from an earlier run
    comparison_kept: bool

    @property
    def passed(self) -> bool:
        return self.validation["passed"]


def run(
    *,
    model: Path | None = None,
    llama: str | None = None,
    via: str = "auto",
    family: str = "rdna3",
    quick: bool = False,
    fresh: bool = False,
    jobs: int | None = None,
    steps: Steps,
) -> Outcome:
    """Do everything that is not done yet.

    quick: validate on fewer columns and rows. fresh: validate and bench again although results are kept.
    """
    validate.check_request("host", family)
    with steps.step("get the model", own_bar=True) as step:
        chosen = models.get(model)
        step.note = f"{chosen.path.name} ({chosen.source})"
    made = build.find(llama=llama)
    if made is None:
        made = build.ensure(llama=llama, via=via, jobs=jobs, steps=steps)
    else:
        with steps.step("build llama.cpp") as step:
            step.note = "already there"
    subject = _Subject(made, chosen.path, family, _file_hash(chosen.path), fresh)
    validation, validation_kept = _validate(subject, quick, steps)
    comparison, comparison_kept = _bench(subject, steps)
    return Outcome(made, chosen, validation, comparison, validation_kept, comparison_kept)


@dataclass(frozen=True)
class _Subject:
    build: Build
    model: Path
    family: str
    model_hash: str
    fresh: bool

    def result(self, kind: str, parts: dict, make: Callable[[], dict]) -> tuple[dict, bool]:
        """A kept result and True, or a new one and False. `parts`: what it depends on beside build, model and family."""
        key = {"build": self.build.key, "model": self.model_hash, "family": self.family, **parts}
        name = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]
        path = cache.folder("results") / f"{kind}-{name}.json"
        if path.is_file() and not self.fresh:
            try:
                return json.loads(path.read_text()), True
            except ValueError:
                path.unlink()
        result = make()
        write_json(path, result)
        return result, False


def _validate(subject: _Subject, quick: bool, steps: Steps) -> tuple[dict, bool]:
    def make() -> dict:
        with steps.step("validate the kernels on the model") as step:
            plan = validate.plan(subject.model, family=subject.family, quick=quick)
            environment = subject.build.environment(subject.family)
            return validate.run(plan, subject.build.lib_dir, environment, on_progress=step.update).as_json()

    parts = {"quick": quick, "wavesmith": __version__, "schema": validate_report.SCHEMA_VERSION, "host library": _file_hash(_host_library())}
    return _shown(subject.result("validate", parts, make), "validate the kernels on the model", steps)


def _bench(subject: _Subject, steps: Steps) -> tuple[dict, bool]:
    threads = bench.default_threads()

    def make() -> dict:
        return bench.compare(subject.build, subject.model, threads=threads, family=subject.family, steps=steps).as_json()

    parts = {"threads": threads, "schema": bench.SCHEMA_VERSION}
    return _shown(subject.result("bench", parts, make), "bench stock and wavesmith", steps)


def _shown(found: tuple[dict, bool], title: str, steps: Steps) -> tuple[dict, bool]:
    """A kept result gets its line too, so that the steps read the same every time."""
    if found[1]:
        with steps.step(title) as step:
            step.note = "kept from an earlier run"
    return found


def _host_library() -> Path:
    from . import host_library

    return host_library.path()


def _file_hash(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
