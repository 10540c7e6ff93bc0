"""Environments for peers, made when they are first needed: no peer shares a library with another, or with us."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

INSTALLING_SECONDS_MAX = 600
_PEERS = Path(__file__).parent / "peers"


class NotInstalled(Exception):
    """A peer could not be installed; says why."""


def installed(name: str, caches: Path) -> Path:
    """The Python of a peer's environment, which has exactly what `peers/NAME.txt` pins.

    Raises:
        NotInstalled: the environment could not be made; the next call tries again.
    """
    pinned = (_PEERS / f"{name}.txt").read_bytes()
    folder = caches / name
    done, python = folder / f"installed-{hashlib.sha256(pinned).hexdigest()[:16]}", folder / "bin" / "python"
    if done.exists() and python.exists():
        return python
    shutil.rmtree(folder, ignore_errors=True)
    try:
        _run(sys.executable, "-m", "venv", str(folder))
        _run(
            str(python),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "-r",
            str(_PEERS / f"{name}.txt"),
        )
    except NotInstalled:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    done.touch()
    return python


def _run(*command: str) -> None:
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=INSTALLING_SECONDS_MAX)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalled(str(error)) from error
    if done.returncode:
        raise NotInstalled(" ".join(done.stderr.strip().splitlines()[-1:]) or f"exit {done.returncode}")
