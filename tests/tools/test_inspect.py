"""`wavesmith inspect`: the table, the filters, JSON, two manifests, and manifests that are none."""

from __future__ import annotations

import copy
import json
import re
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from wavesmith import cli
from wavesmith.commands.inspect import command
from wavesmith.errors import BadInput, CannotBuild
from wavesmith.kernels import compiler, manifest
from wavesmith.kernels.occupancy import waves_per_simd
from wavesmith.targets import KERNEL_TARGETS


def kernel(target: str = "gfx1100", symbol: str = "mmq_q4_k_64x16", **changes: object) -> dict:
    made = {
        "target": target,
        "file": f"{target}-mmq_q4_k.co",
        "symbol": symbol,
        "op": "MUL_MAT",
        "type": "q4_K",
        "plan": {"tile_m": 64, "tile_n": 16, "tile_k": 128, "stages": 2, "waves": 4, "split_k": 1},
        "args": [{"name": "m", "type": "i32", "meaning": "weight rows"}],
        "block": [128, 1, 1],
        "grid": "x = ceil(m / 64), y = 1, z = 1",
        "dynamic_lds_bytes": 0,
        "vgprs": 100,
        "agprs": 0,
        "sgprs": 50,
        "static_lds_bytes": 29184,
        "scratch_bytes": 0,
        "vgpr_spills": 0,
        "sgpr_spills": 0,
    }
    return {**made, **changes}


KERNELS = [
    kernel(),
    kernel("gfx942", vgprs=264, agprs=8),
    kernel(symbol="gemm_f16", type="f16", plan=None),
    kernel(symbol="quantize_q8_1_d4", op="QUANTIZE_Q8_1", type="d4", plan=None, scratch_bytes=16, vgpr_spills=3),
]


def save(folder: Path, kernels: list[dict]) -> Path:
    folder.mkdir(exist_ok=True)
    return manifest.write(folder, "clang 22.1.8", kernels)


def inspect(*arguments: object) -> str:
    return CliRunner().invoke(command, [str(argument) for argument in arguments], catch_exceptions=False).stdout


def test_table_of_a_file_and_of_its_folder(tmp_path):
    path = save(tmp_path / "k", KERNELS)
    table = inspect(path)
    assert table == inspect(path.parent)
    rows = [re.split(r"\s{2,}", line.strip()) for line in table.splitlines()]
    assert len(rows) == 1 + len(KERNELS)
    assert rows[1] == ["gfx1100", "mmq_q4_k_64x16", "MUL_MAT", "q4_K", "64x16x128, 4 waves, 2 stages", "100", "0", "50", "29184", "0", "0", "12"]
    assert rows[2][5:] == ["264", "8", "50", "29184", "0", "0", "1"]
    assert rows[4][4:] == ["-", "100", "0", "50", "29184", "16", "3", "12"]


def test_json_is_the_manifest_with_the_occupancy(tmp_path):
    shown = json.loads(inspect(save(tmp_path / "k", KERNELS), "--json"))
    assert [{name: value for name, value in row.items() if name != "waves_per_simd"} for row in shown] == KERNELS
    assert [row["waves_per_simd"] for row in shown] == [12, 1, 12, 12]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--target", "gfx94*"), [1]),
        (("--target", "gfx942,gfx1100", "--type", "Q4_K"), [0, 1]),
        (("--type", "f16", "--type", "d4"), [2, 3]),
        (("--op", "quantize_q8_1"), [3]),
        (("--op", "MUL_MAT", "--target", "gfx1100"), [0, 2]),
    ],
)
def test_filters(tmp_path, options, expected):
    shown = json.loads(inspect(save(tmp_path / "k", KERNELS), "--json", *options))
    assert [(row["target"], row["symbol"]) for row in shown] == [(KERNELS[i]["target"], KERNELS[i]["symbol"]) for i in expected]


def test_filter_without_a_match(tmp_path):
    with pytest.raises(BadInput, match="no kernel matches"):
        inspect(save(tmp_path / "k", KERNELS), "--type", "q9_z")


def changed() -> list[dict]:
    after = copy.deepcopy(KERNELS[:3])
    after[0].update(vgprs=90, static_lds_bytes=30000)
    after[1]["plan"]["stages"] = 1
    after.append(kernel("gfx1201"))
    return after


def test_comparison_names_what_was_added_removed_and_changed(tmp_path):
    before, after = save(tmp_path / "a", KERNELS), save(tmp_path / "b", changed())
    rows = json.loads(inspect(before, after, "--json"))
    assert [(row["target"], row["symbol"], row["change"]) for row in rows] == [
        ("gfx1100", "mmq_q4_k_64x16", "changed"),
        ("gfx942", "mmq_q4_k_64x16", "changed"),
        ("gfx1100", "quantize_q8_1_d4", "removed"),
        ("gfx1201", "mmq_q4_k_64x16", "added"),
    ]
    assert rows[0]["fields"] == {"vgprs": [100, 90], "static_lds_bytes": [29184, 30000], "waves_per_simd": [12, 16]}
    assert rows[1]["fields"] == {"plan.stages": [2, 1]}
    table = inspect(before, after)
    assert "vgprs 100 -> 90 (-10), static_lds_bytes 29184 -> 30000 (+816), waves_per_simd 12 -> 16 (+4)" in table
    assert len(table.splitlines()) == 5


def test_comparison_of_equals(tmp_path):
    path = save(tmp_path / "k", KERNELS)
    assert inspect(path, path) == "no difference\n"
    assert json.loads(inspect(path, path, "--json")) == []


def test_unknown_target_is_shown_without_an_occupancy(tmp_path):
    assert inspect(save(tmp_path / "k", [kernel("gfx9999")])).splitlines()[1].endswith("?")


BROKEN = {
    "not JSON": ("{", "not JSON"),
    "a list": ("[]", "not a manifest of schema 1"),
    "another schema": ('{"schema": 2, "kernels": []}', "not a manifest of schema 1"),
    "no kernels": ('{"schema": 1}', "not a manifest of schema 1"),
    "kernel a text": ('{"schema": 1, "kernels": ["x"]}', "kernel 0: not an object"),
    "no symbol": (json.dumps({"schema": 1, "kernels": [KERNELS[0], kernel(symbol=None)]}), "kernel 1: no text 'symbol'"),
    "VGPRs a text": (json.dumps({"schema": 1, "kernels": [kernel(vgprs="many")]}), "no number 'vgprs'"),
    "VGPRs negative": (json.dumps({"schema": 1, "kernels": [kernel(vgprs=-1)]}), "no number 'vgprs'"),
    "plan incomplete": (json.dumps({"schema": 1, "kernels": [kernel(plan={"tile_m": 1})]}), "no plan"),
    "plan left out": (json.dumps({"schema": 1, "kernels": [{k: v for k, v in kernel().items() if k != "plan"}]}), "no plan"),
    "block": (json.dumps({"schema": 1, "kernels": [kernel(block=[1, 1])]}), "no block of three numbers"),
    "arguments": (json.dumps({"schema": 1, "kernels": [kernel(args=[{"name": "m", "type": "f32"}])]}), "no list of arguments"),
    "twice": (json.dumps({"schema": 1, "kernels": [kernel(), kernel()]}), "kernel 1: mmq_q4_k_64x16 of gfx1100 is there twice"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_manifest_is_one_line_and_exit_2(name, tmp_path, capsys):
    text, expected = BROKEN[name]
    (tmp_path / "manifest.json").write_text(text)
    assert cli.main(["inspect", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and expected in error and error.count("\n") == 1


def test_manifest_that_is_not_there(tmp_path, capsys):
    assert cli.main(["inspect", str(tmp_path / "none")]) == 2
    assert "No such file" in capsys.readouterr().err
    assert cli.main(["inspect"]) == 2
    path = str(save(tmp_path / "k", KERNELS))
    assert cli.main(["inspect", path, path, path]) == 2
    assert "one or two manifests" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("target", "vgprs", "waves"),
    [("gfx906", 24, 10), ("gfx906", 25, 9), ("gfx90a", 64, 8), ("gfx942", 128, 4), ("gfx942", 129, 3), ("gfx1030", 64, 16), ("gfx1030", 65, 12),
     ("gfx1100", 96, 16), ("gfx1100", 97, 12), ("gfx1102", 97, 9), ("gfx1151", 192, 8), ("gfx1201", 193, 7), ("gfx942:xnack-", 0, 8)],
)  # fmt: skip
def test_waves_per_simd(target, vgprs, waves):
    assert waves_per_simd(target, vgprs) == waves


def test_waves_per_simd_of_an_unknown_target():
    with pytest.raises(BadInput, match="gfx9999"):
        waves_per_simd("gfx9999", 1)


@pytest.mark.parametrize("target", [*KERNEL_TARGETS, "gfx1102", "gfx1103", "gfx1150"])
def test_waves_per_simd_agree_with_the_compiler(target, tmp_path):
    """The compiler's own remark for a kernel that needs a given number of registers and no LDS."""
    try:
        clang = compiler.find().clang
    except CannotBuild as error:
        pytest.skip(str(error))
    for registers in (20, 41, 97, 128, 200):
        source = tmp_path / "k.hip"
        attributes = "global, amdgpu_flat_work_group_size(64, 64), amdgpu_waves_per_eu(1)"
        source.write_text(f'extern "C" __attribute__(({attributes})) void kernel() {{ asm volatile("" ::: "v{registers - 1}"); }}\n')
        options = ["-x", "hip", f"--offload-arch={target}", "--cuda-device-only", "-nogpulib", "-nogpuinc", "-O1", "-S", "-o", "/dev/null"]
        done = subprocess.run([clang, *options, "-Rpass-analysis=kernel-resource-usage", str(source)], capture_output=True, text=True, check=True)
        found = int(re.search(r"Occupancy \[waves/SIMD\]: (\d+)", done.stderr)[1])
        vgprs = int(re.search(r" VGPRs: (\d+)", done.stderr)[1])
        assert waves_per_simd(target, vgprs) == found, (registers, vgprs)
