"""A task that is cancelled while a thread takes a session for it does not leave it held. ADR 0090."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import anyio
import anyio.lowlevel
import pytest
from anyio import to_thread

from safepoint.adapters.memory.event_store import MemoryStore
from safepoint.adapters.memory.incarnations import MemoryHost, MemoryIncarnations
from safepoint.application.in_thread import in_thread
from safepoint.application.open_ends import End
from safepoint.application.ownership import Owned, SessionBusy, SessionOwnership
from safepoint.application.taking import taken
from safepoint.domain.errors import StoreUnavailable
from safepoint.domain.identifiers import SessionId
from safepoint.ports.session_owners import SessionOwners

S = SessionId("s")
THREAD_SECONDS = 10.0


class Cut:
    """Cancels a task from the thread that works for it, which goes on when the event loop has done that."""

    def __init__(self) -> None:
        self.by: Callable[[], Any] | None = None
        self.loop = asyncio.get_running_loop()

    def __call__(self) -> None:
        by, self.by = self.by, None
        if by is not None:
            self.loop.call_soon_threadsafe(by)
            for _ in range(3):
                asyncio.run_coroutine_threadsafe(asyncio.sleep(0), self.loop).result(THREAD_SECONDS)


class CutOwners:
    """Owners where a call of one method is cut, before it does anything or after that."""

    def __init__(self, owners: SessionOwners, cut: Cut, at: str) -> None:
        self._owners = owners
        self._cut = cut
        self._method, self._when = at.split()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._owners, name)

        def called(*args: Any) -> Any:
            if (name, self._when) == (self._method, "before"):
                self._cut()
            answer = method(*args)
            if (name, self._when) == (self._method, "after"):
                self._cut()
            return answer

        return called


def ownership(store: MemoryStore, owners: Any) -> SessionOwnership:
    incarnations = MemoryIncarnations(MemoryHost())
    return SessionOwnership(
        cast(SessionOwners, owners), incarnations, lambda session_id: None, end_of=lambda session_id: End.CLOSED
    )


@pytest.mark.parametrize("at", ["owner before", "owner after", "take before", "take after"])
@pytest.mark.parametrize("by_a_scope", [False, True])
def test_what_a_thread_took_for_a_task_that_is_cancelled_is_given_up(at: str, by_a_scope: bool) -> None:
    """By asyncio it never gets it; a scope it hears of when it has it."""
    got: list[Owned] = []

    async def main() -> None:
        store, cut, scope = MemoryStore(), Cut(), anyio.CancelScope()
        sessions = ownership(store, CutOwners(store.owners, cut, at))

        async def work() -> None:
            with scope:
                got.append(await taken(sessions, S))
                await anyio.lowlevel.checkpoint()
                raise AssertionError("it was not cancelled")

        task = asyncio.create_task(work())
        cut.by = scope.cancel if by_a_scope else task.cancel
        await asyncio.wait([task])
        assert scope.cancel_called if by_a_scope else task.cancelled()
        assert sessions.in_use(S) is by_a_scope
        for owned in got:
            sessions.give_up(owned)
        assert store.owners.owner(S) is not None
        assert store.owners.owner(S) == (S, None, 1)

    asyncio.run(main())
    assert len(got) == by_a_scope


def test_what_was_not_taken_is_not_given_up() -> None:
    """Of a session that another task has, or that could not be asked for."""

    async def main() -> None:
        store, cut = MemoryStore(), Cut()
        sessions = ownership(store, CutOwners(store.owners, cut, "owner before"))
        held = sessions.own(S)
        with pytest.raises(SessionBusy):
            await taken(sessions, S)

        def refuse() -> None:
            cut()
            raise StoreUnavailable("it is a copy")

        with pytest.raises(StoreUnavailable):
            await taken(sessions, SessionId("other"), refuse)
        task = asyncio.create_task(taken(sessions, SessionId("other"), refuse))
        cut.by = task.cancel
        await asyncio.wait([task])
        assert task.cancelled()
        assert sessions.in_use(S)
        assert store.owners.owner(S) == (S, held.incarnation_id, held.epoch)
        assert store.owners.owner(SessionId("other")) is None

    asyncio.run(main())


def test_work_that_no_thread_has_begun_is_done_all_the_same() -> None:
    """So that what somebody gives up when it is cancelled a second time is given up."""
    done: list[int] = []

    async def main() -> None:
        task = asyncio.create_task(in_thread(lambda: done.append(threading.get_ident())))
        await asyncio.sleep(0)  # it waits for nothing but its turn
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        (thread,) = done
        assert thread != threading.get_ident()

    asyncio.run(main())


def test_work_is_waited_for_however_often_its_task_is_cancelled() -> None:
    async def main() -> None:
        begun, let, undone = threading.Event(), threading.Event(), list[str]()

        def work() -> str:
            begun.set()
            assert let.wait(THREAD_SECONDS)
            return "taken"

        task = asyncio.create_task(in_thread(work, undo=undone.append))
        await to_thread.run_sync(begun.wait, THREAD_SECONDS)
        for _ in range(3):
            task.cancel()
            for _ in range(5):
                await asyncio.sleep(0)
        assert not task.done()
        let.set()
        await asyncio.wait([task])
        assert task.cancelled()
        assert undone == ["taken"]

    asyncio.run(main())


@pytest.mark.parametrize("seconds", [0.0, 0.0001, 0.001, 0.01])
def test_a_time_out_of_asyncio_stays_one(seconds: float) -> None:
    async def main() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(in_thread(lambda: time.sleep(0.05)), seconds)
        assert await in_thread(lambda: 5) == 5

    asyncio.run(main())


def test_what_the_work_raises_is_raised() -> None:
    async def main() -> None:
        with pytest.raises(KeyError, match="it"):
            await in_thread(partial(dict[str, int]().pop, "it"))

    asyncio.run(main())
