"""Stores and runs to measure: written through the product's own ledger, or sealed and put straight into its store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

from safepoint.adapters.process.incarnations import FileLockIncarnations
from safepoint.adapters.sqlite import session_owners
from safepoint.adapters.sqlite.store import SqliteStore, open_store
from safepoint.application.ledger import Ledger, Receipt
from safepoint.domain.commands import CommitOutcome, OpenRun, PrepareTool, RecordStep
from safepoint.domain.events.event import Event
from safepoint.domain.events.run import PrefixRef
from safepoint.domain.events.tool import ToolCalled, ToolDispatched
from safepoint.domain.identifiers import ExecutionIdentity, IncarnationId, SessionId, run_stream
from safepoint.domain.sealing import FIRST_PREVIOUS_DIGEST, SealedEvent, seal
from safepoint.ports.event_store import Commit, OwnerGuard, Stored
from safepoint.ports.session_owners import Ownership

from .facts import Facts, Home

EVENTS_PER_COMMIT = 500


class Place:
    """A store, and the life that writes it; a context manager. When it is left, that life is over and can be seen so.

    Attributes:
        store, ledger: the product's own.
        facts: makes what is written.
        writer: the life that owns every session.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.facts = Facts()
        self.store: SqliteStore = open_store(path)
        self.ledger = Ledger(self.store.events, self.store.owners)
        self._life = FileLockIncarnations(Path(f"{path}.locks")).enter()
        self.writer: IncarnationId = self._life.incarnation.incarnation_id
        self.store.owners.register(self._life.incarnation)
        self._heads: dict[str, tuple[int, str]] = {}

    def __enter__(self) -> Place:
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()
        self._life.leave(keep_lock_file=True)

    def fresh_session(self) -> SessionId:
        """The name of another session."""
        return self.facts.ids.fresh(SessionId)

    def own(self, session_id: SessionId) -> OwnerGuard:
        """Become the owner of a session that nobody owns."""
        taken = self.store.owners.take(session_id, self.writer, None)
        assert taken is not None
        return OwnerGuard(session_id, self.writer, taken.epoch)

    def own_many(self, count: int) -> list[OwnerGuard]:
        """Become the owner of so many fresh sessions, in one transaction."""
        guards = [OwnerGuard(self.fresh_session(), self.writer, 1) for _ in range(count)]
        with self.store.owners._transaction() as transaction:  # noqa: SLF001
            session_owners._set_all(transaction, [Ownership(*guard) for guard in guards])  # noqa: SLF001
        return guards

    def begin(self) -> Writing:
        """Open a run in a session of its own, through the ledger."""
        guard = self.own(self.fresh_session())
        identity = self.facts.spines.identity(guard.session_id)
        opening = self.facts.opening(guard, identity)
        self.ledger.execute(OpenRun(*guard, opening.opened, opening.message, opening.admitted, opening.session_opened))
        return Writing(self, guard, identity)

    def keep(self, guard: OwnerGuard, events: Iterable[Event]) -> None:
        """Seal events and put them into the store as they are, without asking the ledger."""
        rest = iter(events)
        while some := list(islice(rest, EVENTS_PER_COMMIT)):
            self.keep_together([(guard, some)])

    def keep_together(self, commits: Sequence[tuple[OwnerGuard, Sequence[Event]]]) -> None:
        """The same for several sessions, in one transaction."""
        made = [self._commit(guard, [self._sealed(event) for event in events]) for guard, events in commits]
        answers = self.store.events.append(made)
        assert all(isinstance(answer, Stored) for answer in answers), answers

    def kept_run(self, events: int, home: Home | None = None) -> tuple[OwnerGuard, ExecutionIdentity]:
        """An open run of about so many events in a session of its own."""
        guard = self.own(self.fresh_session())
        identity = self.facts.spines.identity(guard.session_id)
        self.keep(guard, chain(self.facts.opening(guard, identity, home), self.facts.steps(guard, identity, events)))
        return guard, identity

    def boundary(self, identity: ExecutionIdentity) -> PrefixRef:
        """The newest prefix of a run that was kept here."""
        sequence, digest = self._heads[run_stream(identity.run_id)]
        return PrefixRef(**identity._asdict(), high_water=sequence, digest=digest)

    def _sealed(self, event: Event) -> SealedEvent:
        sequence, digest = self._heads.get(event.stream, (0, FIRST_PREVIOUS_DIGEST))
        sealed = seal(event, sequence + 1, digest)
        self._heads[event.stream] = (sealed.sequence, sealed.digest)
        return sealed

    @staticmethod
    def _commit(guard: OwnerGuard, sealed: Sequence[SealedEvent]) -> Commit:
        return Commit(guard, tuple(sealed))


class Writing:
    """One open run, written through the ledger as the agent loop does."""

    def __init__(self, place: Place, guard: OwnerGuard, identity: ExecutionIdentity) -> None:
        self.place = place
        self.guard = guard
        self.identity = identity

    def recorded(self, calls: int) -> list[ToolCalled]:
        """Record a model step with this many calls."""
        facts = self.place.facts.step(self.identity, calls)
        self.place.ledger.execute(RecordStep(*self.guard, self.identity.run_id, tuple(facts)))
        return [fact for fact in facts if isinstance(fact, ToolCalled)]

    def t1(self, call: ToolCalled) -> PrepareTool:
        """The command before the implementation starts."""
        dispatched = self.place.facts.dispatched(self.guard, self.identity, call)
        return PrepareTool(*self.guard, self.identity.run_id, dispatched)

    def t2(self, dispatch: ToolDispatched) -> CommitOutcome:
        """The command after it has returned."""
        responded = self.place.facts.responded(self.identity, dispatch)
        return CommitOutcome(*self.guard, self.identity.run_id, responded)

    def write(self, call: ToolCalled) -> tuple[Receipt, Receipt]:
        """T1 and T2, from making the facts to having them on the disk."""
        prepare = self.t1(call)
        first = self.place.ledger.execute(prepare)
        return first, self.place.ledger.execute(self.t2(prepare.dispatch))

    def bytes_of_a_pair(self) -> tuple[bytes, bytes]:
        """The stored bytes of one T1 and one T2."""
        (call,) = self.recorded(1)
        first, second = self.write(call)
        return first.events[0].state, second.events[0].state


def large_store(path: Path, events: int, events_per_run: int = 1_000) -> None:
    """A store of sessions that each had one run, all of them ended."""
    with Place(path) as place:
        for guard in place.own_many(max(1, events // events_per_run)):
            place.keep(guard, _one_run(place.facts, guard, events_per_run))


def _one_run(facts: Facts, guard: OwnerGuard, events: int) -> Iterator[Event]:
    identity = facts.spines.identity(guard.session_id)
    opening = facts.opening(guard, identity)
    yield from opening
    yield from facts.steps(guard, identity, events - len(opening) - 1)
    yield facts.ended(guard, identity, interrupted=False)
