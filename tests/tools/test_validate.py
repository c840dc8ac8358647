"""validate: passes on sound kernels, and fails for each thing that can be wrong with them."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from gguf_bytes import F32, Gguf, int32, tensor, text, uint32
from wavesmith import cli, host_library, model_generator, reference, validate, validate_checks, validate_report
from wavesmith.census import products
from wavesmith.errors import BadInput, CannotRun, KernelFault
from wavesmith.gguf_file import Model
from wavesmith.stock_ggml import DeviceRefused, StockFailure
from wavesmith.validate_case import Case, expert_ids, sample_rows

SCHEMA = Path(validate.__file__).parent / "schemas" / "validate.schema.json"
SMALL = model_generator.Shape(256, 256, 1, 2, 1, 96)
EXPERTS = model_generator.Shape(256, 256, 1, 2, 1, 96, expert_count=4, expert_used_count=2)

TRUE_KERNELS = host_library.mul_mat_raw


class Stock:
    """Stands in for a build's ggml: `CPU` is the float64 reference, `WAVESMITH` the host library itself."""

    module = True
    failure: Exception | None = None
    spoil = staticmethod(lambda device, result: result)

    def __init__(self, folder, environment):
        self.folder = Path(folder)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def devices(self):
        return ["WAVESMITH", "CPU"] if self.module else ["CPU"]

    def products(self, device, type_number, weights, shape, x, columns, ids=None):
        from wavesmith import ops
        from wavesmith.gguf_types import all_types

        if self.failure is not None:
            raise self.failure
        path, offset, size = weights
        _, m, experts = shape
        kind = next(kind.name for kind in all_types() if kind.number == type_number)
        rows = np.fromfile(path, np.uint8, size, offset=offset).reshape(max(1, experts), m, -1)
        results = {}
        for n in columns:
            if device == "WAVESMITH":
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(host_library, "mul_mat_raw", TRUE_KERNELS)
                    result = ops.mul_mat(kind, rows[0], x[:n]) if ids is None else ops.mul_mat_id(kind, rows, x[:n], ids[:n])
            elif ids is None:
                result = reference.mul_mat(kind, rows[0], x[:n])
            else:
                result = np.stack([[reference.mul_mat(kind, rows[e], x[i : i + 1])[0] for e in ids[i]] for i in range(n)])
            results[n] = self.spoil(device, result.astype(np.float32))
        return results


@pytest.fixture
def stock(monkeypatch):
    class Mine(Stock):
        pass

    monkeypatch.setattr(validate, "StockGgml", Mine)
    return Mine


@pytest.fixture(scope="module")
def small_model(tmp_path_factory) -> Path:
    return model_generator.generate(tmp_path_factory.mktemp("model") / "small.gguf", SMALL, "Q4_K", pure=True)


def check(path: Path, folder: Path, *, quick: bool = True, family: str = "rdna3") -> validate_report.Report:
    return validate.run(validate.plan(path, quick=quick, family=family), folder, {})


def only(report: validate_report.Report, **expected: bool) -> None:
    """The report failed, and in every product just the named checks did not hold."""
    assert not report.passed
    for product in report.products:
        if product.status != "failed":
            continue
        for name, held in vars(product.checks).items():
            if name != "integer_rows" and held is not None:
                assert held is expected.get(name, True), (name, product.failures)
    assert any(product.status == "failed" for product in report.products)


# Sound kernels -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mix", ["Q2_K", "Q4_0", "Q8_0", "IQ2_XS", "IQ4_XS", "MXFP4", "Q2_0", "F16"])
@pytest.mark.parametrize("shape", [SMALL, EXPERTS])
def test_sound_kernels_pass(tmp_path, stock, mix, shape):
    report = check(model_generator.generate(tmp_path / "m.gguf", shape, mix), tmp_path)
    assert report.passed, [product.failures for product in report.products]
    assert {product.op for product in report.products} == ({"MUL_MAT", "MUL_MAT_ID"} if shape.expert_count else {"MUL_MAT"})
    for product in report.products:
        quantised = product.type in reference.INTEGER_TYPES
        assert product.checks == validate_report.Checks(
            integers=quantised or None,
            integer_rows=min(512, product.m) if quantised else 0,
            float_part=quantised or None,
            checked=True,
            guards=True,
            poison=True,
            columns=True,
            module=True,
        )
        assert [column.n for column in product.columns] == [1, 16, 33]
        for column in product.columns:
            assert 0 <= column.nmse < validate_checks.NMSE_LIMIT
            assert product.type.lower() in column.kernel.lower()


@pytest.mark.parametrize("family", host_library.FAMILIES)
def test_every_family(small_model, tmp_path, stock, family):
    stock.module = False
    report = check(small_model, tmp_path, family=family)
    assert report.passed
    assert all(family in column.kernel for product in report.products for column in product.columns)


def test_all_columns_without_quick(small_model, tmp_path, stock):
    report = check(small_model, tmp_path, quick=False)
    assert report.passed
    assert [column.n for column in report.products[0].columns] == [1, 2, 7, 16, 33, 128]


def test_quick_samples_rows_of_big_tensors(tmp_path, stock):
    path = model_generator.generate(tmp_path / "m.gguf", model_generator.Shape(256, 256, 1, 2, 1, 3000), "Q4_0", pure=True)
    stock.folder = tmp_path
    report = check(path, tmp_path)
    assert report.passed
    output = next(product for product in report.products if product.m == 3000)
    assert output.rows == 1024
    assert (tmp_path / "weights").stat().st_size == 1024 * 256 // 32 * 18


def test_without_the_module(small_model, tmp_path, stock):
    stock.module = False
    report = check(small_model, tmp_path)
    assert report.passed
    assert {product.checks.module for product in report.products} == {None}


# Faulty kernels ------------------------------------------------------------------------------------------------------


def spoil_kernels(monkeypatch, spoil) -> None:
    """Lets `spoil(weights, activations, output, n, m)` loose on the operands after each call of the true kernels."""

    def faulty(weights, activations, output, ids=None, **options):
        kernel = TRUE_KERNELS(weights, activations, output, ids, **options)
        spoil(weights=weights, activations=activations, output=output, options=options)
        return kernel

    monkeypatch.setattr(host_library, "mul_mat_raw", faulty)


def rows_of(operand) -> np.ndarray:
    """float32 [columns, M] view of an output operand (its last row's padding is not part of the buffer)."""
    m, n, stride = operand.ne[0], operand.ne[1] * operand.ne[2], operand.nb[1]
    return np.lib.stride_tricks.as_strided(operand.buffer.view(np.uint8)[:4].view(np.float32), (n, m), (stride, 4))


def test_a_wrong_result_fails(small_model, tmp_path, stock, monkeypatch):
    spoil_kernels(monkeypatch, lambda output, **_: np.multiply(rows_of(output), 1.1, out=rows_of(output)))
    report = check(small_model, tmp_path)
    only(report, float_part=False, module=False)
    assert "NMSE 1.0" in report.products[0].failures[0]


def test_one_wrong_row_is_found_and_named(small_model, tmp_path, stock, monkeypatch):
    def spoil(output, **_):
        rows_of(output)[:, 41] *= 1.3

    spoil_kernels(monkeypatch, spoil)
    report = check(small_model, tmp_path)
    only(report, float_part=False, module=False)
    assert {column.worst_row for product in report.products for column in product.columns} == {41}
    assert any("row 41 has NMSE" in failure for failure in report.products[0].failures)


def test_nan_fails(small_model, tmp_path, stock, monkeypatch):
    def spoil(output, **_):
        rows_of(output)[-1, 7] = math.nan

    spoil_kernels(monkeypatch, spoil)
    report = check(small_model, tmp_path)
    assert not report.passed
    assert report.products[0].columns[0].nmse is None
    assert "N=33: NaN or infinity in row 7" in report.products[0].failures


def test_a_write_past_the_row_fails(small_model, tmp_path, stock, monkeypatch):
    def spoil(output, **_):
        if output.ne[1] > 1:
            output.buffer[output.ne[0] * 4] ^= 1

    spoil_kernels(monkeypatch, spoil)
    report = check(small_model, tmp_path)
    only(report, guards=False)
    assert "bytes around or in output changed" in report.products[0].failures[0]


@pytest.mark.parametrize("operand", ["weights", "activations"])
def test_a_write_to_an_input_fails(small_model, tmp_path, stock, monkeypatch, operand):
    def spoil(**operands):
        # Only in the first call with 33 columns: the buffer of the weights is used again.
        if operands["output"].ne[1] == 33 and not spoiled:
            operands[operand].buffer[5] ^= 1
            spoiled.append(operand)

    spoiled: list[str] = []
    spoil_kernels(monkeypatch, spoil)
    report = check(small_model, tmp_path)
    assert not report.passed
    assert report.products[0].checks.guards is False
    assert f"values of {operand}" in report.products[0].failures[0]


def test_a_result_that_depends_on_padding_fails(small_model, tmp_path, stock, monkeypatch):
    def spoil(activations, output, **_):
        if activations.ne[1] > 1 and activations.buffer[activations.ne[0] * 4] == 0x7F:
            rows_of(output)[0, 0] = np.nextafter(rows_of(output)[0, 0], np.float32(np.inf))

    spoil_kernels(monkeypatch, spoil)
    report = check(small_model, tmp_path)
    only(report, poison=False)


def test_a_result_that_depends_on_the_number_of_columns_fails(small_model, tmp_path, stock, monkeypatch):
    def spoil(output, **_):
        if output.ne[1] == 16:
            rows_of(output)[3, 5] = np.nextafter(rows_of(output)[3, 5], np.float32(np.inf))

    spoil_kernels(monkeypatch, spoil)
    only(check(small_model, tmp_path), columns=False, module=False)


def test_a_wrong_integer_sum_fails(small_model, tmp_path, stock, monkeypatch):
    def spoil(options, **_):
        if options.get("integer_sums") is not None:
            options["integer_sums"][-1, -1, -1] += 1

    spoil_kernels(monkeypatch, spoil)
    report = check(small_model, tmp_path)
    only(report, integers=False)
    assert "integer sums of 1 of" in report.products[0].failures[0]
    assert f"first in row {report.products[0].m - 1}" in report.products[0].failures[0]


def test_a_checked_kernel_with_other_bits_fails(small_model, tmp_path, stock, monkeypatch):
    def spoil(output, options, **_):
        if options.get("checked"):
            rows_of(output)[0, 0] *= 1.0001

    spoil_kernels(monkeypatch, spoil)
    only(check(small_model, tmp_path), checked=False)


def test_a_fault_in_the_checked_kernels_fails(small_model, tmp_path, stock, monkeypatch):
    def spoil(options, **_):
        if options.get("checked"):
            raise KernelFault("mmq block 3 thread 7: read out of range")

    spoil_kernels(monkeypatch, spoil)
    report = check(small_model, tmp_path)
    only(report, checked=False)
    assert "fault in the checked kernels: mmq block 3 thread 7" in report.products[0].failures[0]


def test_a_refusal_by_the_kernels_fails(small_model, tmp_path, stock, monkeypatch):
    def spoil(**_):
        raise host_library.Unsupported("weights of odd stride")

    spoil_kernels(monkeypatch, spoil)
    report = check(small_model, tmp_path)
    assert not report.passed
    assert "the kernels stopped: weights of odd stride" in report.products[0].failures


# The other side ------------------------------------------------------------------------------------------------------


def test_a_crash_of_stock_fails(small_model, tmp_path, stock):
    stock.failure = StockFailure("stock ggml was killed by SIGABRT: GGML_ASSERT(x)")
    report = check(small_model, tmp_path)
    assert not report.passed
    assert "stock: stock ggml was killed by SIGABRT: GGML_ASSERT(x)" in report.products[0].failures


def test_a_refusal_of_the_module_fails(small_model, tmp_path, stock):
    def refuse(device, result):
        if device == "WAVESMITH":
            raise DeviceRefused("does not support type 12")
        return result

    stock.spoil = staticmethod(refuse)
    only(check(small_model, tmp_path), module=False)


def test_stock_may_be_less_precise_than_ours(small_model, tmp_path, stock):
    stock.spoil = staticmethod(lambda device, result: result * np.float32(1.03) if device == "CPU" else result)
    report = check(small_model, tmp_path)
    assert report.passed
    assert all(column.stock_nmse > validate_checks.NMSE_LIMIT for column in report.products[0].columns)


def test_a_difference_to_stock_fails(small_model, tmp_path, stock):
    stock.spoil = staticmethod(lambda device, result: result * np.float32(1.1) if device == "CPU" else result)
    assert "N=1: stock's own NMSE 1.0" in check(small_model, tmp_path).products[0].failures[0]
    stock.spoil = staticmethod(lambda device, result: result if device == "WAVESMITH" else np.full_like(result, np.nan))
    assert "N=1: stock's result has a NaN or an infinity" in check(small_model, tmp_path).products[0].failures


def test_a_difference_between_ours_and_stock_fails(small_model, tmp_path, stock, monkeypatch):
    """Both within their own limit, but on opposite sides of the reference."""
    spoil_kernels(monkeypatch, lambda output, **_: np.multiply(rows_of(output), 1.02, out=rows_of(output)))
    stock.spoil = staticmethod(lambda device, result: result * np.float32(0.985) if device == "CPU" else result)
    assert any("NMSE to stock" in failure for failure in check(small_model, tmp_path).products[0].failures)


def test_a_last_bit_of_the_module_fails(small_model, tmp_path, stock):
    stock.spoil = staticmethod(lambda device, result: np.nextafter(result, np.float32(9)) if device == "WAVESMITH" else result)
    report = check(small_model, tmp_path)
    only(report, module=False)
    assert "N=1, 16, 33: the module's result has other bits" in report.products[0].failures[0]


# Faulty and odd models -----------------------------------------------------------------------------------------------


def weights_model(folder: Path, *tensors: tuple[str, tuple[int, ...], int, bytes]) -> Path:
    infos, data = [], b""
    for name, shape, kind, content in tensors:
        infos.append(tensor(name, shape, kind, len(data)))
        data += content + b"\0" * (-len(content) % 32)
    path = folder / "w.gguf"
    path.write_bytes(Gguf(keys=[text("general.architecture", "llama")], tensors=infos, data=data).bytes())
    return path


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_nan_in_the_weights_is_an_invalid_reference(tmp_path, stock, value):
    weights = np.ones((4, 32), np.float32)
    weights[2, 3] = value
    good = np.ones((2, 32), np.float32).tobytes()
    report = check(weights_model(tmp_path, ("a.weight", (32, 4), F32, weights.tobytes()), ("b.weight", (32, 2), F32, good)), tmp_path)
    assert [product.status for product in report.products] == ["invalid reference", "passed"]
    assert not report.passed


def test_unknown_and_stock_types_are_listed_and_the_rest_is_checked(tmp_path, stock):
    good = np.ones((2, 32), np.float32).tobytes()
    path = weights_model(tmp_path, ("odd.weight", (32, 2), 999, b"\0" * 64), ("q.weight", (256, 2), 29, b"\0" * 112), ("b.weight", (32, 2), F32, good))
    report = check(path, tmp_path)
    assert [(product.type, product.status) for product in report.products] == [("unknown (999)", "unknown"), ("IQ1_M", "stock"), ("F32", "passed")]
    assert report.passed


def test_nothing_checked_is_no_pass(tmp_path, stock):
    assert not check(weights_model(tmp_path, ("odd.weight", (32, 2), 999, b"\0" * 64)), tmp_path).passed


def test_no_matrix_weights(tmp_path):
    with pytest.raises(BadInput, match="has no weights that a matrix product uses"):
        validate.plan(weights_model(tmp_path, ("norm.weight", (32,), F32, b"\0" * 128)))


@pytest.mark.parametrize(("options", "expected"), [({"target": "gfx1100"}, "only host can be validated"), ({"family": "rdna9"}, "unknown family rdna9")])
def test_request(small_model, options, expected):
    with pytest.raises(BadInput, match=expected):
        validate.plan(small_model, **options)


# Parts ---------------------------------------------------------------------------------------------------------------


def test_errors():
    expected = np.array([[3.0, 4.0], [0.0, 0.0]])
    nmse, row, worst = validate_checks.errors(np.array([[3.0, 5.0], [0.0, 0.0]], np.float32), expected, np.array([9.0, 32.0]))
    assert (nmse, row, worst) == (1 / 25, 1, 1 / 32)
    assert validate_checks.errors(np.zeros((2, 2), np.float32), np.zeros((2, 2)), np.zeros(2)) == (0.0, 0, 0.0)
    assert validate_checks.errors(np.array([[1.0, math.inf]], np.float32), np.ones((1, 2)), np.ones(2)) == (None, 1, None)
    nmse, row, worst = validate_checks.errors(np.ones((1, 2), np.float32), np.zeros((1, 2)), np.zeros(2))
    assert math.isfinite(nmse)
    assert nmse > 1e300


def test_same_bits():
    nan, zero = np.array([np.nan], np.float32), np.array([0.0], np.float32)
    assert validate_checks.same_bits(nan, nan)
    assert not validate_checks.same_bits(zero, -zero)


def test_expert_ids_hold_the_hard_cases():
    ids = expert_ids(40, 3, 8, seed=1)
    assert ids.shape == (40, 3)
    assert ids[0, 0] == ids[0, -1]
    assert 7 not in ids
    assert all(len(set(row)) == 3 for row in ids[1:])
    assert set(expert_ids(40, 2, 2, seed=1).ravel()) == {0, 1}


def test_sample_rows():
    assert sample_rows(100, None, 1) is None
    assert sample_rows(100, 100, 1) is None
    rows = sample_rows(10_000, 1024, 1)
    assert len(set(rows)) == 1024
    assert rows[:64].tolist() == list(range(64))
    assert rows[-64:].tolist() == list(range(10_000 - 64, 10_000))
    assert sample_rows(10, 2, 1).tolist() == [0, 9]


def test_case_reference_of_experts(tmp_path):
    path = model_generator.generate(tmp_path / "m.gguf", EXPERTS, "Q8_0")
    product = next(product for product in products(Model.open(path)) if product.experts)
    case = Case(product, 5, "rdna3", used=2)
    weights = reference.dequantize("Q8_0", case.rows).astype(np.float64).reshape(4, case.m, -1)
    expected = np.einsum("numk,nk->num", weights[case.ids], case.x.astype(np.float64))
    assert np.allclose(case.reference, expected, rtol=1e-12)
    energy = sum((weights[e] ** 2).sum(axis=1) * float((case.x[i].astype(np.float64) ** 2).sum()) / case.k for i in range(3) for e in case.ids[i])
    assert np.allclose(case.expected_energy(3), energy)


# The command ---------------------------------------------------------------------------------------------------------


def test_json_follows_the_schema(tmp_path, stock, monkeypatch):
    def spoil(output, **_):
        rows_of(output)[0, 0] = math.nan

    schema = json.loads(SCHEMA.read_text())
    path = model_generator.generate(tmp_path / "m.gguf", EXPERTS, "Q4_K_M")
    report = check(path, tmp_path)
    validate_report.write_json(report, tmp_path / "out.json")
    content = json.loads((tmp_path / "out.json").read_text())
    jsonschema.validate(content, schema)
    assert content["passed"] is True
    assert content["counts"]["passed"] == len(content["products"])
    spoil_kernels(monkeypatch, spoil)
    failed = check(path, tmp_path).as_json()
    jsonschema.validate(failed, schema)
    assert failed["passed"] is False
    assert json.loads(json.dumps(failed, allow_nan=False)) == failed


def test_json_is_written_whole_or_not_at_all(tmp_path, small_model, stock, monkeypatch):
    report = check(small_model, tmp_path)
    out = tmp_path / "out.json"
    out.write_text("before")
    monkeypatch.setattr(os, "fsync", lambda _descriptor: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space left"):
        validate_report.write_json(report, out)
    assert out.read_text() == "before"
    assert [path.name for path in tmp_path.glob("out*")] == ["out.json"]
    monkeypatch.undo()
    with pytest.raises(BadInput, match="cannot write"):
        validate_report.write_json(report, tmp_path / "none" / "out.json")


@pytest.fixture
def build_folder(tmp_path) -> Path:
    """A folder that looks like a build to the command; the stand-in for stock does not open it."""
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "libggml.so").write_bytes(b"")
    return tmp_path / "build"


def test_command(small_model, build_folder, stock, capsys, tmp_path):
    arguments = ["validate", str(small_model), "--quick", "--build", str(build_folder), "--json", str(tmp_path / "r.json")]
    assert cli.main(arguments) == 0
    out = capsys.readouterr().out
    assert "quick: at most 1024 rows" in out
    assert "passed: " in out
    assert json.loads((tmp_path / "r.json").read_text())["model"] == str(small_model)


def test_command_fails_when_a_check_does(small_model, build_folder, stock, capsys):
    stock.failure = StockFailure("gone")
    assert cli.main(["validate", str(small_model), "--quick", "--build", str(build_folder)]) == 1
    out = capsys.readouterr().out
    assert "stock: gone" in out
    assert "FAILED" in out


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["nonsense.gguf"], "is not a GGUF file"),
        (["none.gguf"], "no such file"),
        (["small.gguf", "--target", "gfx1100"], "only host can be validated"),
        (["small.gguf", "--family", "gfx1100"], "unknown family gfx1100"),
        (["small.gguf", "--json", "none/out.json"], "its folder does not exist"),
        (["small.gguf", "--json", "."], "is a folder"),
        (["--target", "cuda"], "only host can be validated"),
    ],
)
def test_bad_input_ends_before_any_build(tmp_path, small_model, monkeypatch, capsys, arguments, expected):
    def build(*_args, **_options):
        raise AssertionError("a build was looked for")

    monkeypatch.setattr(validate, "find_build", build)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nonsense.gguf").write_text("nonsense")
    (tmp_path / "small.gguf").symlink_to(small_model)
    assert cli.main(["validate", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("error: ")
    assert expected in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_folder_without_ggml(small_model, tmp_path, capsys):
    assert cli.main(["validate", str(small_model), "--build", str(tmp_path)]) == CannotRun.exit_code
    assert "holds no libggml.so" in capsys.readouterr().err


# Real builds ---------------------------------------------------------------------------------------------------------


@pytest.mark.build
def test_smollm2_on_a_real_build(host_build, smollm2, tmp_path, capsys):
    """The whole chain: real model, stock and module of a patched llama.cpp, every row and every N."""
    assert cli.main(["validate", str(smollm2), "--build", str(host_build.lib_dir), "--json", str(tmp_path / "r.json")]) == 0
    content = json.loads((tmp_path / "r.json").read_text())
    jsonschema.validate(content, json.loads(SCHEMA.read_text()))
    assert content["counts"] == {"passed": 5, "failed": 0, "invalid reference": 0, "stock": 0, "unknown": 0}
    assert {"CPU", "WAVESMITH"} <= set(content["devices"])
    for product in content["products"]:
        assert product["checks"]["module"] is True
        assert product["checks"]["integers"] is True
        assert len(product["columns"]) == 6
    assert max(product["rows"] for product in content["products"]) == 49152


@pytest.mark.build
@pytest.mark.parametrize("mix", ["Q2_K", "Q3_K_M", "Q4_K_M", "Q5_K_M", "Q4_0", "Q5_0", "Q5_1", "IQ2_XXS", "IQ4_NL", "IQ4_XS", "MXFP4", "NVFP4", "F16", "BF16"])
def test_experts_on_a_real_build(host_build, tmp_path, mix):
    report = validate.run(
        validate.plan(model_generator.generate(tmp_path / "m.gguf", "tiny-moe", mix), quick=True), host_build.lib_dir, host_build.environment("rdna3")
    )
    assert report.passed, [product.failures for product in report.products]
    assert all(product.checks.module for product in report.products)


# The user's environment and odd models -------------------------------------------------------------------------------


def test_switches_of_the_user_do_not_count(small_model, tmp_path, stock, monkeypatch):
    seen = {}
    monkeypatch.setattr(stock, "__init__", lambda self, folder, environment: seen.update(environment))
    kept = {"WAVESMITH_HOST_ORDER": "7", "WAVESMITH_LOG": "error", "PATH": "x"}
    switches = {"WAVESMITH": "0", "WAVESMITH_KERNELS": "-mmq", "WAVESMITH_HOST_FAMILY": "gcn", "WAVESMITH_HOST_CHECKED": "1", "WAVESMITH_LDS_LIMIT": "1"}
    for name, value in switches.items():
        monkeypatch.setenv(name, value)
    ours = []

    def kernels(*operands, **options):
        ours.append(os.environ.keys() & switches.keys())
        return TRUE_KERNELS(*operands, **options)

    monkeypatch.setattr(host_library, "mul_mat_raw", kernels)
    report = validate.run(validate.plan(small_model, quick=True, family="rdna4"), tmp_path, {**kept, **switches})
    assert report.passed
    assert seen == {**kept, "WAVESMITH_HOST_FAMILY": "rdna4"}
    assert ours and not set().union(*ours)
    assert {name: os.environ[name] for name in switches} == switches


def moe(folder: Path, used: bytes | None, count: bytes | None) -> Path:
    keys = [text("general.architecture", "x"), *(key for key in (used, count) if key is not None)]
    path = folder / "moe.gguf"
    path.write_bytes(Gguf(keys=keys, tensors=[tensor("blk.0.ffn_up_exps.weight", (32, 2, 4), F32)], data=b"\0" * 1024).bytes())
    return path


@pytest.mark.parametrize(
    ("used", "count", "expected"),
    [
        (int32("x.expert_used_count", -1), uint32("x.expert_count", 4), "x.expert_used_count is -1, but the model has 4 experts"),
        (uint32("x.expert_used_count", 0), uint32("x.expert_count", 4), "x.expert_used_count is 0"),
        (uint32("x.expert_used_count", 5), uint32("x.expert_count", 8), "x.expert_used_count is 5, but the model has 4 experts"),
        (uint32("x.expert_used_count", 3), uint32("x.expert_count", 2), "x.expert_used_count is 3, but the model has 2 experts"),
        (uint32("x.expert_used_count", 1 << 31), None, "x.expert_used_count is 2147483648"),
        (text("x.expert_used_count", "two"), None, "x.expert_used_count should be an integer"),
        (uint32("x.expert_used_count", 2), int32("x.expert_count", -4), "x.expert_count is -4"),
    ],
)
@pytest.mark.parametrize("command", [["validate"], ["bench"], ["quickstart", "--model"]])
def test_absurd_numbers_of_experts(tmp_path, monkeypatch, capsys, used, count, expected, command):
    from wavesmith import build

    def never(*_args, **_options):
        raise AssertionError("a build was looked for")

    for name in ("find", "ensure"):
        monkeypatch.setattr(build, name, never)
    assert cli.main([*command, str(moe(tmp_path, used, count))]) == 2
    message = capsys.readouterr().err.splitlines()[-1]
    assert message.startswith("error: ") and expected in message


@pytest.mark.parametrize("used", [None, uint32("x.expert_used_count", 4), uint32("x.expert_used_count", 1)])
def test_sound_numbers_of_experts(tmp_path, used):
    assert validate.plan(moe(tmp_path, used, uint32("x.expert_count", 4))).products[0].experts == 4


def test_a_model_without_experts_may_say_so(tmp_path):
    keys = [text("general.architecture", "x"), uint32("x.expert_used_count", 0), uint32("x.expert_count", 0)]
    path = tmp_path / "dense.gguf"
    path.write_bytes(Gguf(keys=keys, tensors=[tensor("blk.0.ffn_up.weight", (32, 2), F32)], data=b"\0" * 256).bytes())
    assert validate.plan(path).products[0].experts == 0
