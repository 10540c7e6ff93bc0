"""The run aggregate: one execution attempt, replayed from its own stream. SPEC section 3.

The tool facts are kept by the recovery scanner, which writer, rebuild and resolver share; the rest is here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

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
from ..identifiers import GrantId, HandleId, RequestId
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
    """What the facts of a run amount to. Folding one more in costs the same whatever the run's length.

    Attributes:
        sequence: how many facts it was folded from.
        permissions: all questions by request; `asked` has their requests by call, and `open_requests` the open ones.
        jobs: work that goes on, attached or not.
        calls, deliveries: by call id, and by operation id.
        grants_used: grants that a dispatch named.
        tools: the scanner's account of calls, dispatches, outcomes and recovery.
    """

    sequence: int = 0
    opening: RunOpened | ContinuationStarted | None = None
    cancel_requested: CancelRequested | None = None
    ended: RunEnded | None = None
    claimed: RunClaimed | None = None
    steps: int = 0
    permissions: PersistentMap[str, Permission] = field(default_factory=PersistentMap)
    asked: PersistentMap[str, tuple[RequestId, ...]] = field(default_factory=PersistentMap)
    open_requests: tuple[RequestId, ...] = ()
    jobs: Mapping[HandleId, BackgroundStarted] = field(default_factory=dict)
    calls: PersistentMap[str, ToolCalled] = field(default_factory=PersistentMap)
    deliveries: PersistentMap[str, tuple[ToolDispatched | ToolRedeliveryStarted, ...]] = field(
        default_factory=PersistentMap
    )
    grants_used: frozenset[GrantId] = frozenset()
    tools: Scanner = field(default_factory=Scanner.persistent)

    @property
    def open(self) -> bool:
        """True from the first event to the terminal one."""
        return self.opening is not None and self.ended is None

    @property
    def open_permissions(self) -> tuple[Permission, ...]:
        """The questions that wait for a person, in the order in which they were asked."""
        return tuple(one for request in self.open_requests if (one := self.permissions.get(request)) is not None)

    def permissions_of(self, call_id: str) -> tuple[Permission, ...]:
        """The questions about a call, in the order in which they were asked."""
        requests = self.asked.get(call_id) or ()
        return tuple(one for request in requests if (one := self.permissions.get(request)) is not None)


def evolve(run: Run, event: RunEvent) -> Run:
    """Fold one fact in; never refuses. SPEC section 3."""
    tools = run.tools.fork()
    sequence = run.sequence + 1
    tools.feed(event_facts(event), sequence)
    moved = partial(replace, run, sequence=sequence, tools=tools)
    match event:
        case ToolCalled():
            return moved(calls=run.calls.set(event.call_id, event))
        case ToolDispatched() | ToolRedeliveryStarted():
            earlier = run.deliveries.get(event.operation_id) or ()
            deliveries = run.deliveries.set(event.operation_id, (*earlier, event))
            if isinstance(event, ToolDispatched) and event.grant_id is not None:
                return moved(deliveries=deliveries, grants_used=run.grants_used | {event.grant_id})
            return moved(deliveries=deliveries)
        case ModelStepCompleted():
            return moved(steps=run.steps + 1)
        case PermissionRequested() | PermissionDecided() | PermissionClosed():
            return _with_permission(moved(), event)
        case BackgroundStarted():
            return moved(jobs={**run.jobs, event.handle_id: event})
        case BackgroundSettled():
            return moved(jobs={key: job for key, job in run.jobs.items() if key != event.handle_id})
        case RunOpened() | ContinuationStarted():
            return moved(opening=event)
        case CancelRequested():
            return moved(cancel_requested=run.cancel_requested or event)
        case RunEnded():
            return moved(ended=event)
        case RunClaimed():
            return moved(claimed=event)
        case _:
            return moved()


def _with_permission(run: Run, event: PermissionRequested | PermissionDecided | PermissionClosed) -> Run:
    request = event.request_id
    if isinstance(event, PermissionRequested):
        asked = (*(run.asked.get(event.call_id) or ()), request)
        return replace(
            run,
            permissions=run.permissions.set(request, Permission(event)),
            asked=run.asked.set(event.call_id, asked),
            open_requests=(*run.open_requests, request),
        )
    before = run.permissions.get(request)
    if before is None:
        return run
    after = replace(before, decided=event) if isinstance(event, PermissionDecided) else replace(before, closed=True)
    still_open = tuple(one for one in run.open_requests if one != request)
    return replace(run, permissions=run.permissions.set(request, after), open_requests=still_open)
