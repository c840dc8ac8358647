"""Rules that keep the code legible, checked on every tracked source file: what may be said where, and how long a file may get."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
MAX_LINES = 600
MAX_TEST_LINES = 800
SOURCES = {".py", ".h", ".hpp", ".cpp", ".c", ".cu", ".cuh", ".hip", ".in", ".inc", ".cmake"}

# Rule, what it forbids in backend/ (outside comments), and the folders where it is allowed.
BACKEND_RULES = {
    "intrinsics only in arch/ and platform/": (
        r"__builtin_amdgcn_|\b_mm\d*_\w+|immintrin\.h|\b__asm__\b|\basm\s*(volatile)?\s*\(|__dp4a",
        ("arch", "platform"),
    ),
    "platform names only in platform/": (
        r"\bhip[A-Z]\w+|\bcuda[A-Z]\w+|\b(hip|cuda)_runtime\b|__HIPCC__|__CUDACC__|__CUDA_ARCH__|\bthreadIdx\b|\bblockIdx\b|__syncthreads|__shfl|\b__global__\b",
        ("platform",),
    ),
    "ggml's structs only in ggml/": (r"\bstruct ggml_\w+|\bggml_(tensor|cgraph|backend\w*)\b|#\s*include\s*[<\"]ggml", ("ggml", "hook")),
    "stock's own kernels are never included": (r"#\s*include\s*[<\"].*(mmq|mmvq|common)\.cuh", ()),
}


def tracked() -> list[Path]:
    """Every tracked file, and those that would be; nothing that git ignores."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")
    except (FileNotFoundError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listing if name and (ROOT / name).is_file()]


def without_comments(path: Path) -> list[str]:
    """Lines of a C++ file with comments blanked, so that prose may name what code may not."""
    text = path.read_text(errors="replace")
    text = re.sub(r"/\*.*?\*/", lambda found: "\n" * found[0].count("\n"), text, flags=re.DOTALL)
    return [re.sub(r"//.*", "", line) for line in text.splitlines()]


@pytest.mark.parametrize("rule", BACKEND_RULES)
def test_backend_rule(rule: str) -> None:
    pattern, allowed = BACKEND_RULES[rule]
    found = []
    for path in tracked():
        parts = path.relative_to(ROOT).parts
        if parts[0] != "backend" or path.suffix not in SOURCES - {".cmake", ".py"} or parts[1] in allowed:
            continue
        found += [f"{path.relative_to(ROOT)}:{number}: {line.strip()}" for number, line in enumerate(without_comments(path), 1) if re.search(pattern, line)]
    assert not found, f"{rule}:\n" + "\n".join(found)


def test_no_source_file_is_too_long() -> None:
    lengths = {path.relative_to(ROOT): len(path.read_text(errors="replace").splitlines()) for path in tracked() if path.suffix in SOURCES}
    assert len(lengths) > 50
    too_long = {str(path): length for path, length in lengths.items() if length > (MAX_TEST_LINES if path.parts[0] == "tests" else MAX_LINES)}
    assert not too_long


def test_no_unfinished_work_is_left() -> None:
    marks = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b|raise Not" r"ImplementedError|assert Tr" r"ue\b")
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in tracked()
        if path.suffix in SOURCES
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if marks.search(line)
    ]
    assert not found


def test_no_path_of_one_machine_is_tracked() -> None:
    paths = re.compile(r"(?<![\w.])/(root|work|tmp)/")
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in tracked()
        if path.suffix in SOURCES | {".md", ".toml", ".txt", ".json"} or path.name == "run"
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if paths.search(line) and path != Path(__file__)
    ]
    assert not found


def test_environment_variables_are_read_in_one_place() -> None:
    """wavesmith's own variables are read through settings.py, which lists them all."""
    reads = re.compile(r"os\.(environ\.get\(|environ\[|getenv\()\s*['\"]WAVESMITH(?!.*\] = )")
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / "tools").rglob("*.py"))
        if path.name != "settings.py"
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if reads.search(line)
    ]
    assert not found


def test_settings_page_lists_every_setting() -> None:
    from wavesmith import settings

    page = (ROOT / "docs" / "settings.md").read_text()
    for setting in settings.SETTINGS:
        default = f"`{setting.default}`" if setting.default else ""
        assert f"| `{setting.name}` | {default} | {setting.read_by} | {setting.meaning} |" in page


def test_every_variable_in_the_sources_is_a_setting() -> None:
    from wavesmith import settings

    read = re.compile(r"\"(WAVESMITH(?:_[A-Z]+)*)\"")
    found = {}
    for path in tracked():
        parts = path.relative_to(ROOT).parts
        if parts[0] == "backend" and parts[1] in ("ggml", "platform") and path.suffix in (".h", ".cpp"):
            found.update({name: path.name for line in without_comments(path) for name in read.findall(line)})
    device_name_only = {"WAVESMITH"}
    assert set(found) - device_name_only <= set(settings.BY_NAME), found


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))])
def test_links_between_pages_lead_somewhere(page: str) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / page).read_text())
    assert all(((ROOT / page).parent / target).exists() for target in targets), targets


def test_ci_takes_its_command_from_the_readme() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    extract = re.search(r"^command=\$\((.*)\)$", script, re.MULTILINE)[1]
    shown = subprocess.run(["bash", "-c", extract], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    assert shown.endswith(".venv/bin/pytest")
    assert shown in (ROOT / "README.md").read_text()
    assert "\n" not in shown
