"""Aggregate states, folded from verified streams. SPEC sections 3 and 6."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

from ..domain.errors import StoreDamaged
from ..domain.events.tool import ToolCalled, ToolDispatched
from ..domain.identifiers import RunId, SessionId, run_stream
from ..domain.run.state import Run, RunDraft
from ..domain.run.state import evolve as evolve_run
from ..domain.sealing import FIRST_PREVIOUS_DIGEST, DamagedEvent, SealedEvent
from ..domain.session.state import Session
from ..domain.session.state import evolve as evolve_session
from ..domain.unsealing import event_of, unseal_after
from ..ports.event_store import EventReader, Standing

PAGE = 128

Read: TypeAlias = Callable[[Callable[[EventReader], None]], None]


class Head(NamedTuple):
    """A stream up to its newest event: how many, the digest that names them, and what they amount to."""

    sequence: int
    digest: str
    state: Session | Run

    def session(self) -> Session:
        """The state as a session's."""
        assert isinstance(self.state, Session)
        return self.state

    def run(self) -> Run:
        """The state as a run's."""
        assert isinstance(self.state, Run)
        return self.state

    @property
    def session_id(self) -> SessionId | None:
        """The session that the stream belongs to, None while it has no event."""
        first = self.state.opened if isinstance(self.state, Session) else self.state.opening
        return None if first is None else first.session_id


NO_RUN = Head(0, FIRST_PREVIOUS_DIGEST, Run())
NO_SESSION = Head(0, FIRST_PREVIOUS_DIGEST, Session())


def empty(stream: str) -> Head:
    """The head of a stream without events."""
    return NO_SESSION if stream.startswith("session:") else NO_RUN


def advance(head: Head, sealed: SealedEvent) -> Head:
    """Fold one more event in."""
    state = head.state
    # The stream says which events are here: asking pydantic's classes would cost as much as folding one in.
    event: Any = sealed.event
    if type(state) is Run:
        # As calling the class would, in half the time: T1 and T2 pass here.
        return tuple.__new__(Head, (sealed.sequence, sealed.digest, evolve_run(state, event)))
    return Head(sealed.sequence, sealed.digest, evolve_session(head.session(), event))


def events_after(reader: EventReader, stream: str, sequence: int, digest: str) -> Iterable[SealedEvent]:
    """Read and verify a stream's events after a known prefix, page by page.

    Raises:
        DamagedEvent: a row is not what belongs there.
        StoreUnavailable: it could not be read.
    """
    while True:
        rows = reader.read(stream, after=sequence, limit=PAGE)
        sequence, digest = yield from unseal_after(sequence, digest, rows)
        if len(rows) < PAGE:
            return
        del rows  # before the next are there: a page may have PAGE times the size of the largest event


def load(reader: EventReader, stream: str, known: Head | None = None) -> Head:
    """Read a stream to its newest event, from a known head on."""
    head = known or empty(stream)
    if head is NO_RUN:
        return _load_run(reader, stream)
    for sealed in events_after(reader, stream, head.sequence, head.digest):
        head = advance(head, sealed)
    return head


def _load_run(reader: EventReader, stream: str) -> Head:
    """Read a whole run: nobody asks for the states between."""
    draft, last = RunDraft(), None
    for sealed in events_after(reader, stream, 0, FIRST_PREVIOUS_DIGEST):
        event: Any = sealed.event  # as in `advance`
        draft.take(event)
        last = sealed
    return NO_RUN if last is None else Head(last.sequence, last.digest, draft.last())


def standing_of(reader: EventReader, run_id: RunId) -> Standing:
    """What the store vouches for about a run, where its end is to be believed.

    Raises:
        StoreDamaged: an event is missing behind its newest one, which may have been its own: a dispatch above all.
        StoreUnavailable: it could not be looked at.
    """
    standing = reader.standing(run_id)
    if standing.gap:
        raise StoreDamaged(gap_behind(run_id))
    return standing


def gap_behind(run_id: RunId) -> str:
    """What is wrong with a run where `Standing.gap` is set."""
    return f"an event is missing behind the newest one of run {run_id}, and may have been its own"


class Readable(NamedTuple):
    """A run that may be damaged.

    Attributes:
        run: as far as its chain verifies.
        damage: what is wrong behind that, or with it; None where nothing is.
        suspected: the same with the calls and dispatches that still can be read behind it. Nothing vouches for them,
            and no outcome behind the damage counts: whatever it may have done must be reckoned with.
    """

    run: Run
    damage: str | None
    suspected: Run


def readable(reader: EventReader, run_id: RunId, told: Callable[[SealedEvent], None] = lambda sealed: None) -> Readable:
    """Read a run that may be damaged.

    Args:
        told: told of each event that is vouched for, in order.
    """
    stream = run_stream(run_id)
    head = empty(stream)
    try:
        for sealed in events_after(reader, stream, 0, head.digest):
            head = advance(head, sealed)
            told(sealed)
    except DamagedEvent as damage:
        return Readable(head.run(), str(damage), _suspected(reader, stream, head))
    wrong = contradiction(head.run())
    if wrong is None and reader.standing(run_id).gap:
        wrong = gap_behind(run_id)
    return Readable(head.run(), wrong, head.run())


def _suspected(reader: EventReader, stream: str, head: Head) -> Run:
    """Fold in what was called and dispatched behind the newest event that is vouched for."""
    run, after = head.run(), head.sequence
    while rows := reader.read(stream, after=after, limit=PAGE):
        for row in rows:
            try:
                event = event_of(row)
            except DamagedEvent:
                continue
            if isinstance(event, ToolCalled | ToolDispatched) and event.stream == stream:
                run = evolve_run(run, event)
        after = rows[-1].version
    return run


def contradiction(run: Run) -> str | None:
    """The first fact of a run that contradicts those before it; None in a sound one. Nothing more is written there."""
    if not run.tools.issues:
        return None
    issue = run.tools.issues[0]
    return f"event {issue.sequence} of the run contradicts those before it: {issue.code}"
