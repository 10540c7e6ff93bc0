"""Aggregate states, folded from verified streams. SPEC sections 3 and 6."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

from ..domain.errors import StoreDamaged
from ..domain.events.tool import ToolCalled, ToolDispatched
from ..domain.identifiers import RunId, SessionId, run_stream
from ..domain.recovery.facts import Fact
from ..domain.run.state import Run
from ..domain.sealing import FIRST_PREVIOUS_DIGEST, DamagedEvent, SealedEvent
from ..domain.session.state import Session
from ..domain.session.state import evolve as evolve_session
from ..domain.unsealing import event_of, unseal_after
from ..ports.event_store import EventReader, Standing

PAGE = 128

Read: TypeAlias = Callable[[Callable[[EventReader], None]], None]


class Head:
    """A stream up to its newest event: how many, the digest that names them, and what they amount to.

    It moves in place.

    Attributes:
        moving: it holds what is not durable yet: only the writer, which moved it, may look at it.
        lent: somebody was shown the state, so it goes on as a copy.
    """

    __slots__ = ("digest", "lent", "moving", "sequence", "state", "stream")

    def __init__(self, stream: str) -> None:
        self.stream = stream
        self.sequence = 0
        self.digest = FIRST_PREVIOUS_DIGEST
        self.state: Session | Run = Session() if stream.startswith("session:") else Run()
        self.moving = False
        self.lent = False

    def advance(self, sealed: SealedEvent, fact: Fact | None = None) -> None:
        """Fold one more event in; `fact` where it is of a run, and known."""
        _, self.sequence, event, _, self.digest, _ = sealed
        # The stream says which events are here: asking pydantic's classes would cost as much as folding one in.
        of_stream: Any = event
        state = self.state
        if type(state) is not Run:
            self.state = evolve_session(self.session(), of_stream)
            return
        if self.lent:
            state = self.state = state.copy()
            self.lent = False
        if fact is None:
            state.take(of_stream)
        else:
            state.take_as(of_stream, fact)

    def shown(self) -> Session | Run:
        """The state for whoever looks at it: it changes no more, and goes on as a copy. Not asked while it moves."""
        self.lent = True
        return self.state

    def session(self) -> Session:
        """The state as a session's."""
        assert isinstance(self.state, Session)
        return self.state

    def run(self) -> Run:
        """The state as a run's; it goes on as the head does."""
        assert isinstance(self.state, Run)
        return self.state

    @property
    def session_id(self) -> SessionId | None:
        """The session that the stream belongs to, None while it has no event."""
        first = self.state.opened if isinstance(self.state, Session) else self.state.opening
        return None if first is None else first.session_id


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
    """Read a stream to its newest event, from a known head on, which is moved."""
    head = known or Head(stream)
    for sealed in events_after(reader, stream, head.sequence, head.digest):
        head.advance(sealed)
    return head


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
    head = Head(stream)
    run = head.run()
    try:
        for sealed in events_after(reader, stream, 0, head.digest):
            head.advance(sealed)
            told(sealed)
    except DamagedEvent as damage:
        return Readable(run, str(damage), _suspected(reader, head))
    wrong = contradiction(run)
    if wrong is None and reader.standing(run_id).gap:
        wrong = gap_behind(run_id)
    return Readable(run, wrong, run)


def _suspected(reader: EventReader, head: Head) -> Run:
    """Fold in what was called and dispatched behind the newest event that is vouched for."""
    run, after = head.run().copy(), head.sequence
    while rows := reader.read(head.stream, after=after, limit=PAGE):
        for row in rows:
            try:
                event = event_of(row)
            except DamagedEvent:
                continue
            if isinstance(event, ToolCalled | ToolDispatched) and event.stream == head.stream:
                run.take(event)
        after = rows[-1].version
    return run


def contradiction(run: Run) -> str | None:
    """The first fact of a run that contradicts those before it; None in a sound one. Nothing more is written there."""
    if not run.tools.issues:
        return None
    issue = run.tools.issues[0]
    return f"event {issue.sequence} of the run contradicts those before it: {issue.code}"


def damage_of(reader: EventReader, run: Run) -> str | None:
    """Why nobody can close a run, where it is open, or write anything more in it; None where nothing is wrong.

    Raises:
        StoreUnavailable: it could not be looked at.
    """
    found = contradiction(run)
    if found is None and run.opening is not None and run.ended is None and reader.standing(run.opening.run_id).gap:
        found = gap_behind(run.opening.run_id)
    return found
