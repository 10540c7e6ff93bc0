"""Ownership and "over", with real processes: what is not over is neither settled nor continued past. SPEC section 15.

Each trial asks for the same refusals through the real program, and for the way out once the last process has ended.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from .harness.program import KILLED, Ended, Hooks, Started, wait_for
from .harness.sleeper import PROGRAM
from .harness.stage import SESSION, Stage, call, step
from .harness.tools import PAYMENT
from .harness.trial import check_record, codes, wait_until_over

DETACHED: Final = (
    f"setsid -f sh {PROGRAM} > /dev/null 2>&1 < /dev/null; while [ ! -e sleeper.pids ]; do sleep 0.01; done; sleep 60"
)
INSTANTS_MAX: Final = 200
MAY_RUN: Final = ["dangling_tool_state", "effect_may_be_running"]


def pay(stage: Stage, *, stop: str = "P3") -> Started:
    """An owner that stops itself in the middle of a payment."""
    stage.play([step("I pay.", PAYMENT.call), step("Done.")])
    owner = stage.start("run", "pay", hooks=Hooks(stop=stop))
    owner.stopped()
    return owner


def plan(stage: Stage) -> dict[str, Any]:
    """What a resume would do now."""
    return stage.look("plan").document


def operation(stage: Stage) -> str:
    """The only operation of the session's first run."""
    (dispatched,) = stage.record.of_stream(f"run:{stage.record.run_ids(SESSION)[0]}", "tool.dispatched.v1")
    return str(dispatched["operation_id"])


def say(stage: Stage, *words: str) -> Ended:
    """Settle that operation."""
    arguments = ("settle", operation(stage), *words, "--by", "ada", "--note", "looked", "--store", str(stage.store))
    return stage.program.run(*arguments, "--json")


def refuses_everything(stage: Stage, *, could_not_look: bool = False) -> None:
    """Nothing goes past an operation that is not over, and nothing is written of it."""
    before = stage.record
    words = [("--completed", "paid"), ("--not-executed",), *([] if could_not_look else [("--declare-over",)])]
    for said in words:
        assert say(stage, *said).expect(3)["code"] == "operation_not_over"
    assert set(MAY_RUN) <= set(codes(stage.do("resume").expect(3)))
    after = stage.record
    assert after.begins_with(before)
    assert not [fact for run in after.run_ids(SESSION) for fact in after.of_stream(f"run:{run}", "tool.attested.v1")]
    assert not [fact for run in after.run_ids(SESSION) for fact in after.of_stream(f"run:{run}", "run.claimed.v1")]


def settled_and_continued(stage: Stage, effects: int) -> None:
    """The way out: a person says what happened, and the run is continued to its end; nothing runs again."""
    before = stage.record
    word = ("--completed", "paid") if effects else ("--not-executed",)
    assert say(stage, *word).expect(0)["statement"] == word[0].removeprefix("--").replace("-", "_")
    assert stage.do("resume").expect(0)["status"] == "completed"
    assert len(stage.effects()) == effects
    check_record(stage, before)


def test_an_orphaned_grandchild_in_a_session_of_its_own_keeps_its_operation_from_being_over(stage: Stage) -> None:
    stage.play([step("I do it.", call("run_shell", command=DETACHED)), step("Done.")])
    owner = stage.start("run", "do it")
    wait_for("the tool does not start", lambda: stage.sleeper.is_there)
    owner.send(signal.SIGKILL)
    assert owner.ended().exit_code == KILLED
    seen = plan(stage)
    assert codes(seen) == MAY_RUN
    supervisor, *others = seen["operations"][0]["processes"]
    assert stage.sleeper.pid in [process["pid"] for process in others]
    refuses_everything(stage)
    assert stage.effects() == []

    stage.sleeper.release()
    stage.sleeper.ended()
    assert stage.effects() == ["paid"]
    os.kill(supervisor["pid"], signal.SIGTERM)  # ends the rest: the shell that still sleeps
    wait_until_over(stage)
    settled_and_continued(stage, 1)


def test_r3_075_a_stopped_owner_that_was_fenced_and_goes_on_finishes_its_effect_and_records_nothing(
    stage: Stage,
) -> None:
    owner = pay(stage)
    taken = stage.do("takeover", "--fence-only").expect(0)
    assert (taken["result"], taken["owner_pid"]) == ("forced", owner.pid)
    fenced = stage.record
    assert fenced.ends(SESSION) == [["failed"]]
    assert codes(plan(stage)) == MAY_RUN
    refuses_everything(stage)
    assert stage.effects() == []

    owner.go_on()
    stale = owner.ended()
    assert stale.expect(5)["code"] == "owner_fenced"
    assert "Another process has taken this session over" in stale.err
    assert stage.record == fenced
    assert stage.effects() == ["paid"]
    assert codes(plan(stage)) == ["dangling_tool_state"]
    settled_and_continued(stage, 1)


@pytest.mark.parametrize("point", ["P0", "P1", "P2"])
def test_a_fenced_owner_starts_no_tool_that_it_had_not_started(stage: Stage, point: str) -> None:
    owner = pay(stage, stop=point)
    stage.do("takeover", "--fence-only").expect(0)
    owner.go_on()
    assert owner.ended().exit_code == 5
    dispatched = point == "P2"
    assert len(stage.effects()) == int(dispatched), "after T1 is durable the effect may happen"
    if dispatched:
        settled_and_continued(stage, 1)
    else:
        before = stage.record
        assert stage.do("resume").expect(0)["status"] == "completed"
        assert stage.effects() == (["paid"] if point == "P0" else []), "P1: the call was closed as not executed"
        check_record(stage, before)


def test_a_takeover_ends_a_stopped_owner_before_its_effect(stage: Stage) -> None:
    owner = pay(stage)
    taken = stage.do("takeover").expect(0)
    assert (taken["result"], taken["owner_pid"]) == ("ended", owner.pid)
    assert owner.ended().exit_code == KILLED
    assert codes(plan(stage)) == ["dangling_tool_state"]
    settled_and_continued(stage, 0)


def test_the_death_of_a_second_owner_says_nothing_of_one_that_was_fenced_before(stage: Stage) -> None:
    owner = pay(stage)
    stage.do("takeover", "--fence-only").expect(0)
    stage.play([step("I pay.", PAYMENT.call), step("I look.", call("list_files")), step("Done.")])
    second = stage.start("run", "look", hooks=Hooks(kill="P3"))
    assert second.ended().exit_code == KILLED
    assert stage.do("takeover").expect(0)["result"] == "after_death"
    assert say(stage, "--not-executed").expect(3)["code"] == "operation_not_over"
    assert stage.effects() == []
    owner.send(signal.SIGKILL)
    owner.ended()
    said = say(stage, "--not-executed").expect(0)
    assert (said["recorded"], said["told_later"]) == ("in_run", True)
    assert stage.look("verify").expect(0)["sound"]


def test_where_a_lock_file_was_deleted_nobody_can_look_until_a_person_says_what_is_so(stage: Stage) -> None:
    owner = pay(stage)
    owner.send(signal.SIGKILL)
    owner.ended()
    for lock in Path(f"{stage.store}.locks").glob("*.lock"):
        lock.unlink()
    parked = stage.do("resume").expect(3)
    assert codes(parked)[0] == "continuation_authority_unavailable"
    assert any(f"takeover {SESSION} --fence-only" in one["command"] for one in parked["commands"])
    assert stage.do("takeover").expect(5)["code"] == "takeover_refused"
    assert stage.do("takeover", "--fence-only").expect(0)["repaired"]["status"] == "failed"
    refuses_everything(stage, could_not_look=True)
    assert say(stage, "--declare-over").expect(0)["statement"] == "over"
    assert codes(plan(stage)) == ["dangling_tool_state"]
    settled_and_continued(stage, 0)


@pytest.mark.parametrize("mode", [(), ("--fence-only",)], ids=["ended", "fenced"])
def test_a_takeover_killed_at_any_instant_is_finished_by_the_next_one(
    forked_stage: Stage, mode: tuple[str, ...]
) -> None:
    stage = forked_stage
    owner = pay(stage)
    before = stage.record
    for nth in range(1, INSTANTS_MAX):
        ended = stage.do("takeover", *mode, hooks=Hooks(kill=f"random:{nth}"))
        after = stage.record
        assert after.begins_with(before)
        assert after.ends(SESSION) in ([[]], [["failed"]])
        if ended.exit_code != KILLED:
            break
    assert ended.expect(0)["result"] in {"after_death", "unowned"}
    closed = stage.record
    assert closed.ends(SESSION) == [["failed"]]
    owner.go_on()  # where it was not ended
    assert owner.ended().exit_code == (5 if mode else KILLED)
    assert stage.record == closed
    settled_and_continued(stage, 1 if mode else 0)


# One store by several names, and two that look alike


def by_symbolic_link(stage: Stage) -> Path:
    alias = stage.folder / "elsewhere" / "alias.sqlite"
    alias.parent.mkdir()
    alias.symlink_to(stage.store)
    return alias


def by_a_linked_folder(stage: Stage) -> Path:
    (stage.folder / "elsewhere").symlink_to(stage.folder)
    return stage.folder / "elsewhere" / stage.store.name


def by_relative_path(stage: Stage) -> Path:
    return Path(os.path.relpath(stage.store, stage.folder))


@pytest.mark.parametrize("alias_of", [by_symbolic_link, by_a_linked_folder, by_relative_path])
def test_a_store_has_one_owner_by_whatever_name_it_is_reached(stage: Stage, alias_of: Callable[[Stage], Path]) -> None:
    owner, alias = pay(stage), alias_of(stage)
    before = stage.record

    def at_alias(verb: str, *more: str) -> Ended:
        return stage.program.run(verb, *more, "--session", SESSION, "--store", str(alias), "--json")

    busy = at_alias("run", "me too", "--script", str(stage.script), "--workspace", str(stage.workspace)).expect(5)
    assert (busy["code"], str(owner.pid) in busy["message"]) == ("session_busy", True)
    assert at_alias("plan", "--script", str(stage.script)).expect(5)["reasons"][0]["detail"]["pid"] == owner.pid
    assert stage.record == before
    owner.send(signal.SIGKILL)
    owner.ended()
    assert at_alias("takeover").expect(0)["result"] == "after_death"
    assert codes(plan(stage)) == ["dangling_tool_state"]
    settled_and_continued(stage, 0)


def test_a_hard_link_is_another_name_without_the_anchor_and_is_not_written(stage: Stage) -> None:
    owner = pay(stage)
    before = stage.record
    alias = stage.folder / "alias.sqlite"
    alias.hardlink_to(stage.store)
    arguments = ("--script", str(stage.script), "--workspace", str(stage.workspace), "--store", str(alias), "--json")
    refused = stage.program.run("run", "me too", "--session", SESSION, *arguments)
    assert refused.exit_code in {3, 4}, refused
    assert stage.record == before
    owner.go_on()
    assert owner.ended().expect(0)["status"] == "completed"
    assert stage.effects() == ["paid"]


def test_a_store_that_is_mounted_at_another_place_has_the_same_owners(stage: Stage) -> None:
    mounted = stage.folder / "mounted"
    mounted.mkdir()
    owner = pay(stage)
    before = stage.record
    at = f"mount --bind {stage.folder} {mounted} "
    if subprocess.run(["unshare", "-rm", "sh", "-c", at], capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine lets nobody mount; locks are those of the file, as in the tests beside this one")
    command = f"{sys.executable} -m safepoint plan --session {SESSION} --store {mounted}/{stage.store.name}"
    seen = subprocess.run(
        ["unshare", "-rm", "sh", "-c", f"mount --bind {stage.folder} {mounted} && exec {command} --json"],
        capture_output=True,
        text=True,
        check=False,
        cwd=stage.folder,
    )
    told = Ended((command,), seen.returncode, seen.stdout, seen.stderr).expect(5)
    assert (codes(told)[0], told["reasons"][0]["detail"]["pid"]) == ("session_busy", owner.pid)
    assert stage.record == before


def copied(stage: Stage) -> Path:
    """The store's files at another place, without its locks."""
    folder = stage.folder / "copy"
    folder.mkdir()
    for file in stage.folder.glob(f"{stage.store.name}*"):
        if file.is_file():
            shutil.copy(file, folder / file.name)
    return folder / stage.store.name


def test_a_copied_store_is_another_store_whose_owners_nobody_can_look_at(stage: Stage) -> None:
    owner = pay(stage)
    copy = copied(stage)
    before = stage.record

    def at_copy(verb: str, *more: str) -> Ended:
        session = () if verb in {"adopt", "settle"} else ("--session", SESSION)
        return stage.program.run(verb, *more, *session, "--store", str(copy), "--json")

    turn = ("run", "me too", "--script", str(stage.script), "--workspace", str(stage.workspace))
    for verb in (turn, ("takeover",), ("takeover", "--fence-only"), ("cancel",)):
        refused = at_copy(*verb)
        assert refused.exit_code in {3, 5}, refused
    at_copy("adopt", "--by", "ada", "--note", "the other machine is gone").expect(0)
    assert at_copy(*turn).expect(5)["code"] == "session_busy"
    assert at_copy("takeover").expect(5)["code"] == "takeover_refused"
    assert at_copy("takeover", "--fence-only").expect(0)["result"] == "forced"
    word = ("settle", operation(stage), "--not-executed", "--by", "ada", "--note", "looked")
    assert at_copy(*word).expect(3)["code"] == "operation_not_over"
    assert owner.process.poll() is None
    assert stage.record == before
    owner.go_on()
    assert owner.ended().expect(0)["status"] == "completed"
    assert stage.effects() == ["paid"]
