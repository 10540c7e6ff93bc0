"""What strict checkers see of parts behind ports. Nothing here is run: each line is checked with the tests, and each
ignored error must be one, for both checkers.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import assert_type

import safepoint
from safepoint.adapters.memory.event_store import MemoryStore
from safepoint.domain.events.event import Json, Timestamp
from safepoint.ports.clock import Clock
from safepoint.ports.contract_kit.reconciler import asked_operation
from safepoint.ports.event_store import Commit, CommitAnswer, EventStore
from safepoint.ports.lifecycle_sink import LifecycleEvent, LifecycleSink
from safepoint.ports.model_provider import ModelProvider, ModelRequest, ProviderProfile, StartProof
from safepoint.ports.model_step import ModelPart
from safepoint.ports.reconciler import AskedOperation
from safepoint.ports.tool_catalog import Binding, BoundCall, SchemaMismatch, ToolCatalog, ToolSpec, UnknownTool


class TheirClock:
    """Conforms without inheriting anything of ours."""

    def now(self) -> Timestamp:
        return "2030-01-01T00:00:00.000000Z"

    def monotonic_seconds(self) -> float:
        return 0.0


class HalfAClock:
    """Has no steady time."""

    def now(self) -> Timestamp:
        return ""


class UnfinishedClock(Clock):
    """Inherits, and leaves a method out."""

    def now(self) -> Timestamp:
        return ""


class TheirSink:
    """Takes what it is told."""

    def record(self, event: LifecycleEvent) -> None:
        assert_type(event.codes, tuple[str, ...])


class TheirCatalog(ToolCatalog):
    """Inherits, so that a method that is left out is noticed at once."""

    def tools(self) -> Sequence[ToolSpec]:
        return ()

    def bind(self, name: str, arguments: Json) -> Binding:
        return UnknownTool(name)


class TheirModel:
    """Answers nothing."""

    def profile(self) -> ProviderProfile:
        return ProviderProfile("acme", "m1")

    async def stream(self, request: ModelRequest, proof: StartProof) -> AsyncGenerator[ModelPart, None]:
        parts: tuple[ModelPart, ...] = ()
        for part in parts:
            yield part

    async def aclose(self) -> None:
        return None


def accepted(commit: Commit) -> None:
    clock: Clock = TheirClock()
    sink: LifecycleSink = TheirSink()
    model: ModelProvider = TheirModel()
    store: EventStore = MemoryStore().events
    assert_type(store.append([commit]), Sequence[CommitAnswer])
    assert_type(asked_operation("acme.pay", evidence={"amount": "10.00"}), AskedOperation)
    safepoint.open("agent.db", model=model, tools=TheirCatalog())
    _ = clock, sink


def every_answer_of_a_catalog_is_known(catalog: ToolCatalog) -> str:
    """A checker sees that nothing else is left."""
    match catalog.bind("pay", {}):
        case BoundCall() as bound:
            return bound.tool_name
        case UnknownTool(name):
            return name
        case SchemaMismatch(name, detail):
            return name + detail


def refused(store: EventStore, commit: Commit) -> None:
    half: Clock = HalfAClock()  # type: ignore[assignment]
    UnfinishedClock()  # type: ignore[abstract]
    wrong: LifecycleSink = TheirClock()  # type: ignore[assignment]
    store.append("commit")  # type: ignore[arg-type]
    store.append([commit], 1000)  # type: ignore[call-arg]
    safepoint.open("agent.db", model=TheirClock())  # type: ignore[arg-type]
    asked_operation("acme.pay")  # type: ignore[call-arg]
    _ = half, wrong
