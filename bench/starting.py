"""A fresh process up to its first T1. SPEC section 21, row 9."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .bars import FRESH_PROCESS
from .measuring import Measured, median, milliseconds, ratios
from .workplace import Workplace

_PROGRAM = (sys.executable, "-m", f"{__package__}.first_t1")


class Start(NamedTuple):
    """Seconds of one process: by its own clock, from its first line, and from before it was started to its end."""

    inside: float
    whole: float


def fresh_process(work: Workplace) -> Iterator[Measured]:
    """Row 9: import, open a store and reach the first T1, against importing the core dependencies alone."""
    _start("t1", work.fresh("start.sqlite"))  # whatever is compiled is kept, as it is after an installation
    _start("required")
    ours: list[Start] = []
    core: list[Start] = []
    required: list[Start] = []
    for _ in range(work.sizes.starts):
        ours.append(_start("t1", work.fresh("start.sqlite")))
        core.append(_start("core"))
        required.append(_start("required"))
    ratio = ratios([one.inside for one in ours], [one.inside for one in core])
    whole = ratios([one.whole for one in ours], [one.whole for one in core])
    against_all = ratios([one.inside for one in ours], [one.inside for one in required])
    figures = {
        "first T1": milliseconds(median([one.inside for one in ours])),
        "core dependencies": milliseconds(median([one.inside for one in core])),
        "ratio of whole processes": f"{whole.median:.2f}",
        "ratio against all required dependencies (typer and rich, too)": f"{against_all.median:.2f}",
    }
    yield Measured(FRESH_PROCESS, ratio, figures=figures)


def _start(*arguments: str | Path) -> Start:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    started = time.perf_counter()
    done = subprocess.run(
        [*_PROGRAM, *map(str, arguments)],
        cwd=Path(__file__).parents[1],
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return Start(float(done.stdout), time.perf_counter() - started)
