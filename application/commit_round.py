"""Rounds of a group of commands: each is decided, those accepted are written in one transaction. SPEC section 7.

A refusal is final only when it was decided on fresh, durable state: anything else is decided again in the next round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple

from ..domain.commands import AnyCommand
from ..domain.decision import Refusal, misfit
from ..domain.errors import StoreDamaged, StoreUnavailable, WriteRefused
from ..domain.reasons import WriteRefusal
from ..domain.sealing import DamagedEvent, SealedEvent
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
from ..ports.session_owners import SessionOwners
from .heads import Heads, Proposal
from .retries import earlier_result
from .state_cache import StateCache
from .states import Head

ROUNDS_MAX = 16
"""How often a command is decided anew before the store is called unavailable: each time another writer had won."""


class Receipt(NamedTuple):
    """A durable commit: its sealed events, and whether this call wrote them or an earlier one did (an exact retry)."""

    events: tuple[SealedEvent, ...]
    first: bool = True


@dataclass(slots=True)
class Ticket:
    """A command that waits for its answer."""

    command: AnyCommand
    receipt: Receipt | None = None
    error: Exception | None = None
    rounds: int = 0

    @property
    def done(self) -> bool:
        """True when it has its answer."""
        return self.receipt is not None or self.error is not None

    @property
    def guard(self) -> OwnerGuard:
        """The owner that asks."""
        command = self.command
        # As calling the class would, in half the time.
        return tuple.__new__(OwnerGuard, (command.session_id, command.incarnation_id, command.epoch))


@dataclass(slots=True)
class _Refused:
    """A refusal that is final unless the streams that it was decided on have moved, or the command is a retry."""

    ticket: Ticket
    refusal: Refusal
    decided_on: tuple[tuple[str, int], ...] = ()


class CommitRounds:
    """Answers tickets round by round.

    Args:
        store: keeps sealed commits.
        owners: asked who owns a session before a command is refused for any other reason.
        states: what is known of the store.
    """

    def __init__(self, store: EventStore, owners: SessionOwners, states: StateCache) -> None:
        self._store = store
        self._owners = owners
        self._states = states
        self._view = _View(store)
        self._heads = Heads(states, self._view.read)

    def __call__(self, tickets: Sequence[Ticket]) -> None:
        """Decide and write until every ticket has its answer.

        Raises:
            StoreError: what was accepted could not be written, or it is not known whether it was.
        """
        while tickets:
            self._round(tickets)
            tickets = [ticket for ticket in tickets if ticket.receipt is None and ticket.error is None]

    def forget(self) -> None:
        """Start anew after an error that ended a round: what it moved may not be durable."""
        self._view.close()
        self._heads = Heads(self._states, self._view.read)
        self._states.clear()

    def _round(self, tickets: Sequence[Ticket]) -> None:
        accepted: list[tuple[Ticket, tuple[Head, ...]]] = []
        commits: list[Commit] = []
        refused: list[_Refused] = []
        for ticket in tickets:
            ticket.rounds += 1
            try:
                decided, heads = self._proposed(ticket)
            except Exception as error:  # noqa: BLE001 (what goes wrong with one does not concern its neighbours)
                ticket.error = _told(error)
                continue
            if type(decided) is tuple:
                accepted.append((ticket, heads))
                commits.append(tuple.__new__(Commit, (ticket.guard, decided)))  # as in `guard`
            elif isinstance(decided, Refusal):
                refused.append(_Refused(ticket, decided, tuple((head.stream, head.sequence) for head in heads)))
        self._view.close()
        overtaken = self._write(accepted, commits, refused) if commits else frozenset[str]()
        self._heads.keep(except_streams=overtaken)
        for one in refused:
            # Else it was decided on a neighbour that came to nothing.
            if overtaken.isdisjoint(stream for stream, _ in one.decided_on):
                try:
                    self._refuse(one)
                except Exception as error:  # noqa: BLE001 (as above)
                    one.ticket.error = _told(error)

    def _proposed(self, ticket: Ticket) -> Proposal:
        if ticket.rounds > ROUNDS_MAX:
            raise StoreUnavailable("other writers won every round; try again")
        return self._heads.propose(ticket.command)

    def _write(
        self, accepted: list[tuple[Ticket, tuple[Head, ...]]], commits: list[Commit], refused: list[_Refused]
    ) -> frozenset[str]:
        """Write what was accepted; answers the streams of which something was not stored."""
        overtaken: set[str] = set()
        answers = self._store.append(commits)
        for (ticket, heads), commit, answer in zip(accepted, commits, answers, strict=True):
            if type(answer) is Stored:
                ticket.receipt = tuple.__new__(Receipt, (commit[1], True))  # in half the time
                continue
            overtaken.update(head.stream for head in heads)
            if isinstance(answer, Damaged):
                ticket.error = StoreDamaged(answer.detail)
            elif (refusal := _refusal(answer)) is not None:
                refused.append(_Refused(ticket, refusal))
        return frozenset(overtaken)

    def _refuse(self, refused: _Refused) -> None:
        """Make a refusal final. Order of SPEC section 7: exact retry, epoch, and then what the state does not allow."""
        ticket, refusal = refused.ticket, refused.refusal
        with self._store.snapshot() as reader:
            if self._states.refresh(refused.decided_on, reader):
                return  # the state had been behind: decide again
            earlier = earlier_result(ticket.command, reader)
        if isinstance(earlier, tuple):
            ticket.receipt = Receipt(earlier, first=False)
            return
        if earlier is None and refusal.code is not WriteRefusal.OWNER_FENCED and self._fenced(ticket.guard):
            earlier = _FENCED
        final = earlier or refusal
        raise WriteRefused(final.code, final.detail, ticket.command.session_id)

    def _fenced(self, guard: OwnerGuard) -> bool:
        """Whether somebody else owned the session since; one that was merely given up by its owner is not fenced."""
        row = self._owners.owner(guard.session_id)
        return row is None or row.epoch != guard.epoch or row.incarnation_id not in {None, guard.incarnation_id}


class _View:
    """One view of the store for all that a round is decided on, opened when something is read.

    What is overtaken meanwhile is refused by the store, as it is for a state that was read long ago.
    """

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._open: AbstractContextManager[EventReader] | None = None
        self._reader: EventReader

    def close(self, error: BaseException | None = None) -> None:
        """Let the view go, if it was opened."""
        opened, self._open = self._open, None
        if opened is not None:
            opened.__exit__(None if error is None else type(error), error, None)

    def read(self, load: Callable[[EventReader], None]) -> None:
        """Read something; a view in which something could not be read is not used again."""
        if self._open is None:
            opened = self._store.snapshot()
            self._reader = opened.__enter__()
            self._open = opened
        try:
            load(self._reader)
        except BaseException as error:
            self.close(error)
            raise


_FENCED = Refusal(WriteRefusal.OWNER_FENCED, "whoever asks does not own the session, or no longer")


def _told(error: Exception) -> Exception:
    return StoreDamaged(str(error)) if isinstance(error, DamagedEvent) else error


def _refusal(answer: CommitAnswer) -> Refusal | None:
    """What the store's answer means; None where another writer was first, so that the command is decided again."""
    match answer:
        case Fenced():
            return _FENCED
        case DuplicateId(kind="event", id=taken):
            return Refusal(WriteRefusal.DUPLICATE_EVENT_ID, f"event id {taken} is used already")
        case DuplicateId(kind=kind, id=taken):
            return misfit(f"{kind} id {taken} is used already")
        case ConstraintBroken(detail=detail):
            return misfit(detail)
        case VersionConflict() | Stored() | Damaged():
            return None


__all__ = ["ROUNDS_MAX", "CommitRounds", "Receipt", "Ticket"]
