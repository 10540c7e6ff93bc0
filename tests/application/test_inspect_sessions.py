"""Lists and pages of sessions: states from facts and owners, and a damaged session never hides the others."""

from __future__ import annotations

import pytest

from safepoint.adapters.memory.event_store import MemoryStore
from safepoint.adapters.memory.incarnations import MemoryHost, MemoryIncarnations
from safepoint.adapters.memory.tables import Failure
from safepoint.application.inspect_sessions import InspectSessions, SessionState
from safepoint.application.ownership import SessionOwnership
from safepoint.application.session_health import CHECKED_EVENTS_MAX
from safepoint.domain.errors import StoreUnavailable
from safepoint.domain.events.run import RunStatus
from safepoint.domain.events.session import RunAbandoned, RunAdmitted, RunKind
from safepoint.domain.identifiers import InvocationId, RunId, SessionId, TurnId
from safepoint.domain.sealing import StoredRecord
from safepoint.ports.contract_kit.recorded_runs import NOON, RecordedSession
from safepoint.ports.incarnations import Incarnation, Liveness


class Observed:
    """A store that is looked at by a process that owns nothing, and the owner that wrote it."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.host = MemoryHost()
        self.owner_process = MemoryIncarnations(self.host)
        self.owner: Incarnation = self.owner_process.enter().incarnation
        self.store.owners.register(self.owner)
        observer = SessionOwnership(self.store.owners, MemoryIncarnations(self.host), lambda session_id: None)
        self.inspect = InspectSessions(self.store.events, self.store.views, observer)

    def session(self, name: str, at: str = NOON) -> RecordedSession:
        """An owned session with an open run."""
        made = RecordedSession(name, self.owner.incarnation_id)
        taken = self.store.owners.take(made.session_id, self.owner.incarnation_id, None)
        assert taken is not None
        made.keep(self.store.events, *made.opened(at=at))
        return made

    def damage(self, stream: str, version: int) -> None:
        """Change one stored event."""
        records = self.store._tables.records
        place = next(i for i, one in enumerate(records) if (one.stream, one.version) == (stream, version))
        one = records[place]
        records[place] = StoredRecord(one.stream, one.version, one.topic, one.state.replace(b"1", b"2"))

    def state(self, session: RecordedSession) -> SessionState:
        found = self.inspect.one(session.session_id)
        assert found is not None
        return found.state


@pytest.fixture
def observed() -> Observed:
    return Observed()


def test_an_open_run_is_running_while_its_owner_lives_and_interrupted_when_it_is_dead(observed: Observed) -> None:
    session = observed.session("a")
    assert observed.state(session) is SessionState.RUNNING
    observed.owner_process.die()
    assert observed.state(session) is SessionState.INTERRUPTED


def test_could_not_look_is_not_dead(observed: Observed) -> None:
    session = observed.session("a")
    observed.owner_process.tell(observed.owner, Liveness.COULD_NOT_LOOK)
    found = observed.inspect.one(session.session_id)
    assert found is not None
    assert (found.state, found.owner, found.owner_liveness) == (
        SessionState.OWNER_NOT_SEEN,
        observed.owner,
        Liveness.COULD_NOT_LOOK,
    )


def test_an_open_run_that_nobody_owns_is_interrupted(observed: Observed) -> None:
    session = observed.session("a")
    assert observed.store.owners.release(session.session_id, observed.owner.incarnation_id, 1)
    assert observed.state(session) is SessionState.INTERRUPTED


@pytest.mark.parametrize("status", RunStatus)
def test_an_ended_run_is_what_its_terminal_event_says(observed: Observed, status: RunStatus) -> None:
    session = observed.session("a")
    session.keep(observed.store.events, session.ended(status=status))
    assert observed.state(session) == status.value


def test_a_claim_that_was_never_started_is_interrupted_and_not_damaged(observed: Observed) -> None:
    session = observed.session("a")
    session.keep(observed.store.events, session.ended())
    claimed = session.claimed()
    admitted = RunAdmitted(
        event_id=session.event_id(),
        session_id=session.session_id,
        occurred_at=NOON,
        run_id=claimed.target.run_id,
        turn_id=claimed.target.turn_id,
        invocation_id=claimed.target.invocation_id,
        kind=RunKind.CONTINUATION,
        claim_id=claimed.claim_id,
    )
    session.keep(observed.store.events, claimed, admitted)
    observed.owner_process.die()
    assert observed.state(session) is SessionState.INTERRUPTED


def test_an_abandoned_run_is_no_longer_open(observed: Observed) -> None:
    session = observed.session("a")
    abandoned = RunAbandoned(
        event_id=session.event_id(),
        session_id=session.session_id,
        occurred_at=NOON,
        run_id=session.run_id(),
        by="somebody",
        note="damaged",
        last_good_sequence=1,
    )
    session.keep(observed.store.events, abandoned)
    assert observed.state(session) is SessionState.ABANDONED


@pytest.mark.parametrize("stream", ["session:session-b", "run:run-b-a"])
def test_a_damaged_session_is_listed_with_its_code_and_the_others_as_they_are(observed: Observed, stream: str) -> None:
    """r3-069, F12."""
    for name in "abc":
        session = observed.session(name)
        session.keep(observed.store.events, session.text("1"), session.ended(status=RunStatus.COMPLETED))
    observed.damage(stream, 2)
    page = observed.inspect.page()
    assert {one.session_id: one.state.value for one in page.sessions} == {
        "session-a": "completed",
        "session-b": "unreadable",
        "session-c": "completed",
    }
    (damaged,) = [one for one in page.sessions if one.state is SessionState.UNREADABLE]
    assert damaged.damage is not None
    assert damaged.damage.code == "runtime_ledger_unreadable"
    assert stream in damaged.damage.detail


def test_a_run_that_was_admitted_and_has_no_event_is_damage(observed: Observed) -> None:
    session = observed.session("a")
    session.keep(observed.store.events, session.ended())
    lost = RunAdmitted(
        event_id=session.event_id(),
        session_id=session.session_id,
        occurred_at=NOON,
        run_id=RunId("lost"),
        turn_id=TurnId("t"),
        invocation_id=InvocationId("i"),
        kind=RunKind.TURN,
    )
    session.keep(observed.store.events, lost)
    found = observed.inspect.one(session.session_id)
    assert found is not None
    assert found.damage is not None
    assert found.damage.code == "source_run_unreadable"


def test_not_being_able_to_look_is_no_answer(observed: Observed) -> None:
    observed.session("a")
    observed.store.fail_next(Failure.UNREADABLE)
    with pytest.raises(StoreUnavailable):
        observed.inspect.page()


def test_pages_go_from_the_newest_to_the_oldest_without_gap_or_repeat(observed: Observed) -> None:
    for number in range(7):
        observed.session(str(number), at=f"2026-03-01T12:00:0{number}.000000Z")
    seen: list[str] = []
    after = None
    while True:
        page = observed.inspect.page(after=after, limit=3)
        assert len(page.sessions) <= 3
        seen += [one.session_id for one in page.sessions]
        after = page.after
        if after is None:
            break
    assert seen == [f"session-{number}" for number in reversed(range(7))]
    assert [one.session_id for one in observed.inspect.every(page_size=2)] == seen


def test_an_unknown_session_is_none(observed: Observed) -> None:
    assert observed.inspect.one(SessionId("nobody")) is None


def test_the_newest_runs_are_shown_in_their_order(observed: Observed) -> None:
    session = observed.session("a")
    for name in "bcd":
        session.keep(observed.store.events, session.ended(chr(ord(name) - 1)))
        session.keep(observed.store.events, *session.opened(name))
    assert [row.run_id for row in observed.inspect.runs(session.session_id, limit=2)] == ["run-a-c", "run-a-d"]


def test_looking_owns_nothing(observed: Observed) -> None:
    session = observed.session("a")
    before = observed.store.owners.owner(session.session_id), len(observed.host.lives)
    list(observed.inspect.every())
    assert (observed.store.owners.owner(session.session_id), len(observed.host.lives)) == before


def test_a_list_reads_a_bounded_part_of_a_long_run(observed: Observed) -> None:
    """What is older is verified by whatever shows, plans or verifies the run."""
    session = observed.session("a")
    for _ in range(12):
        session.keep(observed.store.events, *(session.text("1") for _ in range(50)))
    session.keep(observed.store.events, session.ended(status=RunStatus.COMPLETED))
    observed.damage("run:run-a-a", 100)
    assert observed.state(session) is SessionState.COMPLETED
    observed.damage("run:run-a-a", 603 - CHECKED_EVENTS_MAX)
    assert observed.state(session) is SessionState.UNREADABLE
