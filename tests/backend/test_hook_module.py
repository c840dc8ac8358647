"""The module of a GPU backend (ggml/hook_module.cpp) with a made-up backend and with kernels that run on the CPU in place of a GPU."""

from __future__ import annotations

from pathlib import Path

import module_builds
import pytest
from wavesmith import resources

pytestmark = pytest.mark.build

FAMILIES = 1 << 5 | 1 << 8  # rdna3 and cuda (arch/arch.h)


@pytest.fixture(scope="module")
def ask(cache_folder: Path, tmp_path_factory: pytest.TempPathFactory):
    """Runs the driver: what it printed, line by line, and its standard error."""
    ggml = module_builds.plain_ggml(module_builds.NEWEST, cache_folder)
    folder, backend = tmp_path_factory.mktemp("hook"), resources.backend()
    instance = (backend / "plan/mmq_instance.cpp.in").read_text().replace("@WAVESMITH_QUANT@", "q4_k").replace("@WAVESMITH_QUANT_STRUCT@", "Q4_K")
    (folder / "mmq_q4_k.cpp").write_text(instance)
    (folder / "mmq_types.inc").write_text("MMQ_TYPE(q4_k)\n")
    sources = [path for path in sorted((backend / "plan").glob("*.cpp")) if not path.name.startswith("host_")]
    sources += sorted((backend / "platform/host").glob("*.cpp"))
    sources += [backend / "ggml" / f"{name}.cpp" for name in ("environment", "hook_module", "ledger", "log", "op_match")]
    program = folder / "hook_driver"
    options = [
        "-DWAVESMITH_DEVICE_ON_HOST",
        f"-DWAVESMITH_FAMILIES={FAMILIES}",
        "-DWAVESMITH_ALL_ROWS=1",
        '-DWAVESMITH_VERSION="1"',
        "-ffp-contract=off",
        "-pthread",
    ]
    options += [f"-I{backend}", f"-I{backend}/hook", f"-I{folder}"]
    driver = Path(__file__).with_name("hook_driver.cpp")
    module_builds.compile_program(program, [driver, *sources, folder / "mmq_q4_k.cpp"], ggml.tree, ggml.libraries, *options, libraries=("ggml-base",))

    def run(arch: str = "gfx1100", lds: int = 65536, nodes: int = 10, **environment: str) -> tuple[dict[str, str], str]:
        result = module_builds.run(program, arch, lds, nodes, **environment)
        return dict(line.split(" ", 1) for line in result.stdout.splitlines()), result.stderr

    return run


@pytest.mark.parametrize("arch", ["gfx1100", "gfx1102:xnack-"])
def test_products_of_one_input_are_taken_together(ask, arch):
    said, errors = ask(arch, WAVESMITH_LEDGER="-", WAVESMITH_LOG="info")
    assert (said["module"], said["nodes"]) == ("wavesmith abi 1", "3")
    assert said["scratch"] == "1"  # the activations, quantised once
    assert float(said["error"]) < 0.05
    assert said["other"] == "0" and "no kernel for float weights on a GPU" in errors
    assert errors.count("wavesmith 1 on gfx") == 1 and "(rdna3): mmq" in errors
    assert "mmq rdna3 q4_K" in errors


def test_one_node_where_no_more_are_allowed(ask):
    assert ask(nodes=1)[0]["nodes"] == "1"


def test_cuda_takes_only_what_was_measured(ask):
    said, errors = ask("sm_90", lds=232448, WAVESMITH_LEDGER="-")
    assert said["nodes"] == "0" and said["scratch"] == "0" and "not measured to be as fast as stock" in errors
    said, errors = ask("sm_90", lds=232448, WAVESMITH_TAKE="all", WAVESMITH_LEDGER="-")
    assert said["nodes"] == "3" and float(said["error"]) < 0.05 and "mmq cuda q4_K" in errors


@pytest.mark.parametrize(
    ("arch", "lds", "message"),
    [
        ("gfx900", 65536, "this build has no kernels for gfx900"),
        ("gfx942", 65536, "this build has no kernels for gfx942"),
        ("sm_75", 65536, "this build has no kernels for sm_75"),
        ("gfx1100", 0, "gfx1100 reports no LDS"),
    ],
)
def test_a_card_that_cannot_be_used_runs_stock_with_one_warning(ask, arch, lds, message):
    said, errors = ask(arch, lds)
    assert said["nodes"] == "0" and said["other"] == "0" and said["scratch"] == "0"
    assert errors.count(f"{message}: stock runs everything") == 1


def test_switches(ask):
    assert ask(WAVESMITH="0")[0]["nodes"] == "0"
    said, errors = ask(WAVESMITH_KERNELS="-mmq", WAVESMITH_LEDGER="-")
    assert said["nodes"] == "0" and "WAVESMITH_KERNELS leaves out mmq" in errors
    said, errors = ask(WAVESMITH_LDS_LIMIT="4096", WAVESMITH_LEDGER="-")
    assert said["nodes"] == "0" and "WAVESMITH_LDS_LIMIT is 4096" in errors
    said, errors = ask(WAVESMITH_LDS_LIMIT="much")
    assert said["nodes"] == "0" and 'WAVESMITH_LDS_LIMIT is "much"; expected a number of bytes' in errors
    said, errors = ask(WAVESMITH_TAKE="some")
    assert said["nodes"] == "3" and "WAVESMITH_TAKE=some: expected measured or all" in errors
