"""What `wavesmith build` is for: the user's words, or the GPUs of the machine."""

from __future__ import annotations

import pytest
from doctor import machines
from wavesmith import build_plan, target_choice, targets
from wavesmith.doctor import examine
from wavesmith.doctor.probe import Probe
from wavesmith.errors import BadInput


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch):
    """Returns a function that puts a recorded machine in place of this one."""

    def use(machine) -> None:
        found = examine.examine(Probe(machine())).gpus
        monkeypatch.setattr(examine, "find_gpus", lambda: found)

    return use


def names(*words: str) -> list[str]:
    return [target.name for target in target_choice.choose(list(words)).targets]


@pytest.mark.parametrize("machine", machines.EXPECTED, ids=lambda machine: machine.__name__)
def test_without_words_it_is_the_doctors_answer(on, machine) -> None:
    on(machine)
    assert names() == machines.EXPECTED[machine][1]


def test_integrated_gpu_beside_a_discrete_one_is_left_out_and_that_is_said(on) -> None:
    on(machines.integrated_beside_discrete)
    choice = target_choice.choose([])
    assert [target.name for target in choice.targets] == ["gfx1100"]
    assert any("gfx1036" in note and "left out because the discrete GPU is faster" in note for note in choice.notes)


def test_no_gpu_means_host_and_that_is_said(on) -> None:
    on(machines.nothing)
    assert target_choice.choose([]).notes == ("target: no AMD GPU was found, so the kernels run on the CPU (host)",)


def test_two_different_cards_are_one_build_for_both(on) -> None:
    def mixed() -> machines.Record:
        record = machines.machine("arch")
        machines.kfd_cpu(record, 0)
        machines.kfd_gpu(record, 1, 110000, 96, memory=machines.XTX_MEMORY, **machines.XTX)
        machines.kfd_gpu(record, 2, 100300, 80, location=0x0B00, device=0x73BF, memory=16 * machines.GIB, minor=129)
        machines.device_files(record, 128, 129)
        return record

    on(mixed)
    assert names() == ["gfx1100", "gfx1030"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["gfx1100"], ["gfx1100"]),
        (["gfx1100,gfx1030"], ["gfx1100", "gfx1030"]),
        (["gfx1100", "host"], ["gfx1100", "host"]),
        (["rdna4"], ["gfx1200", "gfx1201"]),
        (["gfx120*"], ["gfx1200", "gfx1201"]),
        (["all"], list(targets.KERNEL_TARGETS)),
    ],
    ids=str,
)
def test_words(words: list[str], expected: list[str]) -> None:
    assert names(*words) == expected


def test_a_member_of_a_family_says_whose_kernels_it_runs() -> None:
    assert target_choice.choose(["gfx1101"]).notes == ("gfx1101 runs the rdna3 kernels, which are checked on gfx1100",)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("gfx1110", "unknown target 'gfx1110'; did you mean gfx1"),
        ("rnda3", "unknown target 'rnda3'; did you mean rdna3"),
        ("RX 7900", None),
        ("gfx7*", r"no supported target matches 'gfx7\*'"),
        ("gfx908", "there are no wavesmith kernels for gfx908: CDNA1"),
        ("gfx90a:xnack", "unknown feature in target"),
        ("cuda", "no builds for target cuda"),
        ("gfx90a,gfx90a:xnack-", "either with features or without"),
        (" ", "no target given"),
    ],
)
def test_bad_words_are_one_clear_line(word: str, message: str | None) -> None:
    with pytest.raises(BadInput, match=message) as caught:
        target_choice.choose([word])
    assert "\n" not in str(caught.value)


def test_many_targets_have_a_folder_name_of_sane_length() -> None:
    label = build_plan._folder_label(targets.resolve(["gfx1*"], []))
    assert label.startswith("gfx1030+") and label.endswith("-more")
    assert build_plan._folder_label(targets.resolve(["gfx90a:xnack-,host"], [])) == "gfx90a_xnack-+host"
