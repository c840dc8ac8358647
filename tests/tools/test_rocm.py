"""The ROCm of a build: which root, which compiler, what CMake is told; on made-up roots and on recorded machines."""

from __future__ import annotations

import os
from pathlib import Path

import fake_rocm
import pytest
from click.testing import CliRunner
from doctor import machines
from wavesmith import build, build_environment, build_plan, hip_trial, rocm, source, targets
from wavesmith.build_checks import Compiler
from wavesmith.commands.build import command
from wavesmith.doctor.probe import Probe, SystemProbe, ToolRun
from wavesmith.errors import CannotBuild

GFX1100 = targets.resolve(["gfx1100"], [])


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A whole ROCm root in a folder with a space, which ROCM_PATH names, and no other variable about ROCm."""
    for name in (*rocm.NOT_INHERITED, "HIP_PATH", "CMAKE_PREFIX_PATH"):
        monkeypatch.delenv(name, raising=False)
    root = fake_rocm.write(tmp_path / "my rocm")
    monkeypatch.setenv("ROCM_PATH", str(root))
    monkeypatch.setenv("WAVESMITH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(source, "resolve", lambda llama: source.Identity("1.0", "1.0", "abcdef123456"))
    return root


def choose(requested=GFX1100) -> rocm.Rocm:
    probe = SystemProbe()
    try:
        return rocm.choose(rocm.candidates(probe, requested), requested, hip_trial.failure)
    finally:
        probe.close()


def test_the_root_that_is_used_is_told_with_its_version_and_where_that_was_found(root: Path) -> None:
    fake_rocm.compiler(root / "llvm/bin/clang++")
    chosen = choose()
    assert (chosen.root, chosen.hip_version, chosen.version_file) == (str(root), "7.2.41134", f"{root}/include/hip/hip_version.h")
    assert ("ROCm", f"{root} (HIP 7.2.41134, from {root}/include/hip/hip_version.h)") in chosen.lines()
    assert chosen.compiler == Compiler(f"{root}/llvm/bin/clang++", "AMD clang version 22.0.0git")


def test_compilers_are_tried_in_a_fixed_order(root: Path, tmp_path: Path) -> None:
    named = tmp_path / "named by hipconfig"
    fake_rocm.write(root, hipconfig=str(named))
    paths = [named / "clang++", root / "llvm/bin/clang++", root / "lib/llvm/bin/clang++"]
    for path in paths:
        fake_rocm.compiler(path, fake_rocm.NO_HEADERS)
    with pytest.raises(CannotBuild) as caught:
        choose()
    message = str(caught.value)
    assert [message.index(f"{path}: it does not find the HIP headers") for path in paths] == sorted(message.index(f"{path}: ") for path in paths)
    for position in (2, 1, 0):
        fake_rocm.compiler(paths[position])
        assert choose().compiler.path == str(paths[position])


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (fake_rocm.NO_HEADERS, "it does not find the HIP headers (clang++: error: cannot find HIP runtime"),
        (fake_rocm.NO_TARGET, "it does not know the target (clang++: error: unsupported HIP gpu architecture: gfx950"),
        (fake_rocm.NO_LINK, "it does not find libamdhip64 when it links"),
        (fake_rocm.SHADOWED, "headers of another HIP shadow its own"),
        (fake_rocm.NO_CXX_LIBRARY, "it does not find the C++ library (libstdc++) of a gcc"),
        (fake_rocm.SILENT, "it cannot compile a two-line kernel (exit code 3 without a word)"),
    ],
    ids=["headers", "target", "link", "shadowed", "libstdc++", "silent"],
)
def test_a_compiler_that_cannot_work_is_found_out_before_cmake(root: Path, body: str, reason: str) -> None:
    fake_rocm.compiler(root / "llvm/bin/clang++", body)
    with pytest.raises(CannotBuild) as caught:
        choose(targets.resolve(["gfx950"], []))
    assert f"no HIP compiler of {root} (HIP 7.2.41134) works for gfx950" in str(caught.value)
    assert reason in str(caught.value)


def test_trial_compiles_for_every_target_with_this_rocm_only(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIPFLAGS", "-march=native")
    monkeypatch.setenv("CPLUS_INCLUDE_PATH", "/usr/include")
    path = fake_rocm.compiler(root / "llvm/bin/clang++")
    choose(targets.resolve(["gfx1030,gfx90a:xnack-,gfx11-generic"], []))
    compile_, link = fake_rocm.calls(path)
    for call in (compile_, link):
        assert f"--rocm-path={root}" in call
        assert "--offload-arch=gfx1030 --offload-arch=gfx90a:xnack- --offload-arch=gfx11-generic" in call
    assert "-mcode-object-version=6" in compile_ and "--hip-link" in link
    environment = Path(f"{path}.log.env").read_text()
    assert f"ROCM_PATH={root}\n" in environment
    assert "HIPFLAGS" not in environment and "CPLUS_INCLUDE_PATH" not in environment


def test_kernel_checks_the_version_only_where_the_header_told_it(root: Path) -> None:
    fake_rocm.compiler(root / "llvm/bin/clang++")
    assert "HIP_VERSION_MAJOR == 7 && HIP_VERSION_MINOR == 2" in hip_trial._source(choose())
    (root / "include/hip/hip_version.h").unlink()
    (root / ".info").mkdir()
    (root / ".info/version").write_text("7.2.0-43\n")
    assert "static_assert" not in hip_trial._source(choose())


def test_old_hip_names_the_version_and_the_file(root: Path) -> None:
    fake_rocm.write(root, "6.0.32830")
    fake_rocm.compiler(root / "llvm/bin/clang++")
    with pytest.raises(CannotBuild, match=r"HIP 6.0.32830 in .* \(says .*/include/hip/hip_version.h\) is too old; .* needs HIP 6.1 or newer") as caught:
        choose()
    assert caught.value.exit_code == 3


def test_oldest_hip_that_is_enough(root: Path) -> None:
    fake_rocm.write(root, "6.1.40091")
    fake_rocm.compiler(root / "llvm/bin/clang++")
    assert choose().hip_version == "6.1.40091"


def test_missing_development_files_are_named(root: Path) -> None:
    (root / "include/hipblas/hipblas.h").unlink()
    fake_rocm.compiler(root / "llvm/bin/clang++")
    with pytest.raises(CannotBuild, match="my rocm lacks hipblas development files; CMake stops without them"):
        choose()


def test_a_compiler_that_does_not_start_is_passed_over(root: Path) -> None:
    broken = fake_rocm.compiler(root / "llvm/bin/clang++")
    broken.write_text("#!/no/such/interpreter\n")
    fake_rocm.compiler(root / "lib/llvm/bin/clang++")
    assert choose().compiler.path == f"{root}/lib/llvm/bin/clang++"


def recorded(machine) -> rocm.Rocm:
    record = machine()
    return rocm.choose(rocm.candidates(Probe(record), GFX1100), GFX1100, lambda candidate, requested: "")


def fedora() -> machines.Record:
    """Fedora keeps its clang for HIP in a folder of its own below /usr/lib64."""
    record = machines.machine("fedora")
    machines.rocm(
        record, "/usr", "6.4.43483", library="lib64", compiler="lib64/rocm/llvm/bin/clang++", bitcode="lib64/rocm/llvm/lib/clang/19/amdgcn/bitcode", opt=False
    )
    return record


def debian() -> machines.Record:
    record = machines.machine("debian")
    machines.debian_rocm(record)
    record.tools[("/usr/bin/hipconfig", "--hipclangpath")] = ToolRun(0, "/usr/lib/llvm-17/bin")
    return record


@pytest.mark.parametrize(
    ("machine", "root", "compiler"),
    [
        (machines.rx_7900_xtx, "/opt/rocm", "/opt/rocm/lib/llvm/bin/clang++"),
        (machines.mi355x, "/opt/rocm", "/opt/rocm/llvm/bin/clang++"),
        (fedora, "/usr", "/usr/lib64/rocm/llvm/bin/clang++"),
        (debian, "/usr", "/usr/lib/llvm-17/bin/clang++"),
        (machines.mi250x, "/usr", "/usr/lib64/rocm/llvm/bin/clang++"),
        (
            machines.rx_9070_xt_pip,
            "~/venv/lib/python3.12/site-packages/_rocm_sdk_devel",
            "~/venv/lib/python3.12/site-packages/_rocm_sdk_devel/lib/llvm/bin/clang++",
        ),
        (
            machines.nix,
            "/nix/store/0a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p-clr-6.3.3",
            "/nix/store/1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6q-rocm-llvm-clang-wrapper-6.3.3/bin/clang++",
        ),
        (machines.several_rocm, "/opt/rocm", "/opt/rocm/lib/llvm/bin/clang++"),
    ],
    ids=["arch", "ubuntu with AMD's packages", "fedora", "debian", "opensuse", "pip", "nix", "several"],
)
def test_layouts(machine, root: str, compiler: str) -> None:
    chosen = recorded(machine)
    assert (chosen.root, chosen.compiler.path) == (root, compiler)
    assert chosen.prefixes[0] == root
    assert chosen.device_libraries


def test_nix_tells_cmake_every_component() -> None:
    assert [prefix.rpartition("/")[2].partition("-")[2] for prefix in recorded(machines.nix).prefixes] == ["clr-6.3.3", "hipblas-6.3.3", "rocblas-6.3.3"]


def test_debian_without_hipconfig_takes_the_newest_clang() -> None:
    record = debian()
    del record.tools[("/usr/bin/hipconfig", "--hipclangpath")]
    assert recorded(lambda: record).compiler.path == "/usr/lib/llvm-21/bin/clang++"


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        (machines.nothing, "no ROCm installation found .* `wavesmith build --target host` works without it; mend it with: "),
        (machines.rx_6900_xt_old_rocm, r"HIP 5.7.31921 in /opt/rocm-5.7.1 \(says /opt/rocm-5.7.1/include/hip/hip_version.h\) is too old"),
        (machines.runtime_packages_only, "/opt/rocm lacks hipblas development files, rocblas development files; .* sudo pacman -S hipblas rocblas"),
    ],
    ids=["none", "old", "runtime only"],
)
def test_machines_that_cannot_build(machine, message: str) -> None:
    with pytest.raises(CannotBuild, match=message):
        recorded(machine)


def plan_rows(*arguments: str) -> dict[str, str]:
    result = CliRunner().invoke(command, ["--plan", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return {line.split("  ", 1)[0].strip(): line.split("  ", 1)[1].strip() for line in result.stdout.splitlines()}


def test_plan_of_a_gpu_build(root: Path) -> None:
    path = fake_rocm.compiler(root / "llvm/bin/clang++")
    rows = plan_rows("--target", "gfx1100,gfx1030")
    assert rows["target"] == "gfx1100,gfx1030"
    assert rows["ROCm"] == f"{root} (HIP 7.2.41134, from {root}/include/hip/hip_version.h)"
    assert rows["HIP compiler"] == f"{path} (AMD clang version 22.0.0git)"
    for option in ("GGML_HIP=ON", "GPU_TARGETS=gfx1100;gfx1030", "GGML_CUSTOM_KERNELS=wavesmith", f"CMAKE_HIP_COMPILER={path}", f"CMAKE_PREFIX_PATH={root}"):
        assert f"-D{option}" in rows["options"]
    assert "CMAKE_HIP_FLAGS" not in rows["options"] and "GGML_CUSTOM_KERNELS_HOST" not in rows["options"]
    assert f"ROCM_PATH={root}" in rows["environment"]
    assert Path(rows["prefix"]).name.startswith("gfx1100+gfx1030-1.0-")


def test_generic_target_gets_its_code_object_version(root: Path) -> None:
    fake_rocm.compiler(root / "llvm/bin/clang++")
    rows = plan_rows("--target", "gfx11-generic")
    assert "-DCMAKE_HIP_FLAGS=-mcode-object-version=6" in rows["options"]
    assert rows["note"].startswith("gfx11-generic needs code object version 6")


def test_host_beside_a_gpu_is_one_build(root: Path) -> None:
    fake_rocm.compiler(root / "llvm/bin/clang++")
    assert "-DGGML_CUSTOM_KERNELS_HOST=ON" in plan_rows("--target", "gfx1100", "--target", "host")["options"]


def test_another_compiler_is_another_build(root: Path) -> None:
    fake_rocm.compiler(root / "llvm/bin/clang++")
    first = build_plan.resolve("gfx1100")
    fake_rocm.compiler(root / "llvm/bin/clang++", version="AMD clang version 23.0.0")
    assert build_plan.resolve("gfx1100").key != first.key


def test_a_finished_build_proves_its_compiler(root: Path) -> None:
    """What was built is found again without a trial: it would take longer than all the rest."""
    path = fake_rocm.compiler(root / "llvm/bin/clang++")
    plan = build_plan.resolve("gfx1100")
    plan.prefix.mkdir(parents=True)
    build.write_json(plan.prefix / build.MANIFEST, {"plan": plan.as_json()})
    before = len(fake_rocm.calls(path))
    assert build_plan.resolve("gfx1100").prefix == plan.prefix
    assert len(fake_rocm.calls(path)) == before


def test_host_flags_do_not_reach_the_build(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_rocm.compiler(root / "llvm/bin/clang++")
    plan = build_plan.resolve("gfx1100")
    for name in ("CXXFLAGS", *rocm.NOT_INHERITED):
        monkeypatch.setenv(name, "-march=native")
    monkeypatch.setenv("ROCM_PATH", "/elsewhere")
    environment = build_environment.variables(plan.prefix, plan.rocm.environment())
    assert environment["ROCM_PATH"] == environment["HIP_PATH"] == str(root)
    assert "-march=native" not in environment.values()
    assert os.environ["HIPFLAGS"] == "-march=native"
