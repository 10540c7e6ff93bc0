"""The only writer: takes commands, lets the aggregates decide, seals the candidates, groups commits. SPEC section 7.

Commands of one group are decided in order on a state that includes the earlier accepted ones; the store keeps them in one
transaction, a savepoint each. A refusal is final only when it was decided on fresh, durable state: anything else is decided again.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ..domain.commands import AnyCommand
from ..domain.decision import Refusal
from ..domain.errors import SafepointError, StoreDamaged, StoreError, WriteRefused
from ..domain.events.event import Event
from ..domain.identifiers import RunId, SessionId, run_stream, session_stream
from ..domain.projections import rows_of
from ..domain.reasons import WriteRefusal
from ..domain.run.state import Run
from ..domain.sealing import DamagedEvent, OversizedEvent, SealedEvent
from ..domain.session.state import Session
from ..ports.event_store import (
    Commit,
    CommitAnswer,
    ConstraintBroken,
    Damaged,
    DuplicateId,
    EventReader,
    EventStore,
    Fenced,
    OwnerGuard,
    Stored,
    VersionConflict,
)
from .deciding import decide, fits, streams_of
from .retries import earlier_result
from .states import Head, Heads, StateCache, load

ROUNDS_MAX = 16
"""How often a command is decided anew before the store is called unavailable: each round another writer must have won."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """A durable commit: its sealed events, and whether this call wrote them or an earlier one did (an exact retry)."""

    events: tuple[SealedEvent, ...]
    first: bool = True


class CommandLedger(Protocol):
    """What executes commands on aggregates: the ledger, or a preview of it that writes nothing."""

    @abstractmethod
    def session(self, session_id: SessionId) -> Session:
        """The session's state."""

    @abstractmethod
    def run(self, run_id: RunId) -> Run:
        """The run's state."""

    @abstractmethod
    def execute(self, command: AnyCommand) -> Receipt:
        """Decide and write one command."""


@dataclass(slots=True)
class _Ticket:
    command: AnyCommand
    receipt: Receipt | None = None
    error: SafepointError | None = None
    rounds: int = 0

    @property
    def done(self) -> bool:
        return self.receipt is not None or self.error is not None


@dataclass(slots=True)
class _Proposal:
    ticket: _Ticket
    commit: Commit


class Ledger(CommandLedger):
    """Grouped, exactly-once writing over one event store; thread-safe.

    Args:
        store: keeps sealed commits.
        cached_streams_max: how many aggregate states are kept between commands.
    """

    def __init__(self, store: EventStore, *, cached_streams_max: int = 1024) -> None:
        self._store = store
        self._states = StateCache(cached_streams_max)
        self._waiting: deque[_Ticket] = deque()
        self._writer = threading.Lock()

    def execute(self, command: AnyCommand) -> Receipt:
        """Decide and durably write one command; returns after COMMIT.

        A lone caller commits at once in its own thread; callers that meet wait for the writer and are committed together.

        Raises:
            WriteRefused: the command is refused, with its code; nothing was written.
            StoreUnavailable: it is not known whether it was written; an exact retry converges.
            StoreFull, StoreDamaged: nothing was written.
        """
        ticket = _Ticket(command)
        self._waiting.append(ticket)
        with self._writer:
            if not ticket.done:
                self._commit_group()
        if ticket.error is not None:
            raise ticket.error
        assert ticket.receipt is not None
        return ticket.receipt

    def session(self, session_id: SessionId) -> Session:
        """The session's state, from the cache or the store; fresh as long as the caller owns the session."""
        return self._head(session_stream(session_id)).session()

    def run(self, run_id: RunId) -> Run:
        """The run's state, from the cache or the store; fresh as long as the caller owns its session.

        Raises:
            StoreDamaged: its chain does not verify.
            StoreUnavailable: it could not be read.
        """
        return self._head(run_stream(run_id)).run()

    def _head(self, stream: str) -> Head:
        with self._writer:
            known = self._states.get(stream)
            if known is None:
                try:
                    with self._store.snapshot() as reader:
                        known = load(reader, stream)
                except DamagedEvent as error:
                    raise StoreDamaged(str(error)) from error
                self._states.put(stream, known)
            return known

    def forget(self, stream: str) -> None:
        """Drop a cached state, so that the next command reads it again."""
        with self._writer:
            self._states.drop(stream)

    def _commit_group(self) -> None:
        group = [self._waiting.popleft() for _ in range(len(self._waiting))]
        try:
            while left := [ticket for ticket in group if not ticket.done]:
                self._round(left)
        except BaseException as error:
            self._states.clear()
            unknown = error if isinstance(error, SafepointError) else StoreError(f"the writer failed: {error!r}")
            for ticket in group:
                if not ticket.done:
                    ticket.error = unknown
            if not isinstance(error, Exception):
                raise

    def _round(self, tickets: list[_Ticket]) -> None:
        heads = Heads(self._states)
        proposals: list[_Proposal] = []
        undecided: list[tuple[_Ticket, Refusal]] = []
        touched: set[str] = set()
        for ticket in tickets:
            ticket.rounds += 1
            if ticket.rounds > ROUNDS_MAX:
                ticket.error = StoreError("other writers won every round; try again")
                continue
            streams = streams_of(ticket.command)
            decided = self._decide(ticket.command, heads)
            if isinstance(decided, SafepointError):
                ticket.error = decided
            elif not isinstance(decided, Refusal):
                sealed = decided
                touched.update(event.stream for event in sealed)
                proposals.append(_Proposal(ticket, self._commit_of(ticket.command, sealed)))
            elif touched.intersection(streams):
                continue  # decided on a neighbour that is not durable yet: decide again when it is
            else:
                undecided.append((ticket, decided))
        if proposals:
            self._write(proposals, heads)
        for ticket, refusal in undecided:
            self._refuse(ticket, refusal)

    def _decide(self, command: AnyCommand, heads: Heads) -> tuple[SealedEvent, ...] | Refusal | SafepointError:
        """Seal what the aggregates propose on the present states, and move those states on."""
        try:
            world = heads.world(command, self._read)
        except DamagedEvent as error:
            return StoreDamaged(str(error))
        except StoreError as error:
            return error
        if refusal := fits(command):
            return refusal
        candidates = decide(command, world)
        if isinstance(candidates, Refusal):
            return candidates
        try:
            return heads.advance(candidates)
        except (OversizedEvent, ValueError) as error:
            return Refusal(WriteRefusal.TRANSITION_SHAPE_CONFLICT, str(error))

    def _commit_of(self, command: AnyCommand, sealed: tuple[SealedEvent, ...]) -> Commit:
        rows = tuple(row for event in sealed for row in rows_of(event))
        return Commit(OwnerGuard(command.session_id, command.incarnation_id, command.epoch), sealed, rows)

    def _write(self, proposals: list[_Proposal], heads: Heads) -> None:
        answers = self._store.append([proposal.commit for proposal in proposals])
        refused: set[str] = set()
        for proposal, answer in zip(proposals, answers, strict=True):
            streams = {event.stream for event in proposal.commit.events}
            if isinstance(answer, Stored):
                proposal.ticket.receipt = Receipt(proposal.commit.events)
                continue
            refused |= streams
            self._refused_by_store(proposal.ticket, answer)
        heads.keep(except_streams=refused)

    def _refused_by_store(self, ticket: _Ticket, answer: CommitAnswer) -> None:
        match answer:
            case VersionConflict():
                pass  # another writer was first: the next round reads what it wrote and decides again
            case Fenced():
                self._refuse(ticket, Refusal(WriteRefusal.OWNER_FENCED, "the session has another owner now"))
            case DuplicateId(kind="event", id=event_id):
                self._refuse(ticket, Refusal(WriteRefusal.DUPLICATE_EVENT_ID, f"event id {event_id} is used already"))
            case DuplicateId(kind=kind, id=taken):
                self._refuse(
                    ticket, Refusal(WriteRefusal.TRANSITION_SHAPE_CONFLICT, f"{kind} id {taken} is used already")
                )
            case ConstraintBroken(detail=detail):
                self._refuse(ticket, Refusal(WriteRefusal.TRANSITION_SHAPE_CONFLICT, detail))
            case Damaged(detail=detail):
                ticket.error = StoreDamaged(detail)
            case Stored():
                raise AssertionError("a stored commit is no refusal")

    def _refuse(self, ticket: _Ticket, refusal: Refusal) -> None:
        """Make a refusal final: unless fresh state says otherwise, or it is an exact retry of what was written."""
        streams = streams_of(ticket.command)
        with self._store.snapshot() as reader:
            if self._states.refresh(streams, reader):
                return  # the state had been behind: decide again
            try:
                earlier = earlier_result(ticket.command, reader)
            except DamagedEvent as error:
                ticket.error = StoreDamaged(str(error))
                return
        if isinstance(earlier, tuple):
            ticket.receipt = Receipt(earlier, first=False)
        elif earlier is not None:
            ticket.error = WriteRefused(earlier.code, earlier.detail)
        else:
            ticket.error = WriteRefused(refusal.code, refusal.detail)

    def _read(self, load: Callable[[EventReader], None]) -> None:
        with self._store.snapshot() as reader:
            load(reader)


def candidates_of(receipt: Receipt) -> tuple[Event, ...]:
    """The events of a receipt without their seals."""
    return tuple(sealed.event for sealed in receipt.events)
