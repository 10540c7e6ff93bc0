"""The run aggregate: one execution attempt, replayed from its own stream. SPEC section 3.

The tool facts are kept by the recovery scanner, which writer, rebuild and resolver share; the rest is here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from ..events.event import RunEvent
from ..events.model import ModelStepCompleted, ModelText, ModelThinking
from ..events.outside import (
    BackgroundSettled,
    BackgroundStarted,
    PermissionClosed,
    PermissionDecided,
    PermissionRequested,
)
from ..events.run import CancelRequested, ContinuationStarted, RunClaimed, RunEnded, RunOpened
from ..events.tool import ToolCalled, ToolDispatched, ToolRedeliveryStarted, ToolResponded
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


@dataclass(frozen=True)
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
    return draft.last()


class RunDraft:
    """A run that takes facts in, in place: for many facts without a state after each, which costs a third.

    Its attributes are those of a run.

    Args:
        run: to go on from; by default from no facts at all.
    """

    sequence: int
    opening: RunOpened | ContinuationStarted | None
    cancel_requested: CancelRequested | None
    ended: RunEnded | None
    claimed: RunClaimed | None
    steps: int
    permissions: Map[str, Permission]
    asked: Map[str, tuple[RequestId, ...]]
    open_requests: tuple[RequestId, ...]
    jobs: Mapping[HandleId, BackgroundStarted]
    calls: Map[str, ToolCalled]
    deliveries: Map[str, tuple[Delivery, ...]]
    grants_used: frozenset[GrantId]
    tools: Scanner

    def __init__(self, run: Run | None = None) -> None:
        if run is not None:
            vars(self).update(vars(run))
            self.tools = run.tools.fork()
            return
        vars(self).update(vars(_NOTHING))
        self.permissions = TransientMap[str, Permission]()
        self.asked = TransientMap[str, tuple[RequestId, ...]]()
        self.calls = TransientMap[str, ToolCalled]()
        self.deliveries = TransientMap[str, tuple[Delivery, ...]]()
        self.tools = Scanner.transient()

    def run(self) -> Run:
        """What the facts up to now amount to; nothing that is taken in later reaches it."""
        made = self.last()
        vars(made).update(
            permissions=self.permissions.fork(),
            asked=self.asked.fork(),
            calls=self.calls.fork(),
            deliveries=self.deliveries.fork(),
            tools=self.tools.fork(),
        )
        return made

    def last(self) -> Run:
        """What all facts amount to; nothing is taken in after it."""
        made = object.__new__(Run)
        vars(made).update(vars(self))  # a tenth of what making one field by field takes, and a part of every T1 and T2
        return made

    def take(self, event: RunEvent) -> None:
        """Fold one more fact in; never refuses."""
        self.sequence += 1
        self.tools.feed(event_facts(event, self.tools.identity), self.sequence)
        # By its exact type, for most events: pydantic's classes are slow to say that something is none of theirs.
        if type(event) in _OF_THE_SCANNER_ALONE:
            return
        if type(event) is ToolDispatched or type(event) is ToolRedeliveryStarted:
            self._take_delivery(event)
            return
        match event:
            case ToolCalled():
                self.calls = self.calls.set(event.call_id, event)
            case ModelStepCompleted():
                self.steps += 1
            case PermissionRequested() | PermissionDecided() | PermissionClosed():
                self._take_permission(event)
            case BackgroundStarted():
                self.jobs = {**self.jobs, event.handle_id: event}
            case BackgroundSettled():
                self.jobs = {key: job for key, job in self.jobs.items() if key != event.handle_id}
            case RunOpened() | ContinuationStarted():
                self.opening = event
            case CancelRequested():
                self.cancel_requested = self.cancel_requested or event
            case RunEnded():
                self.ended = event
            case RunClaimed():
                self.claimed = event
            case _:
                pass

    def _take_delivery(self, event: Delivery) -> None:
        earlier = self.deliveries.get(event.operation_id)
        self.deliveries = self.deliveries.set(event.operation_id, (event,) if earlier is None else (*earlier, event))
        if type(event) is ToolDispatched and event.grant_id is not None:
            self.grants_used |= {event.grant_id}

    def _take_permission(self, event: PermissionRequested | PermissionDecided | PermissionClosed) -> None:
        request = event.request_id
        if isinstance(event, PermissionRequested):
            self.permissions = self.permissions.set(request, Permission(event))
            self.asked = self.asked.set(event.call_id, (*(self.asked.get(event.call_id) or ()), request))
            self.open_requests = (*self.open_requests, request)
            return
        before = self.permissions.get(request)
        if before is None:
            return
        closed = replace(before, closed=True)
        after = replace(before, decided=event) if isinstance(event, PermissionDecided) else closed
        self.permissions = self.permissions.set(request, after)
        self.open_requests = tuple(one for one in self.open_requests if one != request)


_NOTHING = Run()
_OF_THE_SCANNER_ALONE = frozenset({ToolResponded, ModelText, ModelThinking})
