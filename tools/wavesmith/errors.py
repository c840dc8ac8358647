"""Every fatal error of the tool: a class with its exit code and a message of one line.

`wavesmith.cli.main` prints `error: MESSAGE` on stderr and exits with `exit_code`; a traceback is never shown.
"""

import errno

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)  # errno of an OSError that ends with CannotBuild's exit code


class WavesmithError(Exception):
    """Base of all fatal errors. `exit_code` is the process's exit status."""

    exit_code = 1


class CheckFailed(WavesmithError):
    """A validation or comparison ran and did not hold."""

    exit_code = 1


class BadInput(WavesmithError):
    """A file or argument given by the user is not what it should be (click's own usage errors use the same code)."""

    exit_code = 2


class CannotBuild(WavesmithError):
    """Something that a build needs (compiler, headers, disk space) is missing."""

    exit_code = 3


class CannotRun(WavesmithError):
    """A built program or library cannot run on this machine."""

    exit_code = 4


class DownloadFailed(WavesmithError):
    """A source or model could not be fetched."""

    exit_code = 5


class HashMismatch(DownloadFailed):
    """Fetched bytes are not the pinned ones."""

    exit_code = 6


class PatchRefused(WavesmithError):
    """A llama.cpp tree cannot be patched or reverted; nothing was changed."""

    exit_code = 7


class BuildFailed(WavesmithError):
    """CMake or the compiler failed; the message names the log."""

    exit_code = 8


class KernelFault(WavesmithError):
    """The checked host build found an out-of-range access, an LDS race or a diverging wave."""

    exit_code = 9


class Interrupted(WavesmithError):
    """Ctrl-C."""

    exit_code = 130
