"""Upstream's own operation tests on our device, and which products of a real model our kernels take, in the patched build."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import module_builds
import pytest

OUR_TYPES = {
    *("f32", "f16", "bf16", "q1_0", "q2_0", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_K", "q3_K", "q4_K", "q5_K", "q6_K", "mxfp4", "nvfp4"),
    *("iq1_s", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s", "iq4_nl", "iq4_xs"),
}

# Cases that we take; test-backend-ops calls a run without any a success. What it has beyond these are weight types that we do not have
# and activations of f16.
LEAST_MUL_MAT = 900
LEAST_MUL_MAT_ID = 500

# Leaves out four cases with up to a thousand million weights, whose making alone takes minutes.
_WITHOUT_LARGE_EXPERTS = "^(?!.*k=2(048|880),)"

_COUNT = re.compile(r"^\s*(\d+)/(\d+) tests passed", re.MULTILINE)


def run(build, program: str, *arguments, ledger: Path, **settings: str) -> str:
    environment = {**build.environment(), "WAVESMITH_LEDGER": str(ledger), **settings}
    command = [str(build.program(program)), *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, errors="replace", env=environment, timeout=1400, check=False)
    assert result.returncode == 0, f"{program} ended with {result.returncode}\n{result.stdout[-3000:]}\n{result.stderr[-3000:]}"
    return result.stdout


def check_op(build, op: str, least: int, ledger: Path, *arguments: str, **settings: str) -> list[dict]:
    """Run upstream's test of `op`; every supported case passed, there were at least `least`, and our kernels computed each."""
    output = run(build, "test-backend-ops", "test", "-b", "WAVESMITH", "-o", op, *arguments, ledger=ledger, **settings)
    passed, total = map(int, _COUNT.search(output).groups())
    assert passed == total >= least
    assert "FAIL" not in output
    lines = [line for line in module_builds.read_ledger(ledger) if line["op"] == op]
    assert sum(line["count"] for line in ours(lines)) >= total
    return lines


def ours(lines: list[dict]) -> list[dict]:
    return [line for line in lines if line["ran"] == "wavesmith"]


def check_reasons(lines: list[dict]) -> None:
    """Only weight types that we do not have and activations that are not f32 were left to stock."""
    assert {line["type"] for line in ours(lines)} == OUR_TYPES
    for line in lines:
        if line["ran"] == "stock":
            known = line["type"] in OUR_TYPES
            assert line["reason"].startswith("activations of type" if known else ("weights of", "activations of type")), line


@pytest.mark.build
def test_mul_mat(host_build, tmp_path):
    check_reasons(check_op(host_build, "MUL_MAT", LEAST_MUL_MAT, tmp_path / "ledger.jsonl"))


@pytest.mark.build
def test_mul_mat_id(host_build, tmp_path):
    check_reasons(check_op(host_build, "MUL_MAT_ID", LEAST_MUL_MAT_ID, tmp_path / "ledger.jsonl", "-p", _WITHOUT_LARGE_EXPERTS))


@pytest.mark.slow
def test_mul_mat_id_with_large_experts(host_build, tmp_path):
    # Among them activations of 100,000, over the range of f16.
    check_op(host_build, "MUL_MAT_ID", 4, tmp_path / "ledger.jsonl", "-p", "k=2(048|880),")


@pytest.mark.slow
@pytest.mark.parametrize("family", ["gcn", "cdna2", "cdna3", "cdna4", "rdna2", "rdna3.5", "rdna4"])
def test_every_family(host_build, family, tmp_path):
    # The default family is what the tests above run.
    lines = check_op(host_build, "MUL_MAT", LEAST_MUL_MAT, tmp_path / "mul_mat.jsonl", WAVESMITH_HOST_FAMILY=family)
    lines += check_op(host_build, "MUL_MAT_ID", LEAST_MUL_MAT_ID, tmp_path / "mul_mat_id.jsonl", "-p", _WITHOUT_LARGE_EXPERTS, WAVESMITH_HOST_FAMILY=family)
    assert {line["kernel"].split()[1] for line in ours(lines)} == {family}


@pytest.mark.slow
@pytest.mark.parametrize("version", [version for version in module_builds.VERSIONS if version != module_builds.NEWEST])
def test_older_versions(cache_folder, version, tmp_path):
    from wavesmith import build

    older = build.ensure("host", version)
    check_op(older, "MUL_MAT", 750, tmp_path / "mul_mat.jsonl")
    check_op(older, "MUL_MAT_ID", 400, tmp_path / "mul_mat_id.jsonl", "-p", _WITHOUT_LARGE_EXPERTS)


# Models


def bench(build, model: Path, ledger: Path, *, tokens: int = 16, generated: int = 2, **settings: str) -> str:
    return run(build, "llama-bench", "-m", model, "-p", tokens, "-n", generated, "-t", 1, "-r", 1, "--no-warmup", ledger=ledger, **settings)


def share(lines: list[dict], columns: int, products: set[tuple[str, str, int, int]]) -> float:
    """Which part of a model's products (op, weight type, M, K) our kernels ran for `columns` tokens, and stock did not."""
    sides = {side: {(line["op"], line["type"], line["m"], line["k"]) for line in lines if line["ran"] == side} for side in ("wavesmith", "stock")}
    seen = {(line["op"], line["type"], line["m"], line["k"]) for line in ours(lines) if line["n"] == columns}
    return len(products & seen - sides["stock"]) / len(products)


def model_products(model: Path) -> set[tuple[str, str, int, int]]:
    """(op, weight type as ggml spells it, M, K) of the model's products."""
    from wavesmith import census, gguf_file

    ggml_names = {name.lower(): name for name in OUR_TYPES}
    return {(product.op, ggml_names[product.type_name.lower()], product.m, product.k) for product in census.products(gguf_file.Model.open(model))}


@pytest.mark.build
def test_real_model_stays_with_us(host_build, smollm2, tmp_path):
    ledger = tmp_path / "ledger.jsonl"
    output = bench(host_build, smollm2, ledger)
    assert "WAVESMITH" in output
    lines = module_builds.read_ledger(ledger)
    products = model_products(smollm2)
    assert len(products) >= 5
    # The output product is computed for the last token of a prompt only.
    vocabulary = max(m for _, _, m, _ in products)
    assert share(lines, 16, {product for product in products if product[2] != vocabulary}) == 1
    assert share(lines, 1, products) == 1


@pytest.mark.build
def test_experts_stay_with_us(host_build, tmp_path):
    from wavesmith import model_generator

    model = model_generator.generate(tmp_path / "moe.gguf", "tiny-moe", "Q4_K_M")
    ledger = tmp_path / "ledger.jsonl"
    bench(host_build, model, ledger)
    lines = module_builds.read_ledger(ledger)
    products = model_products(model)
    experts = {product for product in products if product[0] == "MUL_MAT_ID"}
    assert len(experts) >= 2
    assert share(lines, 1, products) == 1
    assert {(line["experts"], line["used"]) for line in ours(lines) if line["op"] == "MUL_MAT_ID"} == {(4, 2)}


@pytest.mark.build
def test_switched_off_takes_none(host_build, tmp_path):
    from wavesmith import model_generator

    model = model_generator.generate(tmp_path / "tiny.gguf", "tiny", "Q4_K_M")
    ledger = tmp_path / "ledger.jsonl"
    assert "WAVESMITH" not in bench(host_build, model, ledger, WAVESMITH="0")
    assert ledger.read_text() == ""
    assert "WAVESMITH" in bench(host_build, model, ledger)
    assert ours(module_builds.read_ledger(ledger))


@pytest.mark.build
@pytest.mark.parametrize("mapping", [("-lm", "none"), ("-lm", "mmap")])
def test_weights_are_ours_with_and_without_mmap(host_build, tmp_path, mapping):
    from wavesmith import model_generator

    # q4_0 is what stock repacks on every CPU, so a model that reached the repacker would be lost to us.
    model = model_generator.generate(tmp_path / "tiny.gguf", "tiny", "Q4_0")
    ledger = tmp_path / "ledger.jsonl"
    run(host_build, "llama-bench", "-m", model, "-p", 8, "-n", 1, "-t", 1, "-r", 1, *mapping, ledger=ledger)
    assert share(module_builds.read_ledger(ledger), 1, model_products(model)) == 1
