"""The whole benchmark at the smallest sizes: every bar is there by its name. No time is asserted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.page import lines

ROOT = Path(__file__).parents[2]
BARS = {
    "pair",
    "pair_in_large_store",
    "pair_in_long_run",
    "pair_against_dbos",
    "pair_against_langgraph",
    "pair_against_call4agents",
    "pair_against_sakrit",
    "concurrent_runs",
    "concurrent_runs_against_one",
    "plan_of_long_run",
    "rebuild",
    "rebuild_memory",
    "repair_at_start",
    "claim_beside_claims",
    "fresh_process",
    "checkpoint_of_one_change",
}


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_every_row_works_and_every_bar_is_written(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    done = bench("--scale", "0.001", "--no-peers", "--results", str(results), "--folder", str(tmp_path / "work"))
    assert done.returncode == 0, done.stderr
    written = json.loads(results.read_text())
    assert written["bars"].keys() == BARS
    assert written["scale"] == 0.001
    assert written["machine"]["processors"] >= 1
    for name, bar in written["bars"].items():
        if name.startswith("pair_against_"):
            assert (bar["ratio"], bar["holds"]) == (None, False)
            assert bar["why_not_measured"] == "peers were left out"
        else:
            assert bar["ratio"] > 0, f"{name}: {bar['why_not_measured']}"
            assert bar["holds"] is ((bar["ratio"] >= bar["bar"]) if bar["at_least"] else (bar["ratio"] <= bar["bar"]))
    assert list((tmp_path / "work").iterdir()) == []
    page = "\n".join(lines(written))
    assert all(f"(`{name}`)" in page for name in BARS)
    assert "not measured: peers were left out" in page
    assert "| rebuild, 2,000 events | " in page


@pytest.mark.parametrize("arguments", [("speed",), ("--scale", "fast")])
def test_what_it_does_not_know_is_refused_before_anything_is_measured(arguments: tuple[str, ...]) -> None:
    done = bench(*arguments)
    assert done.returncode == 2
    assert "measuring" not in done.stdout
