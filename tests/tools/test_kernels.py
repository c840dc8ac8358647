"""Code objects: the definitions read from the headers, the compile for every AMD target, the manifest."""

import json
import os
import shutil
import subprocess

import pytest
from wavesmith.errors import BadInput, CannotBuild
from wavesmith.gguf_types import GgufType, gguf_type
from wavesmith.kernels import compile as kernels_compile
from wavesmith.kernels import compiler, definitions, device_source, manifest, planner
from wavesmith.kernels.families import families
from wavesmith.targets import KERNEL_TARGETS, resolve


def test_definitions_agree_with_gguf():
    for quant in definitions.quants():
        assert gguf_type(quant.struct) == GgufType(quant.struct, quant.ggml_type, quant.block_values, quant.block_bytes)
        assert quant.parts in (1, 2)


def test_arguments_are_read_in_order():
    names = [argument.name for argument in definitions.arguments("quantize_q8_1.h", "QuantizeQ8_1Arguments")]
    assert names == ["input", "output", "k", "ne1", "ne2", "ne3", "nb0", "nb1", "nb2", "nb3"]
    for header, struct in (("mmq_arguments.h", "MmqArguments"), ("gemm.h", "GemmArguments"), ("expert_slots.h", "ExpertSlotsArguments")):
        assert all(argument.meaning for argument in definitions.arguments(header, struct))


def test_unknown_struct_is_named():
    with pytest.raises(BadInput, match="no struct Nothing"):
        definitions.arguments("mmq_arguments.h", "Nothing")


@pytest.fixture(scope="module")
def clang():
    try:
        return compiler.find()
    except CannotBuild as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def all_kernels(clang, tmp_path_factory):
    out = tmp_path_factory.mktemp("kernels") / "all"
    kernels_compile.compile_targets(resolve(["all"], []), out)
    return out, manifest.read(out)["kernels"]


@pytest.mark.build
def test_every_kernel_compiles_for_every_target_without_spills(all_kernels):
    _, kernels = all_kernels
    assert {kernel["target"] for kernel in kernels} == set(KERNEL_TARGETS)
    for target in KERNEL_TARGETS:
        here = [kernel for kernel in kernels if kernel["target"] == target]
        assert {kernel["type"] for kernel in here if kernel["op"] == "MUL_MAT"} >= {quant.name for quant in definitions.quants()} | {"f32", "f16", "bf16"}
        for kernel in here:
            used = {key: kernel[key] for key in ("scratch_bytes", "vgpr_spills", "sgpr_spills")}
            assert not any(used.values()), f"{target} {kernel['symbol']}: {used}"


@pytest.mark.build
@pytest.mark.parametrize("target", KERNEL_TARGETS)
def test_compiled_kernels_keep_the_planners_promises(all_kernels, target):
    """LDS to the byte, registers within the family's limit, and at least as many workgroups at once as the table says."""
    family = families()[resolve([target], [])[0].family]
    quants = {quant.name: quant for quant in definitions.quants()}
    compiled = {(kernel["type"], kernel["symbol"]): kernel for kernel in all_kernels[1] if kernel["target"] == target and kernel["plan"]}
    expected = {(quant.name, kernel.symbol): (quant, kernel.plan) for quant in quants.values() for kernel in device_source.mmq_unit(quant, family).kernels}
    assert set(compiled) == set(expected)
    for key, (quant, plan) in expected.items():
        kernel = compiled[key]
        promised, found = planner.needs(plan, quant, family), planner.needs(plan, quant, family, vgprs=kernel["vgprs"])
        assert kernel["static_lds_bytes"] == promised.lds <= family.lds_bytes, key
        assert kernel["vgprs"] <= family.vgprs_per_wave, key
        assert found.workgroups >= promised.workgroups, (key, kernel["vgprs"], promised)


@pytest.mark.build
def test_manifest_follows_its_schema(all_kernels, repository):
    import jsonschema

    folder, kernels = all_kernels
    schema = json.loads((repository / "tools/wavesmith/schemas/manifest.schema.json").read_text())
    jsonschema.validate(manifest.read(folder), schema)
    assert all((folder / kernel["file"]).is_file() for kernel in kernels)
    assert len({(kernel["target"], kernel["symbol"]) for kernel in kernels}) == len(kernels)


@pytest.mark.build
@pytest.mark.parametrize(
    ("target", "unit", "instruction"),
    [
        ("gfx906", "mmq_q4_k", "v_dot4_i32_i8"),
        ("gfx90a", "mmq_q4_k", "v_mfma_i32_32x32x8"),
        ("gfx942", "mmq_q4_k", "v_mfma_i32_32x32x16_i8"),
        ("gfx942", "mmq_q6_k", "v_mfma_i32_32x32x16_i8"),
        ("gfx950", "mmq_q4_k", "v_mfma_i32_32x32x32_i8"),
        ("gfx950", "mmq_q6_k", "v_mfma_i32_32x32x16_i8"),
        ("gfx1030", "mmq_q4_k", "v_dot4"),
        ("gfx1100", "mmq_q4_k", "v_wmma_i32_16x16x16_iu8"),
        ("gfx1151", "mmq_q4_k", "v_wmma_i32_16x16x16_iu8"),
        ("gfx1201", "mmq_q4_k", "v_wmma_i32_16x16x16_iu8"),
    ],
)
def test_matrix_instructions_are_in_the_code(all_kernels, clang, target, unit, instruction):
    objdump = shutil.which(clang.readelf.replace("readelf", "objdump"))
    text = subprocess.run([objdump, "-d", str(all_kernels[0] / f"{target}-{unit}.co")], capture_output=True, text=True, check=True).stdout
    assert instruction in text


def test_nothing_is_left_behind_when_a_target_is_wrong(tmp_path):
    with pytest.raises(BadInput, match="code objects are for gfx targets: host"):
        kernels_compile.compile_targets(resolve(["host"], []), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_manifest_that_is_none(tmp_path):
    for text in ("[]", "{", '{"schema": 2, "kernels": []}'):
        (tmp_path / "manifest.json").write_text(text)
        with pytest.raises(BadInput, match="manifest.json"):
            manifest.read(tmp_path)
    with pytest.raises(BadInput, match="No such file"):
        manifest.read(tmp_path / "none")
