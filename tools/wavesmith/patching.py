"""Adds the hook for custom kernels to a llama.cpp tree, and takes it out again.

Everything is planned in memory before a byte is written; a refusal leaves the tree as it was. Line endings, file modes and
whatever else was edited in the files are kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from . import anchors, hunks, replace_files
from .errors import DISK_FULL, BadInput, CannotBuild, PatchRefused

APPLIES = "applies"
APPLIED = "applied"
MISSING = "missing"
AMBIGUOUS = "ambiguous"
WRONG_PLACE = "wrong function"
EDITED = "edited"
UNREADABLE = "unreadable"
FOREIGN = "other patch"
UNSUPPORTED = "unsupported version"


@dataclass(frozen=True)
class HunkState:
    """What one hunk finds in a tree. `state` is one of the constants above; `detail` says more where it is a refusal."""

    name: str
    file: str
    anchor: str  # first line, stripped; "" for a whole file
    state: str
    detail: str = ""


@dataclass(frozen=True)
class AnchorPlace:
    """One occurrence of an anchor: `line` counts from 1, `where` is a phrase such as "in foo(int x)", `fits` as `inside` demands."""

    line: int
    where: str
    fits: bool


@dataclass(frozen=True)
class _Plan:
    states: list[HunkState]
    present: dict[str, bytes]  # files as they are
    without: dict[str, bytes | None]  # the same with all of the patch taken out; None: the file is not there
    patched: dict[str, bytes]  # the same with all of the patch put in


def patch_set_id() -> str:
    """Sixteen hexadecimal digits that change with every change of the patch."""
    return hunks.load().identity


def check(tree: Path | str) -> list[HunkState]:
    """The state of every hunk in a llama.cpp tree. BadInput where the folder is not one."""
    return _plan(Path(tree), hunks.load()).states


def can_apply(states: Iterable[HunkState]) -> bool:
    """True where the whole patch can be applied or is applied."""
    return len({state.state for state in states} - {APPLIES}) == 0 or len({state.state for state in states} - {APPLIED}) == 0


def refuse_other_patches(tree: Path | str) -> None:
    """PatchRefused, naming the other one, where a tree has another kernel patch. Nothing is written."""
    for state in check(tree):
        if state.state == FOREIGN:
            raise PatchRefused(f"{tree}: {state.detail}; two kernel patches in one tree would both want the same operations; nothing was changed")


def anchor_places(tree: Path | str) -> dict[hunks.Insert, list[AnchorPlace]]:
    """Where the anchor of every insert for this tree's version is, with the patch taken out. No entry where the file cannot be read."""
    tree = Path(tree)
    check_tree(tree)
    inserts = [insert for insert in hunks.load().inserts if _is_for(insert.ggml, ggml_version(tree))]
    found: dict[hunks.Insert, list[AnchorPlace]] = {}
    for insert in inserts:
        try:
            present = _read(_inside_tree(tree, insert.file)).decode("latin-1")
        except PatchRefused:
            continue
        base, _ = _take_out(present, [other for other in inserts if other.file == insert.file])
        found[insert] = [
            AnchorPlace(base.count("\n", 0, match.start()) + 1, anchors.describe(where), anchors.lies_inside(where, insert.inside, insert.language))
            for match, where in _occurrences(base, insert)
        ]
    return found


def apply(tree: Path | str) -> bool:
    """Applies the patch; returns False where it is applied already. PatchRefused, with nothing changed, where it cannot be."""
    plan = _plan(Path(tree), hunks.load())
    if _is_uniform(tree, plan.states, APPLIED):
        return False
    _write(Path(tree), plan.present, plan.patched)
    return True


def revert(tree: Path | str, say: Callable[[str], None] | None = None) -> bool:
    """Takes the patch out again, byte for byte; returns False where there is none. PatchRefused where its text was edited.

    What was edited around its text stays as it is. say: told about added files that were gone or changed, one line each.
    """
    plan = _plan(Path(tree), hunks.load(), reverting=True)
    states, remarks = _settle_files(plan.states)
    if _is_uniform(tree, states, APPLIES):
        return False
    _write(Path(tree), plan.present, plan.without)
    for remark in remarks if say else ():
        say(remark)
    return True


def _settle_files(states: list[HunkState]) -> tuple[list[HunkState], list[str]]:
    """The states that a revert goes by, and remarks: added files may be gone already, or all that is left of the patch."""
    files, inserts = [state for state in states if not state.anchor], [state for state in states if state.anchor]
    remarks = [f"{state.file} {state.detail}; removed" for state in files if state.state == APPLIED and state.detail]
    kinds = {state.state for state in inserts}
    if kinds == {APPLIED}:
        gone = [state for state in files if state.state == APPLIES]
        return [state for state in states if state not in gone], [*remarks, *(f"{state.file} was gone already" for state in gone)]
    there = [state for state in files if state.state != APPLIES]
    if kinds == {APPLIES} and there:
        return there, [*remarks, "only files that the patch adds were left of it"]
    return states, remarks


def unified_diff(tree: Path | str) -> str:
    """The patch as a unified diff against `tree`, for `git apply` and `patch -p1`. PatchRefused where it does not apply."""
    plan = _plan(Path(tree), hunks.load())
    _is_uniform(tree, plan.states, APPLIED)
    return "".join(_diff_of_file(file, plan.without[file], new) for file, new in sorted(plan.patched.items()))


def ggml_version(tree: Path | str) -> str | None:
    """The version of ggml that a tree holds, such as "0.25.3"; None where ggml/CMakeLists.txt does not say."""
    text = _read(Path(tree) / "ggml" / "CMakeLists.txt").decode("latin-1")
    parts = [re.search(rf"^\s*set\s*\(GGML_VERSION_{part}\s+(\d+)\s*\)", text, re.MULTILINE) for part in ("MAJOR", "MINOR", "PATCH")]
    return ".".join(part[1] for part in parts) if all(parts) else None


def check_tree(tree: Path | str) -> None:
    """BadInput where a folder is not a llama.cpp tree."""
    tree = Path(tree)
    if not tree.is_dir():
        raise BadInput(f"{tree}: not a folder")
    for part in ("ggml/CMakeLists.txt", "ggml/src/CMakeLists.txt"):
        if not (tree / part).is_file():
            raise BadInput(f"{tree}: not a llama.cpp tree ({part} is missing)")


def _is_uniform(tree: Path | str, states: list[HunkState], wanted: str) -> bool:
    """True where every hunk has the state `wanted`, False where every hunk has the opposite one; PatchRefused otherwise."""
    for state in states:
        if state.state not in (APPLIES, APPLIED):
            where = f"{state.file}: " if state.file else ""
            raise PatchRefused(f"{where}hunk '{state.name}': {state.state}: {state.detail}; nothing was changed")
    applied = [state.name for state in states if state.state == APPLIED]
    if len(applied) not in (0, len(states)):
        absent = [state.name for state in states if state.state == APPLIES]
        raise PatchRefused(
            f"{tree}: the patch is only partly applied ({', '.join(absent)} not there, {', '.join(applied)} there); restore the files or get a fresh tree; "
            "nothing was changed"
        )
    return bool(applied) == (wanted == APPLIED)


def _plan(tree: Path, patch: hunks.PatchSet, reverting: bool = False) -> _Plan:
    check_tree(tree)
    states: list[HunkState] = []
    plan = _Plan(states, {}, {}, {})
    inserts = [insert for insert in patch.inserts if _is_for(insert.ggml, ggml_version(tree))]
    for file in dict.fromkeys(insert.file for insert in inserts):
        _plan_inserts(tree, file, [insert for insert in inserts if insert.file == file], plan, reverting)
    for file in patch.files:
        _plan_file(tree, file, plan, reverting)
    if not reverting:
        states.extend(_foreign_patches(tree, patch, plan))
        states.extend(_version_problems(tree, patch))
    return plan


def _plan_inserts(tree: Path, file: str, inserts: list[hunks.Insert], plan: _Plan, reverting: bool) -> None:
    try:
        present = _read(_inside_tree(tree, file))
    except PatchRefused as error:
        plan.states.extend(HunkState(insert.name, file, _first_line(insert), UNREADABLE, str(error)) for insert in inserts)
        return
    base, found = _take_out(present.decode("latin-1"), inserts)
    placed = []
    for insert in inserts:
        if reverting and found[insert.name] == APPLIED:  # its markers say where it is, whatever became of the anchor
            plan.states.append(HunkState(insert.name, file, _first_line(insert), APPLIED))
            continue
        state, offset = _find(base, insert, found[insert.name])
        plan.states.append(state)
        placed.append((offset, insert))
    plan.present[file], plan.without[file] = present, base.encode("latin-1")
    if not reverting and all(offset is not None for offset, _ in placed):
        patched = _put_in(base, placed)
        plan.patched[file] = patched.encode("latin-1")
        if all(kind == APPLIED for kind in found.values()) and plan.patched[file] != present:
            _mark_moved(file, inserts, plan.states)


def _mark_moved(file: str, inserts: list[hunks.Insert], states: list[HunkState]) -> None:
    names = {insert.name for insert in inserts}
    for index, state in enumerate(states):
        if state.name in names and state.file == file:
            states[index] = HunkState(state.name, file, state.anchor, EDITED, "the inserted text is not where the patch puts it")


def _take_out(text: str, inserts: list[hunks.Insert]) -> tuple[str, dict[str, str]]:
    """`text` without the inserted texts, and for each insert whether it was APPLIED, EDITED or not there (APPLIES)."""
    found = {}
    for insert in inserts:
        lines = re.compile(_as_lines(insert.text), re.MULTILINE)
        matches = list(lines.finditer(text))
        marks = text.count(insert.begin) + text.count(insert.end)
        if len(matches) == 1 and marks == 2:
            start, end = matches[0].span()
            if end == len(text) and not text.endswith("\n") and start > 0:  # put behind a last line that has no newline
                start -= 2 if text[:start].endswith("\r\n") else 1
            text = text[:start] + text[end:]
            found[insert.name] = APPLIED
        else:
            found[insert.name] = EDITED if marks else APPLIES
    return text, found


def _as_lines(text: str) -> str:
    """A pattern for whole lines, with either line ending; the last one may be missing at the end of the file."""
    return "^" + r"\r?\n".join(re.escape(line) for line in text.removesuffix("\n").split("\n")) + r"(?:\r?\n|\Z)"


def _find(base: str, insert: hunks.Insert, found: str) -> tuple[HunkState, int | None]:
    """State of one insert, and the offset in `base` where its text belongs (None where it has no place)."""

    def state(kind: str, detail: str = "") -> HunkState:
        return HunkState(insert.name, insert.file, _first_line(insert), kind, detail)

    if found == EDITED:
        return state(EDITED, "the text between the markers was edited or comes from another version"), None
    matches = _occurrences(base, insert)
    if not matches:
        return state(MISSING, f"anchor not found: {_first_line(insert)}"), None
    if len(matches) > 1:
        return state(AMBIGUOUS, f"anchor found {len(matches)} times: {_first_line(insert)}"), None
    match, where = matches[0]
    if not anchors.lies_inside(where, insert.inside, insert.language):
        wanted = f"in {insert.inside}" if insert.inside else "at file level"
        return state(WRONG_PLACE, f"anchor '{_first_line(insert)}' lies {anchors.describe(where)}, not {wanted}"), None
    if insert.place == "before":
        offset = base.rfind("\n", 0, match.start()) + 1
    else:
        newline = base.find("\n", match.end())
        offset = len(base) if newline < 0 else newline + 1
    return state(found), offset


def _occurrences(base: str, insert: hunks.Insert) -> list[tuple[re.Match[str], anchors.Place]]:
    """Every occurrence of the insert's anchor, and the place that it lies in."""
    pattern = re.compile(r"\r?\n".join(re.escape(line) for line in insert.anchor.split("\n")))
    return [(match, _place(base, match, insert)) for match in pattern.finditer(base)]


def _place(base: str, match: re.Match[str], insert: hunks.Insert) -> anchors.Place:
    if insert.anchor.lstrip().startswith("#"):  # a preprocessor line is code, and the scanner treats it as one
        return anchors.place(base, max(match.start() - 1, 0), insert.language) if match.start() else anchors.Place(True, ())
    return anchors.place(base, match.start() + len(match[0]) - len(match[0].lstrip()), insert.language)


def _put_in(base: str, placed: list[tuple[int, hunks.Insert]]) -> str:
    for offset, insert in sorted(placed, key=lambda item: item[0], reverse=True):
        ending = _line_ending(base, offset)
        text = insert.text.replace("\n", ending)
        if offset == len(base) and base and not base.endswith("\n"):
            text = ending + text.removesuffix(ending)
        base = base[:offset] + text + base[offset:]
    return base


def _line_ending(text: str, offset: int) -> str:
    """Line ending of the line before `offset`, else of the line behind it."""
    newline = text.rfind("\n", 0, offset)
    if newline < 0:
        newline = text.find("\n", offset)
    return "\r\n" if newline > 0 and text[newline - 1] == "\r" else "\n"


def _plan_file(tree: Path, file: hunks.File, plan: _Plan, reverting: bool) -> None:
    plan.without[file.target], plan.patched[file.target] = None, file.content
    path = tree / file.target
    if not path.exists() and not path.is_symlink():
        plan.states.append(HunkState(file.name, file.target, "", APPLIES))
        return
    try:
        plan.present[file.target] = _read(_inside_tree(tree, file.target))
    except PatchRefused as error:
        plan.states.append(HunkState(file.name, file.target, "", UNREADABLE, str(error)))
        return
    same = plan.present[file.target] == file.content
    if reverting and not same and plan.present[file.target].replace(b"\r\n", b"\n") == file.content:
        plan.states.append(HunkState(file.name, file.target, "", APPLIED, "had other line endings"))
        return
    plan.states.append(HunkState(file.name, file.target, "", APPLIED if same else EDITED, "" if same else "the file is there with other content"))


def _foreign_patches(tree: Path, patch: hunks.PatchSet, plan: _Plan) -> list[HunkState]:
    """One state per other kernel patch found, looked for outside our own texts and files."""
    ours = {file.target for file in patch.files}
    texts = {file: base for file, base in plan.without.items() if base is not None}
    for path in sorted((tree / "ggml/src/ggml-cuda").glob("*.cu*")):
        file = path.relative_to(tree).as_posix()
        if file not in texts and file not in ours and path.is_file():
            texts[file] = _read(path)
    found = {}
    for foreign in patch.foreign:
        hits = _files_named(tree, foreign.file) if foreign.file else [file for file, text in texts.items() if foreign.text.encode() in text]
        if hits:
            found.setdefault(foreign.name, hits[0])
    return [HunkState(name, file, "", FOREIGN, f"the tree already has {name} ({file})") for name, file in found.items()]


def _files_named(tree: Path, name: str) -> list[str]:
    return [path.relative_to(tree).as_posix() for path in sorted((tree / "ggml").rglob(name))]


def _version_problems(tree: Path, patch: hunks.PatchSet) -> list[HunkState]:
    version = ggml_version(tree)
    if version is None:
        detail = "ggml/CMakeLists.txt does not name the version of ggml"
    elif not _is_for(patch.ggml, version):
        detail = f"ggml {version}; the patch is for {patch.ggml}"
    else:
        return []
    return [HunkState("version", "ggml/CMakeLists.txt", "", UNSUPPORTED, detail)]


def _is_for(specifier: str, version: str | None) -> bool:
    from packaging.specifiers import SpecifierSet

    return version is None or SpecifierSet(specifier).contains(version)


def _write(tree: Path, present: dict[str, bytes], wanted: dict[str, bytes | None] | dict[str, bytes]) -> None:
    changes = {_inside_tree(tree, file): (present.get(file), new) for file, new in wanted.items() if present.get(file) != new}
    try:
        replace_files.replace_all(changes)
    except OSError as error:
        kind = CannotBuild if error.errno in DISK_FULL else PatchRefused
        raise kind(f"{tree}: cannot write {error.filename or ''}: {error.strerror}; nothing was changed") from error


def _inside_tree(tree: Path, file: str) -> Path:
    """The real path of a file of the tree; PatchRefused where a link leads out of it."""
    path = (tree / file).resolve()
    if not path.is_relative_to(tree.resolve()):
        raise PatchRefused(f"{tree / file} is a link out of the tree")
    return path


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise PatchRefused(f"cannot read {path}: {error.strerror}") from error


def _first_line(insert: hunks.Insert) -> str:
    return next(line.strip() for line in insert.anchor.split("\n") if line.strip())


def _diff_of_file(file: str, old: bytes | None, new: bytes) -> str:
    import difflib

    def lines(content: bytes | None) -> list[str]:
        return [] if content is None else content.decode("utf-8").splitlines(keepends=True)

    header = f"diff --git a/{file} b/{file}\n" + ("new file mode 100644\n" if old is None else "")
    source = "/dev/null" if old is None else f"a/{file}"
    diff = difflib.unified_diff(lines(old), lines(new), source, f"b/{file}")
    return header + "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in diff)
