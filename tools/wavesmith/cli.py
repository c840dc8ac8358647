"""The command line: a click group that imports a subcommand only when it runs, and the one place where errors become exit codes."""

from __future__ import annotations

import contextlib
import errno
import importlib
import signal
import sys
from collections.abc import Callable
from types import FrameType

import click

from . import __version__, streams
from .errors import DISK_FULL, BadInput, CannotBuild, Interrupted, WavesmithError

# Subcommand -> one line of help. Each lives in wavesmith/commands/NAME.py; keeping the lines here lets `--help` import none of them.
COMMANDS = {
    "quickstart": "Fetch, patch, build, validate and bench in one go",
    "source": "Fetch a pinned llama.cpp tree",
    "patch": "Check, apply or revert the llama.cpp patch",
    "build": "Build llama.cpp with the wavesmith kernels",
    "builds": "List, remove and choose builds",
    "run": "Run a program of a build",
    "serve": "Start llama-server on a model with the kernels",
    "export": "Copy a build into a folder that needs no wavesmith",
    "validate": "Compare the kernels with stock on a model's own tensors",
    "bench": "Compare the speed of stock and wavesmith in one run",
    "doctor": "Find GPUs, ROCm and build tools; say what to mend and how",
    "kernels": "Compile the kernels for AMD targets, without ROCm",
    "inspect": "Show what a manifest of compiled kernels says, or compare two",
    "env": "Show every environment variable and its value",
}

EXIT_UNEXPECTED = 70  # EX_SOFTWARE of sysexits.h
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)


class _ReaderGone(Exception):
    """The reader of a pipe (`| head`) is gone. click would turn the error itself into exit status 1."""


class LazyGroup(click.Group):
    """A group whose subcommands are imported on first use; its help comes from COMMANDS."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        return importlib.import_module(f"{__package__}.commands.{name}").command

    def make_context(self, *arguments: object, **options: object) -> click.Context:
        try:  # prints the help
            return super().make_context(*arguments, **options)
        except BrokenPipeError:
            raise _ReaderGone from None

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise _ReaderGone from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="wavesmith")
@click.pass_context
def command(ctx: click.Context) -> None:
    """GPU kernels for llama.cpp on AMD GPUs: build, validate and measure llama.cpp with them."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
        return
    from . import settings

    settings.apply()


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit status; every failure is one `error:` line on stderr."""
    streams.open_closed()
    restore = _unwind_on_termination()
    try:
        return _run(arguments)
    finally:
        streams.flush_quietly()
        restore()


def _run(arguments: list[str] | None) -> int:
    try:
        result = command.main(args=arguments, prog_name="wavesmith", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) and not isinstance(result, bool) else 0
    except (KeyboardInterrupt, click.Abort):
        return _fail("interrupted", Interrupted.exit_code)
    except WavesmithError as error:
        return _fail(str(error), error.exit_code)
    except click.ClickException as error:
        return _usage_error(error)
    except (BrokenPipeError, _ReaderGone):
        return 0
    except Exception as error:  # noqa: BLE001 - the last resort: a traceback never reaches the terminal
        return _unexpected(error)


def _unwind_on_termination() -> Callable[[], None]:
    """SIGTERM and SIGHUP unwind like Ctrl-C, so that running compilers are stopped and partial files removed.

    Returns the function that puts the previous handlers back, for callers that live on after `main`.
    """

    def stop(number: int, _frame: FrameType | None) -> None:
        raise Interrupted(f"stopped by {signal.Signals(number).name}")

    replaced = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is signal.SIG_DFL]
    for number in replaced:
        signal.signal(number, stop)

    def restore() -> None:
        for number in replaced:
            signal.signal(number, signal.SIG_DFL)

    return restore


def _fail(message: str, status: int) -> int:
    with contextlib.suppress(OSError):  # nobody reads it; the exit status still says it
        print(f"error: {' '.join(message.split())}", file=sys.stderr, flush=True)
    return status


def _usage_error(error: click.ClickException) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":  # click 8.2: its message is the whole help page
        error.show()
        return error.exit_code
    context = getattr(error, "ctx", None)
    hint = f" (see '{context.command_path} --help')" if context is not None else ""
    return _fail(error.format_message().rstrip(".") + hint, error.exit_code)


def _unexpected(error: Exception) -> int:
    if isinstance(error, OSError) and error.errno in DISK_FULL:
        place = f" while writing {error.filename}" if error.filename else ""
        return _fail(f"no space left on the disk{place}", CannotBuild.exit_code)
    if isinstance(error, OSError) and error.errno in _NOT_ALLOWED and error.filename:
        return _fail(f"no permission for {error.filename}: {error.strerror}", BadInput.exit_code)
    summary = f"unexpected {type(error).__name__}: {str(error) or 'no message'}"
    return _fail(f"{summary} (traceback in {_save_traceback(error)})", EXIT_UNEXPECTED)


def _save_traceback(error: Exception) -> str:
    """Write the traceback to the log folder, else the temporary folder; return the file's path."""
    import os
    import tempfile
    import time
    import traceback

    from . import cache

    text = f"wavesmith {__version__}, python {sys.version}\narguments: {sys.argv[1:]}\n" + "".join(traceback.format_exception(error))
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-traceback.log"
    for folder in (lambda: cache.folder("logs"), lambda: tempfile.gettempdir()):
        try:
            path = os.path.join(folder(), name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            return path
        except (OSError, WavesmithError):
            continue
    return "no writable folder"
