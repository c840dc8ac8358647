"""The module built alone: loads into an unpatched ggml, computes there, obeys its settings, and keeps out of any other ggml."""

from __future__ import annotations

import re
from pathlib import Path

import module_builds
import pytest

pytestmark = pytest.mark.build

# One per supported weight type, with M and N off any tile, N = 1, and K of a single block.
PRODUCTS = {
    "f32": (33, 5, 100),
    "f16": (33, 5, 100),
    "bf16": (33, 5, 100),
    "q4_0": (65, 1, 96),
    "q4_1": (17, 33, 64),
    "q5_0": (1, 3, 32),
    "q5_1": (130, 7, 160),
    "q8_0": (100, 129, 288),
    "q2_K": (37, 19, 512),
    "q3_K": (37, 19, 768),
    "q4_K": (37, 1, 256),
    "q5_K": (129, 16, 512),
    "q6_K": (64, 130, 256),
    "q1_0": (65, 7, 384),
    "q2_0": (65, 7, 192),
    "mxfp4": (37, 19, 96),
    "nvfp4": (37, 1, 192),
    "iq1_s": (37, 19, 256),
    "iq2_xxs": (65, 1, 512),
    "iq2_xs": (37, 7, 256),
    "iq2_s": (33, 19, 512),
    "iq3_xxs": (37, 33, 256),
    "iq3_s": (37, 19, 512),
    "iq4_nl": (37, 19, 96),
    "iq4_xs": (37, 19, 512),
}


@pytest.fixture(scope="module")
def ggml(cache_folder: Path) -> module_builds.PlainGgml:
    return module_builds.plain_ggml(module_builds.NEWEST, cache_folder)


@pytest.fixture(scope="module")
def module(ggml, cache_folder: Path) -> Path:
    return module_builds.module_for(ggml, cache_folder)


def _arguments(products: dict[str, tuple[int, int, int]]) -> list[str]:
    return [str(part) for weight_type, sizes in products.items() for part in (weight_type, *sizes)]


def check_products(ggml, module: Path, ledger: Path) -> None:
    result = module_builds.run(ggml.driver, *_arguments(PRODUCTS), GGML_BACKEND_PATH=str(module), WAVESMITH_LEDGER=str(ledger))
    errors = module_builds.driver_errors(result.stdout)
    assert len(errors) == len(PRODUCTS)
    for product, error in errors.items():
        # What rounding the activations to 8 bits costs; nothing is rounded for f32.
        assert error < (1e-12 if product.startswith("f32") else 5e-4), product
    ran = {line["type"]: line["kernel"] for line in module_builds.read_ledger(ledger) if line["ran"] == "wavesmith"}
    assert set(ran) == set(PRODUCTS)
    for weight_type, kernel in ran.items():
        assert kernel.startswith("gemm " if weight_type in ("f32", "f16", "bf16") else "mmq "), kernel


def test_without_the_module_there_is_no_device(ggml):
    result = module_builds.run(ggml.driver, check=False)
    assert result.returncode == 3 and "WAVESMITH" not in result.stdout


def test_computes_in_an_unpatched_ggml(ggml, module, tmp_path):
    check_products(ggml, module, tmp_path / "ledger.jsonl")


def test_exports_only_what_ggml_looks_up(module):
    symbols = {line.split()[-1] for line in module_builds.run("nm", "-D", "--defined-only", module).stdout.splitlines() if " T " in line}
    assert symbols == {"ggml_backend_init", "ggml_backend_score", "ggml_backend_wavesmith_reg"}


def test_brings_no_path_to_a_ggml_library(module):
    assert "RUNPATH" not in module_builds.run("objdump", "-p", module).stdout


def test_a_module_for_another_ggml_keeps_out(ggml, module, cache_folder):
    other = module_builds.plain_ggml(module_builds.OLDEST, cache_folder)
    result = module_builds.run(other.driver, check=False, GGML_BACKEND_PATH=str(module))
    assert result.returncode == 3
    lines = [line for line in result.stderr.splitlines() if line.startswith("wavesmith: ")]
    expected = (
        f"wavesmith: ggml-wavesmith was built for ggml {ggml.ggml_version} ({ggml.commit}), "
        f"this program runs ggml {other.ggml_version} ({other.commit}): not loading, versions differ"
    )
    assert lines == [expected]


@pytest.mark.slow
@pytest.mark.parametrize("version", module_builds.VERSIONS)
def test_computes_in_every_supported_version(version, cache_folder, tmp_path):
    ggml = module_builds.plain_ggml(version, cache_folder)
    module = module_builds.module_for(ggml, cache_folder)
    check_products(ggml, module, tmp_path / "ledger.jsonl")
    for other_version in module_builds.VERSIONS:
        if other_version != version:
            other = module_builds.plain_ggml(other_version, cache_folder)
            result = module_builds.run(other.driver, check=False, GGML_BACKEND_PATH=str(module))
            assert result.returncode == 3 and f"built for ggml {ggml.ggml_version} " in result.stderr


def test_module_for_the_wrong_tree_is_not_configured(ggml, cache_folder, tmp_path):
    other = module_builds.plain_ggml(module_builds.OLDEST, cache_folder)
    options = {"WAVESMITH_GGML_TREE": str(other.tree), "WAVESMITH_GGML_LIBRARY": str(ggml.base)}
    result = module_builds.configure(module_builds.resources.backend(), tmp_path / "build", options, check=False)
    message = " ".join(result.stderr.split())
    assert result.returncode != 0 and f"is ggml {ggml.ggml_version}, but" in message and f"is ggml {other.ggml_version}" in message


# Settings


def run_with(ggml, module: Path, *arguments: str, **settings: str):
    return module_builds.run(ggml.driver, *arguments, check=False, GGML_BACKEND_PATH=str(module), **settings)


def our_lines(result) -> list[str]:
    return [line for line in result.stderr.splitlines() if line.startswith("wavesmith: ")]


def test_switched_off_offers_no_device(ggml, module, tmp_path):
    ledger = tmp_path / "ledger.jsonl"
    result = run_with(ggml, module, WAVESMITH="0", WAVESMITH_LEDGER=str(ledger))
    assert result.returncode == 3 and our_lines(result) == []
    assert ledger.read_text() == ""


@pytest.mark.parametrize("family", ["gcn", "cdna2", "cdna3", "cdna4", "rdna2", "rdna3", "rdna3.5", "rdna4"])
def test_family_is_shown_and_computes(ggml, module, family, tmp_path):
    ledger = tmp_path / "ledger.jsonl"
    result = run_with(ggml, module, "q4_K", "70", "9", "256", "f16", "70", "9", "96", WAVESMITH_HOST_FAMILY=family, WAVESMITH_LEDGER=str(ledger))
    assert result.returncode == 0, result.stderr
    assert re.search(rf"^WAVESMITH: wavesmith \d+\.\d+\.\d+, {re.escape(family)} kernels on the CPU$", result.stdout, re.MULTILINE)
    assert max(module_builds.driver_errors(result.stdout).values()) < 5e-4
    assert {line["kernel"].split()[1] for line in module_builds.read_ledger(ledger)} == {family}


def test_lds_limit_leaves_the_product_to_stock_with_the_reason(ggml, module, tmp_path):
    ledger = tmp_path / "ledger.jsonl"
    result = run_with(ggml, module, "q8_0", "8", "1", "32", WAVESMITH_LDS_LIMIT="1000", WAVESMITH_LEDGER=str(ledger))
    assert result.returncode == 4 and our_lines(result) == []
    assert [(line["ran"], "bytes of LDS, WAVESMITH_LDS_LIMIT is 1000" in line["reason"]) for line in module_builds.read_ledger(ledger)] == [("stock", True)]


def test_lds_limit_that_is_no_number_is_an_error_line_and_no_device(ggml, module):
    result = run_with(ggml, module, WAVESMITH_LDS_LIMIT="64k")
    assert result.returncode == 3
    (line,) = our_lines(result)
    assert 'WAVESMITH_LDS_LIMIT is "64k"' in line


def test_unknown_family_is_an_error_line_and_no_device(ggml, module):
    result = run_with(ggml, module, WAVESMITH_HOST_FAMILY="rdna7")
    assert result.returncode == 3
    (line,) = our_lines(result)
    assert "rdna7" in line and "gcn, cdna2, cdna3, cdna4, rdna2, rdna3, rdna3.5 or rdna4" in line


@pytest.mark.parametrize(
    ("kernels", "taken"),
    [("mmq", {"q8_0"}), ("gemm", {"f16"}), ("-mmq", {"f16"}), ("-gemm", {"q8_0"}), ("mmq,gemm,-gemm", {"q8_0"}), ("mmvq", set()), ("", {"q8_0", "f16"})],
)
def test_kernels_can_be_left_out(ggml, module, kernels, taken):
    for weight_type in ("q8_0", "f16"):
        result = run_with(ggml, module, weight_type, "8", "1", "32", WAVESMITH_KERNELS=kernels)
        assert result.returncode == (0 if weight_type in taken else 4)
        assert our_lines(result) == []


def test_unknown_kernels_are_one_warning(ggml, module):
    result = run_with(ggml, module, "q8_0", "8", "1", "32", WAVESMITH_KERNELS="-magic,-mmq2")
    assert result.returncode == 0
    (line,) = our_lines(result)
    assert "magic, mmq2" in line


@pytest.mark.parametrize(("name", "value"), [("WAVESMITH", "off"), ("WAVESMITH_LOG", "loud")])
def test_mistyped_switch_is_one_warning_and_changes_nothing(ggml, module, name, value):
    result = run_with(ggml, module, "q8_0", "8", "1", "32", **{name: value})
    assert result.returncode == 0
    (line,) = our_lines(result)
    assert f"{name}={value}" in line


def test_checked_build_computes_the_same(ggml, module):
    # The checked build must find nothing wrong in a plain product, with the threads of a block in any order.
    checked = {"WAVESMITH_HOST_CHECKED": "1", "WAVESMITH_HOST_RACECHECK": "1", "WAVESMITH_HOST_ORDER": "7"}
    result = run_with(ggml, module, "q4_K", "70", "17", "256", "f16", "5", "3", "65", **checked)
    assert result.returncode == 0 and our_lines(result) == []
    assert max(module_builds.driver_errors(result.stdout).values()) < 5e-4


def test_log_level_hides_warnings(ggml, module):
    result = run_with(ggml, module, WAVESMITH_KERNELS="-magic", WAVESMITH_LOG="error")
    assert result.returncode == 0 and our_lines(result) == []


# Ledger


def test_ledger_names_what_stock_keeps(ggml, module, tmp_path):
    ledger = tmp_path / "ledger.jsonl"
    result = run_with(ggml, module, "q8_0", "8", "3", "64", WAVESMITH_KERNELS="-mmq", WAVESMITH_LEDGER=str(ledger))
    assert result.returncode == 4
    (line,) = module_builds.read_ledger(ledger)
    assert line == {
        "op": "MUL_MAT",
        "type": "q8_0",
        "m": 8,
        "n": 3,
        "k": 64,
        "batch": [1, 1],
        "experts": 0,
        "used": 0,
        "count": 1,
        "ran": "stock",
        "kernel": None,
        "reason": "WAVESMITH_KERNELS leaves out mmq",
    }


def test_ledger_counts_runs(ggml, module, tmp_path):
    ledger = tmp_path / "ledger.jsonl"
    result = run_with(ggml, module, *["q8_0", "8", "3", "64"] * 3, *["q8_0", "8", "4", "64"], WAVESMITH_LEDGER=str(ledger))
    assert result.returncode == 0
    assert {line["n"]: line["count"] for line in module_builds.read_ledger(ledger)} == {3: 3, 4: 1}


def test_ledger_as_text(ggml, module):
    result = run_with(ggml, module, "q8_0", "8", "3", "64", WAVESMITH_LEDGER="-")
    header, row = result.stderr.splitlines()[-2:]
    assert header.split() == ["op", "type", "MxNxK", "count", "kernel"]
    assert row.split()[:5] == ["MUL_MAT", "q8_0", "8x3x64", "1", "mmq"]


def test_ledger_that_cannot_be_written_is_one_line(ggml, module, tmp_path):
    path = tmp_path / "missing" / "ledger.jsonl"
    result = run_with(ggml, module, "q8_0", "8", "3", "64", WAVESMITH_LEDGER=str(path))
    assert result.returncode == 0
    (line,) = our_lines(result)
    assert str(path) in line and "No such file" in line


def test_ledger_replaces_an_older_one_and_leaves_no_partial_file(ggml, module, tmp_path):
    ledger = tmp_path / "ledger.jsonl"
    ledger.write_text("older\n" * 1000)
    assert run_with(ggml, module, "q8_0", "8", "3", "64", WAVESMITH_LEDGER=str(ledger)).returncode == 0
    assert len(module_builds.read_ledger(ledger)) == 1
    assert list(tmp_path.iterdir()) == [ledger]
