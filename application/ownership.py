"""Which sessions this process owns, and how it comes to own them. SPEC section 15.

Nothing expires by time: a session is taken from an owner only when that owner is proven dead, or was ended by command.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import assert_never

from ..domain.errors import SafepointError, StoreDamaged, StoreError
from ..domain.identifiers import IncarnationId, SessionId
from ..ports.event_store import OwnerGuard
from ..ports.incarnations import Incarnation, Incarnations, Liveness
from ..ports.session_owners import Ownership, SessionOwners
from ..ports.supervised import ProcessInfo
from .known_lives import KnownLives
from .open_ends import End

TRIES_MAX = 8
OWNER_PROCESS = "the process that started it"
"""Name, for people, of an owner's process in which a task may go on."""

OWN_PROCESS = "is this one: another task, block or runtime of it works on the session"


class SessionBusy(SafepointError):
    """Another owner has the session.

    Attributes:
        owner: its recorded facts; None when they are not recorded.
        liveness: whether it was seen alive, or could not be looked at.
    """

    def __init__(
        self, session_id: SessionId, owner: Incarnation | None, liveness: Liveness, seen: str | None = None
    ) -> None:
        who = "an unknown process" if owner is None else f"process {owner.pid} on {owner.host}"
        alive = "is alive" if liveness is Liveness.ALIVE else "could not be looked at, which is no proof of its death"
        super().__init__(f"session {session_id} is owned by {who}, which {seen or alive}")
        self.session_id = session_id
        self.owner = owner
        self.liveness = liveness


@dataclass(frozen=True, slots=True)
class Owned:
    """The right to write one session: every command carries it.

    Attributes:
        left_by: the dead owner from which it was taken; None where it was nobody's, or this process's before.
    """

    session_id: SessionId
    incarnation_id: IncarnationId
    epoch: int
    left_by: IncarnationId | None = field(default=None, compare=False)

    @property
    def guard(self) -> OwnerGuard:
        """What commands and commits carry of it, before anything else."""
        return OwnerGuard(self.session_id, self.incarnation_id, self.epoch)

    @property
    def row(self) -> Ownership:
        """The control row that says so."""
        return Ownership(self.session_id, self.incarnation_id, self.epoch)


class SessionOwnership:
    """Takes and releases sessions for one incarnation.

    Args:
        owners: the control rows.
        incarnations: begins and observes lives.
        forget: drops what is known of a session that was just taken: others may have written it meanwhile.
        lives_here: tells whether an operation of a session lives in this process.
        end_of: tells what is seen of the end of a session that is owned: `open_ends.end_of`. Where it is left out,
            nobody can look.
        when_over: calls something once no operation of a session lives here: `LiveOperations.when_over`. Where it is
            left out, whoever left an operation behind must give its session up.
    """

    def __init__(
        self,
        owners: SessionOwners,
        incarnations: Incarnations,
        forget: Callable[[SessionId], None],
        lives_here: Callable[[SessionId], bool] = lambda session_id: False,
        end_of: Callable[[SessionId], End] = lambda session_id: End.UNSEEN,
        when_over: Callable[[SessionId, Callable[[], None]], None] | None = None,
    ) -> None:
        self._owners = owners
        self._lives = KnownLives(owners, incarnations)
        self._forget = forget
        self._lives_here = lives_here
        self._end_of = end_of
        self._when_over = when_over
        self._in_use: set[SessionId] = set()
        self._lock = threading.Lock()

    @property
    def incarnation(self) -> Incarnation:
        """This process's life; begun and registered when it is first needed."""
        return self._lives.mine

    @property
    def begun(self) -> bool:
        """True from when this process's life as an owner began until it was left."""
        return self._lives.begun

    def own(self, session_id: SessionId, *, fencing: IncarnationId | None = None) -> Owned:
        """Become the owner of a session, or stay it, for one use case at a time in this process.

        Args:
            fencing: an owner that may live and is to be fenced at a person's command (`forced`): it can write nothing
                more. That ends none of its effects; its operations are over when they were without it.

        Raises:
            SessionBusy: its owner lives (another use case of this process is one), or could not be looked at.
            StoreUnavailable: the control row could not be read or written.
        """
        me = self.incarnation.incarnation_id
        with self._lock:
            if session_id in self._in_use:
                raise SessionBusy(session_id, self.incarnation, Liveness.ALIVE, OWN_PROCESS)
            self._in_use.add(session_id)
        try:
            return self._take(session_id, me, fencing)
        except BaseException:
            self._done(session_id)
            raise

    def _take(self, session_id: SessionId, me: IncarnationId, fencing: IncarnationId | None) -> Owned:
        for _ in range(TRIES_MAX):
            seen = self._owners.owner(session_id)
            previous = None if seen is None else seen.incarnation_id
            if seen is not None and previous == me:
                return Owned(session_id, me, seen.epoch)
            left_by = None if previous == fencing else previous
            if left_by is not None:
                self._require_dead(session_id, left_by)
            taken = self._owners.take(session_id, me, seen)
            if taken is not None:
                self._forget(session_id)
                return Owned(session_id, me, taken.epoch, left_by)
        raise SessionBusy(session_id, None, Liveness.ALIVE)

    def _require_dead(self, session_id: SessionId, previous: IncarnationId) -> None:
        facts, liveness = self._lives.seen(previous)
        if liveness is not Liveness.DEAD:
            mine = facts is not None and self._lives.of_this_process(facts)
            raise SessionBusy(session_id, facts, liveness, OWN_PROCESS if mine else None)

    def may_be_taken(self, row: Ownership) -> bool:
        """True when nobody works on a session: its owner is proven dead, or is this process and does not use it now."""
        if row.incarnation_id is None or self.in_use(row.session_id):
            return False
        return self.is_mine(row.incarnation_id) or self.liveness_of(row.incarnation_id) is Liveness.DEAD

    def own_all(self, rows: Sequence[Ownership]) -> dict[SessionId, Owned]:
        """Become the owner of many sessions in one transaction, for one use case; answers those that were got.

        A row that has changed, that another use case of this process holds, or whose owner is not proven dead is left
        alone. What is known of the sessions stays: read it after the rows were seen and before this.

        Args:
            rows: as they were seen, of different sessions, at most `TOGETHER_MAX`.

        Raises:
            StoreUnavailable: the control rows could not be read or written; nothing is held.
        """
        me = self.incarnation.incarnation_id
        free = [row for row in rows if self.may_be_taken(row)]
        with self._lock:
            free = [row for row in free if row.session_id not in self._in_use]
            self._in_use.update(row.session_id for row in free)
        owned: dict[SessionId, Owned] = {}
        try:
            others = [row for row in free if row.incarnation_id != me]
            for row, taken in zip(others, self._owners.take_all(me, others), strict=True):
                if taken is not None:
                    owned[row.session_id] = Owned(row.session_id, me, taken.epoch, row.incarnation_id)
            owned |= {row.session_id: Owned(row.session_id, me, row.epoch) for row in free if row.incarnation_id == me}
        finally:
            for row in free:
                if row.session_id not in owned:
                    self._done(row.session_id)
        return owned

    def release_all(self, owned: Iterable[Owned]) -> None:
        """As `release`, of many sessions in one transaction; at most `TOGETHER_MAX`."""
        given_up = list(owned)
        living = [one for one in given_up if self._lives_here(one.session_id)]
        try:
            free = [one.row for one in given_up if one not in living]
            self._owners.release_all(free)
        finally:
            for one in given_up:
                self._done(one.session_id)
            for one in living:
                self._later(one.session_id)

    def owner_of(self, session_id: SessionId) -> tuple[Ownership | None, Incarnation | None, Liveness | None]:
        """Who owns a session now, and whether that owner lives; None where nobody does. Changes nothing."""
        row = self._owners.owner(session_id)
        if row is None or row.incarnation_id is None:
            return row, None, None
        return row, *self._lives.seen(row.incarnation_id)

    def take_anew(self, session_id: SessionId) -> None:
        """Own a session under a new epoch, and keep it: whoever looks at the row sees that something was begun since.

        Raises:
            SessionBusy: as `own`.
            StoreUnavailable: the control row could not be read or written.
        """
        owned = self.own(session_id)
        try:
            if self._owners.take(session_id, owned.incarnation_id, owned.row) is None:
                raise SessionBusy(session_id, None, Liveness.ALIVE)
            self._forget(session_id)
        finally:
            self._done(session_id)

    def end_owner(self, owner: Incarnation, timeout_seconds: float) -> Liveness:
        """End another process that owns sessions, for a takeover; answers what is then seen of it.

        Only the recorded process is ever signalled, and never this one.

        Args:
            timeout_seconds: bound on the whole of it.
        """
        return self._lives.end(owner, timeout_seconds)

    def liveness_of(self, incarnation_id: IncarnationId) -> Liveness:
        """Whether an incarnation lives; a life that was never registered could not be looked at."""
        return self._lives.liveness_of(incarnation_id)

    def living_process(self, incarnation_id: IncarnationId) -> ProcessInfo | None:
        """The process of another life that is seen to live, whoever owns the session by now; None for all others."""
        facts = self._lives.living(incarnation_id)
        return None if facts is None else ProcessInfo(facts.pid, facts.process_start_time, OWNER_PROCESS)

    def is_mine(self, incarnation_id: IncarnationId) -> bool:
        """True when an incarnation is this process's life."""
        return self._lives.is_mine(incarnation_id)

    def in_use(self, session_id: SessionId) -> bool:
        """True while a use case of this process works on a session."""
        with self._lock:
            return session_id in self._in_use

    def release(self, owned: Owned) -> None:
        """Give a session up that has no open run and no unstarted claim; later where an operation of it lives here.

        Until that is over, its late outcome can be written.
        """
        self._end(owned, lambda: self._owners.release(*owned.guard))

    def hand_back(self, owned: Owned) -> None:
        """As `release`, of a session that repair cannot close: its dead owner has it again, so each start names it.

        Anybody may take it from the dead, as a person does who gives its run up. Where it was taken from nobody, it is
        nobody's.
        """
        if (dead := owned.left_by) is None:
            self.release(owned)
        else:
            self._end(owned, lambda: self._owners.take(owned.session_id, dead, owned.row))

    def _end(self, owned: Owned, write: Callable[[], object]) -> None:
        lives = True
        try:
            lives = self._lives_here(owned.session_id)
            if not lives:
                write()
        finally:
            self._done(owned.session_id)
        if lives:
            self._later(owned.session_id)

    def _later(self, session_id: SessionId) -> None:
        """Give up what was kept for an operation when that is over; it may have ended since, and found it in use."""
        then = partial(self.give_up_unused, session_id)
        if self._when_over is not None:
            self._when_over(session_id, then)
        elif not self._lives_here(session_id):
            then()

    def give_up(self, owned: Owned) -> None:
        """End a use case that may have failed: as `release`, but kept where an end is open, or nobody could look.

        Repair at start goes by owners, and would not find an open run that nobody owns. What repair cannot close is
        handed back. Where giving it up cannot be written it stays owned, until its next use or the end of this process.
        """
        match self._seen_end(owned):
            case End.OPEN | End.UNSEEN:
                self.keep(owned)
            case End.DAMAGED:
                with suppress(StoreError):
                    self.hand_back(owned)
            case End.CLOSED:
                with suppress(StoreError):
                    self.release(owned)
            case unknown:
                assert_never(unknown)

    def give_up_failed(self, owned: Owned, error: BaseException) -> None:
        """End a use case that failed: as `give_up`, but kept without a look where nobody knows what was written."""
        if isinstance(error, StoreError) and not isinstance(error, StoreDamaged):
            self.keep(owned)
        else:
            self.give_up(owned)

    def give_up_done(self, owned: Owned) -> None:
        """End a use case that went well: it has closed what was open, so only what it could not close is asked for."""
        if owned.left_by is not None and self._seen_end(owned) is End.DAMAGED:
            self.hand_back(owned)
        else:
            self.release(owned)

    def _seen_end(self, owned: Owned) -> End:
        try:
            return self._end_of(owned.session_id)
        except BaseException:
            self.keep(owned)
            raise

    def give_up_unused(self, session_id: SessionId) -> None:
        """As `give_up`, of a session that this process owns and that no use case of it holds.

        Whoever holds it will give it up. What is another's, a dead one's too, or nobody's, is not taken for that; and
        a process that has left owns nothing.
        """
        with suppress(StoreError):
            owned = self._mine_unused(session_id)
            if owned is not None:
                self.give_up(owned)

    def _mine_unused(self, session_id: SessionId) -> Owned | None:
        with self._lock:
            if session_id in self._in_use:
                return None
            self._in_use.add(session_id)
        mine = None
        try:
            row = self._owners.owner(session_id) if self.begun else None
            if row is not None and row.incarnation_id is not None and self.is_mine(row.incarnation_id):
                mine = Owned(session_id, row.incarnation_id, row.epoch)
        finally:
            if mine is None:
                self._done(session_id)
        return mine

    @contextmanager
    def held(self, session_id: SessionId, *, fencing: IncarnationId | None = None) -> Iterator[Owned]:
        """Own a session for a block, as `own`, and give it up after it.

        It stays owned where an error of the store, or an interruption, leaves in doubt what was written, and where the
        block fails and leaves an end open, as `give_up_failed` says: so repair at the next start finds it.
        """
        owned = self.own(session_id, fencing=fencing)
        try:
            yield owned
        except BaseException as error:
            if isinstance(error, Exception):
                self.give_up_failed(owned, error)
            else:
                self.keep(owned)  # another thread may be writing for it still
            raise
        with suppress(StoreError):
            self.give_up_done(owned)

    def keep(self, owned: Owned) -> None:
        """End a use case whose session must stay owned: it has an open run, an unstarted claim or a live operation."""
        self._done(owned.session_id)

    def _done(self, session_id: SessionId) -> None:
        with self._lock:
            self._in_use.discard(session_id)

    def leave(self, *, keep_lock_file: bool) -> None:
        """End this life; idempotent. The lock goes last, so call this after everything else is closed."""
        self._lives.leave(keep_lock_file=keep_lock_file)
