"""A script that is interrupted and goes on has its sessions again, and its runtime comes to an end. ADR 0094."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, cast

import anyio
import pytest

import safepoint
from safepoint.adapters.embedding.portal import Portal
from safepoint.adapters.memory.model_provider import PlannedModel, says

from .loops import asks_to_pay

LINES_MAX = 2_000
WAIT_SECONDS = 30.0


def step(session: safepoint.SyncSession) -> None:
    with session.record("Pay.") as run:
        run.model_step(safepoint.step("Done."))


def call(session: safepoint.SyncSession) -> None:
    with session.record("Pay.") as run:
        run.model_step(asks_to_pay())
        with run.tool_call("c1") as operation:
            operation.result("paid 5")


def turn(session: safepoint.SyncSession) -> None:
    session.run("Pay.")


class Interrupted:
    """Raises KeyboardInterrupt at the nth line that the script comes to, wherever it is, as a Ctrl-C does."""

    def __init__(self, nth: int) -> None:
        self.left = nth
        self.where = ""

    def __call__(self, frame: FrameType, event: str, given: Any) -> Any:
        if event in ("call", "line"):
            self.left -= 1
            if not self.left:
                self.where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
                sys.settrace(None)
                raise KeyboardInterrupt
        return self


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # an interruption in a finalizer is none
@pytest.mark.parametrize("script", [step, call, turn])
def test_wherever_a_script_is_interrupted_its_session_is_free_again(
    tmp_path: Path, script: Callable[[safepoint.SyncSession], None]
) -> None:
    tools = [safepoint.contract("pay", recovery="never_auto_retry")]
    model = PlannedModel([says("Done.")] * LINES_MAX)
    with safepoint.open_sync(tmp_path / "store.sqlite", model=model, tools=tools) as runtime:
        for nth in range(1, LINES_MAX):
            session = runtime.session(f"s{nth}")
            interrupted = Interrupted(nth)
            before = sys.gettrace()
            sys.settrace(interrupted)
            try:
                script(session)
            except KeyboardInterrupt:
                pass
            finally:
                sys.settrace(before)
            assert not runtime.parts.ownership().in_use(session.session_id), interrupted.where
            session.repair()
            if not interrupted.where:
                break
        assert 10 < nth < LINES_MAX - 1


NEVER_LEFT = """
import sys, safepoint
runtime = safepoint.open_sync(sys.argv[1])
runtime.__enter__()
block = runtime.session("s").record("Hello?")
run = block.__enter__()
if sys.argv[2] == "leaves the runtime":
    runtime.__exit__(None, None, None)
    with safepoint.open_sync(sys.argv[1]) as runtime:
        print(runtime.session("s").repair().kind)
"""


@pytest.mark.parametrize(("does", "said"), [("leaves the runtime", "run_closed"), ("ends", "")])
def test_a_block_that_was_never_left_keeps_nothing_from_ending(tmp_path: Path, does: str, said: str) -> None:
    command = [sys.executable, "-c", NEVER_LEFT, str(tmp_path / "store.sqlite"), does]
    ended = subprocess.run(command, check=False, timeout=60, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout.strip()) == (0, said), ended.stderr


class Opened:
    """A block on the event loop, and how it was left.

    Attributes:
        let: set when it may end.
    """

    def __init__(self) -> None:
        self.left_by: list[str] = []
        self.let = threading.Event()

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[int]:
        try:
            yield 5
        except BaseException as error:
            self.left_by.append(type(error).__name__)
            raise
        else:
            self.left_by.append("nothing")
        finally:
            with anyio.CancelScope(shield=True):
                while not self.let.is_set():  # noqa: ASYNC110 (of a thread)
                    await anyio.sleep(0.001)


@contextmanager
def threaded(work: Callable[[], None]) -> Any:
    thread = threading.Thread(target=work)
    thread.start()
    yield thread
    thread.join(WAIT_SECONDS)
    assert not thread.is_alive()


def test_what_another_thread_has_there_is_waited_for() -> None:
    portal, opened, entered, leave = Portal(), Opened(), threading.Event(), threading.Event()
    opened.let.set()

    def other() -> None:
        with portal.block(opened()):
            entered.set()
            assert leave.wait(WAIT_SECONDS)

    with threaded(other):
        assert entered.wait(WAIT_SECONDS)
        portal.end_left()
        assert opened.left_by == []
        threading.Timer(0.05, leave.set).start()
        portal.close()
    assert opened.left_by == ["nothing"]


def test_what_a_thread_left_behind_is_cancelled() -> None:
    portal, opened, kept = Portal(), Opened(), list[Any]()
    opened.let.set()

    def other() -> None:
        kept.append(portal.block(opened()))
        kept[0].__enter__()

    with threaded(other):
        pass
    portal.close()
    assert opened.left_by == ["CancelledError"]


def test_whatever_thread_collects_a_block_as_garbage_waits_for_nothing() -> None:
    """Also the event loop's, which would wait for itself."""
    portal, opened, collected = Portal(), [Opened(), Opened()], list[bool]()
    blocks = [portal.block(one()) for one in opened]
    for block in blocks:
        block.__enter__()

    def collect() -> None:
        cast(Any, blocks.pop()).gen.close()
        collected.append(True)

    with threaded(collect):
        pass
    portal.call(collect)
    assert collected == [True, True]
    for one in opened:
        one.let.set()
    portal.close()
    assert [one.left_by for one in opened] == [["CancelledError"]] * 2
