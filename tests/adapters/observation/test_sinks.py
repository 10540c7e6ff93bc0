"""What operators are told, and what cannot go wrong by telling them."""

from __future__ import annotations

import json
import logging

import pytest

from safepoint.adapters.memory.lifecycle_sink import CollectingSink
from safepoint.adapters.observation.guarded_sink import GuardedSink
from safepoint.adapters.observation.logging_sink import LoggingSink
from safepoint.domain.identifiers import OperationId, RunId, SessionId
from safepoint.ports.lifecycle_sink import LifecycleEvent, LifecycleKind, LifecycleSink

PARKED = LifecycleEvent(
    kind=LifecycleKind.PLAN_PARKED,
    session_id=SessionId("s-1"),
    run_id=RunId("r-1"),
    operation_id=OperationId("o-1"),
    codes=("workspace_drift", "dangling_tool_state"),
    error_class="StoreFull",
)


class FailingSink(LifecycleSink):
    def record(self, event: LifecycleEvent) -> None:
        raise ConnectionError("sk-secret at https://collector.example")


def test_a_line_names_identities_codes_and_error_class(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        LoggingSink().record(PARKED)
    (record,) = caplog.records
    assert record.getMessage() == (
        "plan_parked session=s-1 run=r-1 operation=o-1 codes=workspace_drift,dangling_tool_state error=StoreFull"
    )
    assert (record.name, record.levelno) == ("safepoint.lifecycle", logging.WARNING)


def test_what_is_not_known_is_not_named(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        LoggingSink().record(LifecycleEvent(kind=LifecycleKind.REPAIR_COMPLETED, session_id=SessionId("s")))
    (record,) = caplog.records
    assert (record.getMessage(), record.levelno) == ("repair_completed session=s", logging.INFO)


@pytest.mark.parametrize("name", ["a b", "x codes=workspace_drift", 'say "hi"'])
def test_an_id_with_spaces_is_one_word_and_forges_no_fact(name: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        LoggingSink().record(LifecycleEvent(kind=LifecycleKind.REPAIR_COMPLETED, session_id=SessionId(name)))
    (record,) = caplog.records
    assert record.getMessage() == f"repair_completed session={json.dumps(name)}"


def test_there_is_no_place_for_a_prompt_an_argument_a_result_or_a_message() -> None:
    fields = set(LifecycleEvent.__dataclass_fields__)
    assert fields == {"kind", "session_id", "run_id", "operation_id", "claim_id", "codes", "error_class"}


def test_a_failing_sink_is_noticed_once_by_class_and_the_others_are_told(caplog: pytest.LogCaptureFixture) -> None:
    before, after = CollectingSink(), CollectingSink()
    guarded = GuardedSink([before, FailingSink(), after])
    for _ in range(3):
        guarded.record(PARKED)
    assert before.events == after.events == [PARKED] * 3
    (record,) = caplog.records
    assert record.getMessage() == ("lifecycle sink FailingSink failed with ConnectionError; its errors are ignored")


def test_each_failing_sink_is_noticed() -> None:
    noticed: list[tuple[str, str]] = []
    guarded = GuardedSink([FailingSink(), FailingSink()], lambda sink, error: noticed.append((sink, error)))
    guarded.record(PARKED)
    guarded.record(PARKED)
    assert noticed == [("FailingSink", "ConnectionError")] * 2


def test_not_even_a_notice_that_fails_disturbs_the_caller() -> None:
    def fail(sink: str, error: str) -> None:
        raise BrokenPipeError

    GuardedSink([FailingSink()], fail).record(PARKED)
