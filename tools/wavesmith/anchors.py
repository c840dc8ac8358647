"""Where in a C++ or CMake file a piece of text lies: inside which function or block, and whether it is code at all.

Works on text decoded as latin-1, so that offsets are byte offsets. Braces are matched, not parsed: enough to say which
function's body holds an anchor, whatever the formatting.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_CPP_TOKEN = re.compile(
    r"""
      (?P<skip> //[^\n]* | /\*.*?\*/ | (?:\b(?:u8|[uUL]))?R"(?P<delimiter>[^\s()\\]{0,16})\(.*?\)(?P=delimiter)"
        | "(?:\\.|[^"\\\n])*" | (?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])*' )
    | (?P<directive> (?:(?<=\n)|\A)[ \t]*\#[ \t]*(?P<keyword>\w*)(?:\\\r?\n|/\*.*?\*/|[^\n])* )
    | (?P<mark> [{};] )
    """,
    re.VERBOSE | re.DOTALL,
)

_FALSE, _TRUE = ("0", "false"), ("1", "true")  # conditions of #if whose outcome is known

_CMAKE_TOKEN = re.compile(
    r"""
      (?P<skip> \#\[(?P<level>=*)\[.*?\](?P=level)\] | \#[^\n]* )
    | (?P<command> \b[A-Za-z_]\w*[ \t]*\( )
    """,
    re.VERBOSE | re.DOTALL,
)
_CMAKE_ARGUMENT = re.compile(r'"(?:\\.|[^"\\])*"|\[(=*)\[.*?\]\1\]|#[^\n]*|[()]', re.DOTALL)
_CMAKE_CLOSER = {"if": "endif", "foreach": "endforeach", "while": "endwhile", "function": "endfunction", "macro": "endmacro", "block": "endblock"}


@dataclass(frozen=True)
class Place:
    """`blocks` are the openers of the enclosing blocks, outermost first; `is_code` is false inside a comment, a string or #if 0."""

    is_code: bool
    blocks: tuple[str, ...]


def place(text: str, offset: int, language: str) -> Place:
    """The place of `offset` in `text`; `language` is "c++" or "cmake"."""
    return _place_in_cpp(text, offset) if language == "c++" else _place_in_cmake(text, offset)


def lies_inside(where: Place, inside: str, language: str) -> bool:
    """Whether `where` is in the function (C++) or directly in the block (CMake) called `inside`; "" means in none."""
    if not where.is_code:
        return False
    if language == "cmake":
        return where.blocks == ((inside,) if inside else ())
    if not inside:
        return all(re.match(r'(inline\s+)?namespace\b|extern\s+"', block) for block in where.blocks)
    definition = re.compile(rf"[^(]*(?<![~\w]){re.escape(inside)}\s*\(")
    return any(definition.match(block) for block in where.blocks)


def describe(where: Place) -> str:
    """A short phrase for messages, such as "in foo(int x)"."""
    if not where.is_code:
        return "in a comment, a string or #if 0"
    return f"in {where.blocks[0][:80]}" if where.blocks else "at file level"


def _place_in_cpp(text: str, offset: int) -> Place:
    blocks: list[str] = []
    conditionals: list[_Conditional] = []  # open ones, outermost first
    statement = 0
    for token in _CPP_TOKEN.finditer(text):
        if token.start() > offset:
            break
        if token["skip"]:
            if token.start() <= offset < token.end():
                return Place(False, tuple(blocks))
        elif token["directive"]:
            blocks = _follow_conditional(token["keyword"], _condition(token), blocks, conditionals)
            statement = token.end()
        elif conditionals and conditionals[-1].is_dead:
            continue
        else:
            if token["mark"] == "{" and token.start() < offset:
                blocks = [*blocks, " ".join(text[statement : token.start()].split())]
            elif token["mark"] == "}" and token.start() < offset:
                blocks = blocks[:-1]
            statement = token.end()
    return Place(not (conditionals and conditionals[-1].is_dead), tuple(blocks))


@dataclass
class _Conditional:
    """An #if that is open. Only conditions that are a constant are known; every other branch may be compiled."""

    before: list[str]  # blocks before it
    is_dead: bool  # whether the current branch is never compiled
    is_decided: bool  # whether no later branch can be compiled
    after: list[str] | None = None  # blocks after its first branch that may be compiled


def _condition(directive: re.Match[str]) -> str:
    text = directive[0][directive.end("keyword") - directive.start() :]
    return re.sub(r"/\*.*?\*/|//.*|\\\r?\n", " ", text, flags=re.DOTALL).strip(" \t\r()")


def _follow_conditional(keyword: str, condition: str, blocks: list[str], conditionals: list[_Conditional]) -> list[str]:
    """Braces in the branches of an #if exclude each other: every branch starts from the state before it, the first live one counts after it."""
    if keyword.startswith("if"):
        outside_dead = bool(conditionals) and conditionals[-1].is_dead
        is_false = keyword == "if" and condition in _FALSE
        conditionals.append(_Conditional(blocks, outside_dead or is_false, outside_dead or (keyword == "if" and condition in _TRUE)))
        return blocks
    if not conditionals:
        return blocks
    current = conditionals[-1]
    if keyword in ("else", "elif", "elifdef", "elifndef", "endif") and not current.is_dead and current.after is None:
        current.after = blocks
    if keyword in ("else", "elif", "elifdef", "elifndef"):
        current.is_dead = current.is_decided or (keyword == "elif" and condition in _FALSE)
        current.is_decided |= keyword == "elif" and condition in _TRUE
        return current.before
    if keyword == "endif":
        conditionals.pop()
        return current.before if current.after is None else current.after
    return blocks


def _place_in_cmake(text: str, offset: int) -> Place:
    blocks: list[str] = []
    position = 0
    while token := _CMAKE_TOKEN.search(text, position):
        if token.start() > offset:
            break
        position = token.end()
        if token["skip"]:
            if token.start() <= offset < token.end():
                return Place(False, tuple(blocks))
            continue
        end, in_string = _end_of_command(text, token.end(), offset)
        if token.start() < offset < end:
            return Place(not in_string, tuple(blocks))
        if token.start() < offset:
            name = token["command"][:-1].strip().lower()
            blocks = _follow_block(name, " ".join(text[token.end() : end - 1].split()), blocks)
        position = end
    return Place(True, tuple(blocks))


def _end_of_command(text: str, start: int, offset: int) -> tuple[int, bool]:
    """End of a command whose arguments begin at `start`, and whether `offset` is in one of its strings or comments."""
    depth, in_string = 1, False
    for token in _CMAKE_ARGUMENT.finditer(text, start):
        if token[0] == "(":
            depth += 1
        elif token[0] == ")":
            depth -= 1
            if depth == 0:
                return token.end(), in_string
        elif token.start() <= offset < token.end():
            in_string = True
    return len(text), in_string


def _follow_block(name: str, arguments: str, blocks: list[str]) -> list[str]:
    if name in _CMAKE_CLOSER:
        return [*blocks, f"{name}({arguments})"]
    if name in _CMAKE_CLOSER.values():
        return blocks[:-1]
    if name in ("else", "elseif") and blocks:
        return [*blocks[:-1], f"{name}({arguments}) of {blocks[-1]}"]
    return blocks
