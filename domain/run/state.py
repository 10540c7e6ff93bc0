"""The run aggregate: one execution attempt, replayed from its own stream. SPEC section 3.

The tool facts are kept by the recovery scanner, which writer, rebuild and resolver share; the rest is here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..events.event import RunEvent
from ..events.model import ModelStepCompleted
from ..events.outside import (
    BackgroundSettled,
    BackgroundStarted,
    PermissionClosed,
    PermissionDecided,
    PermissionRequested,
)
from ..events.run import CancelRequested, ContinuationStarted, RunClaimed, RunEnded, RunOpened
from ..events.tool import ToolCalled, ToolDispatched, ToolRedeliveryStarted
from ..identifiers import HandleId, RequestId
from ..persistent_map import PersistentMap
from ..recovery.event_facts import event_facts
from ..recovery.scanner import Scanner


@dataclass(frozen=True, slots=True)
class Permission:
    """A question about one call, and what became of it."""

    requested: PermissionRequested
    decided: PermissionDecided | None = None
    closed: bool = False

    @property
    def open(self) -> bool:
        """True while nobody decided it and the run was not stopped."""
        return self.decided is None and not self.closed


@dataclass(frozen=True, slots=True)
class Run:
    """What the facts of a run amount to.

    `sequence` and `digest` name the prefix that they were folded from; `ended_sequence` is the boundary that a continuation
    is made from while nothing but recovery facts follow.
    """

    sequence: int = 0
    opening: RunOpened | ContinuationStarted | None = None
    cancel_requested: CancelRequested | None = None
    ended: RunEnded | None = None
    claimed: RunClaimed | None = None
    steps: int = 0
    permissions: Mapping[RequestId, Permission] = field(default_factory=dict)
    jobs: Mapping[HandleId, BackgroundStarted] = field(default_factory=dict)
    calls: PersistentMap[str, ToolCalled] = field(default_factory=PersistentMap)
    deliveries: PersistentMap[str, tuple[ToolDispatched | ToolRedeliveryStarted, ...]] = field(
        default_factory=PersistentMap
    )
    tools: Scanner = field(default_factory=Scanner.persistent)

    @property
    def open(self) -> bool:
        """True from the first event to the terminal one."""
        return self.opening is not None and self.ended is None


def evolve(run: Run, event: RunEvent) -> Run:
    """Fold one fact in; never refuses. SPEC section 3."""
    tools = run.tools.fork()
    sequence = run.sequence + 1
    tools.feed(event_facts(event), sequence)
    run = replace(run, sequence=sequence, tools=tools)
    match event:
        case RunOpened() | ContinuationStarted():
            return replace(run, opening=event)
        case ModelStepCompleted():
            return replace(run, steps=run.steps + 1)
        case CancelRequested():
            return replace(run, cancel_requested=event)
        case RunEnded():
            return replace(run, ended=event)
        case RunClaimed():
            return replace(run, claimed=event)
        case PermissionRequested() | PermissionDecided() | PermissionClosed():
            return replace(run, permissions=_permissions(run.permissions, event))
        case ToolCalled():
            return replace(run, calls=run.calls.set(event.call_id, event))
        case ToolDispatched() | ToolRedeliveryStarted():
            earlier = run.deliveries.get(event.operation_id) or ()
            return replace(run, deliveries=run.deliveries.set(event.operation_id, (*earlier, event)))
        case BackgroundStarted():
            return replace(run, jobs={**run.jobs, event.handle_id: event})
        case BackgroundSettled():
            left = {key: job for key, job in run.jobs.items() if key != event.handle_id}
            return replace(run, jobs=left)
        case _:
            return run


def _permissions(
    known: Mapping[RequestId, Permission], event: PermissionRequested | PermissionDecided | PermissionClosed
) -> Mapping[RequestId, Permission]:
    if isinstance(event, PermissionRequested):
        return {**known, event.request_id: Permission(event)}
    before = known.get(event.request_id)
    if before is None:
        return known
    after = replace(before, decided=event) if isinstance(event, PermissionDecided) else replace(before, closed=True)
    return {**known, event.request_id: after}
