"""`wavesmith run` and `wavesmith serve`: a program of a build in wavesmith's place."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from wavesmith import active_kernels, builds, extra_programs, run_program, serve
from wavesmith.built import Build
from wavesmith.errors import BadInput, CannotBuild, CannotRun
from wavesmith.progress import Steps


def wavesmith(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "wavesmith", *arguments], capture_output=True, text=True, check=False, timeout=120, **options)


def test_exit_status_and_output_are_the_programs_own(fake_cache: Path) -> None:
    assert wavesmith("run", "llama-bench", "exit", "17").returncode == 17
    result = wavesmith("run", "llama-bench", "echo", "--help", "-m", "a b", "--build")
    assert (result.returncode, result.stdout, result.stderr) == (0, "echo\n--help\n-m\na b\n--build\n", "")


def test_signals_reach_the_program(fake_cache: Path) -> None:
    process = subprocess.Popen([sys.executable, "-m", "wavesmith", "run", "llama-bench", "wait"], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == -signal.SIGTERM
    process.stdout.close()


def test_a_closed_pipe_ends_the_program_as_it_would_without_us() -> None:
    """Python ignores SIGPIPE, and a program inherits what is ignored: it would print into a closed pipe for ever."""
    script = "from wavesmith import run_program; run_program.replace_process('/bin/sh', ['-c', 'grep SigIgn /proc/self/status'], {'PATH': '/bin:/usr/bin'})"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert int(shown.split()[1], 16) & 1 << (signal.SIGPIPE - 1) == 0


def test_environment_puts_the_builds_libraries_first(fake_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An old ggml in LD_LIBRARY_PATH would be found before the run path of the program."""
    monkeypatch.setenv("LD_LIBRARY_PATH", "/old/ggml/lib")
    build = builds.find()
    assert wavesmith("run", "llama-bench", "show", "LD_LIBRARY_PATH").stdout == f"{build.lib_dir}:/old/ggml/lib\n"
    gpu = Build(**{**build.__dict__, "rocm_libraries": ("/opt/rocm/lib",)})
    assert run_program.environment(gpu)["LD_LIBRARY_PATH"] == f"{build.lib_dir}:/old/ggml/lib:/opt/rocm/lib"


def test_users_switches_reach_the_program(fake_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAVESMITH", "0")
    assert wavesmith("run", "llama-bench", "show", "WAVESMITH").stdout == "0\n"
    monkeypatch.delenv("WAVESMITH")
    (tmp_path / "config.toml").write_text('kernels = ["mmq"]\n')
    monkeypatch.setenv("WAVESMITH_CONFIG", str(tmp_path / "config.toml"))
    assert wavesmith("run", "llama-bench", "show", "WAVESMITH_KERNELS").stdout == "mmq\n"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("llama-bnech", "has no program llama-bnech; did you mean llama-bench"),
        ("../../plan.json", "has no program ../../plan.json; it has llama-bench, "),
        ("libggml-base.so", "has no program libggml-base.so"),
    ],
)
def test_unknown_program(fake_cache: Path, name: str, message: str) -> None:
    result = wavesmith("run", name)
    assert result.returncode == 2
    assert message in result.stderr and result.stderr.count("\n") == 1


def test_program_that_cannot_start(tmp_path: Path) -> None:
    path = tmp_path / "broken"
    path.write_text("#!/no/such/interpreter\n")
    path.chmod(0o755)
    with pytest.raises(CannotRun, match="cannot start .*broken: No such file"):
        run_program.replace_process(path, [], {})


def test_server_is_added_to_the_build_when_it_is_asked_for(fake_build_template, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAVESMITH_CACHE", str(fake_build_template.prefix.parent.parent))
    model = tmp_path / "a model.gguf"
    model.write_bytes(b"GGUF....")
    before = fake_build_template.program("llama-bench").stat().st_mtime_ns
    result = wavesmith("serve", "--build", str(fake_build_template.prefix), str(model), "--port", "8080")
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == ["-m", str(model), "--port", "8080"]
    assert "wavesmith kernels: active on WAVESMITH: kernels" in result.stderr
    assert "compile llama-server" in result.stderr
    assert fake_build_template.program("llama-bench").stat().st_mtime_ns == before
    assert builds.find(str(fake_build_template.prefix)).program("llama-server").is_file()
    again = wavesmith("serve", "--build", str(fake_build_template.prefix), str(model))
    assert "compile llama-server" not in again.stderr and again.returncode == 0


def test_server_cannot_be_added_to_a_build_that_was_moved(fake_cache: Path) -> None:
    build = builds.find()
    if "llama-server" in build.programs:  # the build that this one is a copy of has it already
        build.programs["llama-server"].unlink()
    with pytest.raises(CannotBuild, match="the build was moved; make a new one with: wavesmith build"):
        extra_programs.ensure(build, "llama-server", Steps("serve", quiet=True))


@pytest.mark.parametrize(("content", "message"), [(None, "cannot read the model .*: No such file"), (b"GGML", "is not a GGUF file")])
def test_bad_model_is_found_before_the_server_is_built(fake_cache: Path, tmp_path: Path, content: bytes | None, message: str) -> None:
    model = tmp_path / "model"
    if content is not None:
        model.write_bytes(content)
    with pytest.raises(BadInput, match=message):
        serve.prepare(builds.find(), model, [], Steps("serve", quiet=True))


@pytest.mark.parametrize(
    ("value", "allowed"),
    [
        ("mmq,mmvq,gemm,fattn", ["mmq", "mmvq", "gemm", "fattn"]),
        ("-mmq", ["mmvq", "gemm", "fattn"]),
        ("mmq", ["mmq"]),
        ("mmq,mmvq,-mmq", ["mmvq"]),
        ("nosuch", []),
    ],
)
def test_allowed_kernels_are_read_as_the_module_reads_them(value: str, allowed: list[str]) -> None:
    assert active_kernels.allowed_kernels(value) == allowed


def test_active_kernels_are_asked_from_the_build(fake_cache: Path) -> None:
    build = builds.find()
    variables = run_program.environment(build)
    assert active_kernels.describe(build, variables)[0] == "wavesmith kernels: active on WAVESMITH: kernels"
    assert active_kernels.describe(build, variables | {"WAVESMITH": "0"}) == ["wavesmith kernels: off (WAVESMITH=0), stock's run"]
    assert "of mmvq, gemm, fattn" in active_kernels.describe(build, variables | {"WAVESMITH_KERNELS": "-mmq"})[1]
    assert (
        "finds no device"
        in active_kernels.describe(Build(**{**build.__dict__, "target": "gfx1100", "programs": {"llama-bench": Path("/bin/true")}}), variables)[0]
    )
