"""Field reports: nobody knows whether it happened. SPEC R3, R4, F1, F7, F8."""

from __future__ import annotations

import pytest

from safepoint.adapters.memory.model_provider import calls, says
from safepoint.adapters.memory.tables import Failure
from safepoint.domain.errors import RefusedWithoutEffect
from safepoint.domain.events.run import RunStatus
from safepoint.domain.events.tool import Effect, Observation, RecoveryMode
from safepoint.domain.reasons import ParkReason, ResponseCode, WriteRefusal
from safepoint.domain.recovery.verdict import VerdictStatus

from ..application.counted_tools import Counted, raising
from ..domain.facts import Facts
from .resuming import ResumingProcess, SharedWorld, codes_of
from .stores import Writing

P = ParkReason
ACT = calls(("act", {"n": 1}))


def test_r3_165_a_store_that_cannot_be_read_proves_nothing() -> None:
    """The lookup of A's dispatch fails: that is no proof that A was not dispatched."""
    world, act = SharedWorld(), Counted()
    process = ResumingProcess(world)
    process.is_interrupted("go", [ACT], [act.function])
    process = ResumingProcess(world)
    world.store.fail_next(Failure.UNREADABLE)
    assert codes_of(process.plans([act.function]).plan) == [P.STORE_UNAVAILABLE]
    world.store.fail_next(Failure.UNREADABLE)
    assert process.parks([], [act.function]) == (P.STORE_UNAVAILABLE,)
    assert process.parks([], [act.function]) == (P.DANGLING_TOOL_STATE,)
    assert act.calls == [1]


@pytest.mark.parametrize(
    ("error", "effect", "code"),
    [
        (RefusedWithoutEffect("the card has expired"), Effect.NONE, ResponseCode.REFUSED_WITHOUT_EFFECT),
        (ValueError("the card has expired"), Effect.UNKNOWN, ResponseCode.TOOL_RAISED),
    ],
    ids=["with the typed marker", "without it"],
)
def test_r3_166_only_a_typed_refusal_says_that_nothing_happened(
    error: Exception, effect: Effect, code: ResponseCode
) -> None:
    """D(A) is written, then the tool's own check refuses."""
    process = ResumingProcess()
    pay = raising(error)
    run_id = process.runs("pay", [calls(("fail", {})), says("I see")], [pay]).run_id
    response = process.response(run_id, "fail")
    assert (response.code, response.effect, response.is_error) == (code, effect, True)
    assert response.operation_id == process.dispatches(run_id)[0].operation_id
    (verdict,) = process.verdicts(run_id)
    assert (verdict.status, verdict.effect) == (VerdictStatus.COMPLETED, effect)
    watched = process.ledger.session(process.segment(run_id).ref.session_id).watched
    assert bool(watched) is (effect is Effect.UNKNOWN), "what may have happened is not repeated unasked"


def test_r3_166_without_an_outcome_the_refusal_is_unknown_whatever_the_tool_meant() -> None:
    world, process = SharedWorld(), ResumingProcess()
    process = ResumingProcess(world)
    pay = raising(RefusedWithoutEffect("no"))
    run_id = process.is_interrupted("pay", [calls(("fail", {}))], [pay])
    assert ResumingProcess(world).verdicts(run_id)[0].status is VerdictStatus.INDETERMINATE
    assert ResumingProcess(world).parks([], [pay]) == (P.DANGLING_TOOL_STATE,)


@pytest.mark.parametrize(
    ("seen", "settles"),
    [
        ("r3-062 (i) the bytes that were meant", True),
        ("r3-062 (ii) the bytes from before", False),
        ("r3-062 (iii) the first half", False),
        ("r3-062 (iv) other line ends", False),
        ("r3-062 (v) a mark before the text", False),
        ("r3-065 two lines were appended", False),
    ],
)
def test_r3_062_and_r3_065_only_an_exact_match_of_bytes_may_settle_a_write(
    writing: Writing, seen: str, settles: bool
) -> None:
    """What a reconciler may say of such a disk, and what the ledger takes then: the size of a file proves nothing."""
    observation = Observation.MATCHES_EXPECTED_STATE if settles else Observation.DIVERGED
    reason = "matches_expected_state" if settles else "reconcile_diverged"
    if "before" in seen:
        observation, reason = Observation.MATCHES_PRIOR_STATE, "reconcile_matches_prior_state"
    run = writing.own(Facts("r", session="s"))
    writing.do(run.open_run(), run.record(run.step("A")))
    dispatch = run.dispatch("A", RecoveryMode.RECONCILE)
    writing.do(run.prepare(dispatch), run.end())
    late = len(writing.events(run))
    completed = run.recovery(dispatch, late, observation=observation, reason=reason, outcome=run.outcome("A"))
    if settles:
        writing.do(completed)
        assert writing.verdict(run, "A").status is VerdictStatus.COMPLETED
        return
    assert writing.refuses(completed) is WriteRefusal.BUNDLE_INVALID
    writing.do(run.recovery(dispatch, late, observation=observation, reason=reason))
    assert (writing.verdict(run, "A").status, writing.verdict(run, "A").reason) == (VerdictStatus.PARKED, reason)


def test_r3_063_a_declared_error_stays_as_it_was_recorded_whatever_the_file_holds(writing: Writing) -> None:
    """O(A)=error, and the file is there in full: evidence never overwrites an outcome."""
    run = writing.own(Facts("r", session="s"))
    writing.do(run.open_run(), run.record(run.step("A")))
    dispatch = run.dispatch("A", RecoveryMode.RECONCILE)
    failed = run.outcome("A", is_error=True, effect=Effect.UNKNOWN, result="timed out")
    writing.do(run.prepare(dispatch), run.commit(failed), run.end())
    late = len(writing.events(run))
    found = run.recovery(
        dispatch,
        late,
        observation=Observation.MATCHES_EXPECTED_STATE,
        reason="matches_expected_state",
        outcome=run.outcome("A"),
    )
    assert writing.refuses(found) is WriteRefusal.BUNDLE_INVALID
    verdict = writing.verdict(run, "A")
    assert (verdict.status, verdict.is_error, verdict.response_event_id) == ("completed", True, failed.event_id)


def test_r3_063_a_time_out_is_not_taken_for_no_effect() -> None:
    """The tool raises a time-out after the bytes are on disk."""
    process = ResumingProcess()
    write = raising(TimeoutError("naïve…"))
    result = process.runs("write", [calls(("fail", {})), says("I see")], [write])
    assert result.outcome.status is RunStatus.COMPLETED
    assert process.response(result.run_id, "fail").effect is Effect.UNKNOWN
