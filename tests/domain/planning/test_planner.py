"""Every gate of SPEC section 13, in its order: what lets a run go on, and what keeps it with which code."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from safepoint.domain.boundary import boundary_digest
from safepoint.domain.events.model import UserMessage
from safepoint.domain.events.outside import (
    BackgroundSettled,
    BackgroundStarted,
    JobKind,
    JobStatus,
    PermissionClosed,
    PermissionDecided,
    PermissionRequested,
    WorkspaceRenewed,
)
from safepoint.domain.events.run import RunStatus, Trigger
from safepoint.domain.identifiers import ClaimId, OperationId, RunId
from safepoint.domain.planning.catalog import catalog_digest
from safepoint.domain.planning.facts import (
    Candidate,
    Drift,
    ExistingContinuation,
    PlanFacts,
    Standing,
    Unreadable,
)
from safepoint.domain.planning.observations import (
    Authority,
    Busy,
    CheckpointFacts,
    ModelWindow,
    NotOver,
    RunningProcess,
    WorkspaceFound,
    WorkspaceUnknown,
)
from safepoint.domain.planning.outcome import Continue, NoteCode, Park, Plan
from safepoint.domain.planning.planner import GATES, plan
from safepoint.domain.reasons import ParkReason
from safepoint.domain.replay.context import ContextHistory, project_context
from safepoint.domain.replay.history import PROJECTION_VERSION
from safepoint.domain.replay.segment import Segment

from ..replay.story import DIGEST, Story, call, profile, say, shape
from .situation import FRESH, WORKSPACE, continues, facts_of, interrupted, parks

P = ParkReason


def notes(made: Plan) -> dict[str, Any]:
    return {note.code.value: note.detail for note in made.notes}


def only(facts: PlanFacts, code: ParkReason) -> dict[str, Any]:
    """The one reason that a plan parks with."""
    (reason,) = parks(facts).reasons
    assert reason.code is code
    return dict(reason.detail)


def test_a_plan_to_continue_freezes_all_that_it_saw() -> None:
    run = interrupted()
    made = continues(facts_of(run))
    assert made.segments == (run.ref(),)
    assert made.source == run.ref()
    assert made.boundary_digest == boundary_digest([run.ref()])
    assert shape(made.replay.items) == ["user U", "call A", "result A"]
    assert made.replay.version == PROJECTION_VERSION
    assert (made.claim_id, made.target.run_id, made.target.turn_id, made.target.invocation_id) == FRESH
    assert (made.target.cwd, made.target.workspace_identity) == ("/w", "workspace:v1:w")
    assert made.target.profile == profile()
    assert made.safety.terminal_event_id == run.events[-1].event_id
    assert made.safety.catalog_digest == catalog_digest(reversed(profile().tools))
    assert (made.accepted_drift, made.told, made.notes) == ((), (), ())


def test_the_same_facts_give_the_same_plan() -> None:
    assert plan(facts_of(interrupted())) == plan(facts_of(interrupted()))
    broken = facts_of(interrupted(), feature_enabled=False, profile=None)
    assert plan(broken) == plan(broken)


# ---- 1 something to resume ------------------------------------------------------------------------------------------


def test_a_switched_off_feature_parks() -> None:
    only(facts_of(interrupted(), feature_enabled=False), P.RESUME_FEATURE_DISABLED)


def test_a_session_without_an_interrupted_run_has_no_candidate() -> None:
    facts = replace(facts_of(interrupted()), candidate=None, lineage=())
    only(facts, P.RESUME_CANDIDATE_MISSING)


@pytest.mark.parametrize(
    ("candidate", "trigger", "why"),
    [
        (Candidate(RunId("r1"), RunStatus.COMPLETED, RunId("r1")), Trigger.PERSON, "completed"),
        (Candidate(RunId("r1"), RunStatus.FAILED, RunId("r1"), abandoned=True), Trigger.PERSON, "abandoned"),
        (Candidate(RunId("r1"), RunStatus.CANCELLED, RunId("r1")), Trigger.AUTO, "cancelled_by_a_person"),
    ],
)
def test_what_has_nothing_to_resume_says_why(candidate: Candidate, trigger: Trigger, why: str) -> None:
    detail = only(facts_of(interrupted(), candidate=candidate, trigger=trigger), P.RESUME_CANDIDATE_MISSING)
    assert detail["why"] == why


def test_a_person_may_resume_what_a_person_cancelled() -> None:
    run = Story("r1").user("U").step(call("A")).run_tool("A").end(RunStatus.CANCELLED)
    continues(facts_of(run))


def test_a_run_behind_the_head_names_its_descendant() -> None:
    candidate = Candidate(RunId("r1"), RunStatus.FAILED, RunId("r9"))
    assert only(facts_of(interrupted(), candidate=candidate), P.SOURCE_SUPERSEDED)["descendant"] == "r9"


def test_a_session_that_somebody_works_on_is_busy() -> None:
    assert only(facts_of(interrupted(), busy=Busy(4711)), P.SESSION_BUSY)["pid"] == 4711


# ---- 2 it can be read and believed ----------------------------------------------------------------------------------


def test_could_not_look_is_not_the_same_as_not_there() -> None:
    unreadable = Unreadable(P.STORE_UNAVAILABLE, RunId("r1"), "disk I/O error")
    facts = replace(facts_of(interrupted()), candidate=None, lineage=(), session_unreadable=unreadable)
    assert only(facts, P.STORE_UNAVAILABLE)["detail"] == "disk I/O error"


@pytest.mark.parametrize("code", [P.STORE_UNAVAILABLE, P.SOURCE_RUN_UNREADABLE, P.RUNTIME_LEDGER_UNREADABLE])
def test_a_source_that_cannot_be_read_parks_with_what_is_known(code: ParkReason) -> None:
    facts = facts_of(interrupted(), lineage=(Unreadable(code, RunId("r1"), "bytes", 3),))
    detail = only(facts, code)
    assert (detail["run"], detail["sequence"]) == ("r1", 3)


def test_a_run_without_events_parks() -> None:
    only(facts_of(interrupted(), lineage=()), P.RUNTIME_LEDGER_EMPTY)


def test_a_run_that_begins_with_no_opening_event_is_unreadable() -> None:
    run = interrupted()
    del run.events[0]
    assert P.SOURCE_RUN_UNREADABLE in parks(facts_of(run)).codes


def test_a_store_behind_its_anchor_parks() -> None:
    only(facts_of(interrupted(), behind_anchor=True), P.LEDGER_BEHIND_ANCHOR)


def test_a_foreign_run_is_continued_only_knowingly() -> None:
    assert only(facts_of(interrupted(), foreign=True), P.FOREIGN_RUN_NOT_ADOPTED)["run"] == "r1"
    made = continues(facts_of(interrupted(), foreign=True, adopt=True))
    assert notes(made) == {NoteCode.FOREIGN_ADOPTED: {"run": "r1"}}


def test_another_high_water_than_the_caller_saw_parks_with_both() -> None:
    detail = only(facts_of(interrupted(), expected_high_water=5), P.RUNTIME_OFFSET_MISMATCH)
    assert (detail["expected"], detail["found"]) == (5, 7)
    continues(facts_of(interrupted(), expected_high_water=7))


def test_more_than_one_execution_identity_parks() -> None:
    run = interrupted()
    last = run.events[-1]
    run.events[-1] = last.model_copy(update={"turn_id": "another"})
    assert P.RUNTIME_IDENTITY_MISMATCH in parks(facts_of(run)).codes
    run.events[-1] = last.model_copy(update={"turn_id": "another", "invocation_id": "another"})
    assert P.RUNTIME_IDENTITY_MISMATCH in parks(facts_of(run)).codes


def test_a_protocol_marker_that_is_not_in_the_first_event_parks() -> None:
    run = interrupted()
    run.events.insert(2, run.events[0].model_copy(update={"event_id": "again"}))
    assert P.PROTOCOL_MARKER_INVALID in parks(facts_of(run)).codes


def test_no_or_more_than_one_terminal_event_parks() -> None:
    none = Story("r1").user("U").step(call("A")).run_tool("A")
    assert only(facts_of(none), P.TERMINAL_REPAIR_FAILED)["terminal_events"] == 0
    assert P.TERMINAL_REPAIR_FAILED in parks(facts_of(interrupted().end())).codes


def test_an_ordinary_event_after_the_terminal_one_parks() -> None:
    run = interrupted().write(UserMessage, text="too late")
    assert parks(facts_of(run)).codes == (P.TERMINAL_REPAIR_FAILED,)


# ---- 3 nobody continues it already ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("standing", "code"),
    [
        (Standing.UNSTARTED, P.CONTINUATION_CLAIM_REPAIR_REQUIRED),
        (Standing.STARTED, P.CONTINUATION_STARTED_INDETERMINATE),
        (Standing.STARTED_BY_THE_DEAD, P.CONTINUATION_ALREADY_EXISTS),
        (Standing.ENDED, P.CONTINUATION_ALREADY_EXISTS),
    ],
)
def test_a_boundary_that_is_claimed_parks_and_names_the_descendant(standing: Standing, code: ParkReason) -> None:
    existing = ExistingContinuation(ClaimId("c"), RunId("r2"), standing)
    assert only(facts_of(interrupted(), existing=existing), code)["descendant"] == "r2"


@pytest.mark.parametrize(
    ("authority", "code"),
    [
        (Authority.FENCED, P.OWNER_FENCED),
        (Authority.COULD_NOT_LOOK, P.CONTINUATION_AUTHORITY_UNAVAILABLE),
    ],
)
def test_who_may_not_write_the_session_does_not_continue_it(authority: Authority, code: ParkReason) -> None:
    only(facts_of(interrupted(), authority=authority), code)


# ---- 4 nothing is undecided -----------------------------------------------------------------------------------------


def test_a_dispatched_call_without_outcome_parks_and_is_named() -> None:
    run = Story("r1").user("U").step(call("A", tool="run_shell")).dispatch("A").end()
    detail = only(facts_of(run), P.DANGLING_TOOL_STATE)
    assert (detail["call"], detail["tool"], detail["operation"]) == ("A", "run_shell", "op-r1-A")
    assert (detail["verdict"], detail["reason"]) == ("indeterminate", "dispatch_without_response")


def test_a_parked_operation_parks_the_run() -> None:
    run = Story("r1").user("U").step(call("A")).dispatch("A").end().park("A")
    assert only(facts_of(run), P.TOOL_RECOVERY_PARKED)["reason"] == "contract_forbids_recovery"


def test_corruption_parks_with_the_issue() -> None:
    run = Story("r1").user("U").step(call("A")).dispatch("A").outcome("A").outcome("A").end()
    assert only(facts_of(run), P.TOOL_RECOVERY_CORRUPTION)["reason"] == "duplicate_response"


def test_corruption_that_is_of_no_call_parks_too() -> None:
    run = Story("r1").user("U").user("V", steering=True).step(call("A")).run_tool("A").end()
    run.events[2] = run.events[2].model_copy(update={"event_id": run.events[1].event_id})
    detail = only(facts_of(run), P.TOOL_RECOVERY_CORRUPTION)
    assert (detail["reason"], detail["sequence"]) == ("duplicate_event_id", 3)


def test_an_operation_that_may_still_run_parks_with_its_processes() -> None:
    run = Story("r1").user("U").step(call("A")).dispatch("A").end()
    running = NotOver(OperationId("op-r1-A"), False, (RunningProcess(42, "sleep"),))
    made = parks(facts_of(run, not_over=(running,)))
    assert made.codes == (P.DANGLING_TOOL_STATE, P.EFFECT_MAY_BE_RUNNING)
    assert made.reasons[1].detail["pids"] == [42]
    assert made.reasons[1].detail["tool"] == "write_file"


def test_what_could_not_be_looked_at_counts_as_running() -> None:
    unseen = NotOver(OperationId("op-r1-A"), True)
    assert only(facts_of(interrupted(), not_over=(unseen,)), P.EFFECT_MAY_BE_RUNNING)["could_not_look"] is True


def asked(run: Story) -> Story:
    return run.write(
        PermissionRequested,
        request_id="q1",
        call_id="A",
        tool_name="write_file",
        args_hash=DIGEST,
        contract_digest=DIGEST,
        reason="asks first",
    )


def test_an_open_question_parks_until_it_is_decided_or_dropped() -> None:
    open_run = asked(Story("r1").user("U").step(call("A"))).refuse("A").end()
    assert only(facts_of(open_run), P.PENDING_PERMISSION)["request"] == "q1"
    dropped = continues(facts_of(open_run, drop_permissions=True))
    (told,) = dropped.told
    assert told.text == (
        "Note from the host: the open question whether write_file may run was dropped without an answer; the call was"
        " not executed."
    )
    assert notes(dropped)[NoteCode.PERMISSIONS_DROPPED]["request"] == "q1"
    open_run.write(PermissionDecided, request_id="q1", approved=True, decided_by="Ada")
    continues(facts_of(open_run))


def test_a_question_that_a_stop_closed_does_not_park() -> None:
    run = asked(Story("r1").user("U").step(call("A"))).refuse("A")
    run.write(PermissionClosed, request_id="q1", reason="run_stopped").end(RunStatus.CANCELLED)
    continues(facts_of(run))


@pytest.mark.parametrize("detached", [False, True])
def test_attached_background_work_parks_until_it_is_settled(detached: bool) -> None:
    run = Story("r1").user("U").step(call("A")).run_tool("A")
    run.write(BackgroundStarted, handle_id="h", kind=JobKind.SHELL, handle={"pid": 1}, detached=detached).end()
    if detached:
        continues(facts_of(run))
    else:
        assert only(facts_of(run), P.BACKGROUND_OPERATION_PENDING)["handle"] == "h"
        continues(facts_of(run.write(BackgroundSettled, handle_id="h", status=JobStatus.FAILED, signal=9)))


def test_r3_159_every_operation_that_is_not_completed_is_listed_with_its_own_code() -> None:
    """One call that was never dispatched and one that is unknown: several causes are not folded into one."""
    run = Story("r1").user("U").step(call("A"), call("B")).dispatch("A").end()
    made = parks(facts_of(run))
    assert [(reason.code, reason.detail["call"]) for reason in made.reasons] == [(P.DANGLING_TOOL_STATE, "A")]
    assert notes(made)[NoteCode.OPERATION_NOT_DISPATCHED]["call"] == "B"


def test_r3_001_a_stop_is_no_proof_of_no_effect() -> None:
    run = Story("r1").user("U").step(call("A", tool="run_shell")).dispatch("A").end(RunStatus.CANCELLED)
    only(facts_of(run), P.DANGLING_TOOL_STATE)


def test_r3_023_an_unknown_call_parks_once_and_alike_each_time() -> None:
    run = Story("r1").user("U").step(call("A")).dispatch("A").end()
    assert [parks(facts_of(run)).reasons for _ in range(5)].count(parks(facts_of(run)).reasons) == 5
    only(facts_of(run), P.DANGLING_TOOL_STATE)


def test_r3_126_a_live_handle_and_an_unknown_call_are_both_listed() -> None:
    run = Story("r1").user("U").step(call("A", tool="run_shell")).run_tool("A", result="still running, handle h")
    run.write(BackgroundStarted, handle_id="h", kind=JobKind.SHELL, handle={}, operation_id="op-r1-A")
    run.step(call("B")).dispatch("B").end()
    assert parks(facts_of(run)).codes == (P.DANGLING_TOOL_STATE, P.BACKGROUND_OPERATION_PENDING)


# ---- 5 the same workspace -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("now", "code"),
    [
        (WorkspaceFound("workspace:v1:other", "/w"), P.WORKSPACE_IDENTITY_MISMATCH),
        (WorkspaceFound(None, None), P.WORKSPACE_IDENTITY_MISMATCH),
        (WorkspaceUnknown(P.WORKSPACE_IDENTITY_MISSING, ("/w",)), P.WORKSPACE_IDENTITY_MISSING),
        (WorkspaceUnknown(P.WORKSPACE_COPY_AMBIGUOUS, ("/w", "/copy")), P.WORKSPACE_COPY_AMBIGUOUS),
        (WorkspaceUnknown(P.SAFETY_OBSERVATION_UNAVAILABLE, (), "EACCES"), P.SAFETY_OBSERVATION_UNAVAILABLE),
    ],
)
def test_another_or_no_workspace_parks(now: WorkspaceFound | WorkspaceUnknown, code: ParkReason) -> None:
    assert only(facts_of(interrupted(), workspace=now), code)["expected"] == "workspace:v1:w"


def test_r3_055_a_moved_folder_with_the_same_identity_is_a_note_with_both_paths() -> None:
    moved = WorkspaceFound("workspace:v1:w", "/elsewhere")
    detail = notes(continues(facts_of(interrupted(), workspace=moved)))[NoteCode.WORKSPACE_MOVED]
    assert (detail["expected_path"], detail["found_path"]) == ("/w", "/elsewhere")


def test_where_none_was_recorded_a_foreign_run_is_continued_in_one_knowingly_and_no_other_run_is() -> None:
    def unbound() -> Story:
        return Story("r1", workspace=None).user("U").step(call("A")).run_tool("A").end()

    codes = {P.FOREIGN_RUN_NOT_ADOPTED, P.WORKSPACE_IDENTITY_MISSING}
    assert set(parks(facts_of(unbound(), foreign=True)).codes) == codes
    made = continues(facts_of(unbound(), foreign=True, adopt=True))
    assert notes(made)[NoteCode.WORKSPACE_NOT_RECORDED]["found"] == "workspace:v1:w"
    assert made.target.workspace_identity == "workspace:v1:w"
    assert parks(facts_of(unbound(), adopt=True)).codes == (P.WORKSPACE_IDENTITY_MISSING,)
    unmarked = WorkspaceUnknown(P.WORKSPACE_IDENTITY_MISSING, ("/w",), "the marker is not there")
    continues(facts_of(unbound(), foreign=True, adopt=True, workspace=unmarked))
    gone = unmarked._replace(detail="the folder is not there", no_folder=True)
    only(facts_of(unbound(), foreign=True, adopt=True, workspace=gone), P.WORKSPACE_IDENTITY_MISSING)
    continues(facts_of(unbound(), workspace=gone))


def test_r3_057_another_checkout_parks_with_what_was_expected_and_what_was_found() -> None:
    other = WorkspaceFound("workspace:v1:main", "/main")
    detail = only(facts_of(interrupted(), workspace=other), P.WORKSPACE_IDENTITY_MISMATCH)
    assert (detail["expected"], detail["expected_path"]) == ("workspace:v1:w", "/w")
    assert (detail["found"], detail["found_path"]) == ("workspace:v1:main", "/main")


def test_a_renewed_identity_is_the_expected_one() -> None:
    run = interrupted().write(WorkspaceRenewed, from_identity="workspace:v1:w", to_identity="workspace:v1:new")
    continues(facts_of(run, workspace=WorkspaceFound("workspace:v1:new", "/w")))
    only(facts_of(run), P.WORKSPACE_IDENTITY_MISMATCH)


def test_a_run_without_workspace_goes_on_without_one_only() -> None:
    run = Story("r1", workspace=None).user("U").step(call("A")).run_tool("A").end()
    continues(facts_of(run, workspace=WorkspaceFound(None, None)))
    unmarked = WorkspaceUnknown(P.WORKSPACE_IDENTITY_MISSING, ("/w",), "the marker is not there")
    assert continues(facts_of(run, workspace=unmarked)).target.workspace_identity is None
    only(facts_of(run, workspace=WORKSPACE), P.WORKSPACE_IDENTITY_MISSING)


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"carrier_available": False}, P.MODE_MISMATCH),
        ({"present": False}, P.WORKSPACE_REF_MISSING),
        ({"covers": False, "uncovered_by": ("run_shell",)}, P.CHECKPOINT_DOES_NOT_COVER),
        ({"restored": False}, P.CHECKPOINT_RESTORE_FAILED),
        ({"drifted_paths": ("a", "b")}, P.WORKSPACE_DRIFT),
    ],
)
def test_a_checkpoint_that_does_not_hold_parks(changed: dict[str, Any], code: ParkReason) -> None:
    sound = CheckpointFacts("ref", carrier_available=True, present=True, covers=True)
    continues(facts_of(interrupted(), checkpoint=sound))
    only(facts_of(interrupted(), checkpoint=replace(sound, **changed)), code)


# ---- 6 the same tools and profile -----------------------------------------------------------------------------------


def test_r3_052_a_used_tool_that_is_not_registered_parks_and_goes_on_once_it_is() -> None:
    tools = profile().tools
    without = tuple(tool for tool in tools if tool.name != "write_file")
    detail = only(facts_of(interrupted(), tools=without), P.TOOL_CATALOG_MISMATCH)
    assert detail["missing"] == ["write_file"]
    continues(facts_of(interrupted(), tools=tools))


def test_r3_042_another_catalog_parks_with_both_short_hashes_and_the_names() -> None:
    tools = profile().tools
    changed = (tools[0].model_copy(update={"contract_digest": "a" * 64}), *tools[1:])
    detail = only(facts_of(interrupted(), tools=changed), P.TOOL_CATALOG_MISMATCH)
    assert detail["changed"] == ["write_file"]
    assert detail["recorded"] == catalog_digest(tools)[:12]
    assert detail["now"] == catalog_digest(changed)[:12]
    assert detail["recorded"] != detail["now"]


def test_r3_054_the_order_of_tools_is_no_difference_and_a_used_schema_is() -> None:
    first, *rest = profile().tools
    made = continues(facts_of(interrupted(), tools=(*reversed(rest), first)))
    assert notes(made) == {}
    changed = (first.model_copy(update={"schema_digest": "b" * 64}), *rest)
    assert only(facts_of(interrupted(), tools=changed), P.TOOL_CATALOG_MISMATCH)["changed"] == ["write_file"]


def test_r3_054_the_digest_of_a_catalog_is_fixed() -> None:
    assert catalog_digest(profile().tools) == "ea95bfd69040faf4de00c43ad6685f432e5c79317ea8dac3f0e8c3219bb0ded0"


def test_tools_that_the_history_does_not_use_may_come_go_and_change() -> None:
    used, removed, altered = profile().tools
    added = used.model_copy(update={"name": "added"})
    now = (used, altered.model_copy(update={"schema_digest": "c" * 64}), added)
    assert notes(continues(facts_of(interrupted(), tools=now))) == {
        NoteCode.TOOLS_ADDED: {"tools": ["added"]},
        NoteCode.TOOLS_REMOVED_UNUSED: {"tools": [removed.name]},
        NoteCode.TOOLS_CHANGED_UNUSED: {"tools": [altered.name]},
    }


def test_a_tool_that_never_existed_is_not_missed() -> None:
    run = Story("r1").user("U").step(call("A", tool="no_such_tool")).refuse("A").end()
    continues(facts_of(run))


def test_tools_of_earlier_turns_are_used_too() -> None:
    earlier = Story("r0").user("first").step(call("Z", tool="read_file")).run_tool("Z").end(RunStatus.COMPLETED)
    context = project_context([[earlier.part_of_turn()]])
    without = tuple(tool for tool in profile().tools if tool.name != "read_file")
    detail = only(facts_of(interrupted(), earlier=context, tools=without), P.TOOL_CATALOG_MISMATCH)
    assert detail["missing"] == ["read_file"]


def test_a_tool_of_an_unsettled_call_is_missed_too() -> None:
    earlier = Story("r0").user("first").step(call("Z", tool="read_file")).run_tool("Z").end(RunStatus.COMPLETED)
    run = Story("r1").user("U").step(call("A")).dispatch("A").end()
    facts = facts_of(run, earlier=project_context([[earlier.part_of_turn()]]), tools=profile().tools[1:])
    made = parks(facts)
    assert made.codes == (P.DANGLING_TOOL_STATE, P.TOOL_CATALOG_MISMATCH)
    assert made.reasons[1].detail["missing"] == ["write_file"]


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"provider": "openai"}, Drift.PROVIDER),
        ({"model": "m2"}, Drift.MODEL),
        ({"account": "other"}, Drift.ACCOUNT),
        ({"system_prompt_digest": "d" * 64}, Drift.SYSTEM_PROMPT),
        ({"permission_policy": "allow"}, Drift.PERMISSION_POLICY),
    ],
)
def test_another_profile_parks_with_what_changed(changed: dict[str, Any], what: Drift) -> None:
    detail = only(facts_of(interrupted(), profile=profile(**changed)), P.EXECUTION_PROFILE_MISMATCH)
    assert detail["changed"] == [what]


def test_drift_is_accepted_by_name_recorded_and_told() -> None:
    now = profile(model="m2", account="other", tools=())
    facts = facts_of(interrupted(), profile=now, tools=(), accepted_drift=frozenset({Drift.MODEL, Drift.TOOLS}))
    assert only(facts, P.EXECUTION_PROFILE_MISMATCH)["changed"] == [Drift.ACCOUNT]
    made = continues(
        replace(facts, accepted_drift=frozenset({Drift.MODEL, Drift.TOOLS, Drift.ACCOUNT, Drift.PROVIDER}))
    )
    assert made.accepted_drift == (Drift.ACCOUNT, Drift.MODEL, Drift.TOOLS)
    (told,) = made.told
    assert told.text == (
        "Note from the host: this run continues after an interruption. Since then the following changed, and the user"
        " accepted it: account (team -> other), model (m1 -> m2), tools (write_file is gone)."
    )
    assert made.target.profile.model == "m2"


def test_a_resume_never_widens_the_permission_policy() -> None:
    accepted = frozenset({Drift.PERMISSION_POLICY})
    for policy in ("allow *, else ask", 'allow ["pay"], else ask', "allow *, else deny", "theirs"):
        wider = facts_of(interrupted(), profile=profile(permission_policy=policy), accepted_drift=accepted)
        assert only(wider, P.EXECUTION_PROFILE_MISMATCH)["acceptable"] == []


def test_a_resume_may_narrow_the_permission_policy_where_a_person_says_so_and_the_model_is_told() -> None:
    accepted = frozenset({Drift.PERMISSION_POLICY})
    narrower = facts_of(interrupted(), profile=profile(permission_policy="deny"), accepted_drift=accepted)
    made = continues(narrower)
    assert made.accepted_drift == (Drift.PERMISSION_POLICY,)
    assert "permission policy (ask -> deny)" in made.told[0].text
    refused = only(replace(narrower, accepted_drift=frozenset()), P.EXECUTION_PROFILE_MISMATCH)
    assert refused["acceptable"] == ["permission_policy"]


def test_a_weaker_protocol_is_never_taken_silently() -> None:
    facts = facts_of(interrupted(), protocol=None, accepted_drift=frozenset(Drift))
    assert only(facts, P.MODE_MISMATCH)["mode"] == "tool_boundary"


def test_a_legacy_run_goes_on_under_the_protocol_only_when_that_is_accepted() -> None:
    run = Story("r1", protocol=None).user("U").step(call("A")).run_tool("A").end()
    assert only(facts_of(run), P.EXECUTION_PROFILE_MISMATCH)["changed"] == [Drift.PROTOCOL]
    continues(facts_of(run, accepted_drift=frozenset({Drift.PROTOCOL})))


@pytest.mark.parametrize(("missing", "what"), [({"profile": None}, "profile"), ({"tools": None}, "catalog")])
def test_what_the_host_could_not_observe_parks(missing: dict[str, Any], what: str) -> None:
    assert only(facts_of(interrupted(), **missing), P.SAFETY_OBSERVATION_UNAVAILABLE)["what"] == what


def test_r3_020_opaque_blobs_are_left_out_when_the_model_change_was_accepted() -> None:
    run = Story("r1").user("U").step(say("x", {"id": 1}), call("A", provider_options={"id": 2})).run_tool("A").end()
    facts = facts_of(run, profile=profile(model="m2"), accepted_drift=frozenset({Drift.MODEL}))
    made = continues(facts)
    assert all(getattr(item, "provider_options", None) is None for item in made.replay.items)
    assert notes(made)[NoteCode.BLOBS_LEFT_OUT] == {"segments": [0]}


# ---- 7 a history that a provider takes ------------------------------------------------------------------------------


def test_a_history_that_does_not_begin_with_the_user_parks() -> None:
    run = Story("r1").step(call("A")).run_tool("A").end()
    assert only(facts_of(run), P.PROVIDER_RESUME_HEAD_UNSUPPORTED)["event"] == run.events[1].event_id


def test_a_history_without_anything_parks() -> None:
    assert only(facts_of(Story("r1").step(say("x")).end()), P.PROVIDER_RESUME_HEAD_UNSUPPORTED)["event"] is None


def test_a_history_that_ends_with_the_models_own_words_parks() -> None:
    earlier = Story("r0").user("first").step(say("answer")).end(RunStatus.COMPLETED)
    facts = facts_of(Story("r1").end(), earlier=project_context([[earlier.part_of_turn()]]))
    event = only(facts, P.PROVIDER_RESUME_BOUNDARY_UNSUPPORTED)["event"]
    assert event == earlier.events[2].event_id


def test_a_history_that_no_provider_would_take_is_never_offered() -> None:
    """No projection makes one; this is the last line of defence."""
    short = interrupted().resumed().items[:2]
    facts = facts_of(interrupted(), earlier=ContextHistory((Segment(short),), (), ()))
    detail = only(facts, P.PROVIDER_REPLAY_UNSUPPORTED)
    assert (detail["illegal"], detail["calls"], detail["responses"]) == ("call_not_answered", 1, 0)


def test_a_gap_parks() -> None:
    run = Story("r1").user("U").step(call("A")).step(call("B")).run_tool("B").end()
    assert only(facts_of(run), P.PROVIDER_REPLAY_NON_SUFFIX_GAP)["events"] == [run.events[2].event_id]


def test_a_message_that_says_nothing_parks() -> None:
    only(facts_of(Story("r1").user("").end()), P.PROVIDER_REPLAY_UNSUPPORTED)


def test_a_corrupt_earlier_turn_parks_and_is_named() -> None:
    bad = Story("r0").user("V").step(call("Z")).dispatch("Z").outcome("Z").outcome("Z").end()
    context = project_context([[bad.part_of_turn()]])
    detail = only(facts_of(interrupted(), earlier=context), P.TOOL_RECOVERY_CORRUPTION)
    assert (detail["run"], detail["earlier_turn"]) == ("r0", True)


def test_an_unknown_call_of_an_earlier_turn_does_not_park() -> None:
    earlier = Story("r0").user("first").step(call("A")).dispatch("A").end()
    made = continues(facts_of(interrupted(), earlier=project_context([[earlier.part_of_turn()]])))
    assert shape(made.replay.items) == ["user first", "call A", "result A", "user U", "call A_2", "result A_2"]
    assert notes(made)[NoteCode.CALL_IDS_RENAMED] == {"ids": [["A", "A_2"]]}


def test_r3_152_a_history_larger_than_the_window_parks_with_both_numbers() -> None:
    detail = only(facts_of(interrupted(), window=ModelWindow(1000, 1001)), P.HISTORY_TOO_LARGE)
    assert (detail["have"], detail["limit"], detail["estimated"]) == (1001, 1000, False)
    made = continues(facts_of(interrupted(), window=ModelWindow(1000, 1000)))
    assert notes(made)[NoteCode.HISTORY_SIZE]["have"] == 1000


def test_without_a_count_the_size_is_estimated_from_what_is_said() -> None:
    run = Story("r1").user("é" * 2000).step(call("A", {"t": "x" * 1000})).run_tool("A", result="y" * 2000).end()
    detail = only(facts_of(run, window=ModelWindow(1000)), P.HISTORY_TOO_LARGE)
    assert detail["estimated"] is True
    assert detail["have"] == -(-(4000 + len("write_file") + 1008 + 2002) // 4)


def test_text_that_was_cut_off_is_noted() -> None:
    run = interrupted()
    end = run.events.pop()
    run.step(say("half"))
    run.events.append(end.model_copy(update={"event_id": "end"}))
    detail = notes(continues(facts_of(run)))[NoteCode.HISTORY_TRIMMED]
    assert detail["events"] == [run.events[-3].event_id]


def test_r3_110_a_step_that_was_stopped_for_length_is_noted_with_its_finish_reason() -> None:
    run = Story("r1").user("U").step(call("A")).run_tool("A").step(say("half"), finish="length").end()
    detail = notes(continues(facts_of(run)))[NoteCode.LAST_STEP_CUT_SHORT]
    assert (detail["run"], detail["step"], detail["finish_reason"]) == ("r1", "r1-step2", "length")


# ---- 8 fresh ids ----------------------------------------------------------------------------------------------------


def test_ids_that_the_store_or_an_ancestor_has_are_refused() -> None:
    assert only(facts_of(interrupted(), ids_taken=frozenset({"new"})), P.CONTINUATION_IDENTITY_REUSED)["ids"] == ["new"]
    reused = FRESH._replace(turn_id=interrupted().events[0].turn_id)
    assert only(facts_of(interrupted(), fresh=reused), P.CONTINUATION_IDENTITY_REUSED)["ids"] == ["turn-r1"]


# ---- all of them ----------------------------------------------------------------------------------------------------


def test_all_failing_gates_are_reported_in_the_order_of_the_specification() -> None:
    run = asked(Story("r1").user("U").step(call("A"))).dispatch("A")
    run.write(BackgroundStarted, handle_id="h", kind=JobKind.SHELL, handle={}).end()
    made = parks(
        facts_of(
            run,
            feature_enabled=False,
            candidate=Candidate(RunId("r1"), RunStatus.FAILED, RunId("r9")),
            busy=Busy(),
            behind_anchor=True,
            expected_high_water=1,
            existing=ExistingContinuation(ClaimId("c"), RunId("r9"), Standing.ENDED),
            not_over=(NotOver(OperationId("op-r1-A"), True),),
            workspace=WorkspaceFound("other", "/w"),
            tools=(),
            profile=profile(model="m2"),
            ids_taken=frozenset({"new"}),
        )
    )
    assert made.codes == (
        P.RESUME_FEATURE_DISABLED,
        P.SOURCE_SUPERSEDED,
        P.SESSION_BUSY,
        P.LEDGER_BEHIND_ANCHOR,
        P.RUNTIME_OFFSET_MISMATCH,
        P.CONTINUATION_ALREADY_EXISTS,
        P.DANGLING_TOOL_STATE,
        P.EFFECT_MAY_BE_RUNNING,
        P.PENDING_PERMISSION,
        P.BACKGROUND_OPERATION_PENDING,
        P.WORKSPACE_IDENTITY_MISMATCH,
        P.TOOL_CATALOG_MISMATCH,
        P.EXECUTION_PROFILE_MISMATCH,
        P.CONTINUATION_IDENTITY_REUSED,
    )


def test_what_people_are_told_of_a_plan_is_json_and_holds_no_content() -> None:
    secret = "sk-secret"
    run = Story("r1").user(secret).step(say(secret), call("A", {"key": secret})).dispatch("A").end()
    facts = facts_of(run, tools=(), profile=profile(model="m2"), window=ModelWindow(1))
    made = parks(facts)
    assert isinstance(made, Park)
    details = [*(reason.detail for reason in made.reasons), *(note.detail for note in made.notes)]
    assert details
    assert all(secret not in json.dumps(dict(detail)) for detail in details)


def test_every_gate_says_what_it_lets_pass() -> None:
    assert len(set(GATES)) == len(GATES) == 23
    assert all(gate.__doc__ for gate in GATES)


def test_a_plan_to_continue_has_no_reason_hidden_in_its_notes() -> None:
    assert isinstance(plan(facts_of(interrupted())), Continue)
