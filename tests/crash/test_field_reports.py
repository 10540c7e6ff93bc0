"""Situations that users of comparable systems met, driven through the program; the reports' ids stand in the names."""

from __future__ import annotations

import os
import pty
import re
import shlex
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from .harness.fork_server import ForkServer
from .harness.instants import nth_of
from .harness.mischief import fenced
from .harness.program import Hooks, wait_for
from .harness.sleeper import START
from .harness.stage import SESSION, Stage, call, step
from .harness.tools import CONFIG, NEW, OLD, PAYMENT
from .harness.trial import check_record, codes, kill, look, verdicts, wait_until_over, watch_death

PAID = (step("I pay.", PAYMENT.call), step("Done."))
INDETERMINATE = "indeterminate / dispatch_without_response"


def test_r3_023_five_resumes_park_with_the_same_reason_once_and_write_nothing_more(stage: Stage) -> None:
    stage.play([step("I write.", call("write_file", path=CONFIG, content=NEW)), step("Done.")])
    kill(stage, "run", "write", at="P3")
    first = stage.do("resume").expect(3)
    record = stage.record
    for _ in range(4):
        again = stage.do("resume").expect(3)
        assert again["reasons"] == first["reasons"]
        assert codes(again) == ["dangling_tool_state"]
    assert stage.record == record
    assert len(record.of_session(SESSION, "tool.dispatched.v1")) == 1
    assert (stage.workspace / CONFIG).read_text() == OLD


def test_r3_030_a_kill_between_a_fact_and_its_projection_leaves_both_or_none(
    forked_stage: Stage, tmp_path: Path, forks: ForkServer
) -> None:
    forked_stage.play(PAID)
    hits = forked_stage.rehearse("run", "pay")
    first, last = nth_of(hits, "P0") + 1, nth_of(hits, "P1")
    committed = nth_of(hits, "store.after_commit", after="P0")
    assert last - first >= 6, "a transaction has instants before, between and after its statements"
    for nth in range(first, last):
        check_kill_in_a_step(Stage.in_folder(tmp_path / str(nth), forks), nth, kept=nth >= committed)


def check_kill_in_a_step(stage: Stage, nth: int, *, kept: bool) -> None:
    """The call and its projection are both there, or neither; the session's head follows from the facts."""
    stage.play(PAID)
    death = kill(stage, "run", "pay", at=f"random:{nth}")
    assert bool(death.record.of_session(SESSION, "tool.called.v1")) == kept
    assert len(verdicts(stage)) == int(kept)
    assert stage.look("verify").expect(0)["sound"]
    assert stage.do("resume").expect(0)["status"] == "completed"
    check_record(stage, death.record)


def test_r3_030_a_projection_that_was_left_behind_is_not_believed_over_the_facts(stage: Stage) -> None:
    stage.play(PAID)
    death = kill(stage, "run", "pay", at="P4")
    with closing(sqlite3.connect(stage.store)) as other:
        tampered = other.execute(
            "INSERT INTO operation_outcomes (operation_id, outcome_event_id, effect)"
            " SELECT id, 'made up', 'done' FROM unique_ids WHERE kind = 'operation'"
        ).rowcount
        other.commit()
    assert tampered == 1
    assert verdicts(stage) == [INDETERMINATE]
    assert codes(look(stage)) == ["dangling_tool_state"]
    assert codes(stage.do("resume").expect(3)) == ["dangling_tool_state"]
    assert stage.record.begins_with(death.record)
    assert stage.look("verify").document["projection_differences"] == 1


@contextmanager
def terminal() -> Iterator[int]:
    """A terminal at which nobody answers."""
    master, slave = pty.openpty()
    try:
        yield slave
    finally:
        os.close(slave)
        os.close(master)


def test_r3_034_a_finished_sibling_of_a_call_that_waits_for_a_person_is_not_run_again(stage: Stage) -> None:
    stage.play([step("Both.", PAYMENT.call, call("write_file", path=CONFIG, content=NEW)), step("Done.")])
    arguments = stage.arguments("run", "do both", "--ask", "--allow", "record_effect")
    with terminal() as stdin:
        started = stage.program.start(*arguments, stdin=stdin)
        wait_for("nobody is asked", lambda: stage.record.of_session(SESSION, "permission.requested.v1"))
        wait_for("the sibling is not answered", lambda: stage.record.of_session(SESSION, "tool.responded.v1"))
        started.send(signal.SIGKILL)
        death = watch_death(stage, started)
    assert verdicts(stage) == [
        "completed / matching_response",
        "definitely_not_dispatched / new_protocol_before_dispatch",
    ]
    assert codes(look(stage)) == ["pending_permission"]
    assert codes(stage.do("resume").expect(3)) == ["pending_permission"]
    resumed = stage.do("resume", "--drop-permissions").expect(0)
    assert resumed["status"] == "completed"
    assert stage.effects() == ["paid"]
    assert (stage.workspace / CONFIG).read_text() == OLD
    assert [fact["tool_name"] for fact in stage.record.of_session(SESSION, "tool.dispatched.v1")] == ["record_effect"]
    assert stage.requests[-1]["calls"] == stage.requests[-1]["results"] == ["call_1_1", "call_1_2"]
    check_record(stage, death.record)


def test_r3_041_between_two_finished_steps_and_the_next_request_a_resume_makes_a_new_run_at_once(stage: Stage) -> None:
    read = call("read_file", path=CONFIG)
    stage.play([step("I pay.", PAYMENT.call), step("I read.", read), step("Done.")])
    death = kill(stage, "run", "pay", at="P7:2")
    assert look(stage)["decision"] == "continue"
    resumed = stage.do("resume").expect(0)
    assert resumed["run_id"] not in death.record.run_ids(SESSION)
    assert len(stage.record.run(resumed["run_id"])) >= 1
    assert (stage.effects(), len(stage.requests)) == (["paid"], 3)
    check_record(stage, death.record)


def test_r3_043_an_order_whose_answer_was_lost_is_not_placed_again(stage: Stage) -> None:
    stage.play([step("I order.", PAYMENT.call), step("I order.", PAYMENT.call), step("Done.")])
    death = kill(stage, "run", "order", at="tool.record_effect.after_effect")
    for _ in range(3):
        assert codes(stage.do("resume").expect(3)) == ["dangling_tool_state"]
    assert verdicts(stage) == [INDETERMINATE]
    assert len(stage.record.of_session(SESSION, "tool.dispatched.v1")) == 1
    assert stage.effects() == ["paid"]
    check_record(stage, death.record)


def test_r3_075_a_paused_owner_that_lost_its_session_writes_nothing_when_it_goes_on(stage: Stage) -> None:
    stage.play(PAID)
    started = stage.start("run", "pay", hooks=Hooks(stop="P4"))
    started.stopped()
    before = stage.record
    with fenced(stage, started):
        started.go_on()
        assert started.ended().expect(5)["code"] == "owner_fenced"
        assert stage.record == before
    assert codes(stage.do("resume").expect(3)) == ["dangling_tool_state"]
    for facts in stage.record.streams.values():
        assert [fact.sequence for fact in facts] == list(range(1, len(facts) + 1))
    check_record(stage, before)


def test_r3_111_a_step_that_was_not_completed_is_asked_for_again_with_the_same_history(stage: Stage) -> None:
    stage.play([step("I read.", call("read_file", path=CONFIG)), *PAID])
    kill(stage, "run", "pay", at="P0:2")
    stage.do("resume").expect(0)
    lost, again = stage.requests[1:3]
    assert [lost[name] for name in ("step", "calls", "results")] == [
        again[name] for name in ("step", "calls", "results")
    ]
    assert stage.effects() == ["paid"]


def test_r3_122_a_living_background_process_is_named_and_its_end_is_recorded_once(stage: Stage) -> None:
    stage.play([step("I start it.", call("run_shell", command=START)), step("Done.")])
    death = kill(stage, "run", "start", at="P7")
    pid = stage.sleeper.pid
    parked = stage.do("resume").expect(3)
    assert codes(parked) == ["effect_may_be_running", "background_operation_pending"]
    (running,) = [reason["detail"] for reason in parked["reasons"] if reason["code"] == "effect_may_be_running"]
    assert pid in running["pids"]
    assert len(running["pids"]) == len(running["processes"])
    assert running["tool"] == "run_shell"
    commands = [way["command"] for way in parked["commands"]]
    assert any(command.startswith("safepoint resume") for command in commands)
    assert f"kill {running['pids'][0]}" in commands

    stage.sleeper.release()
    stage.sleeper.ended()
    wait_until_over(stage)
    assert stage.do("resume").expect(0)["status"] == "completed"
    stage.do("resume").expect(3)
    assert len(stage.record.of_session(SESSION, "background.settled.v1")) == 1
    assert stage.effects() == ["paid"]
    check_record(stage, death.record)


def test_r3_126_a_live_handle_and_an_unsettled_write_to_it_are_both_listed(stage: Stage) -> None:
    stage.play(
        [step("I start it.", call("run_shell", command=START)), step("I write to it.", PAYMENT.call), step("Done.")]
    )
    kill(stage, "run", "start", at="P4:2")
    assert verdicts(stage) == ["completed / matching_response", INDETERMINATE]
    parked = stage.do("resume").expect(3)
    assert codes(parked) == ["dangling_tool_state", "effect_may_be_running", "background_operation_pending"]
    assert parked["reasons"][0]["detail"]["tool"] == "record_effect"
    assert parked["reasons"][1]["detail"]["tool"] == "run_shell"


@pytest.mark.parametrize("place", ["store.after_commit", "P0", "P2", "P6", "P8"])
def test_r3_168_an_id_that_was_printed_is_found_again_whenever_the_program_died(stage: Stage, place: str) -> None:
    stage.play(PAID)
    arguments = [one for one in stage.arguments("run", "pay", session="") if one not in {"--session", ""}]
    started = stage.program.start(*arguments, hooks=Hooks(kill=place))
    death = watch_death(stage, started)
    printed = re.search(r"Session (\S+), run (\S+)", death.ended.err)
    (stream,) = [name for name in death.record.streams if name.startswith("session:")]
    if place != "store.after_commit":
        assert printed is not None
    if printed is not None:
        session, run = printed.groups()
        assert (f"session:{session}", [run]) == (stream, death.record.run_ids(session))
        assert stage.do("resume", session=session).exit_code in {0, 3}


def test_r3_168_the_command_that_is_printed_at_the_end_resumes(stage: Stage) -> None:
    stage.play([step("I wait.", call("run_shell", command=f"{START}; wait")), step("Done.")])
    started = stage.start("run", "wait")
    wait_for("the tool does not start", lambda: stage.sleeper.is_there)
    started.send(signal.SIGINT)
    stage.sleeper.release()
    ended = started.ended()
    assert ended.expect(130)["resumable"]
    (command,) = [way["command"] for way in ended.document["commands"]]
    assert command in ended.err
    program, *arguments = shlex.split(command)
    assert program == "safepoint"
    assert stage.program.run(*arguments, "--json").expect(0)["status"] == "completed"


def test_r3_170_a_start_that_is_killed_while_it_closes_what_crashed_leaves_one_interrupted_run(
    stage: Stage, tmp_path: Path
) -> None:
    rehearsal = Stage.in_folder(tmp_path / "rehearsal")
    for one in (rehearsal, stage):
        one.play(PAID)
        death = kill(one, "run", "pay", at="P6")
    closed = nth_of(rehearsal.rehearse("resume"), "store.after_commit")
    for _ in range(3):
        kill(stage, "resume", at=f"random:{closed - 1}")
        assert [one["state"] for one in listed(stage)] == ["interrupted"]
    kill(stage, "resume", at=f"random:{closed}")
    assert [one["state"] for one in listed(stage)] == ["failed"]
    assert stage.record.ends(SESSION) == [["failed"]]
    resumed = stage.do("resume")
    assert resumed.expect(0)["repaired"] is None, "a crash is told once"
    assert stage.record.ends(SESSION) == [["failed"], ["completed"]]
    check_record(stage, death.record)


def listed(stage: Stage) -> list[dict[str, object]]:
    """The sessions of the store."""
    sessions: list[dict[str, object]] = stage.program.look("list", "--store", str(stage.store), "--json").document[
        "sessions"
    ]
    return sessions
