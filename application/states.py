"""Aggregate states by stream: cached between commands, moved on within a group, refreshed from the store. SPEC section 7.

A cached state is only a shortcut: the store refuses whatever was decided on one that had been overtaken.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..domain.commands import AbandonRun, AnyCommand, ClaimContinuation, OpenRun
from ..domain.continuation.decisions import AncestorHead
from ..domain.events.event import Event, RunEvent, SessionEvent
from ..domain.events.run import PrefixRef, RunClaimed
from ..domain.identifiers import run_stream, session_stream
from ..domain.run.state import Run
from ..domain.run.state import evolve as evolve_run
from ..domain.sealing import FIRST_PREVIOUS_DIGEST, SealedEvent, digest_of, seal, unseal
from ..domain.session.state import Session
from ..domain.session.state import evolve as evolve_session
from ..ports.event_store import EventReader
from .deciding import World, run_of, source_of

PAGE = 1000

Read: TypeAlias = Callable[[Callable[[EventReader], None]], None]


@dataclass(frozen=True, slots=True)
class Head:
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


def empty(stream: str) -> Head:
    """The head of a stream without events."""
    return Head(0, FIRST_PREVIOUS_DIGEST, Session() if stream.startswith("session:") else Run())


def advance(head: Head, sealed: SealedEvent) -> Head:
    """Fold one more event in."""
    event = sealed.event
    if isinstance(event, RunEvent):
        return Head(sealed.sequence, sealed.digest, evolve_run(head.run(), event))
    assert isinstance(event, SessionEvent)
    return Head(sealed.sequence, sealed.digest, evolve_session(head.session(), event))


def events_after(reader: EventReader, stream: str, sequence: int, digest: str) -> Iterable[SealedEvent]:
    """Read and verify a stream's events after a known prefix, page by page.

    Raises:
        DamagedEvent: a row is not what belongs there.
        StoreUnavailable: it could not be read.
    """
    while rows := reader.read(stream, after=sequence, limit=PAGE):
        for row in rows:
            sealed = unseal(row, sequence + 1, digest)
            sequence, digest = sealed.sequence, sealed.digest
            yield sealed
        if len(rows) < PAGE:
            return


def load(reader: EventReader, stream: str, known: Head | None = None) -> Head:
    """Read a stream to its newest event, from a known head on."""
    head = known or empty(stream)
    for sealed in events_after(reader, stream, head.sequence, head.digest):
        head = advance(head, sealed)
    return head


class StateCache:
    """The newest durable states that this process knows, least recently used first out."""

    def __init__(self, streams_max: int) -> None:
        self._heads: OrderedDict[str, Head] = OrderedDict()
        self._streams_max = streams_max

    def get(self, stream: str) -> Head | None:
        """The cached head of a stream."""
        head = self._heads.get(stream)
        if head is not None:
            self._heads.move_to_end(stream)
        return head

    def put(self, stream: str, head: Head) -> None:
        """Keep a durable head."""
        self._heads[stream] = head
        self._heads.move_to_end(stream)
        while len(self._heads) > self._streams_max:
            self._heads.popitem(last=False)

    def drop(self, stream: str) -> None:
        """Forget a stream."""
        self._heads.pop(stream, None)

    def clear(self) -> None:
        """Forget everything, after a commit whose outcome is unknown."""
        self._heads.clear()

    def refresh(self, streams: Iterable[str], reader: EventReader) -> bool:
        """Bring cached streams up to the store; True when one had been behind."""
        moved = False
        for stream in streams:
            before = self._heads.get(stream)
            if before is None:
                continue
            after = load(reader, stream, before)
            if after.sequence != before.sequence:
                self.put(stream, after)
                moved = True
        return moved


class Heads:
    """The states of one group: the durable ones, moved on by what was accepted so far."""

    def __init__(self, cache: StateCache) -> None:
        self._cache = cache
        self._moved: dict[str, Head] = {}

    def world(self, command: AnyCommand, read: Read) -> World:
        """The states that a command is decided on, loaded where they are not known."""
        session = self.head(session_stream(command.session_id), read).session()
        # A damaged run can be given up, and must not stop its session afterwards: it is read only where it decides.
        run = empty("run:") if isinstance(command, AbandonRun) else self.head(run_stream(run_of(command)), read)
        head_run: Run | None = None
        if isinstance(command, OpenRun) and session.head is not None and session.head.run_id not in session.abandoned:
            head_run = self.head(run_stream(session.head.run_id), read).run()
        source_id = source_of(command)
        source = self.head(run_stream(source_id), read).run() if source_id is not None else Run()
        ancestors = _ancestors(command, read) if isinstance(command, ClaimContinuation) else ()
        return World(session, head_run, run.run(), run.digest, source, ancestors)

    def head(self, stream: str, read: Read) -> Head:
        """The present head of a stream, read where it is not known."""
        known = self._moved.get(stream) or self._cache.get(stream)
        if known is None:
            read(lambda reader: self._cache.put(stream, load(reader, stream)))
            known = self._cache.get(stream)
            assert known is not None
        return known

    def advance(self, candidates: Sequence[Event]) -> tuple[SealedEvent, ...]:
        """Seal candidates after the present heads, and move the heads on; all or nothing.

        Raises:
            ValueError: a candidate has no canonical form or is too large.
        """
        moved: dict[str, Head] = {}
        sealed: list[SealedEvent] = []
        for event in candidates:
            stream = event.stream
            head = moved.get(stream) or self._moved.get(stream) or self._cache.get(stream) or empty(stream)
            one = seal(event, head.sequence + 1, head.digest)
            after = advance(head, one)
            if isinstance(event, RunEvent) and len(after.run().tools.issues) > len(head.run().tools.issues):
                issue = after.run().tools.issues[-1]
                raise ValueError(f"the ledger would not be sound: {issue.code} at {event.topic}")
            moved[stream] = after
            sealed.append(one)
        self._moved.update(moved)
        return tuple(sealed)

    def keep(self, *, except_streams: Iterable[str]) -> None:
        """After COMMIT: the moved heads are durable, but for streams of commits that the store refused."""
        refused = set(except_streams)
        for stream, head in self._moved.items():
            if stream in refused:
                self._cache.drop(stream)
            else:
                self._cache.put(stream, head)


def _ancestors(command: ClaimContinuation, read: Read) -> tuple[AncestorHead, ...]:
    found: list[AncestorHead] = []

    def look(reader: EventReader) -> None:
        found.extend(_ancestor(reader, segment) for segment in command.claimed.segments[:-1])

    read(look)
    return tuple(found)


def _ancestor(reader: EventReader, segment: PrefixRef) -> AncestorHead:
    """Two rows of an ancestor: the one at the boundary, and the claim right after it."""
    stream = run_stream(segment.run_id)
    rows = reader.read(stream, after=segment.high_water - 1, limit=2)
    if len(rows) < 2:
        return AncestorHead(segment.run_id, None, None)
    digest = digest_of(rows[0].state)
    following = unseal(rows[1], segment.high_water + 1, digest).event
    target = following.target.run_id if isinstance(following, RunClaimed) else None
    return AncestorHead(segment.run_id, digest, target)
