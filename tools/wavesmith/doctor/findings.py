"""What the doctor has to say: findings, their severity, and the exit code they add up to."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import CannotBuild, CannotRun

NOTE, WARNING, CANNOT_BUILD, CANNOT_RUN = "note", "warning", "cannot build", "cannot run"
SEVERITIES = (NOTE, WARNING, CANNOT_BUILD, CANNOT_RUN)


@dataclass(frozen=True)
class Fix:
    """A command for the user's shell. `safe` ones need no root and destroy nothing: `--fix` may run them, as `argv`."""

    command: str
    argv: tuple[str, ...] = ()

    @property
    def safe(self) -> bool:
        return bool(self.argv)


@dataclass(frozen=True)
class Finding:
    """`name` is stable and documented in docs/doctor.md; `what` was found, `why` it matters, `fixes` mend it."""

    name: str
    severity: str
    what: str
    why: str
    fixes: tuple[Fix, ...] = ()


def exit_code(findings: list[Finding]) -> int:
    """0 fine, 1 warnings, 3 cannot build, 4 cannot run; 3 where both hold, because building comes first."""
    severities = {finding.severity for finding in findings}
    if CANNOT_BUILD in severities:
        return CannotBuild.exit_code
    if CANNOT_RUN in severities:
        return CannotRun.exit_code
    return 1 if WARNING in severities else 0


def commands(*lines: str) -> tuple[Fix, ...]:
    return tuple(Fix(line) for line in lines if line)
