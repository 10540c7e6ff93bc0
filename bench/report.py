"""The table for people and `results.json` for programs."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from .measuring import Measured, megabytes

COLUMNS = ("what", "against", "ratio", "quartiles", "bar", "")


def print_table(results: Sequence[Measured], scale: float, console: Console) -> None:
    """Ratios and whether they keep to their bounds, then what they were made of."""
    at_scale = "" if scale >= 1 else f" at scale {scale:g}: no bar is meant there"
    table = Table(title=f"SPEC section 21{at_scale}")
    for column in COLUMNS:
        table.add_column(column, justify="right" if column in {"ratio", "quartiles", "bar"} else "left")
    for one in results:
        sign = "≥" if one.bar.at_least else "≤"
        spread = ("", "")
        if one.ratio is not None:
            spread = (_short(one.ratio.median), f"{_short(one.ratio.low)} … {_short(one.ratio.high)}")
        verdict = "held" if one.holds else "missed" if one.ratio is not None else "not measured"
        table.add_row(one.bar.what, one.bar.against, *spread, f"{sign} {_short(one.limit)} x", verdict)
    console.print(table)
    for one in results:
        told = [f"{name} {value}" for name, value in one.figures.items()]
        told += [f"{name} {megabytes(size)}" for name, size in one.memory.items()]
        if one.why:
            told.append(f"not measured: {one.why}")
        if told:
            console.print(f"{one.bar.name}: {', '.join(told)}", markup=False, highlight=False, soft_wrap=True)


def write_results(results: Sequence[Measured], scale: float, path: Path) -> None:
    """Write what a program may read: each bar by its name."""
    path.write_text(
        json.dumps(
            {"bars": {one.bar.name: _entry(one) for one in results}, "scale": scale, "machine": machine()},
            ensure_ascii=False,
            indent=1,
        )
        + "\n"
    )


def machine() -> dict[str, object]:
    """What it was measured on."""
    return {
        "system": platform.platform(),
        "processors": os.cpu_count(),
        "python": sys.version.split()[0],
        "sqlite": sqlite3.sqlite_version,
        "load": [round(load, 2) for load in os.getloadavg()],
    }


def _entry(one: Measured) -> dict[str, object]:
    ratio = one.ratio
    return {
        "ratio": None if ratio is None else ratio.median,
        "quartiles": None if ratio is None else [ratio.low, ratio.high],
        "bar": one.limit,
        "at_least": one.bar.at_least,
        "holds": one.holds,
        "what": one.bar.what,
        "against": one.bar.against,
        "why_not_measured": one.why or None,
        "figures": dict(one.figures),
        "memory": dict(one.memory),
    }


def _short(number: float) -> str:
    return f"{number:.2f}" if number < 10 else f"{number:.1f}"
