"""Lifecycle events as OpenTelemetry spans and counters (extra `otel`). SPEC section 18.

An execution is a span from its start to its end; everything else is a span without length. Identities stand in spans
alone: in a counter each would be a time series of its own.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from ...ports.lifecycle_sink import LifecycleEvent, LifecycleKind, LifecycleSink

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Link, Span, SpanContext, TracerProvider
    from opentelemetry.util.types import AttributeValue

SCOPE: Final = "safepoint"
HELD_MAX: Final = 10_000
"""Executions whose end is waited for, and claims whose execution is; beyond that the oldest is given up."""
EXECUTION: Final = "safepoint.execution"
_ENDS: Final = frozenset({LifecycleKind.EXECUTION_COMPLETED, LifecycleKind.EXECUTION_FAILED})


class OpenTelemetrySink(LifecycleSink):
    """Makes spans and counts.

    Spans: `safepoint.execution` with the status `ERROR` where it failed, linked to the plan that it came from; and
    `safepoint.<kind>` for every other event. Counters: `safepoint.lifecycle.events` by kind and error class, and
    `safepoint.lifecycle.codes` by kind and code.

    Args:
        tracer_provider: by default the one of the program.
        meter_provider: by default the one of the program.

    Raises:
        ImportError: the package opentelemetry-api is not installed (extra `otel`).
    """

    def __init__(
        self, tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None
    ) -> None:
        from opentelemetry import metrics, trace

        self._tracer = trace.get_tracer(SCOPE, tracer_provider=tracer_provider)
        meter = metrics.get_meter(SCOPE, meter_provider=meter_provider)
        self._events = meter.create_counter("safepoint.lifecycle.events", "{event}", "What the runtime decided.")
        self._codes = meter.create_counter("safepoint.lifecycle.codes", "{code}", "The codes of what it decided.")
        self._lock = threading.Lock()
        self._executions: OrderedDict[str, Span] = OrderedDict()
        self._plans: OrderedDict[str, SpanContext] = OrderedDict()

    def record(self, event: LifecycleEvent) -> None:
        """Count the event, and begin or end its span."""
        kind = event.kind.value
        error = {} if event.error_class is None else {"error.type": event.error_class}
        self._events.add(1, {"safepoint.kind": kind, **error})
        for code in event.codes:
            self._codes.add(1, {"safepoint.kind": kind, "safepoint.code": str(code)})
        if event.kind is LifecycleKind.EXECUTION_STARTED:
            self._begin(event)
        elif event.kind in _ENDS:
            self._end(event)
        else:
            self._point(event)

    def _begin(self, event: LifecycleEvent) -> None:
        span = self._tracer.start_span(EXECUTION, attributes=_attributes(event), links=self._plan_of(event))
        with self._lock:
            self._executions[str(event.run_id)] = span
            given_up = self._executions.popitem(last=False)[1] if len(self._executions) > HELD_MAX else None
        if given_up is not None:
            given_up.end()

    def _end(self, event: LifecycleEvent) -> None:
        from opentelemetry.trace import Status, StatusCode

        with self._lock:
            span = self._executions.pop(str(event.run_id), None)
        if span is None:  # it failed before it was begun
            span = self._tracer.start_span(EXECUTION)
        span.set_attributes(_attributes(event))
        if event.kind is LifecycleKind.EXECUTION_FAILED:
            span.set_status(Status(StatusCode.ERROR, event.error_class or ",".join(map(str, event.codes))))
        span.end()

    def _point(self, event: LifecycleEvent) -> None:
        span = self._tracer.start_span(f"safepoint.{event.kind.value}", attributes=_attributes(event))
        if event.kind is LifecycleKind.PLAN_APPROVED and event.claim_id is not None:
            with self._lock:
                self._plans[event.claim_id] = span.get_span_context()
                if len(self._plans) > HELD_MAX:
                    self._plans.popitem(last=False)
        span.end()

    def _plan_of(self, event: LifecycleEvent) -> list[Link]:
        from opentelemetry.trace import Link

        with self._lock:
            plan = None if event.claim_id is None else self._plans.pop(event.claim_id, None)
        return [] if plan is None else [Link(plan)]


def _attributes(event: LifecycleEvent) -> dict[str, AttributeValue]:
    named = {
        "safepoint.session_id": event.session_id,
        "safepoint.run_id": event.run_id,
        "safepoint.operation_id": event.operation_id,
        "safepoint.claim_id": event.claim_id,
        "error.type": event.error_class,
    }
    attributes: dict[str, AttributeValue] = {name: str(value) for name, value in named.items() if value is not None}
    if event.codes:
        attributes["safepoint.codes"] = [str(code) for code in event.codes]
    return attributes
