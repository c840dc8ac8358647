"""Starts llama-server, which speaks the OpenAI API, on a model with our kernels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from . import active_kernels, extra_programs, run_program
from .built import Build
from .errors import BadInput
from .progress import Steps

_MAGIC = b"GGUF"


def check_model(model: Path) -> None:
    """BadInput where the file cannot be a model; before minutes go into building the server."""
    try:
        with open(model, "rb") as file:
            magic = file.read(len(_MAGIC))
    except OSError as error:
        raise BadInput(f"cannot read the model {model}: {error.strerror}") from None
    if magic != _MAGIC:
        raise BadInput(f"{model} is not a GGUF file")


def prepare(build: Build, model: Path, arguments: Sequence[str], steps: Steps) -> tuple[Path, list[str], dict[str, str], list[str]]:
    """(program, its arguments, its environment, what to tell the user); the server is built when it is not there."""
    check_model(model)
    program = extra_programs.ensure(build, "llama-server", steps)
    variables = run_program.environment(build)
    notes = [f"llama.cpp {build.llama_version}, build {build.prefix.name}", *active_kernels.describe(build, variables)]
    return program, ["-m", str(model), *arguments], variables, notes
