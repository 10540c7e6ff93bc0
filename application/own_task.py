"""Work in a task of its own, so that nothing that happens to whoever waits for it tears a commit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
from anyio import CancelScope, get_cancelled_exc_class
from anyio.abc import TaskGroup

ResultT = TypeVar("ResultT")


async def in_a_task_of_its_own(tasks: TaskGroup, work: Callable[[], Awaitable[None]], name: str) -> None:
    """Wait for work; a cancellation is passed on to it, and goes on as one once the work has ended.

    The work is cancelled by a scope, whatever cancelled the caller: `asyncio` cancels a task once, at one await, and
    whoever awaits there and has something to record would swallow it.

    Args:
        tasks: where the work runs; closed over it, the work is cancelled and this returns.
        name: of the task, for people.

    Raises:
        BaseException: what the work raised, where the caller was not cancelled.
    """
    errors: list[BaseException] = []
    scope, ended = CancelScope(), anyio.Event()

    async def through() -> None:
        try:
            with scope:
                await work()
        except get_cancelled_exc_class():
            raise
        except BaseException as error:  # noqa: BLE001 (raised where it is waited for)
            errors.append(error)
        finally:
            ended.set()

    tasks.start_soon(through, name=name)
    try:
        await ended.wait()
    except get_cancelled_exc_class():
        scope.cancel()
        with CancelScope(shield=True):
            await ended.wait()
        raise
    if errors:
        raise errors[0]


async def in_a_child_task(work: Callable[[], Awaitable[ResultT]]) -> ResultT:
    """Await work that ends in order when it is cancelled: a cancellation of the caller goes on once it has ended.

    Nobody gets what such work came to. It is cancelled by a scope, as in a task of its own.

    Raises:
        BaseException: what the work raised, where the caller was not cancelled.
    """
    results: list[ResultT] = []
    errors: list[BaseException] = []

    async def through() -> None:
        try:
            results.append(await work())
        except get_cancelled_exc_class():
            raise
        except BaseException as error:  # noqa: BLE001 (raised where it is waited for, in no group)
            errors.append(error)

    async with anyio.create_task_group() as group:
        group.start_soon(through)
    if errors:
        raise errors[0]
    return results[0]
