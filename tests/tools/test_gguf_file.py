"""gguf_file: sound files are read, every fault is one line that names the file."""

from __future__ import annotations

import os
import resource
import struct
import time
from pathlib import Path

import pytest
from gguf_bytes import ARRAY, F32, INT32, Q4_K, STRING, UINT8, Gguf, array, int32, key, small, string, tensor, text, uint16, uint32
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from wavesmith import model_generator
from wavesmith.errors import BadInput
from wavesmith.gguf_file import GgufFile, Model

TIB = 1 << 40


def written(folder: Path, content: bytes | Gguf, name: str = "m.gguf") -> Path:
    path = folder / name
    path.write_bytes(content.bytes() if isinstance(content, Gguf) else content)
    return path


def fault(path: Path) -> str:
    """The one line of the refusal."""
    with pytest.raises(BadInput) as caught:
        Model.open(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ") or path.name.split("-")[0] in message
    assert "\n" not in message
    return message


def test_reads_a_sound_file(tmp_path):
    model = Model.open(written(tmp_path, small()))
    assert model.architecture == "llama"
    assert model.get("tokens") == ["a", "bc", ""]
    assert model.get("numbers") == [1, -2, 3, 4]
    assert model.get("nested") == [[7, 8], []]
    assert model.get("absent", 5) == 5
    q = model.by_name["blk.0.attn_q.weight"]
    assert (q.type_name, q.type_number, q.ne, q.dimensions, q.row_bytes, q.nbytes) == ("Q4_K", Q4_K, (256, 2, 1, 1), 2, 144, 288)
    assert q.data.shape == (2, 144)
    assert q.data.tobytes() == small().data[32 : 32 + 288]
    assert not q.data.flags.writeable


def test_version_2_is_read(tmp_path):
    file = small()
    file.version = struct.pack("<I", 2)
    assert GgufFile(written(tmp_path, file)).version == 2


@pytest.mark.parametrize("mix", ["Q4_K_M", "Q2_K", "F16", "BF16", "IQ4_XS"])
@pytest.mark.parametrize("preset", ["tiny", "tiny-moe"])
def test_agrees_with_gguf(tmp_path, mix, preset):
    from gguf import GGUFReader

    path = model_generator.generate(tmp_path / "g.gguf", preset, mix)
    ours = Model.open(path).by_name
    theirs = {t.name: t for t in GGUFReader(path).tensors}
    assert ours.keys() == theirs.keys()
    for name, expected in theirs.items():
        tensor = ours[name]
        assert (tensor.type_number, tensor.offset, tensor.nbytes) == (int(expected.tensor_type), expected.data_offset, expected.n_bytes)
        assert tensor.ne[: tensor.dimensions] == tuple(expected.shape.tolist())
        assert tensor.data.tobytes() == expected.data.tobytes()


# The file itself -----------------------------------------------------------------------------------------------------


def test_no_such_file(tmp_path):
    assert "no such file" in fault(tmp_path / "none.gguf")


def test_folder(tmp_path):
    (tmp_path / "d.gguf").mkdir()
    assert "is a folder" in fault(tmp_path / "d.gguf")


def test_fifo_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "f.gguf")
    assert "not a regular file" in fault(tmp_path / "f.gguf")


def test_empty(tmp_path):
    assert "is empty" in fault(written(tmp_path, b""))


def test_not_readable(tmp_path, monkeypatch):
    path = written(tmp_path, small())

    def refuse(*_args, **_kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    assert "cannot be opened: Permission denied" in fault(path)


def test_name_with_a_line_break_stays_one_line(tmp_path):
    with pytest.raises(BadInput) as caught:
        Model.open(written(tmp_path, b"nonsense", "a\nb.gguf"))
    assert "a\\nb.gguf" in str(caught.value)
    assert "\n" not in str(caught.value)


# The header ----------------------------------------------------------------------------------------------------------


def with_tensors(*tensors: bytes, data: bytes = b"\0" * 4096, keys: list[bytes] | None = None) -> Gguf:
    return Gguf(keys=keys or [text("general.architecture", "llama")], tensors=list(tensors), data=data)


def with_keys(*keys: bytes) -> Gguf:
    return Gguf(keys=list(keys), tensors=[tensor("t", (4,))], data=b"\0" * 64)


def nested(depth: int) -> bytes:
    """An array in an array in an array ... of one uint8."""
    value = struct.pack("<IQB", UINT8, 1, 0)
    for _ in range(depth - 1):
        value = struct.pack("<IQ", ARRAY, 1) + value
    return key("deep", ARRAY, value)


FAULTS = {
    "not a GGUF": (Gguf(magic=b"PK\3\4"), "is not a GGUF file"),
    "version 65536": (Gguf(version=struct.pack("<I", 65536)), "has the unknown GGUF version 65536"),
    "big-endian": (Gguf(version=struct.pack(">I", 3)), "is a big-endian GGUF file (version 3)"),
    "version 1": (Gguf(version=struct.pack("<I", 1)), "unknown GGUF version 1"),
    "version 0": (Gguf(version=struct.pack("<I", 0)), "unknown GGUF version 0"),
    "version 4": (Gguf(version=struct.pack("<I", 4)), "unknown GGUF version 4"),
    "absurd tensor count": (Gguf(tensor_count=1 << 62), "absurd number of tensors"),
    "absurd key count": (Gguf(key_count=1 << 63), "absurd number of metadata keys"),
    "more tensors than bytes": (Gguf(tensor_count=1 << 19), "truncated, or an absurd count: 524288 tensors"),
    "more keys than bytes": (Gguf(key_count=100_000), "truncated, or an absurd count: 100000 metadata keys"),
    "absurd string": (with_keys(key("s", STRING, struct.pack("<Q", TIB))), "absurd length of value of 's'"),
    "string past the end": (with_keys(key("s", STRING, struct.pack("<Q", 1 << 20))), "truncated: value of 's'"),
    "absurd key name": (with_keys(struct.pack("<Q", TIB)), "absurd length of name of metadata key 0"),
    "absurd array": (with_keys(array("a", INT32, 1 << 60, b"")), "absurd array length of value of 'a'"),
    "absurd string array": (with_keys(array("a", STRING, 1 << 60, b"")), "absurd array length of value of 'a'"),
    "absurd inner array": (with_keys(array("a", ARRAY, 1, struct.pack("<IQ", UINT8, TIB))), "absurd array length of an element of value of 'a'"),
    "too deep": (with_keys(nested(8)), "nested more than 3 deep"),
    "unknown value type": (with_keys(key("k", 77, b"\0" * 8)), "'k' has the unknown value type 77"),
    "unknown element type": (with_keys(array("k", 77, 1, b"\0" * 8)), "'k' has the unknown element type 77"),
    "key twice": (with_keys(uint32("k", 1), uint32("k", 2)), "has the metadata key 'k' twice"),
    "key not UTF-8": (with_keys(string(b"\xff\xfe") + struct.pack("<IB", UINT8, 0)), "is not UTF-8"),
    "empty key": (with_keys(string("") + struct.pack("<IB", UINT8, 0)), "is empty or contains a NUL"),
    "alignment 0": (with_keys(uint32("general.alignment", 0)), "wrong general.alignment: 0 is not a power of two"),
    "alignment 24": (with_keys(uint32("general.alignment", 24)), "wrong general.alignment: 24 is not a power of two"),
    "alignment of another type": (with_keys(int32("general.alignment", 32)), "general.alignment should be a uint32, it is a int32"),
    "name of 64 bytes": (with_tensors(tensor("n" * 64, (4,))), "has 64 bytes; ggml allows at most 63"),
    "name of 60000 bytes": (with_tensors(tensor("n" * 60000, (4,))), "has 60000 bytes"),
    "absurd name": (with_tensors(struct.pack("<Q", TIB) + b"\0" * 40), "absurd length of a tensor's name"),
    "name with a NUL": (with_tensors(tensor("a\0b", (4,))), "is empty or contains a NUL"),
    "name not UTF-8": (with_tensors(tensor(b"\xff", (4,))), "is not UTF-8"),
    "name twice": (with_tensors(tensor("a", (4,)), tensor("a", (4,), offset=32)), "has the tensor name 'a' twice"),
    "five dimensions": (with_tensors(tensor("a", (1, 1, 1, 1, 1))), "has 5 dimensions, at most 4"),
    "zero-sized": (with_tensors(tensor("a", (4, 0))), "has a zero-sized dimension 1: [4, 0]"),
    "product overflows": (with_tensors(tensor("a", (1 << 40, 1 << 40))), "too many elements for 63 bits"),
    "product wraps to small": (with_tensors(tensor("a", (1 << 32, 1 << 32))), "too many elements for 63 bits"),
    "not whole blocks": (with_tensors(tensor("a", (255, 2), Q4_K)), "rows of 255 values, not a multiple of Q4_K's block of 256"),
    "misaligned": (with_tensors(tensor("a", (4,), offset=16)), "misaligned offset 16; general.alignment is 32"),
    "data past the end": (with_tensors(tensor("a", (4096,))), "truncated: data of tensor 'a' needs 16384 bytes"),
    "offset past the end": (with_tensors(tensor("a", (4,), offset=TIB)), "truncated: data of tensor 'a'"),
    "overlap": (with_tensors(tensor("a", (64,)), tensor("b", (4,), offset=64)), "tensors 'a' and 'b' overlap"),
    "same place": (with_tensors(tensor("a", (4,)), tensor("b", (4,))), "overlap"),
    "unknown type past the end": (with_tensors(tensor("a", (4,), 999, TIB)), "truncated: tensor 'a' starts at"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults(tmp_path, name):
    content, expected = FAULTS[name]
    assert expected in fault(written(tmp_path, content))


def test_every_truncation_is_refused(tmp_path):
    whole = small().bytes()
    used = len(small().bytes()) - len(small().data) + 32 + 288 + 3 * 34
    for end in range(used):
        assert fault(written(tmp_path, whole[:end]))
    Model.open(written(tmp_path, whole[:used]))


def test_a_tensor_of_an_unknown_type_is_listed_and_the_rest_goes_on(tmp_path):
    model = Model.open(written(tmp_path, with_tensors(tensor("odd", (7, 3), 999), tensor("plain", (4,), F32, 1024))))
    odd, plain = model.tensors
    assert (odd.type_number, odd.type_name, odd.nbytes) == (999, None, None)
    assert plain.data.shape == (1, 16)
    with pytest.raises(BadInput, match="'odd' has the unknown type 999"):
        _ = odd.data


def test_a_claimed_length_costs_neither_memory_nor_time(tmp_path):
    """Every fault above, within an address space that holds no gigabyte more than now, and within a second."""
    paths = [written(tmp_path, content, f"{i}.gguf") for i, (content, _) in enumerate(FAULTS.values())]
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    started = time.process_time()
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (1 << 30), before[1]))
    try:
        for path in paths:
            with pytest.raises(BadInput):
                Model.open(path)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    assert time.process_time() - started < 1


# Split files ---------------------------------------------------------------------------------------------------------


def part(number: int, count: int, name: str, tensors: int = 3) -> Gguf:
    keys = [text("general.architecture", "llama"), uint16("split.no", number), uint16("split.count", count), int32("split.tensors.count", tensors)]
    return Gguf(keys=keys, tensors=[tensor(name, (4,))], data=struct.pack("<4f", number, 0, 0, 0))


def write_parts(folder: Path, count: int = 3, skip: int | None = None, **changes) -> list[Path]:
    paths = [folder / f"m-{i + 1:05d}-of-{count:05d}.gguf" for i in range(count)]
    for i, path in enumerate(paths):
        if i != skip:
            path.write_bytes(part(i, count, f"t{i}", **changes).bytes())
    return paths


@pytest.mark.parametrize("given", [0, 1, 2])
def test_a_complete_set_is_one_model(tmp_path, given):
    model = Model.open(write_parts(tmp_path)[given])
    assert [t.name for t in model.tensors] == ["t0", "t1", "t2"]
    assert [struct.unpack("<f", t.data.tobytes()[:4])[0] for t in model.tensors] == [0, 1, 2]
    assert model.path.name == "m-00001-of-00003.gguf"


def test_missing_part(tmp_path):
    paths = write_parts(tmp_path, skip=1)
    assert "is part 1 of 3, but m-00002-of-00003.gguf is missing" in fault(paths[0])
    assert "is part 3 of 3, but m-00002-of-00003.gguf is missing" in fault(paths[2])


def test_part_under_another_name(tmp_path):
    assert "should end in -00001-of-00002.gguf" in fault(written(tmp_path, part(0, 2, "a")))


def test_wrong_part_in_the_set(tmp_path):
    paths = write_parts(tmp_path)
    paths[2].write_bytes(part(1, 3, "t9").bytes())
    assert "should be split.no 2 of 3, but says 1 of 3" in fault(paths[0])


def test_broken_part_is_named(tmp_path):
    paths = write_parts(tmp_path)
    paths[1].write_bytes(b"GGUF")
    with pytest.raises(BadInput, match="m-00002-of-00003.gguf: truncated"):
        Model.open(paths[0])


def test_tensor_in_two_parts(tmp_path):
    paths = write_parts(tmp_path)
    paths[2].write_bytes(part(2, 3, "t0").bytes())
    assert "tensor 't0' is also in m-00001-of-00003.gguf" in fault(paths[0])


def test_wrong_tensor_count(tmp_path):
    assert "split.tensors.count is 4, but the 3 parts hold 3" in fault(write_parts(tmp_path, tensors=4)[0])


def test_part_number_out_of_range(tmp_path):
    assert "split.no is 5, but split.count is 2" in fault(written(tmp_path, part(5, 2, "a"), "m-00006-of-00002.gguf"))


def test_split_count_of_another_type(tmp_path):
    file = Gguf(keys=[text("split.count", "three")], tensors=[tensor("a", (4,))], data=b"\0" * 32)
    assert "split.count should be an integer" in fault(written(tmp_path, file))


# Anything ------------------------------------------------------------------------------------------------------------

_WHOLE = small().bytes()
_HEADER_END = len(_WHOLE) - len(small().data)
_PATCHES = st.lists(
    st.tuples(st.integers(0, _HEADER_END - 1), st.one_of(st.binary(min_size=1, max_size=8), st.integers(0, 2**64 - 1).map(lambda n: struct.pack("<Q", n)))),
    min_size=1,
    max_size=4,
)


def read_everything(path: Path) -> None:
    """Opens a file and looks at all of it; only BadInput may come out."""
    try:
        model = Model.open(path)
        for part in model.parts:
            for name in part.keys:
                part.get(name)
        for item in model.tensors:
            if item.type_name is not None:
                item.data.sum()
    except BadInput as error:
        assert "\n" not in str(error)


@settings(max_examples=600, deadline=2000, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(patches=_PATCHES, end=st.integers(0, len(_WHOLE)) | st.none())
def test_mutations_give_bad_input_or_a_model(tmp_path, patches, end):
    content = bytearray(_WHOLE)
    for offset, value in patches:
        content[offset : offset + len(value)] = value
    read_everything(written(tmp_path, bytes(content[:end])))


@settings(max_examples=200, deadline=2000, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rest=st.binary(max_size=200))
def test_noise_gives_bad_input_or_a_model(tmp_path, rest):
    read_everything(written(tmp_path, b"GGUF\3\0\0\0" + rest))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("m-00001-of-00002.gguf", "has the name of part 1 of 2, but m-00002-of-00002.gguf is missing beside it"),
        ("m-00003-of-00002.gguf", "has the name of part 3 of 2"),
        ("m-00000-of-00002.gguf", "has the name of part 0 of 2"),
    ],
)
def test_the_name_of_a_part_without_the_others(tmp_path, name, message):
    assert message in fault(written(tmp_path, small(), name))


def test_the_name_of_an_only_part(tmp_path):
    assert len(Model.open(written(tmp_path, small(), "m-00001-of-00001.gguf")).parts) == 1
