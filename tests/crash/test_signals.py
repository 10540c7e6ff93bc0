"""Owners that are stopped, asked to end or cancelled from elsewhere. SPEC sections 7, 15 and 17, F4."""

from __future__ import annotations

import signal

import pytest

from .harness.program import Hooks, Started, wait_for
from .harness.record import lock_files_of
from .harness.sleeper import START
from .harness.stage import SESSION, Stage, call, step
from .harness.tools import PAYMENT
from .harness.trial import check_record, codes, kill, look, verdicts, wait_until_over

STOPPED_BY = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


def slow_run(stage: Stage) -> Started:
    """A run in the middle of a tool that works until its sleeper is let go."""
    stage.play([step("I do it.", call("run_shell", command=f"{START}; wait")), step("Done.")])
    started = stage.start("run", "do it")
    wait_for("the tool does not start", lambda: stage.sleeper.is_there)
    return started


def cancel_is_recorded(stage: Stage) -> None:
    """Wait until the request stands in the record."""
    wait_for("nobody records the request", lambda: stage.record.of_session(SESSION, "run.cancel_requested.v1"))


def test_r3_038_a_stopped_owner_is_alive_and_nobody_else_goes_on_with_its_session(stage: Stage) -> None:
    stage.play([step("I pay.", PAYMENT.call), step("Done.")])
    started = stage.start("run", "pay", hooks=Hooks(stop="P3"))
    started.stopped()
    before = stage.record

    plan = look(stage)
    assert codes(plan)[0] == "session_busy"
    assert plan["reasons"][0]["detail"]["pid"] == started.pid
    resumed = stage.do("resume").expect(5)
    assert codes(resumed)[0] == "session_busy"
    assert stage.do("run", "something else").expect(5)["code"] == "session_busy"
    assert stage.record == before
    assert (stage.effects(), len(stage.requests)) == ([], 1)

    started.go_on()
    assert started.ended().expect(0)["status"] == "completed"
    assert (stage.effects(), len(stage.requests)) == (["paid"], 2)
    check_record(stage, before)


@STOPPED_BY
def test_the_first_signal_waits_for_the_tool_and_ends_the_run_as_cancelled(
    stage: Stage, number: signal.Signals
) -> None:
    started = slow_run(stage)
    started.send(number)
    cancel_is_recorded(stage)
    stage.sleeper.release()
    ended = started.ended().expect(128 + number)
    assert ended["status"] == "cancelled"
    before = stage.record
    assert before.ends(SESSION) == [["cancelled"]]
    assert verdicts(stage) == ["completed / matching_response"]
    assert (stage.effects(), len(stage.requests)) == (["paid"], 1)
    assert not lock_files_of(stage.store, started.pid)
    check_record(stage, before)
    assert stage.do("resume").expect(0)["status"] == "completed"
    assert (stage.effects(), len(stage.requests)) == (["paid"], 2)


@STOPPED_BY
def test_the_second_signal_ends_the_program_at_once_and_what_it_left_is_judged_as_after_a_crash(
    stage: Stage, number: signal.Signals
) -> None:
    started = slow_run(stage)
    started.send(number)
    cancel_is_recorded(stage)
    started.send(number)
    assert started.ended().exit_code == -number
    before = stage.record
    assert before.ends(SESSION) == [[]]
    assert lock_files_of(stage.store, started.pid)
    assert stage.sleeper.is_there
    assert codes(look(stage)) == ["dangling_tool_state", "effect_may_be_running"]

    stage.sleeper.release()
    wait_until_over(stage)
    assert codes(stage.do("resume").expect(3)) == ["dangling_tool_state"]
    assert stage.record.ends(SESSION) == [["cancelled"]]
    assert (stage.effects(), len(stage.requests)) == (["paid"], 1)
    check_record(stage, before)


def test_a_run_is_cancelled_from_another_terminal_and_its_owner_ends_it(stage: Stage) -> None:
    started = slow_run(stage)
    said = stage.do("cancel").expect(0)
    assert said["result"] == "stopping"
    assert stage.do("cancel").expect(0)["result"] == "stopping"
    stage.sleeper.release()
    assert started.ended().expect(1)["status"] == "cancelled"
    before = stage.record
    assert before.ends(SESSION) == [["cancelled"]]
    assert len(before.of_session(SESSION, "run.cancel_requested.v1")) == 1
    assert (stage.effects(), len(stage.requests)) == (["paid"], 1)
    assert stage.do("cancel").expect(0)["result"] == "nothing_open"
    assert stage.record == before
    check_record(stage, before)


@pytest.mark.parametrize(("point", "effects"), [("P1", 0), ("P4", 1), ("P6", 1)])
def test_the_run_of_a_killed_owner_is_cancelled_once_and_says_what_is_known(
    stage: Stage, point: str, effects: int
) -> None:
    stage.play([step("I pay.", PAYMENT.call), step("Done.")])
    death = kill(stage, "run", "pay", at=point)
    judged = verdicts(stage)
    said = stage.do("cancel").expect(0)
    assert said["result"] == "closed"
    assert stage.record.ends(SESSION) == [["cancelled"]]
    assert stage.do("cancel").expect(0)["result"] == "nothing_open"
    check_record(stage, death.record)
    assert (len(stage.effects()), len(stage.requests)) == (effects, 1)
    if point == "P1":
        assert verdicts(stage) == ["completed / matching_response"], "closed as not executed"
    else:
        assert verdicts(stage) == judged
    parked = point == "P4"
    assert stage.look("plan").expect(3 if parked else 0)["decision"] == ("park" if parked else "continue")
