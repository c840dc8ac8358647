"""`wavesmith doctor`: finds GPUs, ROCm and build tools, and says what to do about what is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click

from ..errors import BadInput


@click.command(name="doctor", short_help="Find GPUs, ROCm and compilers; say what is wrong and how to mend it.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON (schemas/doctor.schema.json).")
@click.option("--fix", is_flag=True, help="Offer to run the fixes that are safe without root.")
@click.option("--capture", type=click.Path(path_type=Path), metavar="DIR", help="Save what was read, personal details removed, for a bug report.")
@click.option("--from", "source", type=click.Path(path_type=Path), metavar="DIR", help="Answer from such a capture in place of this machine.")
def command(as_json: bool, fix: bool, capture: Path | None, source: Path | None) -> None:
    """Find GPUs, ROCm and build tools, and say what is wrong and which command mends it.

    Exit code: 0 fine, 1 warnings, 3 something that a build needs is missing, 4 a built program cannot run here.
    """
    if source and fix:
        raise BadInput("--fix mends this machine, but --from answers for another one; use one of them")
    if source and capture:
        raise BadInput("--capture saves what this machine says, but --from answers for another one; use one of them")
    from ..doctor import report

    examination = _examine(capture, source)
    if fix and _mend(examination):
        examination = _examine(None, None)
    if as_json:
        click.echo(json.dumps(report.as_json(examination), indent=2, ensure_ascii=False))
    else:
        click.echo("\n".join(report.as_text(examination)))
    if capture:
        click.echo(f"saved to {capture}; look through it before you send it", err=True)
    click.get_current_context().exit(examination.exit_code)


def _examine(capture: Path | None, source: Path | None):
    from ..doctor import capture as captures
    from ..doctor.examine import examine
    from ..doctor.probe import Probe, SystemProbe

    probe = Probe(captures.load(source)) if source else SystemProbe()
    try:
        examination = examine(probe)
    finally:
        probe.close()
    if capture:
        captures.save(probe.record, capture)
    return examination


def _mend(examination) -> bool:
    """Asks for each safe fix and runs it, prints the others; whether anything was run."""
    ran = False
    for finding in examination.findings:
        for fix in finding.fixes:
            if not fix.safe:
                click.echo(f"{finding.what}\n    run it yourself: {fix.command}", err=True)
            elif click.confirm(f"{finding.what}\n    run '{fix.command}'?", default=False, err=True):
                _run(fix.argv)
                ran = True
    return ran


def _run(argv: tuple[str, ...]) -> None:
    command = [sys.executable if word == "{python}" else word for word in argv]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    click.echo(done.stdout, err=True)
    click.echo("done" if done.returncode == 0 else f"it failed with exit status {done.returncode}", err=True)
