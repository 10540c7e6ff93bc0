"""The only writer: takes commands, lets the aggregates decide, seals the candidates, groups commits. SPEC section 7.

Commands of one group are decided in order on a state that includes the earlier accepted ones; the store keeps them in
one transaction, each as if it were alone.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from ..domain.commands import AnyCommand
from ..domain.errors import SafepointError, StoreDamaged, StoreUnavailable
from ..domain.identifiers import RunId, SessionId, run_stream, session_stream
from ..domain.run.state import Run
from ..domain.sealing import DamagedEvent
from ..domain.session.state import Session
from ..ports.event_store import EventReader, EventStore
from ..ports.session_owners import SessionOwners
from .caller_queue import CallerQueue
from .commit_round import ROUNDS_MAX, CommitRounds, Receipt, Ticket
from .state_cache import StateCache
from .states import Head, damage_of
from .uncollected import uncollected

_LARGE_GROUP = 8


class CommandLedger(Protocol):
    """What executes commands on aggregates: the ledger, or a preview of it that writes nothing."""

    @abstractmethod
    def session(self, session_id: SessionId) -> Session:
        """The session's state."""

    @abstractmethod
    def run(self, run_id: RunId) -> Run:
        """The run's state."""

    @abstractmethod
    def damage_of(self, run: Run) -> str | None:
        """Why nobody can close it: `states.damage_of`, looked at now."""

    @abstractmethod
    def execute(self, command: AnyCommand) -> Receipt:
        """Decide and write one command."""


class Ledger(CommandLedger):
    """Grouped, exactly-once writing over one event store; thread-safe.

    Args:
        store: keeps sealed commits.
        owners: knows who may write a session.
        cached_streams_max: how many aggregate states are kept between commands, 1 or more.
    """

    def __init__(self, store: EventStore, owners: SessionOwners, *, cached_streams_max: int = 1024) -> None:
        self._store = store
        self._owners = owners
        self._states = StateCache(cached_streams_max)
        self._rounds = CommitRounds(store, owners, self._states)
        self._waiting = CallerQueue(self._write)
        self._writer = threading.Lock()

    def execute(self, command: AnyCommand) -> Receipt:
        """Decide and durably write one command; returns after COMMIT.

        A lone caller commits at once in its own thread; callers that meet wait for the writer and are committed
        together.

        Raises:
            WriteRefused: the command is refused, with its code; nothing was written.
            StoreUnavailable: it is not known whether it was written; an exact retry converges.
            StoreFull, StoreDamaged: nothing was written.
        """
        ticket = Ticket(command)
        self._waiting.answer((ticket,))
        answer = _answer(ticket)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def execute_all(self, commands: Sequence[AnyCommand]) -> list[Receipt | Exception]:
        """Execute commands that wait already, in their order and in one group; what `execute` raises is an answer."""
        tickets = [Ticket(command) for command in commands]
        self._waiting.answer(tickets)
        return [_answer(ticket) for ticket in tickets]

    def session(self, session_id: SessionId) -> Session:
        """The session's state, from the cache or the store; fresh as long as the caller owns the session.

        Raises:
            StoreDamaged: its chain does not verify.
            StoreUnavailable: it could not be read.
        """
        state = self._shown(session_stream(session_id))
        assert isinstance(state, Session)
        return state

    def run(self, run_id: RunId) -> Run:
        """The run's state, from the cache or the store; as fresh as `session`, and raises the same."""
        state = self._shown(run_stream(run_id))
        assert isinstance(state, Run)
        return state

    def damage_of(self, run: Run) -> str | None:
        """See `CommandLedger`; never from the cache, and raises the same as `session`."""
        with self._store.snapshot() as reader:
            return damage_of(reader, run)

    def read_anew(self, session_ids: Iterable[SessionId]) -> dict[SessionId, StoreDamaged]:
        """Read several sessions with their open ends, in one view: the head run, and the run that admitted one without
        events. What was known of them is forgotten.

        Returns:
            What is wrong with those whose record is damaged.

        Raises:
            StoreUnavailable: they could not be read.
        """
        damaged: dict[SessionId, StoreDamaged] = {}
        with self._writer, self._store.snapshot() as reader:
            for session_id in session_ids:
                self._states.forget(session_id)
                try:
                    self._read_open_end(session_id, reader)
                except DamagedEvent as error:
                    damaged[session_id] = StoreDamaged(str(error))
                except StoreDamaged as error:
                    damaged[session_id] = error
            self._states.trim()
        return damaged

    def _read_open_end(self, session_id: SessionId, reader: EventReader) -> None:
        def read(stream: str) -> Head:
            return self._states.get(stream, lambda load: load(reader))

        session = read(session_stream(session_id)).session()
        if session.head is None or session.head.run_id in session.abandoned:
            return
        run = read(run_stream(session.head.run_id)).run()
        if run.opening is None and session.previous is not None:
            run = read(run_stream(session.previous.run_id)).run()
        if damage := damage_of(reader, run):
            raise StoreDamaged(damage)

    def forget(self, session_id: SessionId) -> None:
        """Read a session and its runs anew: for whoever has just become its owner, since others may have written it."""
        with self._writer:
            self._states.forget(session_id)

    def _shown(self, stream: str) -> Session | Run:
        if (known := self._states.shown(stream)) is not None:
            return known  # without the lock: whoever waits for a commit need not wait for other sessions'
        with self._writer:
            try:
                state = self._states.get(stream, self._read).shown()
            except DamagedEvent as error:
                raise StoreDamaged(str(error)) from error
            self._states.trim()
            return state

    def _read(self, load: Callable[[EventReader], None]) -> None:
        with self._store.snapshot() as reader:
            load(reader)

    def _write(self, group: Sequence[Ticket]) -> None:
        with self._writer:
            try:
                if len(group) < _LARGE_GROUP:
                    self._rounds(group)
                else:  # all that it is made of lives until it is written, and the collector would walk it several times
                    with uncollected():
                        self._rounds(group)
            except BaseException as error:
                self._rounds.forget()
                told = error if isinstance(error, SafepointError) else StoreUnavailable(f"the writer failed: {error!r}")
                for ticket in group:
                    if not ticket.done:
                        ticket.error = told
                if not isinstance(error, Exception):
                    raise


def _answer(ticket: Ticket) -> Receipt | Exception:
    if ticket.error is not None:
        return ticket.error
    if ticket.receipt is not None:
        return ticket.receipt
    return StoreUnavailable("the writer was interrupted; it is not known whether the command was written")


__all__ = ["ROUNDS_MAX", "CommandLedger", "Ledger", "Receipt"]
