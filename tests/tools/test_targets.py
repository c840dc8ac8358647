"""The words for targets, and the choice the tool makes without one."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wavesmith import targets
from wavesmith.doctor.gpu import Gpu
from wavesmith.errors import BadInput
from wavesmith.targets import ARCHITECTURES, FAMILIES, KERNEL_TARGETS, resolve


def gpu(target: str, index: int | None = 0, override: str | None = None) -> Gpu:
    architecture = ARCHITECTURES.get(target)
    return Gpu(index=index, target=target, product=f"Card {target}", integrated=bool(architecture and architecture.integrated), override=override)


def names(*words: str) -> list[str]:
    return [target.name for target in resolve(list(words), [])]


def test_table_is_of_one_mind():
    for name, architecture in ARCHITECTURES.items():
        assert name == architecture.name
        assert architecture.supported == (architecture.kernel_target is not None) == (architecture.reason == "")
        if architecture.supported:
            assert architecture.family in FAMILIES and architecture.kernel_target in KERNEL_TARGETS
            assert ARCHITECTURES[architecture.kernel_target].family == architecture.family
            assert name.endswith("-generic") == architecture.generic == (architecture.code_object_version == 6)
    devices = [device for architecture in ARCHITECTURES.values() for device in architecture.devices]
    assert len(devices) == len(set(devices))
    assert {ARCHITECTURES[name].family for name in KERNEL_TARGETS} == set(FAMILIES)
    assert all(ARCHITECTURES[name].kernel_target == name for name in KERNEL_TARGETS)


def test_gcn_apus_are_not_cdna():
    for name in ("gfx90c", "gfx909"):
        assert ARCHITECTURES[name].family is None and "not a CDNA" in ARCHITECTURES[name].reason
        with pytest.raises(BadInput, match=name):
            resolve([name], [])


@pytest.mark.parametrize(
    ("version", "name"),
    [
        (90010, "gfx90a"),
        (90012, "gfx90c"),
        (90402, "gfx942"),
        (90500, "gfx950"),
        (90006, "gfx906"),
        (100300, "gfx1030"),
        (100306, "gfx1036"),
        (110000, "gfx1100"),
        (110501, "gfx1151"),
        (120001, "gfx1201"),
        (0, None),
        (119900, None),
        (110099, None),
        (10**12, None),
    ],
)
def test_kfd_versions(version, name):
    assert targets.from_kfd_version(version) == name


@pytest.mark.parametrize(
    ("text", "name"), [("10.3.0", "gfx1030"), (" 9.0.10 ", "gfx90a"), ("11.5.1", "gfx1151"), ("11.5", None), ("gfx1100", None), ("1.99.1", None), ("", None)]
)
def test_override_versions(text, name):
    assert targets.from_override(text) == name


@pytest.mark.parametrize(
    ("text", "split"),
    [
        ("gfx90a:sramecc+:xnack-", ("gfx90a", ("sramecc+", "xnack-"))),
        ("amdgcn-amd-amdhsa--gfx11-generic", ("gfx11-generic", ())),
        ("amdgcn-amd-amdhsa--gfx9-4-generic:sramecc+:xnack-", ("gfx9-4-generic", ("sramecc+", "xnack-"))),
        (" GFX1100\n", ("gfx1100", ())),
        ("gfx", None),
        ("AMD Ryzen 9", None),
        ("gfx1100 and more", None),
    ],
)
def test_canonical(text, split):
    assert targets.canonical(text) == split


def test_words():
    assert names("gfx1100") == ["gfx1100"]
    assert names("host", "cuda") == ["host", "cuda"]
    assert names("all") == list(KERNEL_TARGETS)
    assert names("rdna3") == ["gfx1100", "gfx1101", "gfx1102", "gfx1103"]
    assert names("rdna3.5") == ["gfx1150", "gfx1151", "gfx1152", "gfx1153"]
    assert names("gfx115*") == names("RDNA3.5")
    assert names("gfx11*") == names("rdna3") + names("rdna3.5")
    assert names("gfx103[01]") == ["gfx1030", "gfx1031"]
    assert names("gcn") == ["gfx906"] and names("cdna4") == ["gfx950"]
    assert names("gfx90?") == ["gfx906", "gfx90a"]


def test_lists_in_order_each_once():
    assert names("gfx1201,gfx1100;gfx1201 host", "gfx1100", "rdna3") == ["gfx1201", "gfx1100", "host", "gfx1101", "gfx1102", "gfx1103"]


def test_relatives_run_the_kernels_of_their_family():
    expected = {"gfx1101": "gfx1100", "gfx1102": "gfx1100", "gfx1150": "gfx1151", "gfx1152": "gfx1151", "gfx1153": "gfx1151", "gfx1031": "gfx1030"}
    for name, kernel_target in expected.items():
        (target,) = resolve([name], [])
        assert (target.platform, target.kernel_target) == ("hip", kernel_target) and kernel_target in target.note
    (target,) = resolve(["gfx1100"], [])
    assert target.note == "" and target.code_object_version is None


def test_generic_targets_need_code_object_version_6():
    for name, family in (("gfx11-generic", "rdna3"), ("gfx10-3-generic", "rdna2"), ("gfx9-4-generic", "cdna3"), ("gfx12-generic", "rdna4")):
        (target,) = resolve([name], [])
        assert (target.family, target.code_object_version) == (family, 6) and "code object version 6" in target.note
    with pytest.raises(BadInput, match="dot4"):
        resolve(["gfx9-generic"], [])


def test_features():
    (target,) = resolve(["gfx90a:sramecc+:xnack-"], [])
    assert (target.name, target.features, target.compiler_name) == ("gfx90a", ("sramecc+", "xnack-"), "gfx90a:sramecc+:xnack-")
    with pytest.raises(BadInput, match="unknown feature"):
        resolve(["gfx90a:fast+"], [])


@pytest.mark.parametrize(
    ("word", "offered"),
    [
        ("gfx110", "gfx1100"),
        ("gfx1110", "gfx1100"),
        ("gx1151", "gfx1151"),
        ("rnda3", "rdna3"),
        ("rdna-3.5", "rdna3.5"),
        ("hots", "host"),
        ("7900xtx", "gfx1100"),
        ("rx-9070", "gfx1201"),
        ("MI300X", "gfx942"),
        ("8060S", "gfx1151"),
        ("navi", None),
        ("zzzzzz", None),
    ],
)
def test_typos_are_offered_the_nearest(word, offered):
    with pytest.raises(BadInput) as caught:
        resolve([word], [])
    message = str(caught.value)
    assert f"unknown target '{word}'" in message and "\n" not in message
    if offered:
        assert re.search(rf"did you mean .*\b{re.escape(offered)}", message)
    else:
        assert "known are" in message


@pytest.mark.parametrize("words", [[""], [","], [" ; "], ["gfx99*"], ["gfx1010"], ["gfx908"], ["gfx1100:"], ["["]])
def test_bad_words(words):
    with pytest.raises(BadInput):
        resolve(words, [])


def test_no_word_takes_what_was_found():
    assert [target.name for target in resolve(None, [gpu("gfx1036"), gpu("gfx1100", 1)])] == ["gfx1100"]
    assert [target.name for target in resolve([], [gpu("gfx1151")])] == ["gfx1151"]
    assert [target.name for target in resolve(None, [gpu("gfx1201"), gpu("gfx1030", 1), gpu("gfx1201", 2)])] == ["gfx1201", "gfx1030"]
    assert [target.name for target in resolve(None, [gpu("gfx1100", None), gpu("gfx1030", 0)])] == ["gfx1030"]
    assert [target.name for target in resolve(None, [gpu("gfx1100", None)])] == ["gfx1100"]
    assert [target.name for target in resolve(None, [gpu("gfx1031", override="gfx1030")])] == ["gfx1030"]
    assert [target.name for target in resolve(None, [gpu("gfx900"), gpu("gfx1036", 1)])] == ["gfx1036"]


def test_without_a_gpu_it_is_the_host_and_the_note_says_why():
    (target,) = resolve(None, [])
    assert (target.name, target.platform) == ("host", "host") and "no AMD GPU" in target.note
    (target,) = resolve(None, [gpu("gfx90c")])
    assert target.name == "host" and "gfx90c" in target.note
    assert resolve(["host"], [gpu("gfx1100")]) == [targets.HOST]


@given(st.text())
def test_any_word_gives_targets_or_bad_input(word):
    try:
        assert resolve([word], [])
    except BadInput as error:
        assert str(error)
    targets.canonical(word)
    targets.from_override(word)


@given(st.integers(min_value=0, max_value=2**64))
def test_any_version_gives_a_gfx_name_or_none(version):
    name = targets.from_kfd_version(version)
    assert name is None or re.fullmatch(r"gfx\d{1,2}[0-9a-f]{2}", name)
