"""One round of a group of commands: each is decided, those accepted are written in one transaction. SPEC section 7.

A refusal is final only when it was decided on fresh, durable state: anything else is decided again in the next round.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
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
from .heads import Heads, Streams
from .retries import earlier_result
from .state_cache import StateCache

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
    streams: Streams = ()


class CommitRound:
    """Answers tickets, or leaves them for the next round.

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
        self._accepted: list[tuple[Ticket, Commit, Streams]] = []
        self._refused: list[_Refused] = []

    def __call__(self, tickets: list[Ticket]) -> None:
        """Decide and write.

        Raises:
            StoreError: what was accepted could not be written, or it is not known whether it was.
        """
        with self._view:
            for ticket in tickets:
                try:
                    self._propose(ticket)
                except Exception as error:  # noqa: BLE001 (what goes wrong with one does not concern its neighbours)
                    ticket.error = _told(error)
        overtaken = self._write() if self._accepted else frozenset()
        for refused in self._refused:
            if overtaken.isdisjoint(refused.streams):  # else it was decided on a neighbour that came to nothing
                try:
                    self._refuse(refused)
                except Exception as error:  # noqa: BLE001 (as above)
                    refused.ticket.error = _told(error)

    def _propose(self, ticket: Ticket) -> None:
        ticket.rounds += 1
        if ticket.rounds > ROUNDS_MAX:
            raise StoreUnavailable("other writers won every round; try again")
        decided, streams = self._heads.propose(ticket.command)
        if isinstance(decided, tuple):
            self._accepted.append((ticket, tuple.__new__(Commit, (ticket.guard, decided)), streams))  # as in `guard`
        elif decided is not None:
            self._refused.append(_Refused(ticket, decided, streams))

    def _write(self) -> frozenset[str]:
        """Write what was accepted; answers the streams of which something was not stored."""
        answers = self._store.append([commit for _, commit, _ in self._accepted])
        overtaken: set[str] = set()
        for (ticket, commit, streams), answer in zip(self._accepted, answers, strict=True):
            if type(answer) is Stored:
                ticket.receipt = tuple.__new__(Receipt, (commit.events, True))  # in half the time
                continue
            overtaken.update(streams)
            if isinstance(answer, Damaged):
                ticket.error = StoreDamaged(answer.detail)
            elif (refusal := _refusal(answer)) is not None:
                self._refused.append(_Refused(ticket, refusal))
        self._heads.keep(except_streams=overtaken)
        return frozenset(overtaken)

    def _refuse(self, refused: _Refused) -> None:
        """Make a refusal final. Order of SPEC section 7: exact retry, epoch, and then what the state does not allow."""
        ticket, refusal = refused.ticket, refused.refusal
        with self._store.snapshot() as reader:
            if self._states.refresh(refused.streams, reader):
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
    """One view of the store for all that a round is decided on, opened when something is read; closed with the block.

    What is overtaken meanwhile is refused by the store, as it is for a state that was read long ago.
    """

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._open: AbstractContextManager[EventReader] | None = None
        self._reader: EventReader

    def __enter__(self) -> None:
        """Nothing is read yet."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        opened, self._open = self._open, None
        if opened is not None:
            opened.__exit__(kind, error, traceback)

    def read(self, load: Callable[[EventReader], None]) -> None:
        """Read something; a view in which something could not be read is not used again."""
        if self._open is None:
            opened = self._store.snapshot()
            self._reader = opened.__enter__()
            self._open = opened
        try:
            load(self._reader)
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
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


__all__ = ["ROUNDS_MAX", "CommitRound", "Receipt", "Ticket"]
