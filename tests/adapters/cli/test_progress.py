"""Long work tells somebody who watches how far it has come, and nobody else. Issue 3."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from safepoint.adapters.cli import progress
from safepoint.adapters.cli.output import Output
from safepoint.adapters.cli.progress import TOLD_EVERY_SECONDS, telling, telling_parts
from safepoint.adapters.memory.event_store import MemoryStore
from safepoint.application.verify_store import VerifyStore
from safepoint.ports.contract_kit.recorded_runs import RecordedSession


class Clock:
    """Moves on by half of the time between two tellings whenever it is looked at."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += TOLD_EVERY_SECONDS / 2
        return self.now


@pytest.fixture(params=[True, False], ids=["terminal", "pipe"])
def terminal(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    watched = SimpleNamespace(stderr=SimpleNamespace(isatty=lambda: request.param))
    monkeypatch.setattr(progress, "sys", watched)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=Clock()))
    return bool(request.param)


def test_counts_are_told_now_and_then_where_somebody_watches(
    terminal: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    tell = telling(Output(as_json=False), lambda done, of: f"{done} of {of}")
    for done in range(10):
        tell(done, 10)
    told = capsys.readouterr().err.splitlines()
    assert (1 < len(told) < 10) if terminal else told == []
    assert told == sorted(told)


def test_verify_tells_every_part_of_its_work(terminal: bool, capsys: pytest.CaptureFixture[str]) -> None:
    store = MemoryStore()
    for name in ("one", "two"):
        one = RecordedSession(name)
        one.own(store.owners)
        one.keep(store.events, *one.opened())
    out = Output(as_json=False)
    verify = VerifyStore(store.events, store, store.owners, store.projections)
    verify(telling(out, lambda streams, events: f"{events} in {streams}"), telling_parts(out, lambda part: part))
    told = capsys.readouterr().err.splitlines()
    assert told == (["2 in 1", "6 in 3", "owners", "pages and indexes", "views"] if terminal else []), told
