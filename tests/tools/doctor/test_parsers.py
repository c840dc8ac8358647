"""Each parser on the formats it knows, and on garbage."""

import json
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wavesmith.doctor import amd_smi, compilers, drm, gpus, hip_info, kfd, report, rocminfo
from wavesmith.doctor.examine import examine
from wavesmith.doctor.gpu import normal_pci, pci_address
from wavesmith.doctor.probe import Probe, Record, ToolRun

from . import machines

XTX = machines.rocminfo_gpu(
    "gfx1100", machines.XTX_NAME, node=1, units=96, memory=machines.XTX_MEMORY, isas=("gfx1100", "gfx11-generic"), uuid="GPU-a1ff3d5b8e99217f", **machines.XTX
)


def test_rocminfo_skips_the_cpu_and_the_generic_isa():
    (gpu,) = rocminfo.parse(machines.rocminfo_text(XTX))
    assert (gpu.target, gpu.features, gpu.product, gpu.pci, gpu.compute_units) == ("gfx1100", (), machines.XTX_NAME, "0000:03:00.0", 96)
    assert gpu.memory == {"HSA": machines.XTX_MEMORY} and gpu.unique_id == 0xA1FF3D5B8E99217F and gpu.device_id == 0x744C and gpu.integrated is None


def test_rocminfo_features_come_from_the_own_isa():
    isas = ("gfx9-4-generic:sramecc+", "gfx90a:sramecc+:xnack-")
    gpu = machines.rocminfo_gpu("gfx90a", "AMD Instinct MI210", node=1, location=0x2300, device=0x740F, units=104, memory=64 << 30, isas=isas)
    assert [(gpu.target, gpu.features) for gpu in rocminfo.parse(machines.rocminfo_text(gpu))] == [("gfx90a", ("sramecc+", "xnack-"))]


def test_rocminfo_of_older_and_stranger_forms():
    text = machines.rocminfo_text(XTX)
    without_marketing = text.replace(machines.XTX_NAME, "N/A")
    assert rocminfo.parse(without_marketing)[0].product is None
    only_generic = text.replace("  Name:                    gfx1100", "  Name:                    Navi").replace("--gfx1100", "--gfx11-generic")
    assert rocminfo.parse(only_generic) == []
    assert rocminfo.parse(machines.rocminfo_text()) == []
    assert rocminfo.parse("WARNING: something odd\n" + text.replace("\n", "\r\n"))[0].target == "gfx1100"


@pytest.mark.parametrize("wrapped", [True, False])
@pytest.mark.parametrize("warning", ["", "WARNING: no permission\n[2026-01-01] [amdgpu] {not json}\n{}\n[]\n"])
def test_amd_smi_old_and_new_form_after_warnings(wrapped, warning):
    text = machines.amd_smi_text((machines.XTX_NAME, "gfx1100", "0000:03:00.0", 0x744C, 96, 24560), wrapped=wrapped, warning=warning.replace("{}\n", ""))
    (gpu,) = amd_smi.parse(text)
    assert (gpu.target, gpu.product, gpu.pci, gpu.compute_units, gpu.device_id) == ("gfx1100", machines.XTX_NAME, "0000:03:00.0", 96, 0x744C)
    assert gpu.memory == {"amd-smi": 24560 << 20}


@pytest.mark.parametrize(
    ("entry", "target", "memory"),
    [
        ({"asic": {"market_name": "N/A"}}, None, {}),
        ({"asic": {"target_graphics_version": "GFX942"}, "vram": {"size": "196592 MB"}}, "gfx942", {"amd-smi": 196592 << 20}),
        ({"asic": {"target_graphics_version": 11}, "vram": {"size": {"value": "N/A", "unit": "MB"}}, "bus": []}, None, {}),
        ({"asic": {"num_compute_units": True, "device_id": 7}, "vram": {"size": {"value": 8, "unit": ["GB"]}}, "bus": {"bdf": None}}, None, {}),
    ],
)
def test_amd_smi_odd_entries(entry, target, memory):
    (gpu,) = amd_smi.parse(json.dumps([entry]))
    assert (gpu.target, gpu.memory) == (target, memory)


def test_hip_info_blocks():
    first, second = hip_info.parse(
        machines.hip_info_text((machines.XTX_NAME, "gfx1100", 3, 48, "23.98", "23.84"), ("MI210", "gfx90a:sramecc+:xnack-", 35, 104, "63.98", "60.00"))
    )
    assert (first.index, first.target, first.pci, first.compute_units, first.integrated) == (0, "gfx1100", "0000:03:00.0", 96, None)
    assert first.memory["hipMemGetInfo"] == int(23.98 * (1 << 30))
    assert (second.index, second.target, second.features, second.compute_units) == (1, "gfx90a", ("sramecc+", "xnack-"), 104)


@pytest.mark.parametrize("text", ["", "null", "[]", '{"devices": 3}', '{"devices": [3]}', '{"devices": [{"index": "x", "name": "", "pci": ""}]}'])
def test_hip_query_survives_what_is_not_its_output(text):
    assert hip_info.parse_query(text) == []


def test_kfd_properties_and_memory_banks():
    record = Record()
    machines.kfd_cpu(record, 0)
    machines.kfd_gpu(record, 10, 110501, 40, location=0xC300, device=0x1586, memory=1 << 29, domain=1)
    machines.kfd_gpu(record, 2, 90010, 110, location=0xC100, device=0x7408, memory=64 << 30, simd_per_cu=4, unique_id=18446744073709551615, heap=2)
    record.files[f"{machines.NODES}/2/mem_banks/1/properties"] = "heap_type 0\nsize_in_bytes 999\n"
    topology = kfd.read(Probe(record))
    assert [(gpu.target, gpu.compute_units, gpu.pci) for gpu in topology.gpus] == [("gfx90a", 110, "0000:c1:00.0"), ("gfx1151", 40, "0001:c3:00.0")]
    assert topology.gpus[0].memory == {"KFD": 64 << 30} and topology.gpus[0].unique_id == 2**64 - 1
    assert topology.present and not topology.unreadable


def test_kfd_older_apu_is_cpu_and_gpu_in_one_node():
    gpu = kfd.gpu_of_node({"cpu_cores_count": 8, "simd_count": 32, "simd_per_cu": 4, "gfx_target_version": 90012}, [])
    assert (gpu.target, gpu.compute_units, gpu.integrated, gpu.pci) == ("gfx90c", 8, True, None)
    assert kfd.gpu_of_node({"simd_count": 32, "gfx_target_version": 0}, []) is None
    assert kfd.gpu_of_node({"simd_count": 0, "gfx_target_version": 110000}, []) is None


def test_pci_addresses():
    assert pci_address(0, 0x0300) == "0000:03:00.0" and pci_address(0x10000, 0xC3FF) == "10000:c3:1f.7"
    assert normal_pci("0A:00.1") == "0000:0a:00.1" and normal_pci("0000:0A:00.0") == "0000:0a:00.0" and normal_pci("N/A") is None


def test_partitions_of_one_card_share_an_address():
    record = machines.machine()
    for node in (1, 2):
        machines.kfd_gpu(record, node, 90402, 38, location=0x0500, device=0x74A1, memory=64 << 30, simd_per_cu=4, minor=127 + node)
    machines.device_files(record, 128, 129)
    agents = [machines.rocminfo_gpu("gfx942", f"Partition {node}", node=node, location=0x0500, device=0x74A1, units=38, memory=64 << 30) for node in (1, 2)]
    machines.rocminfo(record, *agents)
    assert [(gpu.index, gpu.product) for gpu in examine(Probe(record)).gpus] == [(0, "Partition 1"), (1, "Partition 2")]


@pytest.mark.parametrize(
    ("text", "version", "kind"),
    [
        ("g++ (Debian 12.2.0-14+deb12u1) 12.2.0\nCopyright (C) 2022 Free Software Foundation, Inc.\n", "12.2.0", "g++"),
        ("c++ (GCC) 15.1.1 20250521 (Red Hat 15.1.1-2)\nCopyright (C) 2025 Free Software Foundation, Inc.\n", "15.1.1", "g++"),
        ("Ubuntu clang version 18.1.3 (1ubuntu1)\nTarget: x86_64-pc-linux-gnu\n", "18.1.3", "clang++"),
        ("AMD clang version 18.0.0git (roc-6.2.4 24355)\nTarget: x86_64-unknown-linux-gnu\n", "18.0.0", "clang++"),
        ("no version here\n", None, "c++"),
        ("", None, "c++"),
    ],
)
def test_compiler_versions(text, version, kind):
    assert (compilers.kind("c++", text), compilers.version(text)) == (kind, version)


GARBAGE = st.one_of(st.text(), st.text(alphabet=string.printable, max_size=400), st.binary(max_size=300).map(lambda data: data.decode("latin-1")))
PIECES = st.lists(
    st.sampled_from(
        [
            *machines.rocminfo_text(XTX).splitlines()[18:],
            *machines.hip_info_text(("X", "gfx1100", 3, 48, "1.0", "0.5")).splitlines(),
            *machines.amd_smi_text(("X", "gfx1100", "0000:03:00.0", 1, 2, 3)).splitlines(),
            "gfx_target_version 110000",
            "simd_count 192",
            "simd_per_cu 0",
            "location_id 99999999999999999999",
            "Agent 9",
            "  Name: gfx",
            "device# 1",
            "\0",
            "9" * 5000,
            "[" * 5000,
            " " * 5000 + ":",
        ]
    ),
    max_size=40,
).map("\n".join)
ANYTHING = st.one_of(GARBAGE, PIECES)
FUZZ = settings(max_examples=150, deadline=None)


@FUZZ
@given(ANYTHING)
def test_parsers_survive_garbage(text):
    for parse in (rocminfo.parse, amd_smi.parse, hip_info.parse, hip_info.parse_query):
        for gpu in parse(text):
            assert gpu.target is None or gpu.target.startswith("gfx")
            assert all(size > 0 for size in gpu.memory.values())
    compilers.version(text)
    drm.hexadecimal(text)
    kfd.gpu_of_node(kfd.parse_properties(text), [kfd.parse_properties(text)])


@FUZZ
@given(ANYTHING, ANYTHING, ANYTHING)
def test_the_whole_examination_survives_garbage(file, output, value):
    """Every file, tool output and variable of a machine replaced: an answer all the same, in the report's own form."""
    record = machines.rx_7900_xtx()
    record.files = {path: file for path in record.files}
    record.tools = {argv: ToolRun(0, output, output) for argv in record.tools}
    record.environment = dict.fromkeys(("ROCM_PATH", "HIP_PATH", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "HSA_OVERRIDE_GFX_VERSION"), value)
    record.environment.update(dict.fromkeys(("LD_LIBRARY_PATH", "CPATH", "CMAKE_PREFIX_PATH", "CXX", "HIP_CLANG_PATH", "HIP_PLATFORM"), value))
    record.facts = {name: value for name in record.facts}
    examination = examine(Probe(record))
    json.dumps(report.as_json(examination))
    assert examination.exit_code in (0, 1, 3, 4)
    assert report.as_text(examination)


def test_large_garbage_is_quick():
    """No pattern may need time that grows with the square of a line's length."""
    import time

    from wavesmith.doctor.redaction import Redactor

    start = time.perf_counter()
    for text in (" " * 400_000, "a" * 400_000, '"serial' * 60_000, "GPU-" * 100_000, ": " * 200_000, "/home/" * 70_000, "9." * 200_000, "[" * 200_000):
        Redactor("anna", "annas-box", "/home/anna").text(text)
        for parse in (rocminfo.parse, amd_smi.parse, hip_info.parse, hip_info.parse_query, kfd.parse_properties, compilers.version):
            parse(text)
    assert time.perf_counter() - start < 20


def test_visible_devices_pick_by_position_in_what_is_left():
    found = examine(Probe(machines.two_cards())).gpus
    assert gpus._pick([1, 0], "1", found) == [0]
