"""What a program plants by the library, and never finds in its logs, spans, plans or, of some of it, in its store."""

from __future__ import annotations

import logging
from pathlib import Path

import anyio
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import safepoint
from safepoint.adapters.memory.model_provider import Planned, PlannedModel, calls
from safepoint.adapters.observation.logging_sink import LoggingSink
from safepoint.adapters.observation.opentelemetry_sink import OpenTelemetrySink
from safepoint.ports.cancel_signal import CancelSignal
from safepoint.ports.permission_gate import Allowed, Denied, PermissionAnswer, PermissionGate, PermissionRequest
from safepoint.ports.provider_failures import ProviderFailed

STORED = ("planted-argument", "planted-reason", "planted-message")
"""Told to the model, so part of the record."""
NOT_STORED = ("planted-system-prompt", "planted-failure", "planted-stack")


class Refusing(PermissionGate):
    """Refuses one tool, with a reason that is told to the model."""

    def policy_id(self) -> str:
        return "refusing"

    def by_policy(self, request: PermissionRequest) -> PermissionAnswer | None:
        return Denied("ada", "planted-reason") if request.tool_name == "steal" else Allowed("ada")

    def decide(self, request: PermissionRequest, cancel: CancelSignal) -> PermissionAnswer:
        return Denied("ada", "planted-reason")


def steal(what: str) -> str:
    """Steal something."""
    return what


def fail() -> str:
    """Fail, with something in the stack that no message holds."""
    hidden = "planted-stack"
    raise RuntimeError("planted-message" + hidden[:0])


def test_a_program_finds_nothing_of_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    exporter = InMemorySpanExporter()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    steps: list[Planned] = [
        calls(("steal", {"what": "planted-argument"}), ("fail", {})),
        ProviderFailed("planted-failure"),
    ]

    async def work() -> str:
        opened = safepoint.open(
            tmp_path / "store.sqlite",
            model=PlannedModel(steps),
            tools=[steal, fail],
            system_prompt="planted-system-prompt",
            permission=Refusing(),
        )
        opened.parts.sinks.override([LoggingSink(), OpenTelemetrySink(tracers)])
        async with opened as runtime:
            session = runtime.session("s")
            await session.run("Steal it.")
            return repr(await session.plan())

    with caplog.at_level(logging.DEBUG):
        planned = anyio.run(work)
    tracers.shutdown()
    told = "".join(span.to_json() for span in exporter.get_finished_spans()) + caplog.text + planned
    told += "".join(str(record.__dict__) for record in caplog.records)
    assert "execution_failed" in told
    assert "safepoint.execution" in told
    assert [value for value in (*STORED, *NOT_STORED) if value in told] == []
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()).decode("latin-1")
    assert [value for value in STORED if value not in stored] == []
    assert [value for value in NOT_STORED if value in stored] == []
