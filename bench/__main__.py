"""Measure the bars of SPEC section 21: python -m bench [ROW OR BAR ...] [--scale S]."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from rich.console import Console

from .measuring import Measured
from .report import print_table, write_results
from .rows import ROWS, measured, rows_named
from .sizes import Sizes
from .workplace import Workplace

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results.json"
CACHES = ROOT / "build" / "bench-peers"
SCALE_VARIABLE = "BENCH_SCALE"


def main(arguments: list[str] | None = None) -> int:
    """Measure, print the table, write the results; 0 also where a bar is missed: the table says so."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "rows", nargs="*", metavar="ROW", help=f"one of {', '.join(row.name for row in ROWS)}, or a bar"
    )
    parser.add_argument("--scale", type=float, default=float(os.environ.get(SCALE_VARIABLE, "1")))
    parser.add_argument("--results", type=Path, default=RESULTS, help="where to write the results")
    parser.add_argument("--no-peers", action="store_true", help="leave the peers out; their bars are then not held")
    parser.add_argument("--caches", type=Path, default=CACHES, help="where environments of peers are kept")
    parser.add_argument("--folder", type=Path, default=ROOT / "build", help="on the disk to measure; must be there")
    given = parser.parse_args(arguments)
    try:
        chosen = rows_named(given.rows)
    except ValueError as error:
        parser.error(str(error))
    console = Console()
    given.folder.mkdir(exist_ok=True)
    results: list[Measured] = []
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir=given.folder))
    try:
        work = Workplace(folder, given.caches, Sizes(given.scale), not given.no_peers, partial(_tell, console))
        for row in chosen:
            started = time.perf_counter()
            console.print(f"measuring {row.name}", style="dim")
            work.settle()
            results += measured(row, work)
            console.print(f"  {time.perf_counter() - started:.0f} s", style="dim")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print_table(results, given.scale, console)
    write_results(results, given.scale, given.results)
    return 0


def _tell(console: Console, text: str) -> None:
    console.print(f"  {text}", style="dim", highlight=False)


if __name__ == "__main__":
    sys.exit(main())
