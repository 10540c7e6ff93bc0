"""Right before execution everything is planned again and compared. SPEC section 14, step 1."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from safepoint.domain.events.outside import BackgroundStarted, JobKind
from safepoint.domain.events.run import RunStatus
from safepoint.domain.events.tool import Statement
from safepoint.domain.identifiers import ClaimId, OperationId, RunId
from safepoint.domain.planning.facts import Candidate, Drift, ExistingContinuation, Standing
from safepoint.domain.planning.observations import (
    CheckpointFacts,
    NotOver,
    WorkspaceFound,
    WorkspaceUnknown,
)
from safepoint.domain.planning.outcome import Continue
from safepoint.domain.planning.planner import plan
from safepoint.domain.planning.revalidation import CODE_OF_REASON, compare
from safepoint.domain.reasons import ParkReason, RevalidationCode

from ..replay.story import Story, call, profile, say
from .situation import FRESH, continues, facts_of, interrupted

P, R = ParkReason, RevalidationCode


def test_nothing_changed() -> None:
    assert compare(continues(facts_of(interrupted())), plan(facts_of(interrupted()))) == ()


def test_every_park_reason_has_its_revalidation_code() -> None:
    assert set(CODE_OF_REASON) == set(ParkReason)


def checkpoint(ref: str) -> CheckpointFacts:
    return CheckpointFacts(ref, carrier_available=True, present=True, covers=True)


@pytest.mark.parametrize(
    ("changed", "codes"),
    [
        (
            {"existing": ExistingContinuation(ClaimId("c"), RunId("x"), Standing.UNSTARTED)},
            [R.CONTINUATION_CLAIM_CONFLICT],
        ),
        ({"candidate": Candidate(RunId("r1"), RunStatus.FAILED, RunId("x"))}, [R.CONTINUATION_CLAIM_CONFLICT]),
        ({"ids_taken": frozenset({"new"})}, [R.TARGET_RUN_CONFLICT]),
        ({"fresh": FRESH._replace(run_id=RunId("other"))}, [R.TARGET_RUN_CONFLICT]),
        ({"workspace": WorkspaceFound("workspace:v1:x", "/w")}, [R.WORKSPACE_IDENTITY_CHANGED]),
        (
            {"workspace": WorkspaceUnknown(P.SAFETY_OBSERVATION_UNAVAILABLE)},
            [R.WORKSPACE_IDENTITY_CHANGED],
        ),
        ({"checkpoint": checkpoint("b")}, [R.WORKSPACE_CHECKPOINT_CHANGED]),
        ({"checkpoint": replace(checkpoint("a"), present=False)}, [R.WORKSPACE_CHECKPOINT_CHANGED]),
        ({"checkpoint": replace(checkpoint("a"), carrier_available=False)}, [R.WORKSPACE_CHECKPOINT_CHANGED]),
        ({"not_over": (NotOver(OperationId("o"), True),)}, [R.BACKGROUND_OPERATION_STARTED]),
        ({"tools": ()}, [R.TOOL_CATALOG_CHANGED]),
        ({"tools": profile().tools[:1]}, [R.TOOL_CATALOG_CHANGED]),
        ({"tools": None}, [R.TOOL_CATALOG_CHANGED]),
        ({"profile": profile(model="m2")}, [R.EXECUTION_PROFILE_CHANGED]),
        ({"profile": None}, [R.EXECUTION_PROFILE_CHANGED]),
        ({"protocol": None}, [R.EXECUTION_PROFILE_CHANGED]),
        ({"behind_anchor": True}, [R.SOURCE_LEDGER_IDENTITY_CHANGED]),
        ({"candidate": None}, [R.SOURCE_TERMINAL_CHANGED]),
    ],
)
def test_each_difference_has_its_code(changed: dict[str, Any], codes: list[RevalidationCode]) -> None:
    before = facts_of(interrupted(), checkpoint=checkpoint("a"))
    assert list(compare(continues(before), plan(replace(before, **changed)))) == codes


def test_a_fact_that_was_added_meanwhile_changes_the_high_water() -> None:
    run = interrupted()
    before = continues(facts_of(run))
    run.write(BackgroundStarted, handle_id="h", kind=JobKind.SHELL, handle={}, detached=True)
    run.events[-1], run.events[-2] = run.events[-2], run.events[-1]
    assert compare(before, plan(facts_of(run))) == (R.SOURCE_HIGH_WATER_CHANGED,)


def test_an_ending_that_became_another_is_seen() -> None:
    before = continues(facts_of(interrupted()))
    other = Story("r1").user("U").step(call("A")).run_tool("A").end(RunStatus.CANCELLED)
    assert compare(before, plan(facts_of(other))) == (R.SOURCE_TERMINAL_CHANGED, R.SOURCE_LEDGER_IDENTITY_CHANGED)


def test_another_history_of_the_same_length_is_seen() -> None:
    before = continues(facts_of(interrupted()))
    other = Story("r1").user("V").step(call("A")).run_tool("A").end()
    assert compare(before, plan(facts_of(other))) == (R.SOURCE_LEDGER_IDENTITY_CHANGED, R.SOURCE_REPLAY_CHANGED)


def test_another_source_is_seen() -> None:
    before = continues(facts_of(interrupted()))
    other = Story("r2").user("U").step(call("A")).run_tool("A").end()
    codes = compare(before, plan(facts_of(other)))
    assert R.SOURCE_IDENTITY_CHANGED in codes


def test_an_accepted_plan_is_compared_with_what_was_accepted() -> None:
    accepted = facts_of(interrupted(), profile=profile(model="m2"), accepted_drift=frozenset({Drift.MODEL}))
    assert compare(continues(accepted), plan(accepted)) == ()
    again = replace(accepted, profile=profile(model="m3"))
    assert compare(continues(accepted), plan(again)) == (R.EXECUTION_PROFILE_CHANGED,)


def test_a_settlement_between_plan_and_execution_is_a_difference_too() -> None:
    run = Story("r1").user("U").step(call("A"), call("B")).dispatch("A", "B").outcome("A", "B").step(say("x")).end()
    before = continues(facts_of(run))
    run.attest("B", Statement.OVER)
    run.events.pop()
    after = plan(facts_of(run))
    assert isinstance(after, Continue)
    assert compare(before, after) == (R.SOURCE_HIGH_WATER_CHANGED,)
