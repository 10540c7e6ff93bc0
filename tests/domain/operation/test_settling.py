"""Recovery bundles and attestations: after the end, at the expected version, valid, once. SPEC sections 7 and 10."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from safepoint.domain.commands import CommitAttestation, CommitRecovery
from safepoint.domain.events.event import Event
from safepoint.domain.events.session import ClearedBy, EffectCleared, EffectWatched, WatchStatus
from safepoint.domain.events.tool import Effect, Observation, RecoveryMode, Statement, ToolDispatched
from safepoint.domain.operation.decisions import commit_attestation, commit_recovery
from safepoint.domain.operation.state import Phase, operation_by_id
from safepoint.domain.reasons import VerdictReason
from safepoint.domain.recovery.resolver import resolve
from safepoint.domain.recovery.verdict import VerdictStatus
from safepoint.domain.run.ending import end_run

from ..facts import Facts, accepted, prefix, refused, run_of, session_of, topics


class Interrupted:
    """A run that was killed after T1 of `a` and repaired; `session` and `history` are its facts."""

    def __init__(self, mode: RecoveryMode = RecoveryMode.OUTCOME_UNKNOWN, *, unknown: bool = False) -> None:
        self.r = Facts()
        self.dispatch: ToolDispatched
        history: list[Event] = [self.r.opened(), self.r.user(), *self.r.step("a")]
        self.dispatch = self.r.dispatch("a", mode)
        history += [self.dispatch]
        if unknown:
            history += [self.r.outcome("a", is_error=True, effect=Effect.UNKNOWN)]
        ended = accepted(end_run(session_of([]), run_of(history), self.r.end(), foreign=False))
        self.history = [*history, *ended]
        self.session: list[Event] = [self.r.session_opened(), self.r.admitted(), *ended]

    @property
    def sequence(self) -> int:
        return run_of(self.history).sequence

    def completed(self, **outcome: Any) -> CommitRecovery:
        return self.r.recovery(self.dispatch, self.sequence, outcome=self.r.outcome("a", **outcome))

    def parked(self) -> CommitRecovery:
        return self.r.recovery(
            self.dispatch,
            self.sequence,
            observation=Observation.UNREADABLE,
            reason="contract_forbids_recovery",
        )

    def attested(self, statement: Statement = Statement.COMPLETED, **more: Any) -> CommitAttestation:
        done = {"is_error": False, "effect": Effect.DONE}
        none = {"is_error": True, "effect": Effect.NONE}
        response = {Statement.COMPLETED: done, Statement.NOT_EXECUTED: none, Statement.OVER: None}[statement]
        fields = {"response": None if response is None else self.r.outcome("a", **response), **more}
        return self.r.attestation("a", self.sequence, statement, **fields)

    def decide(self, command: CommitRecovery | CommitAttestation) -> Any:
        session, run = session_of(self.session), run_of(self.history)
        if isinstance(command, CommitRecovery):
            return commit_recovery(session, run, command)
        return commit_attestation(session, run, command)

    def settle(self, command: CommitRecovery | CommitAttestation) -> tuple[Event, ...]:
        written = accepted(self.decide(command))
        self.history += written
        self.session += written
        return written

    def verdict(self) -> tuple[VerdictStatus, object]:
        verdicts = resolve(run_of(self.history).tools, foreign=False).verdicts
        (verdict,) = [one for one in verdicts if one.operation_id == "op-r-a"]
        return verdict.status, verdict.reason

    def watched(self) -> dict[str, str]:
        return {key: effect.status for key, effect in session_of(self.session).watched.items()}


def test_a_completed_bundle_is_one_commit_and_settles() -> None:
    given = Interrupted()
    assert given.watched() == {"op-r-a": WatchStatus.INDETERMINATE}
    written = given.settle(given.completed())
    assert [event.topic for event in written[:3]] == [
        "tool.reconciled.v1",
        "tool.responded.v1",
        "tool.recovery_decided.v1",
    ]
    assert given.verdict() == (VerdictStatus.COMPLETED, VerdictReason.RECOVERY_BUNDLE_COMPLETED)


def test_a_parked_bundle_has_no_outcome_and_its_effect_stays_watched() -> None:
    given = Interrupted()
    assert [event.topic for event in given.settle(given.parked())] == ["tool.reconciled.v1", "tool.recovery_decided.v1"]
    assert given.verdict() == (VerdictStatus.PARKED, "contract_forbids_recovery")
    operation = operation_by_id(run_of(given.history), "op-r-a")
    assert operation is not None
    assert (operation.phase, operation.uncertainty) == (Phase.PARKED, WatchStatus.PARKED)
    assert given.watched() == {"op-r-a": WatchStatus.INDETERMINATE}


Make = Callable[[Interrupted], CommitRecovery | CommitAttestation]
BROKEN: dict[str, tuple[Make, str]] = {
    "an observation that proves nothing": (
        lambda g: g.r.recovery(g.dispatch, g.sequence, observation=Observation.EFFECT_FREE, outcome=g.r.outcome("a")),
        "mode_allows",
    ),
    "completed without an outcome": (
        lambda g: replaced(g.completed(), outcome=None),
        "completed_has_outcome",
    ),
    "parked with an outcome": (
        lambda g: replaced(g.parked(), outcome=g.r.outcome("a")),
        "parked_has_no_outcome",
    ),
    "an outcome of another call": (lambda g: g.completed(tool_name="rm"), "ledger_stays_sound"),
    "evidence in another order": (
        lambda g: evidence(g.completed(), lambda ids: ids[::-1]),
        "evidence_in_causal_order",
    ),
    "evidence left out": (lambda g: evidence(g.completed(), lambda ids: ids[1:]), "evidence_in_causal_order"),
    "a statement without its response": (
        lambda g: g.attested(response=None),
        "attestation_has_response",
    ),
    "a statement with the opposite response": (
        lambda g: g.attested(Statement.NOT_EXECUTED, response=g.r.outcome("a")),
        "attested_response_matches",
    ),
    "a statement that supersedes nothing": (
        lambda g: g.attested(supersedes="x"),
        "attestation_names_what_it_supersedes",
    ),
    "over with an outcome": (
        lambda g: g.attested(Statement.OVER, response=g.r.outcome("a")),
        "attested_response_matches",
    ),
}


def replaced(command: CommitRecovery, **fields: Any) -> CommitRecovery:
    parts = {name: getattr(command, name) for name in CommitRecovery.__dataclass_fields__}
    return CommitRecovery(**{**parts, **fields})


def evidence(command: CommitRecovery, change: Callable[[tuple[str, ...]], tuple[str, ...]]) -> CommitRecovery:
    changed = change(command.decided.evidence_event_ids)
    return replaced(command, decided=command.decided.model_copy(update={"evidence_event_ids": changed}))


@pytest.mark.parametrize(("make", "rule"), BROKEN.values(), ids=BROKEN)
def test_a_bundle_that_breaks_a_rule_is_refused_with_it(make: Make, rule: str) -> None:
    given = Interrupted()
    decision = given.decide(make(given))
    assert refused(decision) == "bundle_invalid"
    assert decision.detail == rule


SETTLED: dict[str, Make] = {
    "a bundle": lambda g: g.completed(),
    "parking": lambda g: g.parked(),
    "an attestation": lambda g: g.attested(),
}


@pytest.mark.parametrize("second", SETTLED.values(), ids=SETTLED)
@pytest.mark.parametrize("first", ["a bundle", "an attestation"])
def test_what_is_settled_is_settled_once(first: str, second: Make) -> None:
    given = Interrupted()
    given.settle(SETTLED[first](given))
    assert refused(given.decide(second(given))) == "bundle_invalid"


def test_a_parked_operation_is_superseded_by_an_attestation_alone() -> None:
    given = Interrupted()
    _, parked = given.settle(given.parked())
    for again in (given.completed(), given.parked(), given.attested()):
        assert refused(given.decide(again)) == "bundle_invalid"
    given.settle(given.attested(Statement.NOT_EXECUTED, supersedes=parked.event_id))
    assert given.verdict() == (VerdictStatus.COMPLETED, VerdictReason.ATTESTED_NOT_EXECUTED)
    assert given.watched() == {}


# ---- order of checks -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [*SETTLED.values(), *(make for make, _ in BROKEN.values())])
def test_an_open_run_a_claim_and_a_moved_run_are_said_before_the_rules(make: Make) -> None:
    given = Interrupted()
    command = make(given)
    whole = given.history
    given.history = [event for event in whole if event.topic != "run.ended.v1"]
    assert refused(given.decide(command)) == "transition_shape_conflict"
    given.history = [*whole, given.r.claim(Facts("r2"), [prefix(given.r, whole)]).claimed]
    assert refused(given.decide(command)) == "run_claimed"
    given.history = [*whole, given.r.decided("x")]
    decision = given.decide(command)
    assert refused(decision) == "transition_shape_conflict"
    assert "not at" in decision.detail


def test_a_notice_that_cannot_be_told_is_refused() -> None:
    given = Interrupted()
    bad = given.r.notice(sentence_id="x")
    outcome = given.r.outcome("a")
    bundle = given.r.recovery(given.dispatch, given.sequence, outcome=outcome, notice=bad)
    assert refused(given.decide(bundle)) == "transition_shape_conflict"
    assert refused(given.decide(given.attested(notice=bad))) == "transition_shape_conflict"


def test_a_notice_is_posted_behind_the_facts() -> None:
    given = Interrupted()
    bundle = given.r.recovery(given.dispatch, given.sequence, outcome=given.r.outcome("a"), notice=given.r.notice())
    assert topics(given.decide(bundle))[-1] == "session.notice_posted.v1"


# ---- what becomes of the watched effect ------------------------------------------------------------------------------

CERTAIN: dict[str, tuple[Make, str | None, ClearedBy | None]] = {
    "recovered": (lambda g: g.completed(), WatchStatus.RECOVERED, ClearedBy.SETTLED),
    "recovered as having had no effect": (
        lambda g: g.completed(is_error=True, effect=Effect.NONE),
        None,
        ClearedBy.SETTLED,
    ),
    "recovered with an unknown effect": (
        lambda g: g.completed(is_error=True, effect=Effect.UNKNOWN),
        WatchStatus.INDETERMINATE,
        None,
    ),
    "attested as completed": (lambda g: g.attested(), WatchStatus.ATTESTED, ClearedBy.ATTESTED),
    "attested as not executed": (lambda g: g.attested(Statement.NOT_EXECUTED), None, ClearedBy.ATTESTED),
    "declared over": (lambda g: g.attested(Statement.OVER), WatchStatus.INDETERMINATE, None),
}


@pytest.mark.parametrize(("make", "status", "_by"), CERTAIN.values(), ids=CERTAIN)
def test_while_the_run_may_be_continued_a_certain_effect_is_watched_for_its_turn(
    make: Make, status: str | None, _by: ClearedBy | None
) -> None:
    given = Interrupted()
    given.settle(make(given))
    assert given.watched() == ({} if status is None else {"op-r-a": status})


@pytest.mark.parametrize(("make", "status", "by"), CERTAIN.values(), ids=CERTAIN)
def test_once_the_session_has_moved_on_what_was_done_is_watched_until_the_model_is_told_and_the_rest_is_cleared(
    make: Make, status: str | None, by: ClearedBy | None
) -> None:
    given = Interrupted()
    given.session += [Facts("r2").admitted()]
    written = given.settle(make(given))
    cleared = [(event.operation_id, event.by) for event in written if isinstance(event, EffectCleared)]
    watched = [(event.operation_id, event.status) for event in written if isinstance(event, EffectWatched)]
    certain = status in (WatchStatus.RECOVERED, WatchStatus.ATTESTED)
    assert cleared == ([] if by is None or certain else [("op-r-a", by)])
    assert watched == ([("op-r-a", status)] if certain else [])


def test_an_effect_that_was_shown_as_unknown_is_cleared_by_an_attestation_that_rewrites_nothing() -> None:
    given = Interrupted(unknown=True)
    assert given.watched() == {"op-r-a": WatchStatus.UNKNOWN}
    written = given.settle(given.attested(Statement.NOT_EXECUTED, response=None))
    assert [event.topic for event in written] == ["tool.attested.v1", "session.effect_cleared.v1"]
    operation = operation_by_id(run_of(given.history), "op-r-a")
    assert operation is not None
    assert operation.uncertainty is None


def test_that_an_operation_is_over_says_nothing_of_its_effect() -> None:
    given = Interrupted(unknown=True)
    given.settle(given.attested(Statement.OVER, response=None))
    operation = operation_by_id(run_of(given.history), "op-r-a")
    assert operation is not None
    assert (operation.attested, operation.uncertainty) == (False, WatchStatus.UNKNOWN)


def test_a_read_is_never_watched() -> None:
    given = Interrupted(RecoveryMode.REPLAY_SAFE)
    bundle = given.r.recovery(
        given.dispatch,
        given.sequence,
        observation=Observation.EFFECT_FREE,
        outcome=given.r.outcome("a", effect=Effect.DONE),
        reason="effect_free",
    )
    given.settle(bundle)
    assert given.watched() == {}


def test_the_ids_of_what_is_derived_are_the_same_on_every_retry() -> None:
    given = Interrupted()
    command = given.completed()
    assert accepted(given.decide(command)) == accepted(given.decide(command))
