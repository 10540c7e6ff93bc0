"""Every event of a run is one fact, in its lane, with what the scanner needs of it."""

from __future__ import annotations

from typing import Any, TypeVar

import pytest

from safepoint.domain.canonical import args_hash
from safepoint.domain.events.catalogue import AFTER_TERMINAL, EVENTS
from safepoint.domain.events.event import RunEvent
from safepoint.domain.events.model import UserMessage
from safepoint.domain.events.outside import BackgroundSettled, JobStatus
from safepoint.domain.events.run import RunEnded, RunStatus
from safepoint.domain.events.tool import (
    Disposition,
    Effect,
    Life,
    Observation,
    RecordedContract,
    RecoveryMode,
    Statement,
    ToolAttested,
    ToolCalled,
    ToolDispatched,
    ToolReconciled,
    ToolRecoveryDecided,
    ToolRedeliveryStarted,
    ToolResponded,
)
from safepoint.domain.recovery.bundle import broken_attestation, broken_bundle
from safepoint.domain.recovery.event_facts import event_facts
from safepoint.domain.recovery.facts import (
    Attested,
    Called,
    Decided,
    Dispatched,
    Ended,
    Fact,
    Ordinary,
    Reconciled,
    RedeliveryStarted,
    Responded,
)
from safepoint.domain.recovery.resolver import resolve
from safepoint.domain.recovery.scanner import Scanner

from .ledger import ME

SPINE: dict[str, Any] = {
    "session_id": ME.session_id,
    "run_id": ME.run_id,
    "turn_id": ME.turn_id,
    "invocation_id": ME.invocation_id,
    "occurred_at": "2026-01-02T03:04:05.000006Z",
}
ARGS = {"path": "a.txt", "n": 1.5}
HASH = args_hash("Write", ARGS)
DIGEST = "0" * 64

E = TypeVar("E", bound=RunEvent)


def make(kind: type[E], event_id: str, **fields: Any) -> E:
    return kind.model_validate({"event_id": event_id, **SPINE, **fields})


CALL = make(ToolCalled, "call", step_id="step", call_id="c", tool_name="Write", args=ARGS)
DISPATCH = make(
    ToolDispatched,
    "dispatch",
    operation_id="o",
    call_id="c",
    tool_name="Write",
    args_hash=HASH,
    contract=RecordedContract(mode=RecoveryMode.RECONCILE, contract_id="file", version=1, digest=DIGEST),
    incarnation_id="me",
    life=Life.TASK,
)
RESPONSE = make(
    ToolResponded,
    "response",
    call_id="c",
    tool_name="Write",
    operation_id="o",
    result="ok",
    is_error=False,
    effect=Effect.DONE,
)
OBSERVATION = make(
    ToolReconciled,
    "observation",
    operation_id="o",
    observation=Observation.MATCHES_EXPECTED_STATE,
    reconciler_id="file",
    reconciler_version=1,
)
DECISION = make(
    ToolRecoveryDecided,
    "decision",
    operation_id="o",
    disposition=Disposition.COMPLETED,
    reason="",
    evidence_event_ids=("call", "dispatch", "observation", "response"),
    outcome_event_id="response",
)
ATTESTATION = make(
    ToolAttested, "attestation", operation_id="o", statement=Statement.COMPLETED, by="someone", note="looked"
)

MADE: list[tuple[RunEvent, Fact]] = [
    (CALL, Called("call", ME, "c", "Write", HASH)),
    (
        make(ToolCalled, "call", step_id="step", call_id="c", tool_name="Write", args_text="{"),
        Called("call", ME, "c", "Write", None),
    ),
    (DISPATCH, Dispatched("dispatch", ME, "o", "c", "Write", HASH, "reconcile")),
    (RESPONSE, Responded("response", ME, "c", "Write", "o", False, "done")),
    (
        make(
            ToolRedeliveryStarted, "again", operation_id="o", idempotency_key="k", incarnation_id="me", life=Life.TASK
        ),
        RedeliveryStarted("again", ME, "o"),
    ),
    (OBSERVATION, Reconciled("observation", ME, "o", "matches_expected_state")),
    (
        DECISION,
        Decided("decision", ME, "o", "completed", "", ("call", "dispatch", "observation", "response"), "response"),
    ),
    (ATTESTATION, Attested("attestation", ME, "o", "completed")),
    (
        make(RunEnded, "end", status=RunStatus.FAILED, incarnation_id="me", epoch=1),
        Ended("end", ME),
    ),
    (make(UserMessage, "text", text="hello"), Ordinary("text", ME)),
    (
        make(BackgroundSettled, "settled", handle_id="h", status=JobStatus.COMPLETED),
        Ordinary("settled", ME, late=True),
    ),
]


@pytest.mark.parametrize(("event", "fact"), MADE, ids=lambda each: type(each).__name__)
def test_an_event_becomes_the_fact_of_its_lane(event: RunEvent, fact: Fact) -> None:
    made = event_facts(event)
    assert (type(made), made) == (type(fact), fact)


def test_no_event_of_a_run_is_without_fact() -> None:
    kinds = {topic: cls for topic, cls in EVENTS.items() if issubclass(cls, RunEvent)}
    for topic, cls in kinds.items():
        blank: dict[str, Any] = {**SPINE, **dict.fromkeys(FIELDS), "event_id": "e", **FILLED}
        fact = event_facts(cls.model_construct(**blank))
        in_its_own_lane = topic.startswith("tool.") or topic in OWN_LANE
        assert isinstance(fact, Ordinary) != in_its_own_lane, topic
        assert not isinstance(fact, Ordinary) or fact.late == (topic in AFTER_TERMINAL), topic


OWN_LANE = {"run.opened.v1", "continuation.started.v1", "run.ended.v1", "run.claimed.v1"}
FILLED: dict[str, Any] = {"tool_name": "T", "contract": DISPATCH.contract, "evidence_event_ids": ()}
FIELDS = (
    "args",
    "args_hash",
    "args_text",
    "call_id",
    "disposition",
    "effect",
    "is_error",
    "observation",
    "operation_id",
    "outcome_event_id",
    "protocol",
    "reason",
    "statement",
    "supersedes",
)


def test_a_bundle_of_events_is_judged_against_the_run_before_it() -> None:
    scanner = Scanner()
    call, dispatch, observation, response, decision, attestation = map(
        event_facts, (CALL, DISPATCH, OBSERVATION, RESPONSE, DECISION, ATTESTATION)
    )
    scanner.feed(call)
    scanner.feed(dispatch)
    assert broken_bundle(scanner, (observation, response, decision)) is None
    assert broken_bundle(scanner, (observation, decision)) == "completed_has_outcome"
    assert broken_attestation(scanner, (attestation, response)) is None
    assert broken_attestation(scanner, (attestation,)) == "attestation_has_response"


def test_a_hash_that_is_not_the_call_s_is_found_from_the_arguments_themselves() -> None:
    scanner = Scanner()
    scanner.feed(event_facts(CALL))
    scanner.feed(event_facts(DISPATCH.model_copy(update={"args_hash": args_hash("Write", {"path": "b.txt"})})))
    (verdict,) = resolve(scanner, foreign=False).verdicts
    assert verdict.reason == "canonical_args_hash_conflict"
