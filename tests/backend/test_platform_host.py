"""The SIMT platform on the CPU: fibers, barriers, wave operations, checks, races, orders and launches."""

from pathlib import Path

import pytest
from native_programs import build_program, compiler, run_program

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C++ compiler")

SELF_CHECKING = ("identity", "shuffle", "barrier", "memory", "exceptions", "rounding", "many_blocks", "concurrent", "fork")

# What thread 77 of block (2, 1, 0) does wrong (platform_test.cpp) and what is said about it.
WHERE = "kernel mistake, block (2, 1, 0), thread "
NEEDS_CHECKS = {
    0: "77: LDS store of 4 bytes at offset 1024 is outside the block's 1024 bytes of LDS",
    1: "77: LDS load of 4 bytes at offset 4294967292 is outside the block's 1024 bytes of LDS",
    2: "77: LDS load of 16 bytes at offset 24 is not aligned to 16 bytes",
    3: "77: global load of 4 bytes at weights + 253 (weights has 256 bytes) is outside every buffer of the launch",
    4: "77: global store of 1 byte at output - 1 (output has 256 bytes) is outside every buffer of the launch",
    5: "77: global store of 1 byte at weights + 8 (weights has 256 bytes) is a write to a read-only buffer",
    6: "77: global load of 4 bytes at weights + 2 (weights has 256 bytes) is not aligned to 4 bytes",
    12: "77: shuffle from lane {wave} of a wave of {wave}",
}
ALWAYS = {
    7: "64: waits at the wave operation shuffle for thread 77 of its wave, which waits at a barrier",
    8: "64: waits at the wave operation shuffle for thread 77 of its wave, which has returned",
    9: "0: waits at a barrier for thread 77, which has returned",
    10: "77: is at the wave operation {matrix} while thread 64 of its wave waits at the wave operation shuffle",
}
MATRIX = {"32": "v_wmma_i32_16x16x16_iu8", "64": "v_mfma_i32_16x16x32_i8"}


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    return build_program("platform_test.cpp", tmp_path_factory.mktemp("platform"), "-march=native")


def mistake(program: Path, kind: int, build: str, wave: str, **environment: str) -> str:
    """The message, which must be the same for one worker and for two, however often."""
    lines = run_program(program, "mistake", str(kind), build, wave, environment=environment)
    assert len(lines) == 4 and len(set(lines)) == 1
    return lines[0]


@pytest.mark.parametrize("case", SELF_CHECKING)
def test_case(program, case):
    run_program(program, case)


@pytest.mark.parametrize("seed", ["0", "1", "18446744073709551615"])
@pytest.mark.parametrize("case", ["identity", "shuffle", "barrier", "exceptions", "rounding", "concurrent"])
def test_case_in_random_order(program, case, seed):
    run_program(program, case, environment={"WAVESMITH_HOST_ORDER": seed})


@pytest.mark.parametrize("case", ["identity", "shuffle", "barrier", "memory"])
def test_correct_kernels_have_no_races(program, case):
    run_program(program, case, environment={"WAVESMITH_HOST_RACECHECK": "1"})


def test_other_systems_switch_fibers_too(tmp_path):
    program = build_program("platform_test.cpp", tmp_path, "-march=native", "-DWAVESMITH_FIBER_UCONTEXT=1")
    for case in SELF_CHECKING:
        run_program(program, case)
    assert mistake(program, 0, "checked", "32") == WHERE + NEEDS_CHECKS[0]


@pytest.mark.parametrize("wave", ["32", "64"])
@pytest.mark.parametrize("kind", NEEDS_CHECKS)
def test_bad_access_is_named(program, kind, wave):
    assert mistake(program, kind, "checked", wave) == WHERE + NEEDS_CHECKS[kind].format(wave=wave)


@pytest.mark.parametrize("build", ["fast", "checked"])
@pytest.mark.parametrize("wave", ["32", "64"])
@pytest.mark.parametrize("kind", ALWAYS)
def test_diverging_threads_are_named(program, kind, wave, build):
    assert mistake(program, kind, build, wave) == WHERE + ALWAYS[kind].format(matrix=MATRIX[wave])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", ALWAYS)
def test_divergence_never_hangs_in_random_order(program, kind, seed):
    assert mistake(program, kind, "fast", "64", WAVESMITH_HOST_ORDER=str(seed)).startswith("kernel mistake, block (2, 1, ")


@pytest.mark.parametrize("build", ["fast", "checked"])
def test_a_wave_with_one_barrier_too_many(program, build):
    assert mistake(program, 11, build, "32") == "kernel mistake, block (0, 0, 0), thread 32: waits at a barrier for thread 0, which has returned"


def test_lds_is_poisoned_in_the_checked_build(program):
    assert mistake(program, 13, "checked", "64") == "kernel mistake, block (0, 0, 0), thread 0: LDS is poisoned"


def test_rdna3_lanes_must_repeat_their_operands(program):
    message = mistake(program, 14, "checked", "32")
    assert message == WHERE + "93: v_wmma_i32_16x16x16_iu8: this lane does not repeat the A and B operands of the lane that it mirrors"
    assert mistake(program, 14, "fast", "32") == ""


@pytest.mark.parametrize(("first", "second"), [("write", "read"), ("read", "write"), ("write", "write")])
def test_race_is_named(program, first, second):
    (line,) = run_program(program, "race", first, second, "no", environment={"WAVESMITH_HOST_RACECHECK": "1"})
    access = "store of 2 bytes at offset 22" if second == "write" else "load of 4 bytes at offset 20"
    past = "wrote" if first == "write" else "read"
    expected = f"kernel race, block (0, 0, 0), thread 3: LDS race: LDS {access}; thread 40 {past} the word at offset 20 with no barrier between"
    assert line == expected


@pytest.mark.parametrize("seed", range(4))
def test_race_is_found_in_any_order(program, seed):
    environment = {"WAVESMITH_HOST_RACECHECK": "1", "WAVESMITH_HOST_ORDER": str(seed)}
    for first, second in (("write", "read"), ("read", "write"), ("write", "write")):
        (line,) = run_program(program, "race", first, second, "no", environment=environment)
        assert "LDS race" in line and "thread 3" in line and "thread 40" in line
        assert run_program(program, "race", first, second, "barrier", environment=environment) == [""]


@pytest.mark.parametrize(
    ("arguments", "racecheck"),
    [
        (("write", "read", "barrier"), "1"),
        (("read", "write", "barrier"), "1"),
        (("write", "write", "barrier"), "1"),
        (("read", "read", "no"), "1"),
        (("write", "write", "no"), "0"),
        (("write", "write", "no", "fast"), "1"),
    ],
)
def test_race_checker_stays_quiet(program, arguments, racecheck):
    assert run_program(program, "race", *arguments, environment={"WAVESMITH_HOST_RACECHECK": racecheck}) == [""]


def test_random_order_shows_a_race_and_repeats(program):
    def results(kernel: str, seed: str | None) -> str:
        lines = run_program(program, "order", kernel, environment={} if seed is None else {"WAVESMITH_HOST_ORDER": seed})
        assert len(lines) == 2 and lines[0] == lines[1], "the result depends on the number of workers"
        return lines[0]

    seeds = [None, "1", "2", "3"]
    assert len({results("correct", seed) for seed in seeds}) == 1
    racy = [results("racy", seed) for seed in seeds]
    assert len(set(racy)) == len(seeds)
    assert racy == [results("racy", seed) for seed in seeds]


def test_order_of_blocks(program):
    def blocks(**environment: str) -> list[int]:
        (line,) = run_program(program, "block_order", environment=environment)
        return [int(word) for word in line.split()]

    assert blocks() == list(range(16))
    first, second = blocks(WAVESMITH_HOST_ORDER="1"), blocks(WAVESMITH_HOST_ORDER="2")
    assert sorted(first) == sorted(second) == list(range(16))
    assert first != second and list(range(16)) not in (first, second)


def test_empty_and_impossible_launches(program):
    assert run_program(program, "launches") == [
        *[""] * 5,
        "kernel mistake: 96 threads per block; expected a multiple of the wave size 64 up to 1024",
        "kernel mistake: 0 threads per block; expected a multiple of the wave size 64 up to 1024",
        "kernel mistake: 2048 threads per block; expected a multiple of the wave size 64 up to 1024",
        "kernel mistake: 65537 bytes of LDS; a block may have 65536",
        "kernel mistake: a grid of 2^32 or more blocks",
    ]


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "|0|0|0|0"),
        ({"WAVESMITH_HOST_CHECKED": "", "WAVESMITH_HOST_RACECHECK": "0", "WAVESMITH_HOST_ORDER": ""}, "|0|0|0|0"),
        ({"WAVESMITH_HOST_CHECKED": "1"}, "|1|0|0|0"),
        ({"WAVESMITH_HOST_RACECHECK": "1", "WAVESMITH_HOST_ORDER": "0"}, "|1|1|1|0"),
        ({"WAVESMITH_HOST_ORDER": "18446744073709551615"}, "|0|0|1|18446744073709551615"),
    ],
)
def test_environment(program, environment, expected):
    assert run_program(program, "options", environment=environment) == [expected]


@pytest.mark.parametrize(
    ("name", "value", "expectation"),
    [
        ("WAVESMITH_HOST_ORDER", "18446744073709551616", "a decimal seed below 2^64"),
        ("WAVESMITH_HOST_ORDER", "-1", "a decimal seed below 2^64"),
        ("WAVESMITH_HOST_ORDER", "7x", "a decimal seed below 2^64"),
        ("WAVESMITH_HOST_CHECKED", "yes", "0 or 1"),
        ("WAVESMITH_HOST_RACECHECK", "2", "0 or 1"),
    ],
)
def test_malformed_environment_stops_a_launch(program, name, value, expectation):
    (line,) = run_program(program, "race", "read", "read", "no", environment={name: value})
    assert line == f'{name} is "{value}"; expected {expectation}'
