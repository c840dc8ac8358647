"""Fetches single commits of a repository with git, without ever asking for credentials."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from .errors import DownloadFailed

_PROBE_SECONDS = 10
_FETCH_SECONDS = 1800
_ENVIRONMENT = {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "SSH_ASKPASS": "true", "GCM_INTERACTIVE": "never", "LC_ALL": "C"}
_OPTIONS = ("-c", "credential.helper=", "-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=30", "-c", "advice.detachedHead=false")


def answers(repository: str) -> str:
    """Why the repository cannot be read, in one line; "" where it can."""
    if shutil.which("git") is None:
        return "git is not installed"
    try:
        run = _git(["ls-remote", "--quiet", repository, "HEAD"], _PROBE_SECONDS)
    except subprocess.TimeoutExpired:
        return f"no answer within {_PROBE_SECONDS} s"
    return "" if run.returncode == 0 else _reason(run)


def uncommitted(folder: Path) -> int:
    """Number of changed and untracked files of the repository whose root is `folder`; 0 where it is none or git cannot tell."""
    if shutil.which("git") is None or not (folder / ".git").exists():
        return 0
    try:
        run = _git(["-C", str(folder), "status", "--porcelain", "--ignore-submodules"], _PROBE_SECONDS)
    except subprocess.TimeoutExpired:
        return 0
    return len(run.stdout.splitlines()) if run.returncode == 0 else 0


def checkout(repository: str, revision: str, destination: Path) -> str:
    """Writes the files of a revision (full commit, abbreviated commit or tag) into the new folder `destination`, without history.

    Returns the full commit. DownloadFailed where there is no such revision or the connection fails.
    """
    with tempfile.TemporaryDirectory(prefix=".git-", dir=destination.parent) as folder:
        _must(["init", "--quiet", folder], revision)
        _must(["-C", folder, "remote", "add", "origin", repository], revision)
        if len(revision) == 40 or revision.startswith("b"):
            _must(["-C", folder, "fetch", "--quiet", "--depth", "1", "origin", revision if len(revision) == 40 else f"refs/tags/{revision}"], revision)
            found = "FETCH_HEAD"
        else:
            # A server only knows full commits: fetch the history without its files and look the short one up.
            _must(["-C", folder, "fetch", "--quiet", "--filter=tree:0", "origin"], revision)
            found = revision
        commit = _must(["-C", folder, "rev-parse", "--verify", f"{found}^{{commit}}"], revision).strip()
        _must(["-C", folder, "-c", "core.autocrlf=false", "checkout", "--quiet", commit], revision)
        shutil.rmtree(Path(folder) / ".git")
        os.rename(folder, destination)
        Path(folder).mkdir()  # for TemporaryDirectory to remove
    destination.chmod(0o755)
    return commit


def _must(arguments: list[str], revision: str) -> str:
    try:
        run = _git(arguments, _FETCH_SECONDS)
    except FileNotFoundError:
        raise DownloadFailed(f"cannot fetch {revision}: git is not installed") from None
    except subprocess.TimeoutExpired:
        raise DownloadFailed(f"cannot fetch {revision}: git took more than {_FETCH_SECONDS} s") from None
    if run.returncode != 0:
        raise DownloadFailed(f"cannot fetch {revision} with git: {_reason(run)}")
    return run.stdout


def _git(arguments: list[str], timeout: int) -> subprocess.CompletedProcess:
    # A repository around the current folder must not be used in place of ours.
    inherited = {name: value for name, value in os.environ.items() if name not in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")}
    environment = {**inherited, **_ENVIRONMENT}
    return subprocess.run(
        ["git", *_OPTIONS, *arguments],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout,
        check=False,
        stdin=subprocess.DEVNULL,
        env=environment,
    )


def _reason(run: subprocess.CompletedProcess) -> str:
    lines = [line for line in run.stderr.splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith(("fatal:", "error:"))]
    return (fatal or lines or [f"exit status {run.returncode}"])[0].strip()
