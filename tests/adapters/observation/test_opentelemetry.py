"""What the OpenTelemetry sink makes of lifecycle events, read back from the SDK. SPEC section 18."""

from __future__ import annotations

import builtins
import logging
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from safepoint.adapters.observation import opentelemetry_sink
from safepoint.adapters.observation.chosen_sinks import sinks_from
from safepoint.adapters.observation.guarded_sink import GuardedSink
from safepoint.adapters.observation.logging_sink import LoggingSink
from safepoint.adapters.observation.opentelemetry_sink import OpenTelemetrySink
from safepoint.domain.identifiers import ClaimId, OperationId, RunId, SessionId
from safepoint.ports.lifecycle_sink import LifecycleEvent, LifecycleKind

K = LifecycleKind
SESSION, SOURCE, RUN, CLAIM = SessionId("s"), RunId("r-1"), RunId("r-2"), ClaimId("c")


class Collected:
    """A sink and everything that it made."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.meters = MeterProvider([self.reader])
        self.sink = OpenTelemetrySink(self.tracers, self.meters)

    def tell(self, kind: LifecycleKind, run_id: RunId | None = None, **more: Any) -> None:
        self.sink.record(LifecycleEvent(kind=kind, session_id=SESSION, run_id=run_id, **more))

    def spans(self) -> tuple[ReadableSpan, ...]:
        return tuple(self.exporter.get_finished_spans())

    def counts(self) -> dict[str, dict[tuple[Any, ...], int]]:
        found: dict[str, dict[tuple[Any, ...], int]] = {}
        data = self.reader.get_metrics_data()
        for resource in data.resource_metrics if data is not None else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    points: Any = metric.data.data_points
                    found[metric.name] = {tuple(dict(point.attributes).values()): point.value for point in points}
        return found


@pytest.fixture
def collected() -> Iterator[Collected]:
    one = Collected()
    yield one
    one.tracers.shutdown()
    one.meters.shutdown()


def attributes(span: ReadableSpan) -> Mapping[str, Any]:
    return dict(span.attributes or {})


def test_an_execution_is_a_span_from_start_to_end_and_linked_to_its_plan(collected: Collected) -> None:
    collected.tell(K.PLAN_APPROVED, SOURCE, claim_id=CLAIM)
    collected.tell(K.EXECUTION_STARTED, RUN, claim_id=CLAIM)
    assert [span.name for span in collected.spans()] == ["safepoint.plan_approved"], "it has not ended"
    collected.tell(K.EXECUTION_COMPLETED, RUN, claim_id=CLAIM)
    plan, execution = collected.spans()
    assert execution.name == "safepoint.execution"
    assert attributes(execution) == {
        "safepoint.session_id": "s",
        "safepoint.run_id": "r-2",
        "safepoint.claim_id": "c",
    }
    assert attributes(plan) == {"safepoint.session_id": "s", "safepoint.run_id": "r-1", "safepoint.claim_id": "c"}
    assert [link.context for link in execution.links] == [plan.get_span_context()]
    assert execution.status.status_code is StatusCode.UNSET
    assert plan.end_time is not None
    assert execution.start_time is not None
    assert plan.end_time <= execution.start_time


def test_an_execution_is_a_child_of_what_the_program_was_doing(collected: Collected) -> None:
    with trace.get_tracer("program", tracer_provider=collected.tracers).start_as_current_span("request") as request:
        collected.tell(K.EXECUTION_STARTED, RUN)
        collected.tell(K.EXECUTION_COMPLETED, RUN)
    execution, _ = collected.spans()
    assert execution.parent == request.get_span_context()


@pytest.mark.parametrize(
    ("more", "says"),
    [({"codes": ("provider_failed",)}, "provider_failed"), ({"error_class": "StoreFull"}, "StoreFull")],
)
def test_an_execution_that_failed_is_an_error_with_its_code_or_class(
    collected: Collected, more: dict[str, Any], says: str
) -> None:
    collected.tell(K.EXECUTION_STARTED, RUN)
    collected.tell(K.EXECUTION_FAILED, RUN, **more)
    (execution,) = collected.spans()
    assert (execution.status.status_code, execution.status.description) == (StatusCode.ERROR, says)
    assert attributes(execution).get("error.type") == more.get("error_class")


def test_a_failure_before_the_start_is_an_execution_all_the_same(collected: Collected) -> None:
    collected.tell(K.EXECUTION_FAILED, RUN, error_class="ValueError")
    (execution,) = collected.spans()
    assert (execution.name, execution.status.status_code) == ("safepoint.execution", StatusCode.ERROR)


@pytest.mark.parametrize("kind", sorted(set(K) - {K.EXECUTION_STARTED, K.EXECUTION_COMPLETED, K.EXECUTION_FAILED}))
def test_everything_else_is_a_span_without_length(collected: Collected, kind: LifecycleKind) -> None:
    collected.tell(kind, RUN, operation_id=OperationId("o"), codes=("diverged", "reconcile_diverged"))
    (span,) = collected.spans()
    assert span.name == f"safepoint.{kind.value}"
    assert attributes(span) == {
        "safepoint.session_id": "s",
        "safepoint.run_id": "r-2",
        "safepoint.operation_id": "o",
        "safepoint.codes": ("diverged", "reconcile_diverged"),
    }
    assert span.status.status_code is StatusCode.UNSET


def test_counters_hold_kinds_codes_and_error_classes_and_no_identity(collected: Collected) -> None:
    for session in ("one", "two"):
        collected.sink.record(
            LifecycleEvent(
                kind=K.PLAN_PARKED, session_id=SessionId(session), codes=("workspace_drift", "dangling_tool_state")
            )
        )
    collected.tell(K.EXECUTION_FAILED, RUN, error_class="StoreFull")
    assert collected.counts() == {
        "safepoint.lifecycle.events": {("plan_parked",): 2, ("execution_failed", "StoreFull"): 1},
        "safepoint.lifecycle.codes": {
            ("plan_parked", "workspace_drift"): 2,
            ("plan_parked", "dangling_tool_state"): 2,
        },
    }


def test_what_is_held_is_bounded(collected: Collected, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opentelemetry_sink, "HELD_MAX", 2)
    for number in range(4):
        collected.tell(K.PLAN_APPROVED, SOURCE, claim_id=ClaimId(f"c{number}"))
    for number in range(4):
        collected.tell(K.EXECUTION_STARTED, RunId(f"r{number}"), claim_id=ClaimId(f"c{number}"))
    ended = [span for span in collected.spans() if span.name == "safepoint.execution"]
    assert [attributes(span)["safepoint.run_id"] for span in ended] == ["r0", "r1"]
    assert [len(span.links) for span in ended] == [0, 0]


def test_a_program_that_set_nothing_up_is_not_disturbed() -> None:
    sink = OpenTelemetrySink()
    for kind in K:
        sink.record(LifecycleEvent(kind=kind, session_id=SESSION, run_id=RUN, claim_id=CLAIM, codes=("x",)))


class Broken:
    def __getattr__(self, name: str) -> Any:
        raise ConnectionError("sk-secret at https://collector.example")


def test_a_collector_that_fails_is_noticed_by_class_and_ignored(
    collected: Collected, caplog: pytest.LogCaptureFixture
) -> None:
    collected.sink._tracer = Broken()  # type: ignore[assignment]
    guarded = GuardedSink([collected.sink])
    for _ in range(3):
        guarded.record(LifecycleEvent(kind=K.PLAN_PARKED, session_id=SESSION))
    (record,) = caplog.records
    assert record.getMessage() == (
        "lifecycle sink OpenTelemetrySink failed with ConnectionError; its errors are ignored"
    )


def test_the_environment_says_whether_spans_are_made() -> None:
    assert [type(sink) for sink in sinks_from({})] == [LoggingSink]
    assert [type(sink) for sink in sinks_from({"SAFEPOINT_OTEL": "0"})] == [LoggingSink]
    assert [type(sink) for sink in sinks_from({"SAFEPOINT_OTEL": "1"})] == [LoggingSink, OpenTelemetrySink]


def test_a_missing_package_is_noticed_with_the_extra_and_nothing_else_changes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    really_import = builtins.__import__

    def without(name: str, *rest: object) -> object:
        if name == "opentelemetry":
            raise ModuleNotFoundError(name)
        return really_import(name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    assert [type(sink) for sink in sinks_from({"SAFEPOINT_OTEL": "1"})] == [LoggingSink]
    (record,) = caplog.records
    assert (record.levelno, "pip install 'safepoint[otel]'" in record.getMessage()) == (logging.WARNING, True)
