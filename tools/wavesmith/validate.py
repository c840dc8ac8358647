"""Proves on one model's own weights that the kernels compute what they should; `wavesmith validate` and docs/validate.md describe it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from . import census, host_library, ops, settings
from .errors import BadInput
from .gguf_file import Model, printable
from .stock_ggml import StockGgml
from .validate_case import Case
from .validate_checks import MODULE_DEVICE, NMSE_LIMIT, WORST_ROW_LIMIT, ProductChecks
from .validate_report import PASSED, STOCK, UNKNOWN, ProductReport, Report

if TYPE_CHECKING:
    from .progress import Steps

COLUMNS = (1, 2, 7, 16, 33, 128)
QUICK_COLUMNS = (1, 16, 33)
QUICK_ROWS = 1024
_SWITCHES = ("WAVESMITH", "WAVESMITH_KERNELS", "WAVESMITH_HOST_FAMILY", "WAVESMITH_HOST_CHECKED", "WAVESMITH_LDS_LIMIT")

OnProgress = Callable[[int, int], None]


@dataclass
class Plan:
    """What will be validated: nothing is built or run before this exists without an error."""

    model: Model
    products: list[census.Product]
    family: str
    quick: bool
    columns: tuple[int, ...]

    @property
    def taken(self) -> list[census.Product]:
        return [product for product in self.products if product.type_name in ops.WEIGHT_TYPES]


def check_request(target: str, family: str) -> None:
    """BadInput for a target or family that cannot be validated."""
    if target != "host":
        raise BadInput(f"target {printable(target)}: only host can be validated, there are no GPU targets yet")
    if family not in host_library.FAMILIES:
        raise BadInput(f"unknown family {printable(family)}; known: {', '.join(host_library.FAMILIES)}")


def plan(model: Path, *, target: str = "host", family: str = "rdna3", quick: bool = False) -> Plan:
    """Reads the model and checks the request. BadInput for a faulty model, an unknown target or family, or nothing to check."""
    check_request(target, family)
    opened = Model.open(model)
    census.check_experts(opened)
    products = census.products(opened)
    if not products:
        raise BadInput(f"{printable(model)}: has no weights that a matrix product uses")
    return Plan(opened, products, family, quick, QUICK_COLUMNS if quick else COLUMNS)


def find_build(target: str, family: str, steps: Steps | None = None) -> tuple[Path, dict[str, str]]:
    """Library folder and environment of the build for `target`, which is made first when there is none."""
    from . import build

    found = build.find(target) or build.ensure(target, steps=steps)
    return found.lib_dir, found.environment(family)


def run(plan: Plan, library_folder: Path, environment: dict[str, str], on_progress: OnProgress | None = None) -> Report:
    """Checks every product of the plan against the float64 reference and the ggml in `library_folder`.

    Settings that switch the module or some of its kernels off, or checked ones on, do not count here, whoever set them.
    CannotRun when that folder holds no ggml or the host library is missing. A product that fails is a row of the report.
    """
    module = {**settings.without(environment, _SWITCHES), "WAVESMITH_HOST_FAMILY": plan.family}
    with settings.unset(_SWITCHES):
        return _run(plan, library_folder, module, on_progress)


def _run(plan: Plan, library_folder: Path, environment: dict[str, str], on_progress: OnProgress | None) -> Report:
    started = time.monotonic()
    host_library.set_threads(0)
    reports = []
    total = sum(_work(product) for product in plan.taken)
    done = 0
    with StockGgml(library_folder, environment) as stock:
        devices = stock.devices()
        for product in plan.products:
            reports.append(_validate_product(plan, product, stock, devices))
            done += _work(product) if product.type_name in ops.WEIGHT_TYPES else 0
            if on_progress:
                on_progress(done, total)
    return Report(
        model=str(plan.model.path),
        architecture=plan.model.architecture,
        target="host",
        family=plan.family,
        quick=plan.quick,
        build=str(library_folder),
        devices=devices,
        limits={"nmse": NMSE_LIMIT, "worst_row_nmse": WORST_ROW_LIMIT, "row_sample": QUICK_ROWS if plan.quick else None},
        host_library=host_library.version(),
        products=reports,
        seconds=round(time.monotonic() - started, 2),
    )


def _work(product: census.Product) -> int:
    """Thousands of weights, the unit of the progress bar."""
    return max(1, product.m * product.k * max(1, product.experts) // 1000)


def _validate_product(plan: Plan, product: census.Product, stock: StockGgml, devices: list[str]) -> ProductReport:
    first = product.tensors[0]
    report = ProductReport(product.op, product.label, product.type_number, product.m, product.k, product.experts, len(product.tensors), first.name, PASSED)
    if product.type_name is None:
        report.status, report.reason = UNKNOWN, "a type this wavesmith does not know"
    elif product.type_name not in ops.WEIGHT_TYPES:
        report.status, report.reason = STOCK, "no kernel for this type, stock runs it"
    else:
        started = time.monotonic()
        used = plan.model.integer(f"{plan.model.architecture}.expert_used_count")
        case = Case(product, max(plan.columns), plan.family, QUICK_ROWS if plan.quick else None, used)
        ProductChecks(case, plan.columns, stock, MODULE_DEVICE in devices, report).run()
        report.seconds = round(time.monotonic() - started, 2)
    return report
