"""The run aggregate: one execution attempt, replayed from its own stream. SPEC section 3.

The tool facts are kept by the recovery scanner, which writer, rebuild and resolver share; the rest is here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, TypeAlias

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
from ..events.tool import Effect, ToolCalled, ToolDispatched, ToolRedeliveryStarted, ToolResponded
from ..identifiers import GrantId, HandleId, RequestId
from ..recovery.event_facts import event_facts
from ..recovery.facts import Fact
from ..recovery.scan_state import above
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


@dataclass(eq=False)
class Run:
    """What the facts of a run amount to. Folding one more in costs the same whatever the run's length.

    It changes in place. Whoever wants to know what some facts would make of it folds them into a fork. Whoever lends it
    to others goes on with a copy, so what they look at stays as it is (ADR 0086).

    Attributes:
        sequence: how many facts it was folded from.
        permissions: all questions by request; `asked` has their requests by call, and `open_requests` the open ones.
        jobs: work that goes on, attached or not.
        calls: those whose effect may be asked for yet, by call id: neither answered for certain nor refused.
        dispatches, redeliveries: by operation id, T1 and what was delivered after it.
        grants_used: grants that a dispatch named.
        tools: the scanner's account of calls, dispatches, outcomes and recovery.
    """

    sequence: int = 0
    opening: RunOpened | ContinuationStarted | None = None
    cancel_requested: CancelRequested | None = None
    ended: RunEnded | None = None
    claimed: RunClaimed | None = None
    steps: int = 0
    permissions: MutableMapping[str, Permission] = field(default_factory=dict)
    asked: MutableMapping[str, tuple[RequestId, ...]] = field(default_factory=dict)
    open_requests: tuple[RequestId, ...] = ()
    jobs: Mapping[HandleId, BackgroundStarted] = field(default_factory=dict)
    calls: dict[str, ToolCalled] = field(default_factory=dict)
    dispatches: MutableMapping[str, ToolDispatched] = field(default_factory=dict)
    redeliveries: MutableMapping[str, tuple[Delivery, ...]] = field(default_factory=dict)
    grants_used: frozenset[GrantId] = frozenset()
    tools: Scanner = field(default_factory=Scanner)

    @property
    def open(self) -> bool:
        """True from the first event to the terminal one."""
        return self.opening is not None and self.ended is None

    @property
    def open_permissions(self) -> tuple[Permission, ...]:
        """The questions that wait for a person, in the order in which they were asked."""
        return tuple(one for request in self.open_requests if (one := self.permissions.get(request)) is not None)

    def deliveries_of(self, operation_id: str) -> tuple[Delivery, ...]:
        """T1 and whatever was delivered again, in order."""
        first, later = self.dispatches.get(operation_id), self.redeliveries.get(operation_id) or ()
        return later if first is None else (first, *later)

    def permissions_of(self, call_id: str) -> tuple[Permission, ...]:
        """The questions about a call, in the order in which they were asked."""
        requests = self.asked.get(call_id)
        if not requests:
            return ()
        return tuple(one for request in requests if (one := self.permissions.get(request)) is not None)

    # ---- how it changes ---------------------------------------------------------------------------------------------

    def copy(self) -> Self:
        """One with the same past; nothing that either takes in reaches the other. Costs what it holds."""
        twin = self._twin(self.tools.copy())
        vars(twin).update({name: {**vars(self)[name]} for name in _MAPS})
        return twin

    def fork(self) -> Self:
        """One that goes on from here at little cost, and is of no use once this one goes on."""
        twin = self._twin(self.tools.fork())
        vars(twin).update({name: above(vars(self)[name]) for name in _MAPS})
        return twin

    def _twin(self, tools: Scanner) -> Self:
        twin = object.__new__(self.__class__)
        vars(twin).update(vars(self), tools=tools, calls=self.calls.copy())
        return twin

    def take(self, event: RunEvent) -> None:
        """Fold one more fact in; never refuses."""
        self.take_as(event, event_facts(event, self.tools.identity))

    def take_as(self, event: RunEvent, fact: Fact) -> None:
        """The same for an event of which the scanner's fact was made already."""
        self.sequence += 1
        self.tools.feed(fact, self.sequence)
        # By its exact type: pydantic's classes are slow to say that something is none of theirs.
        take = self._TAKE.get(type(event))
        if take is not None:
            take(self, event)

    def _take_call(self, event: ToolCalled) -> None:
        self.calls[event.call_id] = event

    def _take_step(self, _event: ModelStepCompleted) -> None:
        self.steps += 1

    def _take_job(self, event: BackgroundStarted) -> None:
        self.jobs = {**self.jobs, event.handle_id: event}

    def _take_job_settled(self, event: BackgroundSettled) -> None:
        self.jobs = {key: job for key, job in self.jobs.items() if key != event.handle_id}

    def _take_opening(self, event: RunOpened | ContinuationStarted) -> None:
        self.opening = event

    def _take_cancel_requested(self, event: CancelRequested) -> None:
        self.cancel_requested = self.cancel_requested or event

    def _take_ended(self, event: RunEnded) -> None:
        self.ended = event

    def _take_claimed(self, event: RunClaimed) -> None:
        self.claimed = event

    def _take_dispatched(self, event: ToolDispatched) -> None:
        fields = event.__dict__  # much quicker than attributes of a pydantic model
        operation_id, dispatches, redeliveries = fields["operation_id"], self.dispatches, self.redeliveries
        if dispatches.get(operation_id) is None and redeliveries.get(operation_id) is None:
            dispatches[operation_id] = event
        else:
            self._take_redelivery(event)  # of a damaged run
        if (grant_id := fields["grant_id"]) is not None:
            self.grants_used |= {grant_id}

    def _take_redelivery(self, event: Delivery) -> None:
        earlier = self.redeliveries.get(event.operation_id) or ()
        self.redeliveries[event.operation_id] = (*earlier, event)

    def _take_responded(self, event: ToolResponded) -> None:
        fields = event.__dict__
        if fields["effect"] is not Effect.UNKNOWN:  # else somebody may have to say what became of it
            self.calls.pop(fields["call_id"], None)

    def _take_permission_requested(self, event: PermissionRequested) -> None:
        request = event.request_id
        self.permissions[request] = Permission(event)
        self.asked[event.call_id] = (*self.asked.get(event.call_id, ()), request)
        self.open_requests = (*self.open_requests, request)

    def _take_permission_answered(self, event: PermissionDecided | PermissionClosed) -> None:
        request = event.request_id
        before = self.permissions.get(request)
        if before is None:
            return
        closed = replace(before, closed=True)
        after = replace(before, decided=event) if type(event) is PermissionDecided else closed
        self.permissions[request] = after
        self.open_requests = tuple(one for one in self.open_requests if one != request)

    _TAKE: ClassVar[Mapping[type[RunEvent], Callable[[Run, Any], None]]] = {
        ToolCalled: _take_call,
        ToolDispatched: _take_dispatched,
        ToolResponded: _take_responded,
        ToolRedeliveryStarted: _take_redelivery,
        ModelStepCompleted: _take_step,
        PermissionRequested: _take_permission_requested,
        PermissionDecided: _take_permission_answered,
        PermissionClosed: _take_permission_answered,
        BackgroundStarted: _take_job,
        BackgroundSettled: _take_job_settled,
        RunOpened: _take_opening,
        ContinuationStarted: _take_opening,
        CancelRequested: _take_cancel_requested,
        RunEnded: _take_ended,
        RunClaimed: _take_claimed,
    }
    """What more than the scanner's account a fact changes; other kinds change nothing more."""


def evolve(run: Run, event: RunEvent) -> Run:
    """What a run and one fact more amount to; never refuses, and leaves the run as it is. SPEC section 3.

    Whoever folds many facts lets a run take them in, which costs no copy.
    """
    evolved = run.copy()
    evolved.take(event)
    return evolved


_MAPS = ("permissions", "asked", "dispatches", "redeliveries")
"""What grows with the run; what of it waits is small."""
