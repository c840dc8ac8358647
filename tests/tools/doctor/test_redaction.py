"""Personal details never reach a record, and what is needed to compare sources survives."""

from hypothesis import given
from hypothesis import strategies as st
from wavesmith.doctor import amd_smi, kfd, rocminfo
from wavesmith.doctor.redaction import Redactor

from . import machines


def anna() -> Redactor:
    return Redactor("anna", "annas-box", "/home/anna")


def test_home_user_and_host():
    text = "/home/anna/rocm:/home/anna /data/anna/x user=anna host annas-box. /home/bob/lib /home/annabel/y\n"
    redacted = anna().text(text)
    assert redacted == "~/rocm:~ /data/$USER/x user=$USER host $HOSTNAME. /home/user1/lib /home/user2/y\n"
    assert anna().text(redacted) == redacted


def test_real_paths_come_back():
    redactor = anna()
    for path in ("/home/anna/rocm/bin", "/home/anna", "/data/anna/rocm", "/home/bob/lib/x", "/opt/rocm", "/mnt/annas-box/rocm"):
        redacted = redactor.text(path)
        assert "anna" not in redacted.replace("$", "") and "bob" not in redacted
        assert redactor.real(redacted) == path


def test_technical_words_are_not_taken_for_names():
    for name in ("amd", "render", "fedora", "root", "x"):
        text = "amdgcn-amd-amdhsa--gfx1100 ID=fedora group render root x"
        assert Redactor(name, name, "/srv/x").text(text) == text
    assert Redactor("rocky", "", "/home/rocky").text("rocky-linux rocky") == "rocky-linux $USER"


def test_serials_and_ids():
    text = machines.amd_smi_text((machines.XTX_NAME, "gfx1100", "0000:03:00.0", 0x744C, 96, 24560))
    redacted = anna().text(text)
    assert "3A7C9B21D0E4F600" in text and "3A7C9B21D0E4F600" not in redacted
    assert amd_smi.parse(redacted) == amd_smi.parse(text)
    assert anna().text('"product_serial": "N/A", "SERIAL_NUMBER": "PCB123"') == '"product_serial": "N/A", "SERIAL_NUMBER": "removed"'
    assert anna().text("  Serial Number:   692139000119  \n ASIC_SERIAL: N/A\n") == "  Serial Number:   removed\n ASIC_SERIAL: N/A\n"
    assert anna().text("UUID: 59ff744c-0000-1000-8064-5b8e99217f12") == "UUID: 00000000-0000-0000-0000-000000000001"


def test_equal_ids_stay_equal_across_sources():
    redactor = anna()
    record = machines.rx_7900_xtx()
    topology = kfd.parse_properties(redactor.text(record.files[f"{machines.NODES}/1/properties"]))
    (agent,) = rocminfo.parse(redactor.text(record.tools[("/opt/rocm/bin/rocminfo",)].stdout))
    assert topology["unique_id"] == agent.unique_id == 1
    assert redactor.text("GPU-a1ffc9d1799c317f,GPU-00000000deadbeef") == "GPU-0000000000000001,GPU-0000000000000002"
    assert redactor.text("unique_id 0") == "unique_id 0"


@given(st.text())
def test_redacting_twice_changes_nothing(text):
    redactor = anna()
    once = redactor.text(text)
    assert redactor.text(once) == once


@given(
    st.lists(
        st.sampled_from(["/home/anna", "anna", "/home/bob/", "annas-box", "GPU-a1ffc9d1799c317f", "unique_id 99999999", " ", "/", "x", "\n", '"serial": "77"'])
    )
)
def test_pieces_never_leak(pieces):
    redacted = anna().text(" ".join(pieces))
    for secret in ("anna", "bob", "a1ffc9d1", "99999999", "77"):
        assert secret not in redacted
