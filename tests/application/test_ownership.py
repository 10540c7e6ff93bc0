"""Who may write a session, and how: only a dead owner is succeeded, and nothing expires. SPEC section 15, F19."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext

import pytest

from safepoint.adapters.memory.event_store import MemoryStore
from safepoint.adapters.memory.incarnations import MemoryHost, MemoryIncarnations
from safepoint.adapters.memory.tables import Failure
from safepoint.application.live_operations import LiveOperations
from safepoint.application.open_ends import End
from safepoint.application.ownership import Owned, SessionBusy, SessionOwnership
from safepoint.domain.errors import SafepointError, StoreDamaged, StoreUnavailable, WriteRefused
from safepoint.domain.identifiers import IncarnationId, OperationId, SessionId
from safepoint.domain.reasons import WriteRefusal
from safepoint.ports.incarnations import Incarnation, Liveness
from safepoint.ports.session_owners import Ownership, SessionOwners

S = SessionId("s")


class Life:
    """One process over a shared store and host."""

    def __init__(self, store: MemoryStore, host: MemoryHost, owners: SessionOwners | None = None) -> None:
        self.store = store
        self.incarnations = MemoryIncarnations(host)
        self.forgotten: list[SessionId] = []
        self.ownership = SessionOwnership(
            owners or store.owners, self.incarnations, self.forgotten.append, end_of=lambda _: End.CLOSED
        )

    @property
    def me(self) -> IncarnationId:
        return self.ownership.incarnation.incarnation_id


@pytest.fixture
def host() -> MemoryHost:
    return MemoryHost()


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def one(store: MemoryStore, host: MemoryHost) -> Life:
    return Life(store, host)


@pytest.fixture
def two(store: MemoryStore, host: MemoryHost) -> Life:
    return Life(store, host)


def test_a_new_session_is_owned_by_whoever_asks_first(one: Life, two: Life) -> None:
    assert one.ownership.own(S) == Owned(S, one.me, 1)
    with pytest.raises(SessionBusy) as busy:
        two.ownership.own(S)
    assert busy.value.owner == one.ownership.incarnation
    assert busy.value.liveness is Liveness.ALIVE
    assert str(one.ownership.incarnation.pid) in str(busy.value)


def test_a_released_session_may_be_owned_by_anybody_with_the_next_epoch(one: Life, two: Life) -> None:
    one.ownership.release(one.ownership.own(S))
    assert two.ownership.own(S) == Owned(S, two.me, 2)


def test_a_dead_owner_is_succeeded_at_once(one: Life, two: Life) -> None:
    one.ownership.own(S)
    one.incarnations.die()
    assert two.ownership.own(S) == Owned(S, two.me, 2)


@pytest.mark.parametrize("liveness", [Liveness.ALIVE, Liveness.COULD_NOT_LOOK])
def test_could_not_look_is_no_proof_of_death(one: Life, two: Life, liveness: Liveness) -> None:
    one.ownership.own(S)
    two.incarnations.tell(one.ownership.incarnation, liveness)
    with pytest.raises(SessionBusy) as busy:
        two.ownership.own(S)
    assert busy.value.liveness is liveness
    said = "is alive" if liveness is Liveness.ALIVE else "could not be looked at, which is no proof of its death"
    assert said in str(busy.value)


def test_an_owner_that_was_never_registered_could_not_be_looked_at(one: Life, store: MemoryStore) -> None:
    store.owners.register(one.ownership.incarnation)
    taken = store.owners.take(S, one.me, None)
    assert taken is not None
    store._tables.incarnations.clear()
    store._tables.owners[S] = Ownership(S, IncarnationId("unknown"), 1)
    with pytest.raises(SessionBusy) as busy:
        one.ownership.own(S)
    assert (busy.value.owner, busy.value.liveness) == (None, Liveness.COULD_NOT_LOOK)
    assert one.ownership.owner_of(S)[1:] == (None, Liveness.COULD_NOT_LOOK)
    assert one.ownership.liveness_of(IncarnationId("unknown")) is Liveness.COULD_NOT_LOOK


def test_what_is_kept_stays_owned_with_the_same_epoch(one: Life) -> None:
    owned = one.ownership.own(S)
    one.ownership.keep(owned)
    assert one.ownership.own(S) == owned


def test_one_use_case_of_a_process_at_a_time(one: Life) -> None:
    owned = one.ownership.own(S)
    with pytest.raises(SessionBusy):
        one.ownership.own(S)
    one.ownership.release(owned)
    assert one.ownership.own(S).epoch == 2


def test_a_session_that_could_not_be_taken_is_not_in_use_here(one: Life, two: Life) -> None:
    one.ownership.own(S)
    for _ in range(2):
        with pytest.raises(SessionBusy) as busy:
            two.ownership.own(S)
        assert busy.value.owner == one.ownership.incarnation
    one.incarnations.die()
    assert two.ownership.own(S).epoch == 2


def test_what_was_known_of_a_session_is_forgotten_when_it_is_taken_and_only_then(one: Life, two: Life) -> None:
    owned = one.ownership.own(S)
    assert one.forgotten == [S]
    one.ownership.keep(owned)
    one.ownership.own(S)
    assert one.forgotten == [S]
    one.ownership.release(owned)
    two.ownership.release(two.ownership.own(S))
    one.ownership.own(S)
    assert one.forgotten == [S, S]


class Contested(SessionOwners):
    """Rows that somebody else changes right before each `take`, some times."""

    def __init__(self, owners: SessionOwners, times: int, rival: Incarnation) -> None:
        self._owners, self._times, self._rival = owners, times, rival
        owners.register(rival)

    def owner(self, session_id: SessionId) -> Ownership | None:
        return self._owners.owner(session_id)

    def take(self, session_id: SessionId, incarnation_id: IncarnationId, seen: Ownership | None) -> Ownership | None:
        if self._times:
            self._times -= 1
            rival = self._owners.take(session_id, self._rival.incarnation_id, seen)
            assert rival is not None
            assert self._owners.release(session_id, self._rival.incarnation_id, rival.epoch)
        return self._owners.take(session_id, incarnation_id, seen)

    def release(self, session_id: SessionId, incarnation_id: IncarnationId, epoch: int) -> bool:
        return self._owners.release(session_id, incarnation_id, epoch)

    def take_all(self, incarnation_id: IncarnationId, seen: Sequence[Ownership]) -> Sequence[Ownership | None]:
        return self._owners.take_all(incarnation_id, seen)

    def release_all(self, owned: Sequence[Ownership]) -> Sequence[bool]:
        return self._owners.release_all(owned)

    def register(self, incarnation: Incarnation) -> None:
        self._owners.register(incarnation)

    def incarnation(self, incarnation_id: IncarnationId) -> Incarnation | None:
        return self._owners.incarnation(incarnation_id)


@pytest.mark.parametrize(("times", "wins"), [(1, True), (3, True), (100, False)])
def test_a_row_that_changes_between_looking_and_taking_is_looked_at_again(
    store: MemoryStore, host: MemoryHost, two: Life, times: int, wins: bool
) -> None:
    one = Life(store, host, Contested(store.owners, times, two.ownership.incarnation))
    if wins:
        assert one.ownership.own(S).epoch == times + 1
    else:
        with pytest.raises(SessionBusy):
            one.ownership.own(S)


def test_who_owns_a_session_can_be_looked_at_without_changing_anything(one: Life, two: Life) -> None:
    assert two.ownership.owner_of(S) == (None, None, None)
    owned = one.ownership.own(S)
    row = Ownership(S, one.me, 1)
    assert two.ownership.owner_of(S) == (row, one.ownership.incarnation, Liveness.ALIVE)
    one.incarnations.die()
    assert two.ownership.owner_of(S) == (row, one.ownership.incarnation, Liveness.DEAD)
    one.ownership.release(owned)
    assert two.ownership.owner_of(S) == (Ownership(S, None, 1), None, None)


def test_a_life_knows_itself_alive_and_others_by_their_locks(one: Life, two: Life) -> None:
    assert not one.ownership.is_mine(two.me)
    assert one.ownership.is_mine(one.me)
    assert not one.ownership.is_mine(two.me)
    assert one.ownership.liveness_of(one.me) is Liveness.ALIVE
    assert one.ownership.liveness_of(two.me) is Liveness.ALIVE
    two.incarnations.die()
    assert one.ownership.liveness_of(two.me) is Liveness.DEAD


def test_a_process_has_one_life_however_many_ask_first(one: Life, host: MemoryHost) -> None:
    seen: list[IncarnationId] = []
    threads = [threading.Thread(target=lambda: seen.append(one.me)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(seen)) == 1
    assert len(host.lives) == 1


def test_a_release_that_cannot_be_written_does_not_keep_the_session_in_use_here(one: Life, store: MemoryStore) -> None:
    owned = one.ownership.own(S)
    store.close()
    with pytest.raises(StoreUnavailable):
        one.ownership.release(owned)
    with pytest.raises(StoreUnavailable):
        one.ownership.own(S)


def test_leaving_ends_the_life_once_and_the_next_one_is_another(one: Life, two: Life) -> None:
    one.ownership.own(S)
    me = one.me
    for _ in range(2):
        one.ownership.leave(keep_lock_file=True)
    assert not one.ownership.begun
    assert two.ownership.liveness_of(me) is Liveness.DEAD
    assert one.me != me


def test_a_session_is_not_given_up_while_an_operation_of_it_lives_here(store: MemoryStore, host: MemoryHost) -> None:
    living: set[SessionId] = {S}
    ownership = SessionOwnership(store.owners, MemoryIncarnations(host), lambda _: None, living.__contains__)
    ownership.release(ownership.own(S))
    ownership.release_all([ownership.own(S)])
    row, _, _ = ownership.owner_of(S)
    assert row is not None
    assert row.incarnation_id == ownership.incarnation.incarnation_id
    living.clear()
    ownership.release(ownership.own(S))
    row, _, _ = ownership.owner_of(S)
    assert row is not None
    assert row.incarnation_id is None


# ---- many at once ----------------------------------------------------------------------------------------------------


def rows_of(store: MemoryStore, *sessions: str) -> list[Ownership]:
    rows = [store.owners.owner(SessionId(name)) for name in sessions]
    return [row for row in rows if row is not None]


def left(life: Life, *sessions: str) -> None:
    """Use cases of a process on these sessions have ended."""
    for name in sessions:
        life.ownership.keep(life.ownership.own(SessionId(name)))


def test_many_sessions_of_the_dead_are_owned_at_once_and_held_for_one_use_case(
    store: MemoryStore, host: MemoryHost, two: Life
) -> None:
    one, third = Life(store, host), Life(store, host)
    left(one, "a", "b")
    left(third, "c")
    left(two, "d")
    one.incarnations.die()
    owned = two.ownership.own_all(rows_of(store, "a", "b", "c", "d"))
    assert owned == {
        "a": Owned(SessionId("a"), two.me, 2),
        "b": Owned(SessionId("b"), two.me, 2),
        "d": Owned(SessionId("d"), two.me, 1),
    }
    with pytest.raises(SessionBusy):
        two.ownership.own(SessionId("a"))
    assert two.ownership.own_all(rows_of(store, "a", "d")) == {}
    two.ownership.release_all(owned.values())
    assert [row.incarnation_id for row in rows_of(store, "a", "b", "c", "d")] == [None, None, third.me, None]
    assert third.ownership.own(SessionId("a")).epoch == 3


def test_a_row_that_somebody_else_has_changed_since_is_left_alone(
    store: MemoryStore, host: MemoryHost, two: Life
) -> None:
    one, third = Life(store, host), Life(store, host)
    left(one, "a", "b")
    one.incarnations.die()
    seen = rows_of(store, "a", "b")
    third.ownership.own(SessionId("b"))
    assert list(two.ownership.own_all(seen)) == ["a"]
    assert not two.ownership.in_use(SessionId("b"))


def test_a_session_that_another_use_case_begins_to_use_meanwhile_is_left_alone(
    store: MemoryStore, two: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    left(two, "a")
    seen = rows_of(store, "a")

    def may_be_taken(row: Ownership) -> bool:
        two.ownership.own(row.session_id)
        return True

    monkeypatch.setattr(two.ownership, "may_be_taken", may_be_taken)
    assert two.ownership.own_all(seen) == {}
    assert two.ownership.in_use(SessionId("a"))


def test_where_the_rows_cannot_be_written_nothing_is_held(store: MemoryStore, host: MemoryHost, two: Life) -> None:
    one = Life(store, host)
    left(one, "a")
    one.incarnations.die()
    seen = rows_of(store, "a")
    _ = two.me
    store.fail_next(Failure.UNREADABLE)
    with pytest.raises(StoreUnavailable):
        two.ownership.own_all(seen)
    assert not two.ownership.in_use(SessionId("a"))
    assert list(two.ownership.own_all(seen)) == ["a"]


def test_a_life_that_was_seen_dead_is_dead_for_good(store: MemoryStore, host: MemoryHost, two: Life) -> None:
    """Its lock file may be tidied away afterwards; that its end was proven stays true."""
    one = Life(store, host)
    left(one, "a")
    one.incarnations.die()
    assert two.ownership.liveness_of(one.me) is Liveness.DEAD
    two.incarnations.tell(one.ownership.incarnation, Liveness.COULD_NOT_LOOK)
    assert two.ownership.liveness_of(one.me) is Liveness.DEAD


class Refused(SafepointError):
    """Nothing was written."""


@pytest.mark.parametrize(
    ("error", "owner_stays"),
    [
        (None, False),
        (Refused(), False),
        (WriteRefused(WriteRefusal.RUN_SEALED, "it ended"), False),
        (StoreUnavailable("in doubt"), True),
        (KeyboardInterrupt(), True),
    ],
    ids=["done", "refused", "write refused", "store", "interrupted"],
)
def test_a_session_is_held_for_a_block_and_stays_owned_where_it_is_not_known_what_was_written(
    store: MemoryStore, one: Life, error: BaseException | None, owner_stays: bool
) -> None:
    expected = nullcontext() if error is None else pytest.raises(type(error))
    with expected, one.ownership.held(S) as owned:
        assert (owned, one.ownership.in_use(S)) == (Owned(S, one.me, 1), True)
        if error is not None:
            raise error
    assert not one.ownership.in_use(S)
    (row,) = rows_of(store, S)
    assert row.incarnation_id == (one.me if owner_stays else None)


class Ends:
    """What is said of ends."""

    def __init__(self, said: End) -> None:
        self.said = said
        self.asked: list[SessionId] = []

    def __call__(self, session_id: SessionId) -> End:
        self.asked.append(session_id)
        return self.said


@pytest.mark.parametrize(
    ("said", "owner_stays"),
    [(End.OPEN, True), (End.CLOSED, False), (End.UNSEEN, True), (End.DAMAGED, False)],
    ids=str,
)
def test_a_session_whose_use_failed_stays_owned_where_an_end_is_open_or_nobody_could_look(
    store: MemoryStore, host: MemoryHost, said: End, owner_stays: bool
) -> None:
    """Repair at start goes by owners: it would not find an open run that nobody owns."""
    end_of = Ends(said)
    ownership = SessionOwnership(store.owners, MemoryIncarnations(host), lambda _: None, end_of=end_of)
    me = ownership.incarnation.incarnation_id
    refused = WriteRefused(WriteRefusal.TRANSITION_SHAPE_CONFLICT, "it does not fit")

    def fails_in_a_block() -> None:
        with pytest.raises(WriteRefused), ownership.held(S):
            raise refused

    for fail in (fails_in_a_block, lambda: ownership.give_up(ownership.own(S)), lambda: ownership.give_up_unused(S)):
        ownership.keep(ownership.own(S))
        end_of.asked.clear()
        fail()
        assert (ownership.in_use(S), end_of.asked) == (False, [S])
        (row,) = rows_of(store, S)
        assert row.incarnation_id == (me if owner_stays else None)


def test_what_a_use_case_holds_is_given_up_by_it_alone(one: Life, store: MemoryStore) -> None:
    owned = one.ownership.own(S)
    one.ownership.give_up_unused(S)
    assert one.ownership.in_use(S)
    (row,) = rows_of(store, S)
    assert row.incarnation_id == one.me
    one.ownership.release(owned)


def test_what_was_done_is_told_although_giving_the_session_up_cannot_be_written(store: MemoryStore, one: Life) -> None:
    with one.ownership.held(S):
        store.fail_next(Failure.UNAVAILABLE)
    assert not one.ownership.in_use(S)
    (row,) = rows_of(store, S)
    assert row.incarnation_id == one.me


# ---- what is given up, and to whom -----------------------------------------------------------------------------------


class Gives:
    """A process that may give a session up, and what it is told of it."""

    def __init__(self, store: MemoryStore, host: MemoryHost, end: End = End.CLOSED) -> None:
        self.store = store
        self.live = LiveOperations()
        self.ends = Ends(end)
        self.ownership = SessionOwnership(
            store.owners, MemoryIncarnations(host), lambda _: None, self.live.of, self.ends, self.live.when_over
        )

    def row(self) -> Ownership | None:
        return self.store.owners.owner(S)

    @property
    def me(self) -> IncarnationId:
        return self.ownership.incarnation.incarnation_id


def test_whoever_tells_nothing_of_ends_gives_nothing_up_after_a_failure(store: MemoryStore, host: MemoryHost) -> None:
    ownership = SessionOwnership(store.owners, MemoryIncarnations(host), lambda _: None)
    ownership.give_up(ownership.own(S))
    assert store.owners.owner(S) == (S, ownership.incarnation.incarnation_id, 1)


def test_nobody_takes_a_session_in_order_to_give_it_up(store: MemoryStore, host: MemoryHost, one: Life) -> None:
    """From the dead it would be taken to be kept, where it is open; from nobody, in the moment in which others come."""
    life = Gives(store, host, End.OPEN)
    assert life.me
    life.ownership.give_up_unused(S)
    assert life.row() is None
    left(one, S)
    one.incarnations.die()
    life.ownership.give_up_unused(S)
    assert life.row() == (S, one.me, 1)
    life.ownership.release(life.ownership.own(S))
    life.ownership.give_up_unused(S)
    assert (life.row(), life.ends.asked, life.ownership.in_use(S)) == ((S, None, 2), [], False)


def test_what_comes_after_a_life_has_ended_begins_no_other(store: MemoryStore, host: MemoryHost) -> None:
    """An operation that ends while its runtime is closed: its thread gives the session up when that is over."""
    life = Gives(store, host)
    me = life.me
    life.ownership.keep(life.ownership.own(S))
    life.ownership.leave(keep_lock_file=True)
    life.ownership.give_up_unused(S)
    assert (life.row(), life.ownership.begun) == ((S, me, 1), False)


GIVING: dict[str, Callable[[SessionOwnership, Owned], None]] = {
    "release": SessionOwnership.release,
    "release all": lambda ownership, owned: ownership.release_all([owned]),
    "give up": SessionOwnership.give_up,
    "hand back": SessionOwnership.hand_back,
}


@pytest.mark.parametrize("give", GIVING.values(), ids=GIVING)
def test_an_operation_that_ends_while_its_session_is_given_up_does_not_leave_it_owned(
    store: MemoryStore, host: MemoryHost, give: Callable[[SessionOwnership, Owned], None]
) -> None:
    """Its thread finds the session in use, and leaves it to whoever uses it; who has looked before that."""
    life = Gives(store, host)
    operation = OperationId("o")
    life.live.began(operation, S)

    def lives_here(session_id: SessionId) -> bool:
        lives = life.live.of(session_id)
        life.live.ended(operation)
        return lives

    life.ownership._lives_here = lives_here
    give(life.ownership, life.ownership.own(S))
    assert (life.row(), life.ownership.in_use(S)) == ((S, None, 1), False)


@pytest.mark.parametrize("give", GIVING.values(), ids=GIVING)
def test_a_session_is_given_up_when_the_operation_that_lived_is_over_whoever_left_it_behind(
    store: MemoryStore, host: MemoryHost, give: Callable[[SessionOwnership, Owned], None]
) -> None:
    """A run that could not be recorded left it behind and kept its session; a person's `cancel` has closed the run."""
    life = Gives(store, host)
    life.live.began(OperationId("o"), S)
    give(life.ownership, life.ownership.own(S))
    assert (life.row(), life.ownership.in_use(S)) == ((S, life.me, 1), False)
    life.live.ended(OperationId("o"))
    assert (life.row(), life.ownership.in_use(S)) == ((S, None, 1), False)


def _fails(ownership: SessionOwnership) -> None:
    with pytest.raises(Refused), ownership.held(S):
        raise Refused


def _goes_well(ownership: SessionOwnership) -> None:
    with ownership.held(S):
        pass


USING: dict[str, Callable[[SessionOwnership], None]] = {
    "refused": _fails,
    "done": _goes_well,
    "damaged": lambda ownership: ownership.give_up_failed(ownership.own(S), StoreDamaged("it is")),
}


@pytest.mark.parametrize("use", USING.values(), ids=USING)
def test_what_repair_cannot_close_is_handed_back_to_the_dead_so_that_each_start_names_it(
    store: MemoryStore, host: MemoryHost, one: Life, use: Callable[[SessionOwnership], None]
) -> None:
    left(one, S)
    one.incarnations.die()
    life = Gives(store, host, End.DAMAGED)
    use(life.ownership)
    assert (life.row(), life.ownership.in_use(S)) == ((S, one.me, 3), False)
    assert Life(store, host).ownership.own(S).epoch == 4  # by a person, from another process


def test_what_was_nobodys_or_is_taken_from_who_may_live_is_handed_back_to_nobody(
    store: MemoryStore, host: MemoryHost, one: Life
) -> None:
    life = Gives(store, host, End.DAMAGED)
    life.ownership.give_up(life.ownership.own(S))
    assert life.row() == (S, None, 1)
    left(one, S)
    life.ownership.give_up(life.ownership.own(S, fencing=one.me))
    assert life.row() == (S, None, 3)


def test_a_session_that_cannot_be_handed_back_is_not_in_use_here(
    store: MemoryStore, host: MemoryHost, one: Life
) -> None:
    left(one, S)
    one.incarnations.die()
    life = Gives(store, host, End.DAMAGED)
    owned = life.ownership.own(S)
    store.fail_next(Failure.UNAVAILABLE)
    life.ownership.give_up(owned)
    assert (life.row(), life.ownership.in_use(S)) == ((S, life.me, 2), False)
