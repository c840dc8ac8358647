"""Launches a kernel from what its manifest entry says, and nothing else."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

_RULE = re.compile(r"x = (?P<x>.+), y = (?P<y>.+), z = (?P<z>.+)")
_OPERATORS = {ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b, ast.Div: Fraction}
_TYPES = {"i32": np.int32, "i64": np.int64}


class NotLaunchable(ValueError):
    """The manifest does not say enough, or asks for what the caller has not."""


def grid(kernel: Mapping[str, Any], values: Mapping[str, Any]) -> tuple[int, int, int]:
    """The kernel's grid rule for the given arguments (and "batches"); docs/manifest.md defines the rule's words."""
    rule = _RULE.fullmatch(kernel["grid"])
    if not rule:
        raise NotLaunchable(f"{kernel['symbol']}: the grid rule '{kernel['grid']}' is not 'x = …, y = …, z = …'")
    x, y, z = (_whole(kernel, rule[axis], values) for axis in "xyz")
    return x, y, z


def _whole(kernel: Mapping[str, Any], text: str, values: Mapping[str, Any]) -> int:
    try:
        value = _evaluate(ast.parse(text, mode="eval").body, values)
    except (SyntaxError, NotLaunchable, ZeroDivisionError) as error:
        raise NotLaunchable(f"{kernel['symbol']}: cannot evaluate '{text}' of the grid rule: {error}") from None
    if value != int(value) or value < 0:
        raise NotLaunchable(f"{kernel['symbol']}: '{text}' of the grid rule is {value}")
    return int(value)


def _evaluate(node: ast.expr, values: Mapping[str, Any]) -> int | Fraction:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name):
        if node.id not in values:
            raise NotLaunchable(f"no value for '{node.id}'")
        return int(values[node.id])
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_evaluate(node.left, values), _evaluate(node.right, values))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "ceil" and len(node.args) == 1 and not node.keywords:
        return ceil(_evaluate(node.args[0], values))
    raise NotLaunchable(f"'{ast.unparse(node)}' is not part of a grid rule")


def arguments(kernel: Mapping[str, Any], values: Mapping[str, Any]) -> list[Any]:
    """The kernel's arguments in order: arrays (or None) for pointers, numpy scalars of the right size for the rest."""
    made = []
    for argument in kernel["args"]:
        name, kind = argument["name"], argument["type"]
        if name not in values:
            raise NotLaunchable(f"{kernel['symbol']}: no value for the argument '{name}' ({argument['meaning']})")
        value = values[name]
        if kind == "pointer":
            if value is not None and not isinstance(value, np.ndarray):
                raise NotLaunchable(f"{kernel['symbol']}: the argument '{name}' is a pointer, not {value!r}")
            made.append(value)
        else:
            made.append(_TYPES[kind](value))
    return made
