"""Which function or block holds a piece of text."""

from __future__ import annotations

import re

import pytest
from wavesmith import anchors

CPP = r"""
// outer comment {
#include "a.h"
namespace ns {
struct table {
    table() {
        int inside_constructor;
    }
    ~table() {
        int inside_destructor;
    }
};
static int first(int x, /* { */ const char * s = "{\"") {
    char brace = '{'; char quote = '"'; int big = 1'000'000;
    const char * raw = R"x( } not_code )" } )x";
#ifdef A
    if (x) {
        int in_first_branch;
#elif defined(B)
    while (second(x)) {
        int in_elif;
#else
    {
        int in_else;
#endif
        int after_branches;
    }
    #define MACRO(y) do { if (y) { \
        continued; } while (0)
    int end_of_first;
    // last comment
}
}
template <class T> void second() {
    if (first(1)) { int inside_second; }
}
int at_file_level;
"""


@pytest.mark.parametrize(
    ("text", "function"),
    [
        ("inside_constructor", "table"),
        ("big", "first"),
        ("in_first_branch", "first"),
        ("in_elif", "first"),
        ("in_else", "first"),
        ("after_branches", "first"),
        ("end_of_first", "first"),
        ("inside_second", "second"),
        ("at_file_level", ""),
    ],
)
def test_cpp_function_of_an_anchor(text: str, function: str) -> None:
    where = anchors.place(CPP, CPP.index(text), "c++")
    names = ("table", "first", "second", "")
    assert [name for name in names if anchors.lies_inside(where, name, "c++")] == [function]


def test_destructor_is_not_the_constructor_and_a_call_is_not_a_definition() -> None:
    assert not anchors.lies_inside(anchors.place(CPP, CPP.index("inside_destructor"), "c++"), "table", "c++")
    assert not anchors.lies_inside(anchors.place(CPP, CPP.index("in_elif"), "c++"), "second", "c++")


@pytest.mark.parametrize("text", ["outer comment", "not_code", '{\\"', "last comment"])
def test_cpp_comments_and_strings_are_not_code(text: str) -> None:
    where = anchors.place(CPP, CPP.index(text), "c++")
    assert not where.is_code
    assert not anchors.lies_inside(where, "first", "c++")
    assert anchors.describe(where) == "in a comment, a string or #if 0"


CMAKE = """\
# if (comment)
set(LIST "if (string" [[ endif() ]])
if (FOUND)
    if(INNER AND (A OR B))
        set(in_inner 1)
    endif()
    set(in_found "in_string")
elseif (OTHER)
    set(in_elseif)
else()
    set(in_else 1) # in_comment
endif()
FUNCTION(name arg)
    set(in_function 1)
endfunction()
#[==[ if (x)
   in_bracket ]] ]==]
set(at_top 1)
"""


@pytest.mark.parametrize(
    ("text", "block"),
    [
        ("in_inner", ("if(FOUND)", "if(INNER AND (A OR B))")),
        ("in_found", ("if(FOUND)",)),
        ("in_elseif", ("elseif(OTHER) of if(FOUND)",)),
        ("in_else 1", ("else() of elseif(OTHER) of if(FOUND)",)),
        ("in_function", ("function(name arg)",)),
        ("at_top", ()),
    ],
)
def test_cmake_block_of_an_anchor(text: str, block: tuple[str, ...]) -> None:
    where = anchors.place(CMAKE, CMAKE.index(text), "cmake")
    assert (where.is_code, where.blocks) == (True, block)
    assert anchors.lies_inside(where, "if(FOUND)", "cmake") == (block == ("if(FOUND)",))
    assert anchors.lies_inside(where, "", "cmake") == (block == ())


@pytest.mark.parametrize("text", ["comment", "string", "in_string", "in_comment", "in_bracket", "endif() ]]"])
def test_cmake_comments_and_strings_are_not_code(text: str) -> None:
    assert not anchors.place(CMAKE, CMAKE.index(text), "cmake").is_code


CONDITIONALS = """\
#if 0
dead_0 {
#else // the rest
live_else
#endif
#if false
dead_false
#ifdef X
dead_nested
#else
dead_nested_else
#endif
#elif 1
live_elif_1
#else
dead_after_1
#endif
#if (1)
live_1
#elif X
dead_after_if_1
#endif
#ifdef X
live_ifdef
#elif 0 /* never */
dead_elif_0
#else
live_ifdef_else
#endif
#if 0 || X
live_expression
#endif
#ifndef 0
live_ifndef
#endif
live_end
"""


@pytest.mark.parametrize("word", [line.split()[0] for line in CONDITIONALS.splitlines() if not line.startswith("#")])
def test_branches_that_are_never_compiled_are_not_code(word: str) -> None:
    where = anchors.place(CONDITIONALS, re.search(rf"\b{word}\b", CONDITIONALS).start(), "c++")
    assert where.is_code is word.startswith("live")
    assert anchors.lies_inside(where, "", "c++") is where.is_code  # a brace in dead code opens nothing
