"""The synchronous twin does what the asynchronous runtime does."""

from __future__ import annotations

import inspect
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest

import safepoint
from safepoint.adapters.memory.model_provider import PlannedModel, Stall, says
from safepoint.application.repair_session import RepairKind
from safepoint.domain.events.run import RunStatus
from safepoint.ports.model_step import StepFinished, TextBlock

from .loops import PAYS, asks_to_pay, pay, payments


def opened(folder: Path, model: Any = None, **more: Any) -> safepoint.SyncRuntime:
    model = PlannedModel(list(PAYS)) if model is None else model
    return safepoint.open_sync(folder / "store.sqlite", **{"workspace": folder, "model": model, "tools": [pay], **more})


def public(of: type) -> dict[str, inspect.Signature]:
    """The public methods and their parameters, whatever they return."""
    return {
        name: inspect.signature(member).replace(return_annotation=inspect.Signature.empty)
        for name, member in inspect.getmembers(of)
        if callable(member) and not name.startswith("_")
    }


@pytest.mark.parametrize(
    ("blocking", "twin", "only_async"),
    [
        (safepoint.SyncRuntime, safepoint.Runtime, set()),
        (safepoint.SyncSession, safepoint.Session, {"events"}),
        (safepoint.SyncRecordedRun, safepoint.RecordedRun, set()),
    ],
)
def test_the_twins_take_the_same(blocking: type, twin: type, only_async: set[str]) -> None:
    theirs = {name: taken for name, taken in public(twin).items() if name not in only_async}
    if blocking is safepoint.SyncRuntime:
        theirs["repair"] = theirs["repair"].replace(parameters=[*theirs["repair"].parameters.values()][:1])
    assert public(blocking) == theirs
    kept = [[name for name, one in inspect.getmembers(of) if isinstance(one, property)] for of in (twin, blocking)]
    properties = [{name for name in names if not name.startswith("_")} for names in kept]
    assert properties[0] - {"agent"} <= properties[1]


def test_each_way_to_open_takes_the_same() -> None:
    """The function, the class, the function for scripts; and what may stand in settings has the same default there."""

    def taken(of: Any) -> dict[str, inspect.Parameter]:
        return dict(inspect.signature(of).parameters)

    asked = taken(safepoint.open)
    assert asked == taken(safepoint.open_sync)
    assert asked == {name: one for name, one in taken(safepoint.Runtime.__init__).items() if name != "self"}
    in_settings = {name: one.default for name, one in safepoint.Configuration.model_fields.items() if name in asked}
    by_code = {name for name in taken(safepoint.Configuration.open) if name != "self"}
    assert set(in_settings) | by_code == set(asked)
    assert taken(safepoint.Configuration.open) == taken(safepoint.Configuration.open_sync)
    defaults = {name: one.default for name, one in asked.items() if name != "store"}
    assert {name: value for name, value in in_settings.items() if name != "store"}.items() <= defaults.items()


def test_a_script_runs_turns_and_looks(tmp_path: Path) -> None:
    happenings: list[safepoint.events.Happening] = []
    with opened(tmp_path) as runtime:
        session = runtime.session("bill")
        assert session.session_id == "bill"
        assert session.summary() is None
        result = session.run("Pay the bill.", watch=happenings.append)
        assert result.outcome.text == "Paid."
        assert isinstance(session.plan(), safepoint.Park)
        assert isinstance(session.resume(), safepoint.Parked)
        assert session.repair().kind is RepairKind.NOTHING_OPEN
        assert session.unsettled() == []
        assert session.waiting() == []
        reconciled = session.reconcile()
        assert reconciled is not None
        assert reconciled.operations == ()
        assert session.cancel(by="alice").run_id == result.run_id
        assert runtime.repair().runs_closed == 0
    assert payments(tmp_path) == ["5"]
    assert isinstance(happenings[-1], safepoint.events.RunFinished)


def test_a_script_has_a_loop_of_its_own(tmp_path: Path) -> None:
    with opened(tmp_path) as runtime, runtime.session("bill").record("Pay the bill.") as run:
        run.check()
        (call,) = run.model_step(asks_to_pay()).calls
        with run.tool_call(call) as operation:
            operation.result(f"paid {operation.arguments['amount']}")
        answer = run.answer(call)
        assert answer is not None
        assert answer.result == "paid 5"
        run.steer("Once more.")
        run.model_step(asks_to_pay("c2"))
        assert run.call("c2").result == "paid 5"
        assert [message["role"] for message in run.history("openai-chat")] == [
            "user",
            "assistant",
            "tool",
            "user",
            "assistant",
            "tool",
        ]
        assert len(run.history()) == 8
        run.model_step(safepoint.step("Paid."))
        assert (run.session_id, run.stopped_by) == ("bill", None)


def test_a_refused_call_is_never_entered(tmp_path: Path) -> None:
    with opened(tmp_path, permission="deny") as runtime, runtime.session().record("Pay the bill.") as run:
        run.model_step(asks_to_pay())
        with pytest.raises(safepoint.CallRefused) as refused, run.tool_call("c1"):
            pytest.fail("the block was entered")
        assert refused.value.answer.code == "permission_denied"
        run.model_step(safepoint.step("I may not."))


def torn(session: safepoint.SyncSession, error: type[BaseException]) -> safepoint.Park:
    """The plan after a block was torn away by an error."""
    with pytest.raises(error), session.record("Pay the bill.") as run:  # noqa: PT012 (what is entered is torn)
        run.model_step(asks_to_pay())
        with run.tool_call("c1"):
            raise error
    session.repair()
    plan = session.plan()
    assert isinstance(plan, safepoint.Park)
    return plan


def test_a_block_that_is_torn_away_leaves_its_operation_indeterminate(tmp_path: Path) -> None:
    with opened(tmp_path) as runtime:
        session = runtime.session("bill")
        assert torn(session, ZeroDivisionError).codes == (safepoint.ParkReason.DANGLING_TOOL_STATE,)
        (operation,) = session.unsettled()
        session.settle(operation.operation_id, "not_executed", by="alice", note="nothing was paid")
        with session.record_resume() as run:
            run.model_step(safepoint.step("Not paid."))


def test_what_an_interrupt_tears_away_counts_as_running_while_the_process_lives(tmp_path: Path) -> None:
    with opened(tmp_path) as runtime:
        plan = torn(runtime.session("bill"), KeyboardInterrupt)
        assert safepoint.ParkReason.EFFECT_MAY_BE_RUNNING in plan.codes


def test_an_interrupted_script_interrupts_its_run(tmp_path: Path) -> None:
    """Ctrl-C in the main thread reaches the run on the runtime's thread before the store is closed."""

    def interrupt(happening: safepoint.events.Happening) -> None:
        if isinstance(happening, safepoint.events.TextDelta):
            ident = threading.main_thread().ident
            assert ident is not None
            signal.pthread_kill(ident, signal.SIGINT)

    with opened(tmp_path, PlannedModel([Stall("thinking")])) as runtime:
        session = runtime.session("bill")
        with pytest.raises(KeyboardInterrupt):
            session.run("Pay the bill.", watch=interrupt)
        assert session.repair().kind is RepairKind.RUN_CLOSED  # it has ended here: nobody else works on the session
    with opened(tmp_path, PlannedModel([says("Hm.")])) as runtime:
        assert isinstance(runtime.session("bill").resume(), safepoint.Continued)


@pytest.mark.parametrize("is_async", [True, False])
def test_an_interrupt_in_a_call_goes_on_and_leaves_its_operation_indeterminate(tmp_path: Path, is_async: bool) -> None:
    let_go, ended = threading.Event(), []

    def interrupt() -> None:
        ident = threading.main_thread().ident
        assert ident is not None
        signal.pthread_kill(ident, signal.SIGINT)

    def slow(amount: int) -> str:
        interrupt()
        assert let_go.wait(60)
        return f"paid {amount}"

    async def slow_async(amount: int) -> str:
        interrupt()
        try:
            await anyio.sleep(60)
        finally:
            ended.append(amount)
        return "never"

    with opened(tmp_path) as runtime:
        session = runtime.session("bill")
        with pytest.raises(KeyboardInterrupt), session.record("Pay.") as run:  # noqa: PT012 (all of it is a script)
            run.model_step(asks_to_pay())
            run.call("c1", slow_async if is_async else slow)
            pytest.fail("it went on")
        (left,) = session.unsettled()
        assert (left.tool_name, left.effect) == ("pay", None)
        assert ended == ([5] if is_async else [])
        let_go.set()


def test_checkpoints_are_asked_for_as_in_the_other_face(tmp_path: Path) -> None:
    with opened(tmp_path, checkpoints="git") as runtime, pytest.raises(safepoint.SafepointError, match="kept"):
        runtime.session("bill").run("Pay the bill.")


def test_what_is_parked_and_what_is_continued_is_told(tmp_path: Path) -> None:
    unfinished = StepFinished(blocks=(TextBlock("broken off"),), finish_reason="")
    with opened(tmp_path, PlannedModel([unfinished])) as runtime:
        assert runtime.session("bill").run("Pay the bill.").outcome.status is RunStatus.FAILED
    with opened(tmp_path, PlannedModel([says("Hm.")]), system_prompt="Be brief.") as runtime:
        session = runtime.session("bill")
        with pytest.raises(safepoint.ResumeParked), session.record_resume():
            pytest.fail("it was continued")
        result = session.resume(accept_drift=["system_prompt"])
        assert isinstance(result, safepoint.Continued)


def test_it_is_used_as_a_block() -> None:
    with pytest.raises(RuntimeError, match="not open"):
        safepoint.open_sync("store.sqlite").session()


def test_what_cannot_be_opened_leaves_no_thread(tmp_path: Path) -> None:
    with pytest.raises(safepoint.StoreError), safepoint.open_sync(tmp_path / "missing" / "store.sqlite"):
        pytest.fail("it was opened")


FORKS = """
import os, sys
import safepoint

file, does = sys.argv[1:]
with safepoint.open_sync(file) as runtime:
    with runtime.session("s").record("Hello?") as run:
        child = os.fork()
        if not child:
            if does == "goes on":
                run.model_step(safepoint.step("of the child"))
            elif does == "looks":
                runtime.session("s").plan()
            elif does == "exits":
                sys.exit(3)
            elif does == "opens anew":
                with safepoint.open_sync(file) as own, own.session("own").record("Mine?") as mine:
                    mine.model_step(safepoint.step("of the child, in its own session"))
                os._exit(4)
        else:
            print("the child ended with", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            run.model_step(safepoint.step("of the parent"))
    if not child:
        print("the child has left the block")
    print(run.outcome.text)
"""


@pytest.mark.parametrize(
    ("does", "status", "said"),
    [
        ("goes on", 1, "OpenedBeforeFork: this runtime was opened before the process was forked"),
        ("looks", 1, "OpenedBeforeFork: "),
        ("leaves", 1, "OpenedBeforeFork: "),
        ("exits", 3, ""),
        ("opens anew", 4, ""),
    ],
)
def test_a_fork_is_told_that_the_runtime_is_its_parents(tmp_path: Path, does: str, status: int, said: str) -> None:
    command = [sys.executable, "-c", FORKS, str(tmp_path / "store.sqlite"), does]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout.splitlines() == [f"the child ended with {status}", "of the parent"]
    assert said in ran.stderr


def test_who_asks_a_closed_runtime_is_told_to_open_it_again(tmp_path: Path) -> None:
    with safepoint.open_sync(tmp_path / "store.sqlite") as runtime:
        session = runtime.session("bill")
        assert session.summary() is None
    with pytest.raises(safepoint.SafepointError, match="open it again"):
        session.summary()
    with pytest.raises(safepoint.SafepointError, match="open it again"), session.record("Pay."):
        raise AssertionError


def test_who_asks_from_the_event_loop_itself_is_told_what_to_do_instead(tmp_path: Path) -> None:
    asked: list[str] = []
    tools = [safepoint.contract("look", recovery="replay_safe")]
    with safepoint.open_sync(tmp_path / "store.sqlite", tools=tools) as runtime:
        session = runtime.session("bill")

        async def look() -> str:
            with pytest.raises(safepoint.SafepointError, match="be a synchronous function"):
                session.summary()
            asked.append("look")
            return "seen"

        with session.record("Look.") as run:
            run.model_step(safepoint.step(safepoint.tool_call("c1", "look", {})))
            assert run.call("c1", look).result == "seen"
            run.model_step(safepoint.step("Seen."))
    assert asked == ["look"]
