"""Callers that meet wait each on their own, in threads and in tasks, and none is forgotten. SPEC section 7."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence

import anyio
import pytest

from safepoint.application.async_ledger import AsyncLedger
from safepoint.application.caller_queue import CallerQueue
from safepoint.application.commit_round import Receipt, Ticket
from safepoint.application.task_queue import TaskQueue
from safepoint.domain.commands import Append
from safepoint.domain.errors import StoreUnavailable, WriteRefused
from safepoint.domain.events.run import RunStatus

from ..domain.facts import Facts
from .ledger_world import DEADLOCK_SECONDS, World, wait_until


def command(name: str) -> Append:
    r = Facts(name)
    return r.append(r.cancelled())


def named(given: Ticket | Append) -> str:
    asked = given.command if isinstance(given, Ticket) else given
    assert isinstance(asked, Append)
    return asked.run_id


class Writer:
    """Answers groups of tickets or commands; each group waits until it is let through."""

    def __init__(self) -> None:
        self.groups: list[list[str]] = []
        self.entered = threading.Semaphore(0)
        self.let = threading.Semaphore(0)
        self.failing = 0

    def write(self, group: Sequence[Ticket]) -> None:
        self.execute_all([ticket.command for ticket in group])  # type: ignore[misc]  # all are appends here
        for ticket in group:
            ticket.receipt = Receipt(())

    def execute_all(self, group: Sequence[Append]) -> list[Receipt | Exception]:
        self.groups.append([named(one) for one in group])
        self.entered.release()
        assert self.let.acquire(timeout=DEADLOCK_SECONDS)
        if self.failing:
            self.failing -= 1
            raise KeyboardInterrupt
        return [Receipt(()) for _ in group]

    def wait_for_a_group(self) -> None:
        assert self.entered.acquire(timeout=DEADLOCK_SECONDS)


# ---- threads ---------------------------------------------------------------------------------------------------------


class Waiting(threading.Thread):
    """A thread with one ticket."""

    def __init__(self, queue: CallerQueue, name: str) -> None:
        super().__init__()
        self.ticket = Ticket(command(name))
        self.error: BaseException | None = None
        self._queue = queue
        self.start()

    def run(self) -> None:
        try:
            self._queue.answer((self.ticket,))
        except BaseException as error:  # noqa: BLE001 (what a thread is ended by is what the test looks at)
            self.error = error

    def ended(self) -> bool:
        self.join(DEADLOCK_SECONDS)
        return not self.is_alive()


def meet(queue: CallerQueue, writer: Writer, *names: str) -> list[Waiting]:
    """The first leads and is held in its write; the others wait."""
    leader = Waiting(queue, names[0])
    writer.wait_for_a_group()
    others: list[Waiting] = []
    for name in names[1:]:
        others.append(Waiting(queue, name))
        wait_until(lambda: len(queue) == len(others))
    return [leader, *others]


def test_whoever_comes_while_a_group_is_written_is_in_the_next_one_whole() -> None:
    writer = Writer()
    queue = CallerQueue(writer.write)
    callers = meet(queue, writer, "a", "b", "c", "d")
    writer.let.release(2)
    assert all(caller.ended() and caller.ticket.done for caller in callers)
    assert writer.groups == [["a"], ["b", "c", "d"]]


def test_the_next_caller_leads_although_the_leader_was_ended() -> None:
    writer = Writer()
    queue = CallerQueue(writer.write)
    callers = meet(queue, writer, "a", "b")
    writer.failing = 1
    writer.let.release(2)
    assert all(caller.ended() for caller in callers)
    assert isinstance(callers[0].error, KeyboardInterrupt)
    assert callers[1].ticket.done


def test_whoever_was_in_the_group_of_a_leader_that_was_ended_waits_no_longer() -> None:
    writer = Writer()
    queue = CallerQueue(writer.write)
    callers = meet(queue, writer, "a", "b", "c")
    writer.let.release()
    writer.wait_for_a_group()
    writer.failing = 1
    writer.let.release()
    assert all(caller.ended() for caller in callers)
    assert not callers[2].ticket.done  # the ledger says that nothing is known of it
    later = Waiting(queue, "later")
    writer.let.release()
    assert later.ended()
    assert later.ticket.done


def test_a_caller_that_is_interrupted_while_it_waits_leads_nobody_and_is_not_written() -> None:
    writer = Writer()
    queue = CallerQueue(writer.write)
    callers = meet(queue, writer, "a", "b", "c")
    gone = queue._waiting[0]
    queue._withdraw(gone)
    writer.let.release(2)
    assert callers[0].ended()
    assert callers[2].ended()
    assert writer.groups == [["a"], ["c"]]
    gone.gate.release()
    assert callers[1].ended()


def test_a_caller_that_is_interrupted_just_when_it_is_to_lead_lets_the_next_one_lead() -> None:
    writer = Writer()
    queue = CallerQueue(writer.write)
    callers = meet(queue, writer, "a", "b")
    gone = queue._waiting[0]
    queue._leader = gone
    queue._withdraw(gone)
    gone.gate.release()
    writer.let.release(2)
    assert all(caller.ended() for caller in callers)


# ---- tasks -----------------------------------------------------------------------------------------------------------


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(DEADLOCK_SECONDS):
        while not condition():  # noqa: ASYNC110 (a thread, which has no event of this loop)
            await anyio.sleep(0.001)


async def in_tasks(queue: TaskQueue, writer: Writer, *names: str) -> list[asyncio.Task[Receipt]]:
    """The first leads and is held in its write; the others wait."""
    tasks = [asyncio.create_task(queue.execute(command(names[0])))]
    await until(lambda: writer.entered.acquire(blocking=False))
    tasks += [asyncio.create_task(queue.execute(command(name))) for name in names[1:]]
    await until(lambda: len(queue) == len(names) - 1)
    return tasks


def test_tasks_that_wait_together_are_written_together() -> None:
    async def main() -> None:
        writer = Writer()
        tasks = await in_tasks(TaskQueue(writer.execute_all), writer, "a", "b", "c")  # type: ignore[arg-type]
        writer.let.release(2)
        assert all(isinstance(answer, Receipt) for answer in await asyncio.gather(*tasks))
        assert writer.groups == [["a"], ["b", "c"]]

    asyncio.run(main())


def test_tasks_that_were_answered_together_come_together_again() -> None:
    async def main() -> None:
        writer = Writer()
        writer.let.release(100)
        queue = TaskQueue(writer.execute_all)  # type: ignore[arg-type]

        async def thrice(name: str) -> None:
            for _ in range(3):
                await queue.execute(command(name))

        await asyncio.gather(*(thrice(name) for name in "abcd"))
        assert [len(group) for group in writer.groups] == [4, 4, 4]

    asyncio.run(main())


async def still_waits(task: asyncio.Task[Receipt]) -> None:
    """A cancellation has come to a task, twice, and it is not done."""
    for _ in range(2):
        task.cancel()
        for _ in range(5):
            await asyncio.sleep(0)
    assert not task.done()


def test_a_task_that_is_cancelled_while_it_leads_takes_no_answer_from_the_others() -> None:
    """By asyncio itself, which knows nothing of anyio's shields: the thread goes on, and all are told when it ends."""

    async def main() -> None:
        writer = Writer()
        queue = TaskQueue(writer.execute_all)  # type: ignore[arg-type]
        first, leader, other = await in_tasks(queue, writer, "a", "b", "c")
        writer.let.release()
        await until(lambda: writer.entered.acquire(blocking=False))
        await still_waits(leader)
        writer.let.release(2)
        with pytest.raises(asyncio.CancelledError):
            await leader
        assert isinstance(await first, Receipt)
        assert isinstance(await other, Receipt)
        assert writer.groups == [["a"], ["b", "c"]]
        assert isinstance(await queue.execute(command("d")), Receipt)

    asyncio.run(main())


def test_a_task_that_is_cancelled_while_it_waits_is_not_written() -> None:
    async def main() -> None:
        writer = Writer()
        queue = TaskQueue(writer.execute_all)  # type: ignore[arg-type]
        tasks = await in_tasks(queue, writer, "a", "b", "c")
        tasks[1].cancel()
        with pytest.raises(asyncio.CancelledError):
            await tasks[1]
        writer.let.release(2)
        await asyncio.gather(tasks[0], tasks[2])
        assert writer.groups == [["a"], ["c"]]

    asyncio.run(main())


def test_a_task_that_is_cancelled_while_another_writes_for_it_goes_on_when_it_is_written() -> None:
    """Else whoever gives a session up after the cancellation would look at it before it is written."""

    async def main() -> None:
        writer = Writer()
        queue = TaskQueue(writer.execute_all)  # type: ignore[arg-type]
        first, leader, other = await in_tasks(queue, writer, "a", "b", "c")
        writer.let.release()
        await until(lambda: writer.entered.acquire(blocking=False))
        await still_waits(other)
        writer.let.release()
        with pytest.raises(asyncio.CancelledError):
            await other
        await asyncio.gather(first, leader)
        assert writer.groups == [["a"], ["b", "c"]]

    asyncio.run(main())


def test_a_task_that_is_cancelled_before_its_group_is_begun_leaves_the_others_waiting_for_the_next_leader() -> None:
    async def main() -> None:
        writer = Writer()
        queue = TaskQueue(writer.execute_all)  # type: ignore[arg-type]
        leader = asyncio.create_task(queue.execute(command("a")))
        other = asyncio.create_task(queue.execute(command("b")))
        await asyncio.sleep(0)  # both have asked; the first has not come to its thread
        leader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leader
        writer.let.release()
        assert isinstance(await other, Receipt)
        assert writer.groups == [["b"]]

    asyncio.run(main())


def test_tasks_are_told_when_the_thread_of_their_group_is_ended() -> None:
    async def main() -> None:
        writer = Writer()
        queue = TaskQueue(writer.execute_all)  # type: ignore[arg-type]
        first, leader, other = await in_tasks(queue, writer, "a", "b", "c")
        writer.let.release()
        await first
        await until(lambda: writer.entered.acquire(blocking=False))
        writer.failing = 1
        await still_waits(leader)
        writer.let.release()
        await asyncio.wait([leader])
        with pytest.raises(StoreUnavailable):
            await other

    asyncio.run(main())


def test_tasks_of_one_loop_and_threads_share_one_ledger(world: World) -> None:
    runs = [world.opened(f"r{n}", session=f"s{n}") for n in range(6)]
    ledger = AsyncLedger(world.ledger)

    async def stop_and_end(r: Facts) -> None:
        await ledger.execute(r.append(r.cancelled()))
        await ledger.execute(r.end(RunStatus.CANCELLED))
        with pytest.raises(WriteRefused):
            await ledger.execute(r.append(r.cancelled()))

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            for r in runs:
                tasks.start_soon(stop_and_end, r)
            await anyio.to_thread.run_sync(world.ledger.execute, world.facts("t", session="t").open_run())

    anyio.run(main)
    assert all(world.topics(f"run:r{n}")[-1] == "run.ended.v1" for n in range(6))
    assert max(world.events.groups) > 1
    assert world.consistent()
