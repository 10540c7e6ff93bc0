"""Field reports: what happened is not shown, or nobody comes back to it. SPEC sections 7, 11, F11, F12, R10."""

from __future__ import annotations

import pytest

from safepoint.adapters.memory.model_provider import PlannedModel, calls, says
from safepoint.adapters.memory.tables import Failure
from safepoint.application.plan_resume import PlanRequest
from safepoint.domain.errors import StoreError, StoreUnavailable
from safepoint.domain.events.run import ContinuationStarted, RunEnded, RunStatus, Trigger
from safepoint.domain.events.tool import ToolResponded
from safepoint.domain.identifiers import SessionId
from safepoint.domain.reasons import ParkReason

from ..adapters.cli.program import PAY, READ, Program
from ..application.counted_tools import Counted
from ..crash.harness.record import read_record
from .programs import codes_in, interrupted, resume
from .resuming import ResumingProcess, SharedWorld, codes_of

P = ParkReason
ACT = calls(("act", {"n": 1}))
AUTO = PlanRequest(trigger=Trigger.AUTO)


def test_r3_040_a_session_that_could_not_be_repaired_is_reported_and_tried_again() -> None:
    """Three interrupted sessions; the store fails at the second one; a second pass comes to it again."""
    world, act = SharedWorld(), Counted()
    sessions = [SessionId(name) for name in ("s1", "s2", "s3")]
    first = ResumingProcess(world)
    heads = {}
    for session_id in sessions:
        first.events_store.fail_at(ToolResponded.topic, Failure.UNAVAILABLE)
        with pytest.raises(StoreUnavailable):
            first.runs("go", [ACT], [act.function], session_id=session_id)
        heads[session_id] = first.head(session_id)
    first.die()
    second = ResumingProcess(world)

    def scan() -> list[str]:
        report = []
        for session_id in sessions:
            owned = second.ownership.own(session_id)
            try:
                report.append(second.repair(owned).kind.value)
            except StoreError as error:
                report.append(error.code.value)
                second.ownership.keep(owned)
            else:
                second.ownership.release(owned)
            if session_id == "s1" and len(report) == 1 and report[0] == "run_closed":
                second.events_store.fail_at(RunEnded.topic, Failure.UNAVAILABLE)
        return report

    assert scan() == ["run_closed", "store_unavailable", "run_closed"]
    assert second.of(heads[sessions[1]], RunEnded) == [], "nothing is marked as done for it"
    assert scan() == ["nothing_open", "run_closed", "nothing_open"]
    assert all(len(second.of(head, RunEnded)) == 1 for head in heads.values())


@pytest.mark.parametrize("status", [RunStatus.COMPLETED, RunStatus.FAILED])
def test_r3_130_a_friendly_answer_does_not_settle_what_is_open(program: Program, status: RunStatus) -> None:
    """An interrupted run with an open call; the model only says something; its open call stays listed."""
    interrupted(program, "P4", PAY)
    program.script(
        {"text": "I do it.", "calls": [PAY]}, {"text": "Welcome back!"}, drop_after=2 if status == "failed" else None
    )
    assert program(*program.run("--session", "s1")).code == (0 if status is RunStatus.COMPLETED else 1)
    (operation,) = program("status", "--json").document["operations"]
    assert (operation["tool"], operation["verdict"]) == ("record_effect", "indeterminate")
    (listed,) = program("list", "--json").document["sessions"]
    assert (listed["state"], listed["unsettled"]) == (status.value, 1)
    assert program("status", "s1", "--fail-if-unsettled").code == 3


def test_r3_130_a_continued_run_says_by_which_run_it_was_continued(program: Program) -> None:
    interrupted(program, "P6", PAY)
    resumed = program(*resume(program), "--json").document
    first, second = program("show", "s1", "--json").document["runs"]
    assert (first["run_id"], first["continued_by"]) == (resumed["source_run_id"], resumed["run_id"])
    assert (second["run_id"], second["continued_by"]) == (resumed["run_id"], None)


def test_r3_129_an_automatic_resume_happens_once_and_a_crash_of_it_waits_for_a_person() -> None:
    """X; auto-resume creates R2; X during R2 before any step; restart."""
    world, act = SharedWorld(), Counted()
    ResumingProcess(world).runs("go", [ACT], [act.function])
    second = ResumingProcess(world)
    second.events_store.fail_at("model.step_completed.v1", Failure.UNAVAILABLE)
    with pytest.raises(StoreUnavailable):
        second.resumes([says("never recorded")], [act.function], request=AUTO)
    second.die()
    third = ResumingProcess(world)
    model = PlannedModel([says("done")])
    for _ in range(2):
        assert third.parks(model, [act.function], request=AUTO) == (P.AUTO_RESUME_SPENT,)
    assert codes_of(third.plans([act.function], request=AUTO).plan) == [P.AUTO_RESUME_SPENT]
    done = third.continues(model, [act.function])
    assert done.outcome.status is RunStatus.COMPLETED
    assert [one.trigger for one in world.store.views.continuations(done.session_id)] == ["auto", "person"]
    assert act.calls == [1]


def test_r3_129_a_claim_that_auto_resume_never_started_counts_too() -> None:
    world, act = SharedWorld(), Counted()
    ResumingProcess(world).runs("go", [ACT], [act.function])
    second = ResumingProcess(world)
    for _ in range(2):  # the attempt that made the claim tries once more by itself
        second.events_store.fail_at(ContinuationStarted.topic, Failure.UNAVAILABLE)
    with pytest.raises(StoreUnavailable):
        second.resumes([], [act.function], request=AUTO)
    second.die()
    third = ResumingProcess(world)
    assert third.parks([], [act.function], request=AUTO) == (P.AUTO_RESUME_SPENT,)
    assert third.continues([says("done")], [act.function]).outcome.status is RunStatus.COMPLETED


def test_r3_156_a_damaged_session_keeps_no_other_run_from_its_end(program: Program) -> None:
    """S1 is damaged while S2 is at work; S2 still ends."""
    program.script({"text": "A text to be damaged."})
    assert program.process(*program.run("--session", "s1")).code == 0
    program.script({"text": "I look.", "calls": [READ] * 25}, {"text": "Seen."})
    assert program.process(*program.run("--session", "s0")).code == 0  # the anchor vouches for the newest facts itself
    content = program.store.read_bytes()
    assert content.count(b"A text to be damaged.") == 1
    program.store.write_bytes(content.replace(b"A text to be damaged.", b"A text that IS damaged"[:21]))
    program.script({"text": "Hello."})
    ran = program(*program.run("--session", "s2"))
    assert ran.code == 0, ran.err
    assert read_record(program.store).ends("s2") == [["completed"]]
    states = {one["session_id"]: (one["state"], one["code"]) for one in program("list", "--json").document["sessions"]}
    assert states["s1"] == ("unreadable", "runtime_ledger_unreadable")
    assert states["s2"] == states["s0"] == ("completed", None)
    ran = program(*program.run("--session", "s1"), "--json")
    assert ran.code == 4
    assert codes_in(program("plan", "s1", "--json")) == ["runtime_ledger_unreadable"]
