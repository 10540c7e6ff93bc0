"""The run aggregate: one execution attempt, replayed from its own stream. SPEC section 3.

The tool facts are kept by the recovery scanner, which writer, rebuild and resolver share; the rest is here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

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
from ..persistent_map import Map, PersistentMap, TransientMap
from ..recovery.event_facts import event_facts
from ..recovery.scanner import Scanner

Delivery: TypeAlias = ToolDispatched | ToolRedeliveryStarted


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
    permissions: Map[str, Permission] = field(default_factory=PersistentMap)
    asked: Map[str, tuple[RequestId, ...]] = field(default_factory=PersistentMap)
    open_requests: tuple[RequestId, ...] = ()
    jobs: Mapping[HandleId, BackgroundStarted] = field(default_factory=dict)
    calls: Map[str, ToolCalled] = field(default_factory=PersistentMap)
    deliveries: Map[str, tuple[Delivery, ...]] = field(default_factory=PersistentMap)
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
    draft = RunDraft(run)
    draft.take(event)
    return draft.run()


class RunDraft:
    """A run that takes facts in, in place: for many facts without a state after each, which costs a third.

    Args:
        run: to go on from; by default from no facts at all.
    """

    __slots__ = (
        "_asked",
        "_calls",
        "_cancel_requested",
        "_claimed",
        "_deliveries",
        "_ended",
        "_grants_used",
        "_jobs",
        "_open_requests",
        "_opening",
        "_permissions",
        "_sequence",
        "_steps",
        "_tools",
    )

    def __init__(self, run: Run | None = None) -> None:
        before = run or _NOTHING
        self._sequence = before.sequence
        self._opening = before.opening
        self._cancel_requested = before.cancel_requested
        self._ended = before.ended
        self._claimed = before.claimed
        self._steps = before.steps
        self._open_requests = before.open_requests
        self._jobs = before.jobs
        self._grants_used = before.grants_used
        permissions: TransientMap[str, Permission] = TransientMap()
        asked: TransientMap[str, tuple[RequestId, ...]] = TransientMap()
        calls: TransientMap[str, ToolCalled] = TransientMap()
        deliveries: TransientMap[str, tuple[Delivery, ...]] = TransientMap()
        self._permissions: Map[str, Permission] = permissions if run is None else run.permissions
        self._asked: Map[str, tuple[RequestId, ...]] = asked if run is None else run.asked
        self._calls: Map[str, ToolCalled] = calls if run is None else run.calls
        self._deliveries: Map[str, tuple[Delivery, ...]] = deliveries if run is None else run.deliveries
        self._tools = Scanner.transient() if run is None else run.tools.fork()

    def run(self) -> Run:
        """What the facts up to now amount to; nothing that is taken in later reaches it."""
        return Run(
            sequence=self._sequence,
            opening=self._opening,
            cancel_requested=self._cancel_requested,
            ended=self._ended,
            claimed=self._claimed,
            steps=self._steps,
            permissions=self._permissions.fork(),
            asked=self._asked.fork(),
            open_requests=self._open_requests,
            jobs=self._jobs,
            calls=self._calls.fork(),
            deliveries=self._deliveries.fork(),
            grants_used=self._grants_used,
            tools=self._tools.fork(),
        )

    def take(self, event: RunEvent) -> None:
        """Fold one more fact in; never refuses."""
        self._sequence += 1
        self._tools.feed(event_facts(event), self._sequence)
        match event:
            case ToolCalled():
                self._calls = self._calls.set(event.call_id, event)
            case ToolDispatched() | ToolRedeliveryStarted():
                earlier = self._deliveries.get(event.operation_id) or ()
                self._deliveries = self._deliveries.set(event.operation_id, (*earlier, event))
                if isinstance(event, ToolDispatched) and event.grant_id is not None:
                    self._grants_used |= {event.grant_id}
            case ModelStepCompleted():
                self._steps += 1
            case PermissionRequested() | PermissionDecided() | PermissionClosed():
                self._take_permission(event)
            case BackgroundStarted():
                self._jobs = {**self._jobs, event.handle_id: event}
            case BackgroundSettled():
                self._jobs = {key: job for key, job in self._jobs.items() if key != event.handle_id}
            case RunOpened() | ContinuationStarted():
                self._opening = event
            case CancelRequested():
                self._cancel_requested = self._cancel_requested or event
            case RunEnded():
                self._ended = event
            case RunClaimed():
                self._claimed = event
            case _:
                pass

    def _take_permission(self, event: PermissionRequested | PermissionDecided | PermissionClosed) -> None:
        request = event.request_id
        if isinstance(event, PermissionRequested):
            self._permissions = self._permissions.set(request, Permission(event))
            self._asked = self._asked.set(event.call_id, (*(self._asked.get(event.call_id) or ()), request))
            self._open_requests = (*self._open_requests, request)
            return
        before = self._permissions.get(request)
        if before is None:
            return
        closed = replace(before, closed=True)
        after = replace(before, decided=event) if isinstance(event, PermissionDecided) else closed
        self._permissions = self._permissions.set(request, after)
        self._open_requests = tuple(one for one in self._open_requests if one != request)


_NOTHING = Run()
