"""The doctor's answers on whole machines."""

import json
from pathlib import Path

import jsonschema
import pytest
import wavesmith
from wavesmith.doctor import capture, report
from wavesmith.doctor.examine import Examination, examine
from wavesmith.doctor.findings import NOTE
from wavesmith.doctor.probe import PathInfo, Probe, Record, ToolRun

from . import machines

SCHEMA = json.loads((Path(wavesmith.__file__).parent / "schemas" / "doctor.schema.json").read_text())


def diagnose(record: Record) -> Examination:
    return examine(Probe(record))


def named(examination: Examination, name: str):
    return next(finding for finding in examination.findings if finding.name == name)


def names(examination: Examination) -> list[str]:
    return [finding.name for finding in examination.findings if finding.severity != NOTE]


@pytest.mark.parametrize("machine", machines.EXPECTED, ids=lambda machine: machine.__name__)
def test_verdict_targets_and_findings(machine):
    code, targets, findings = machines.EXPECTED[machine]
    examination = diagnose(machine())
    assert names(examination) == findings
    assert examination.exit_code == code
    assert [target.name for target in examination.targets] == targets


@pytest.mark.parametrize("machine", machines.EXPECTED, ids=lambda machine: machine.__name__)
def test_a_capture_gives_the_same_answer(machine, tmp_path):
    record = machine()
    before = report.as_json(diagnose(record))
    capture.save(record, tmp_path / "capture")
    assert report.as_json(diagnose(capture.load(tmp_path / "capture"))) == before


@pytest.mark.parametrize("machine", machines.EXPECTED, ids=lambda machine: machine.__name__)
def test_json_follows_the_schema(machine):
    jsonschema.validate(json.loads(json.dumps(report.as_json(diagnose(machine())))), SCHEMA)


@pytest.mark.parametrize("machine", machines.EXPECTED, ids=lambda machine: machine.__name__)
def test_report_for_people_says_everything(machine):
    examination = diagnose(machine())
    text = "\n".join(report.as_text(examination))
    for finding in examination.findings:
        assert finding.what in text and finding.why in text
        assert all(fix.command in text for fix in finding.fixes)
    for gpu in examination.gpus:
        assert gpu.product in text and gpu.target in text
    assert max(len(line) for line in text.splitlines()) < 400


@pytest.mark.parametrize("machine", machines.EXPECTED, ids=lambda machine: machine.__name__)
def test_every_problem_has_a_command(machine):
    """Shadowing headers and rocBLAS aside, where the choice is the user's."""
    for finding in diagnose(machine()).findings:
        if finding.severity != NOTE and finding.name != "shadowing-headers":
            assert finding.fixes, finding.name


def test_all_sources_of_the_xtx():
    (gpu,) = diagnose(machines.rx_7900_xtx()).gpus
    assert (gpu.index, gpu.target, gpu.family, gpu.product, gpu.pci) == (0, "gfx1100", "rdna3", "AMD Radeon RX 7900 XTX", "0000:03:00.0")
    assert gpu.compute_units == 96 and not gpu.integrated
    assert gpu.reported == {"kfd": "gfx1100", "rocminfo": "gfx1100", "hipinfo": "gfx1100", "amd-smi": "gfx1100", "pci": "gfx1100"}
    assert set(gpu.units_reported.values()) == {96}
    assert gpu.memory["hipMemGetInfo"] == gpu.memory["VRAM"] == gpu.memory["KFD"] == gpu.memory["HSA"] == machines.XTX_MEMORY
    assert gpu.memory["amd-smi"] == 24560 << 20 and gpu.memory["GTT"] == 33 << 30
    rocm = diagnose(machines.rx_7900_xtx()).rocm
    assert (rocm.root, rocm.hip_version, rocm.rocm_version) == ("/opt/rocm", "7.2.41134", "7.2.0-43")


def test_strix_halo_counts_vram_and_gtt():
    examination = diagnose(machines.strix_halo())
    (gpu,) = report.as_json(examination)["gpus"]
    assert gpu["integrated"] and gpu["family"] == "rdna3.5" and gpu["chosen"]
    assert (gpu["usable_memory_bytes"], gpu["usable_memory_source"]) == ((120 << 30) + (1 << 29), "VRAM + GTT")
    assert examination.rocm.layout == "distribution"
    assert examination.rocm.compilers == ("/usr/lib64/rocm/llvm/bin/clang++",)


def test_eight_cards_are_one_target_in_order():
    examination = diagnose(machines.mi300x_8())
    assert [gpu.index for gpu in examination.gpus] == list(range(8))
    assert [gpu.pci[5:7] for gpu in examination.gpus] == ["05", "27", "47", "65", "85", "a7", "c7", "e5"]
    assert {gpu.features for gpu in examination.gpus} == {("sramecc+", "xnack-")}
    assert "8 x AMD Instinct MI300X (gfx942)" in examination.choice
    assert [installation.root for installation in examination.installations] == ["/opt/rocm"]


def test_integrated_is_left_out_and_named():
    examination = diagnose(machines.integrated_beside_discrete())
    assert [(gpu.index, gpu.target, gpu.integrated) for gpu in examination.gpus] == [(0, "gfx1036", True), (1, "gfx1100", False)]
    assert examination.chosen_gpus == [examination.gpus[1]]
    finding = named(examination, "integrated-and-discrete")
    assert finding.severity == NOTE and "gfx1036" in finding.what and "--target" in finding.why


def test_two_different_discrete_cards_are_both_built_for():
    record = machines.override_on_mixed_cards()
    del record.environment["HSA_OVERRIDE_GFX_VERSION"]
    machines.rocminfo(record)
    assert [target.name for target in diagnose(record).targets] == ["gfx1031", "gfx1100"]


def test_old_hip_is_named_with_its_place():
    finding = named(diagnose(machines.rx_6900_xt_old_rocm()), "hip-too-old")
    assert "5.7.31921" in finding.what and "/opt/rocm-5.7.1/include/hip/hip_version.h" in finding.what
    assert "6.1" in finding.why


@pytest.mark.parametrize(
    ("machine", "command"),
    [
        (machines.rx_7900_xtx, "sudo pacman -S hipblas rocblas"),
        (machines.mi50, "sudo apt install libhipblas-dev librocblas-dev"),
        (machines.strix_halo, "sudo dnf install hipblas-devel rocblas-devel"),
        (machines.mi300x_8, "sudo apt install hipblas-dev rocblas-dev"),
        (machines.mi250x, "sudo zypper install hipblas-devel rocblas-devel"),
        (machines.nix, "nix-shell -p rocmPackages.hipblas rocmPackages.rocblas"),
        (machines.rx_9070_xt_pip, 'python3 -m pip install "rocm[libraries,devel]" && rocm-sdk init'),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_missing_blas_names_the_distributions_packages(machine, command):
    record = machine()
    for path in [path for path in record.paths if path.endswith("-config.cmake") and ("hipblas" in path or "rocblas" in path)]:
        del record.paths[path]
    finding = named(diagnose(record), "rocm-incomplete")
    assert "hipblas development files" in finding.what and "rocblas development files" in finding.what
    assert [fix.command for fix in finding.fixes] == [command]


@pytest.mark.parametrize(
    ("path", "missing"),
    [
        ("/opt/rocm/lib/cmake/hip-lang/hip-lang-config.cmake", "hip-lang-config.cmake"),
        ("/opt/rocm/lib/cmake/hip/hip-config.cmake", "hip-config.cmake"),
        ("/opt/rocm/amdgcn/bitcode/ockl.bc", "the device libraries (ockl.bc)"),
        ("/opt/rocm/lib/llvm/bin/clang++", "a HIP compiler"),
        ("/opt/rocm/include/hip/hip_runtime.h", "hip/hip_runtime.h"),
    ],
)
def test_each_missing_part_is_named(path, missing):
    record = machines.rx_7900_xtx()
    del record.paths[path]
    finding = named(diagnose(record), "rocm-incomplete")
    assert finding.what == f"/opt/rocm lacks {missing}"
    assert [fix.command for fix in finding.fixes] == ["sudo pacman -S rocm-hip-sdk"]


def test_no_permission_and_relogin():
    finding = named(diagnose(machines.rx_9060_xt_no_permission()), "permission-denied")
    assert "/dev/kfd, /dev/dri/renderD128 (group render)" in finding.what
    assert finding.fixes[0].command.startswith("sudo usermod -aG render $USER")
    record = machines.rx_9060_xt_no_permission()
    record.facts["groups after login"] = ["render"]
    assert named(diagnose(record), "permission-relogin").fixes[0].command.startswith("newgrp render")
    record.facts["groups after login"] = []
    record.paths["/.dockerenv"] = PathInfo("file", "/.dockerenv")
    assert named(diagnose(record), "permission-denied").fixes[0].command.startswith("docker run --device /dev/kfd")


def test_missing_device_files():
    record = machines.rx_7900_xtx()
    del record.paths["/dev/kfd"]
    assert named(diagnose(record), "kfd-missing").fixes[0].command == "sudo modprobe amdgpu"
    record.paths["/run/.containerenv"] = PathInfo("file", "/run/.containerenv")
    assert named(diagnose(record), "kfd-missing").fixes[0].command.startswith("docker run")
    record = machines.rx_7900_xtx()
    del record.paths["/dev/dri/renderD128"]
    assert names(diagnose(record)) == ["render-node-missing"]
    record = machines.two_cards()
    record.paths["/dev/dri/renderD129"] = PathInfo("device", "/dev/dri/renderD129", "render", "0600", False, False)
    assert names(diagnose(record)) == ["render-node-closed"]


@pytest.mark.parametrize(
    ("rocr", "hip", "cuda", "visible"),
    [
        (None, None, None, ["03", "0a"]),
        ("1,0", None, None, ["0a", "03"]),
        (None, "1", None, ["0a"]),
        ("1", "0", None, ["0a"]),
        ("1", "1", None, []),
        (None, "0,7,1", None, ["03"]),
        (None, "-1", None, []),
        (None, "", "0", []),
        (None, None, "1", ["0a"]),
        ("GPU-0000000000002222", None, None, ["0a"]),
        ("GPU-9", None, None, []),
        (None, "1,1", None, ["0a"]),
        (None, "٣", None, []),
    ],
)
def test_hip_order_and_visibility(rocr, hip, cuda, visible):
    record = machines.two_cards()
    given = {"ROCR_VISIBLE_DEVICES": rocr, "HIP_VISIBLE_DEVICES": hip, "CUDA_VISIBLE_DEVICES": cuda}
    record.environment.update({name: value for name, value in given.items() if value is not None})
    examination = diagnose(record)
    assert [gpu.pci[5:7] for gpu in examination.gpus if gpu.index is not None] == visible
    assert [gpu.index for gpu in examination.gpus] == [*range(len(visible)), *[None] * (2 - len(visible))]
    assert ("all-gpus-hidden" in names(examination)) == (not visible)


def test_hips_own_order_wins():
    record = machines.two_cards()
    machines.hip_query(record, "/opt/rocm/lib/libamdhip64.so", ("Card A", "0000:0A:00.0", machines.XTX_MEMORY), ("Card B", "0000:03:00.0", machines.XTX_MEMORY))
    assert [(gpu.index, gpu.pci, gpu.product) for gpu in diagnose(record).gpus] == [(0, "0000:0a:00.0", "Card A"), (1, "0000:03:00.0", "Card B")]


@pytest.mark.parametrize(
    ("value", "finding", "build"),
    [
        ("10.3.0", "override-family", "gfx1030"),
        ("11.0.1", "override-active", "gfx1101"),
        ("eleven", "override-malformed", "gfx1100"),
        ("11.0.0", None, "gfx1100"),
    ],
)
def test_override_on_one_card(value, finding, build):
    record = machines.two_cards()
    record.environment["HSA_OVERRIDE_GFX_VERSION"] = value
    examination = diagnose(record)
    assert [item.name for item in examination.findings] == ([finding] if finding else [])
    assert [target.name for target in examination.targets] == [build]
    assert {gpu.target for gpu in examination.gpus} == {"gfx1100"}


def test_sources_that_disagree_are_told():
    record = machines.rx_7900_xtx()
    gpu = machines.rocminfo_gpu("gfx1101", machines.XTX_NAME, node=1, units=96, memory=machines.XTX_MEMORY, **machines.XTX)
    machines.rocminfo(record, gpu)
    finding = named(diagnose(record), "sources-disagree")
    assert "kfd gfx1100" in finding.what and "rocminfo gfx1101" in finding.what
    record = machines.rx_7900_xtx()
    machines.hip_query(record, "/opt/rocm/lib/libamdhip64.so", (machines.XTX_NAME, "0000:03:00.0", 16 << 30))
    assert "hipMemGetInfo 16.0 GiB" in named(diagnose(record), "memory-differs").what
    machines.hip_query(record, "/opt/rocm/lib/libamdhip64.so")
    assert "HIP shows 0 of 1" in named(diagnose(record), "gpu-count-differs").what


def test_a_tool_that_hangs_or_fails_is_told():
    record = machines.rx_7900_xtx()
    record.tools[("/opt/rocm/bin/rocminfo",)] = ToolRun(None, "ROCk module is loaded\n")
    assert named(diagnose(record), "tool-hangs").what.startswith("rocminfo")
    record.tools[("/opt/rocm/bin/rocminfo",)] = ToolRun(127, "", "librocm-core.so.1: cannot open shared object file\n")
    examination = diagnose(record)
    assert "cannot open shared object file" in named(examination, "tool-fails").what
    assert examination.exit_code == 0 and examination.gpus[0].target == "gfx1100"


def test_roots_named_by_variables():
    record = machines.several_rocm()
    record.environment["ROCM_PATH"] = "/opt/rocm-6.2.4/"
    examination = diagnose(record)
    assert examination.rocm.hip_version == "6.2.41134"
    record.environment["HIP_PATH"] = "/opt/rocm-7.2.0"
    assert "roots-differ" in names(diagnose(record))
    record.environment["HIP_PATH"] = "/opt/rocm-9"
    assert "root-missing" in names(diagnose(record))
    record.environment["HIP_PATH"] = "/opt"
    record.paths["/opt"] = PathInfo("folder", "/opt")
    assert "root-empty" in names(diagnose(record))


def test_several_roots_are_told_with_their_versions():
    finding = named(diagnose(machines.several_rocm()), "several-rocm")
    assert "builds use /opt/rocm (HIP 7.2.41134)" in finding.what
    assert "/opt/rocm-6.2.4 (HIP 6.2.41134)" in finding.what and "/usr (HIP 5.7.1)" in finding.what


def test_newest_usable_root_without_a_default():
    record = machines.two_cards()
    for path in [path for path in (*record.paths, *record.files) if path.startswith("/opt/rocm")]:
        record.paths.pop(path, None)
        record.files.pop(path, None)
    machines.rocm(record, "/opt/rocm-6.2.4", "6.2.41134")
    machines.rocm(record, "/opt/rocm-7.2.0", "7.2.41134", development=False)
    assert diagnose(record).rocm.root == "/opt/rocm-6.2.4"
    machines.rocm(record, "/opt/rocm-7.10.0", "7.10.60850")
    assert diagnose(record).rocm.root == "/opt/rocm-7.10.0"


def test_library_and_include_paths():
    record = machines.rx_7900_xtx()
    record.environment.update(
        {"LD_LIBRARY_PATH": "~/old llama/bin::/opt/rocm-6.2.4/lib:relative", "CPATH": "/opt/rocm-6.2.4/include", "HIP_PLATFORM": "nvidia"}
    )
    machines.files(record, "~/old llama/bin/libggml-base.so", "~/old llama/bin/libggml.so.0")
    record.paths["/opt/rocm-6.2.4/lib"] = PathInfo("folder", "/opt/rocm-6.2.4/lib")
    machines.rocm(record, "/opt/rocm-6.2.4", "6.2.41134")
    examination = diagnose(record)
    assert names(examination) == ["old-ggml", "other-hip-runtime", "hip-platform", "include-path"]
    assert "libggml-base.so, libggml.so.0" in named(examination, "old-ggml").what
    record = machines.rx_7900_xtx()
    record.environment["LD_LIBRARY_PATH"] = "/opt/rocm/lib"
    assert names(diagnose(record)) == []


def test_build_tools_disk_and_memory():
    record = machines.without(machines.nothing(), "cmake", "ninja")
    examination = diagnose(record)
    assert names(examination) == ["cmake-missing", "ninja-missing"] and examination.exit_code == 3
    assert all(finding.fixes[0].safe for finding in examination.findings if finding.severity != NOTE)
    record.facts["virtual environment"] = False
    assert not any(fix.safe for finding in diagnose(record).findings for fix in finding.fixes)
    record = machines.nothing()
    machines.program(record, "cmake", "/usr/bin/cmake", "cmake version 3.18.4\n")
    machines.without(record, "c++")
    machines.program(record, "g++", "/usr/bin/g++", "g++ (Ubuntu 7.5.0-3ubuntu1~18.04) 7.5.0\nCopyright (C) 2017 Free Software Foundation, Inc.\n")
    assert names(diagnose(record)) == ["compiler-too-old", "cmake-missing"]
    assert names(diagnose(machines.machine(memory=2 << 30))) == ["memory-small"]
    record = machines.nothing()
    record.paths["~/.cache"] = PathInfo("folder", "~/.cache", writable=False)
    assert names(diagnose(record)) == ["cache-read-only"] and diagnose(record).exit_code == 3
    small = diagnose(machines.machine(disk=800 << 20))
    assert names(small) == ["disk-small"] and small.exit_code == 1
    assert diagnose(machines.machine(disk=100 << 20)).exit_code == 3


def test_build_jobs_follow_the_memory():
    assert diagnose(machines.machine(memory=16 << 30)).machine["build_jobs"] == 6
    assert diagnose(machines.machine(memory=1 << 30)).machine["build_jobs"] == 1
    assert diagnose(machines.machine(memory=512 << 30)).machine["build_jobs"] == 16


def test_wsl_with_a_closed_device():
    record = machines.wsl()
    assert diagnose(record).machine["wsl"]
    record.paths["/dev/dxg"] = PathInfo("device", "/dev/dxg", "root", "0600", False, False)
    assert names(diagnose(record)) == ["permission-denied"]


def test_unknown_gfx_and_broken_version():
    record = machines.two_cards()
    machines.kfd_gpu(record, 1, 130000, 96, location=0x0300, device=0x9999, memory=machines.XTX_MEMORY)
    machines.kfd_gpu(record, 2, 119900, 96, location=0x0A00, device=0x9999, memory=machines.XTX_MEMORY)
    examination = diagnose(record)
    assert [gpu.target for gpu in examination.gpus] == ["gfx1300"]
    assert names(examination) == ["unknown-version", "unknown-target"] or names(examination) == ["unknown-target", "unknown-version"]
    assert [target.name for target in examination.targets] == ["host"]


def found(record: Record) -> list[str]:
    return [finding.name for finding in diagnose(record).findings]


def test_machines_without_a_usable_gpu_say_which_kind():
    assert found(machines.nothing()) == ["no-amd-gpu"]
    assert found(machines.wsl_without_rocm()) == ["wsl-no-gpu"]
    assert found(machines.renoir()) == ["no-kernels"]
    record = machines.machine()
    machines.pci_card(record, "0000:01:00.0", 0x67DF)  # an RX 480
    assert found(record) == ["no-compute-gpu"] and "0x67df" in named(diagnose(record), "no-compute-gpu").what
    record = machines.driver_missing()
    record.paths["/sys/module/amdgpu"] = PathInfo("folder", "/sys/module/amdgpu")
    assert found(record) == ["compute-missing"]
    record = machines.two_cards()
    record.files[f"{machines.NODES}/2/properties"] = ""
    assert found(record) == ["hidden-gpus"] and diagnose(record).exit_code == 0


def test_counts_that_differ():
    record = machines.rx_7900_xtx()
    agents = [machines.rocminfo_gpu("gfx1100", "Card", node=node, units=96, memory=machines.XTX_MEMORY, location=node << 8, device=0x744C) for node in (3, 4)]
    machines.rocminfo(record, *agents)
    assert "rocminfo shows 2 GPUs, the kernel 1" in named(diagnose(record), "gpu-count-differs").what
    record = machines.rx_7900_xtx()
    machines.amd_smi(record, machines.amd_smi_text((machines.XTX_NAME, "gfx1100", "0000:03:00.0", 0x744C, 48, 24560)))
    assert "kfd 96" in named(diagnose(record), "compute-units-differ").what and diagnose(record).exit_code == 0


def test_a_root_that_says_no_version():
    record = machines.two_cards()
    del record.files["/opt/rocm/include/hip/hip_version.h"], record.files["/opt/rocm/.info/version"]
    assert names(diagnose(record)) == ["hip-version-unknown"]


@pytest.mark.parametrize(
    ("path", "text", "version"),
    [
        ("/opt/rocm/share/hip/version", "# Auto-generated by cmake\nHIP_PACKAGING_VERSION_PATCH=41134\nHIP_VERSION_MAJOR=6\nHIP_VERSION_MINOR=2\n", "6.2"),
        ("/opt/rocm/bin/.hipVersion", "HIP_VERSION_MAJOR=5\nHIP_VERSION_MINOR=2\nHIP_VERSION_PATCH=21151\n", "5.2.21151"),
        ("/opt/rocm/lib/cmake/hip/hip-config-version.cmake", 'set(PACKAGE_VERSION "6.1.40091")\n', "6.1.40091"),
        ("/opt/rocm/.info/version", "6.4.1-83\n", "6.4.1"),
    ],
)
def test_places_of_the_hip_version(path, text, version):
    record = machines.two_cards()
    del record.files["/opt/rocm/include/hip/hip_version.h"], record.files["/opt/rocm/.info/version"]
    record.files[path] = text
    rocm = diagnose(record).rocm
    assert (rocm.hip_version, rocm.version_file) == (version, path)
    assert rocm.too_old == version.startswith("5.")


def test_other_variables():
    record = machines.two_cards()
    record.environment.update({"HIP_VISIBLE_DEVICES": "0", "CUDA_VISIBLE_DEVICES": "1", "GGML_BACKEND_PATH": "/x/libggml-other.so"})
    assert found(record) == ["visible-devices-differ", "backend-path"]
    record = machines.two_cards()
    record.environment.update({"ROCR_VISIBLE_DEVICES": "0", "HIP_VISIBLE_DEVICES": "0"})
    assert found(record) == ["visible-devices-both"] and diagnose(record).exit_code == 1
