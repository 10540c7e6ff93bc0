"""Shows what was played: a table for people, an object for programs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from .apart import KEY, PlayedApart
from .stage import Played
from .story import PORT_OF_SOMEBODY_ELSE, Counts

SCHEMA = "safepoint.cli.demo.v1"
WIDTH_WITHOUT_TERMINAL = 140


def document(acts: Sequence[Played], apart: PlayedApart | None = None) -> dict[str, Any]:
    """The object that `safepoint demo --json` prints; documented in docs/cli.md."""
    return {
        "schema": SCHEMA,
        "as_expected": all(played.as_expected for played in (*acts, *(() if apart is None else (apart,)))),
        "acts": [
            {
                "act": played.act.key,
                "killed": played.act.instant,
                "failpoint": played.act.failpoint.value,
                "naive_log": played.naive,
                "verdict": played.verdict,
                "reason": played.reason,
                "decision": played.decision,
                "codes": list(played.codes),
                "observation": played.observation,
                "became": played.became,
                "counted_after_kill": _counts(played.killed),
                "counted_at_the_end": _counts(played.ended),
                "as_expected": played.as_expected,
            }
            for played in acts
        ],
        "apart": None if apart is None else _apart(apart),
    }


def _apart(played: PlayedApart) -> dict[str, Any]:
    return {
        "act": KEY,
        "codes": list(played.codes),
        "paths": list(played.paths),
        "file": {"here": played.here, "there": played.there},
        "payments": {"here": played.payments_here, "there": played.payments_there},
        "provider_requests": played.requests,
        "as_expected": played.as_expected,
    }


def print_apart(played: PlayedApart | None) -> None:
    """Print what became of the act with the folder of its own."""
    if played is None:
        print(f"({KEY}) was not played: it binds the run to its files by Git, and there is no `git` here.")
        return
    print(f"({KEY}) killed after its write was kept; then {', '.join(played.paths)} was changed by another process.")
    print(f"    parked: {', '.join(played.codes)}. Gone on in a folder of its own (`safepoint resume --isolated`):")
    print(f"    here {played.here.strip()}, payments: {played.payments_here}, as the other process left it;")
    print(f"    there {played.there.strip()}, payments: {played.payments_there}.", end="")
    print("" if played.as_expected else " NOT AS EXPECTED")


def _counts(counts: Counts) -> dict[str, int]:
    return {"provider_requests": counts.requests, "writes": counts.writes, "payments": counts.payments}


def print_table(acts: Sequence[Played]) -> None:
    """Print one row an act."""
    from rich.console import Console
    from rich.table import Table

    table = Table(
        title="An agent changes a port from 3000 to 4000, pays a bill, and is killed with SIGKILL", show_lines=True
    )
    for heading in (
        "",
        "killed",
        "a naive log says",
        "Safepoint's verdict",
        "counted after the kill",
        "plan",
        "the file, looked at again",
        "at the end",
    ):
        table.add_column(heading, overflow="fold")
    for played in acts:
        decision = "continue" if played.decision == "continue" else f"park: {', '.join(played.codes)}"
        table.add_row(
            f"({played.act.key})",
            played.act.instant,
            played.naive,
            f"{played.verdict}\n{played.reason}",
            _said(played.killed),
            decision,
            _looked(played),
            _said(played.ended) + ("" if played.as_expected else "\nNOT AS EXPECTED"),
        )
    console = Console(width=None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL)
    console.print(table)
    if all(played.as_expected for played in acts):
        console.print("Every effect was counted from files by another process: none happened twice, none was guessed.")


def _looked(played: Played) -> str:
    if played.observation is None:
        return "not needed"
    how = "finalized by evidence" if played.became == "completed" else "parked"
    kept = "\ntheir edit is kept" if played.act.edited and played.content == PORT_OF_SOMEBODY_ELSE else ""
    return f"{played.observation}\n{how}{kept}"


def _said(counts: Counts) -> str:
    return f"requests: {counts.requests}\nwrites: {counts.writes}\npayments: {counts.payments}"
