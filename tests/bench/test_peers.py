"""Peers are measured by programs of their own, and one that cannot be measured is never said to be beaten."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import bench
from bench.against_peers import PEERS, pair_against_peers
from bench.bars import PAIR_AGAINST_CALL4AGENTS, PAIR_AGAINST_DBOS, PAIR_AGAINST_LANGGRAPH, PAIR_AGAINST_SAKRIT
from bench.peer_environments import NotInstalled, installed
from bench.sizes import Sizes
from bench.workplace import Workplace

PROGRAMS = Path(bench.__file__).parent / "peers"
FAKE = Path(__file__).parent / "fake_peer.py"


def fake(seconds: float) -> Callable[[Workplace], Sequence[str]]:
    return lambda work: (sys.executable, str(FAKE), str(seconds))


def cannot_be_installed(work: Workplace) -> Sequence[str]:
    raise NotInstalled("no matching distribution")


def test_a_slow_peer_is_beaten_a_fast_one_is_not_and_one_that_fails_is_not_measured(tmp_path: Path) -> None:
    peers = {
        PAIR_AGAINST_DBOS: fake(10),
        PAIR_AGAINST_LANGGRAPH: fake(1e-9),
        PAIR_AGAINST_CALL4AGENTS: fake(-1),
        PAIR_AGAINST_SAKRIT: cannot_be_installed,
    }
    found = {one.bar: one for one in pair_against_peers(Workplace(tmp_path, tmp_path, Sizes(0.001)), peers)}
    assert found.keys() == peers.keys()
    assert found[PAIR_AGAINST_DBOS].holds
    assert found[PAIR_AGAINST_DBOS].figures["journal_mode"] == "none"
    assert not found[PAIR_AGAINST_LANGGRAPH].holds
    assert found[PAIR_AGAINST_LANGGRAPH].ratio is not None
    for bar, why in (
        (PAIR_AGAINST_CALL4AGENTS, "the ledger is full"),
        (PAIR_AGAINST_SAKRIT, "no matching distribution"),
    ):
        assert (found[bar].ratio, found[bar].holds, found[bar].why) == (None, False, why)


def test_a_program_that_does_not_start_is_not_measured(tmp_path: Path) -> None:
    peers = {PAIR_AGAINST_DBOS: lambda work: (sys.executable, "-c", "raise SystemExit('cannot import dbos')")}
    (one,) = pair_against_peers(Workplace(tmp_path, tmp_path, Sizes(0.001)), peers)
    assert (one.holds, one.why) == (False, "cannot import dbos")


def test_every_peer_has_a_program_and_an_environment_that_is_pinned() -> None:
    for bar in PEERS:
        name = bar.name.removeprefix("pair_against_")
        assert (PROGRAMS / f"{name}_steps.py").is_file()
        pinned = (PROGRAMS / f"{name}.txt").read_text().split()
        assert any(line.startswith(name) for line in pinned)
        assert [line for line in pinned if not re.fullmatch(r"[\w.-]+==[\w.]+", line)] == []


def test_an_environment_that_cannot_be_made_leaves_nothing_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(NotInstalled):
        installed("sakrit", tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
