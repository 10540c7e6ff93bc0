"""The rules R6 to R12 of SPEC section 2, and the fence of section 15, asked of what really happened.

They look at the store, the outside world and the provider alone, and trust no decision of the application.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from safepoint.domain.events.catalogue import AFTER_TERMINAL
from safepoint.domain.events.event import Event
from safepoint.domain.events.run import (
    CancelRequested,
    ContinuationStarted,
    RunClaimed,
    RunEnded,
    RunOpened,
    RunStatus,
    StartKind,
)
from safepoint.domain.events.session import RunAdmitted, RunKind
from safepoint.domain.events.tool import (
    Disposition,
    Statement,
    ToolAttested,
    ToolCalled,
    ToolDispatched,
    ToolReconciled,
    ToolRecoveryDecided,
    ToolRedeliveryStarted,
    ToolResponded,
)
from safepoint.domain.events.tool import Effect as Said
from safepoint.domain.identifiers import OperationId, RunId, SessionId, run_stream, session_stream
from safepoint.domain.replay.items import ResultItem
from safepoint.domain.replay.legality import check_provider_legality
from safepoint.domain.sealing import FIRST_PREVIOUS_DIGEST, SealedEvent
from safepoint.ports.event_store import Commit
from safepoint.ports.model_provider import ModelRequest
from safepoint.ports.session_owners import Ownership

from .fibers import Fiber, running
from .world import Effect, Seen, World

PARTIAL = "half a sentence that must never be kept"
BUNDLE = (ToolReconciled, ToolRecoveryDecided, ToolAttested, ToolRedeliveryStarted)


class Rules:
    """Watches one world; what is broken is told to the world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._streams: defaultdict[str, list[SealedEvent]] = defaultdict(list)
        self._dispatched: dict[OperationId, ToolDispatched] = {}
        self._said: dict[OperationId, ToolResponded] = {}
        self._attested: dict[OperationId, Statement] = {}
        self._boundaries: set[str] = set()
        self._drivers: dict[RunId, tuple[Seen, Fiber | None, int]] = {}

    def copy(self, world: World) -> Rules:
        """The same, watching another world that stands where this one does."""
        other = Rules(world)
        for stream, events in self._streams.items():
            other._streams[stream] = [*events]
        other._dispatched, other._said = {**self._dispatched}, {**self._said}
        other._attested, other._boundaries = {**self._attested}, {*self._boundaries}
        other._drivers = {**self._drivers}
        return other

    def of(self, stream: str) -> list[Event]:
        """The facts of a stream, as they were committed."""
        return [sealed.event for sealed in self._streams[stream]]

    def unanswered(self) -> list[OperationId]:
        """Operations of which no outcome is recorded."""
        return [one for one in self._dispatched if one not in self._said]

    # ---- the store -------------------------------------------------------------------------------------------------

    def committed(self, process: Seen, commit: Commit, owners: Mapping[SessionId, Ownership]) -> None:
        """A commit was stored; `owners` stood before it."""
        if owners.get(commit.guard.session_id) != Ownership(*commit.guard):
            self._world.breaks("15", f"{process.name} wrote with the epoch {commit.guard.epoch}, which it does not own")
        opened = {event.event.run_id for event in commit.events if isinstance(event.event, RunClaimed)}
        for sealed in commit.events:
            self._chained(sealed)
            self._in_place(sealed)
            self._streams[sealed.stream].append(sealed)
            self._fact(process, sealed.event, opened)
            if PARTIAL.encode() in sealed.state:
                self._world.breaks("R13", f"{sealed.event.topic} keeps a partial")

    def _chained(self, sealed: SealedEvent) -> None:
        before = self._streams[sealed.stream]
        previous = before[-1].digest if before else FIRST_PREVIOUS_DIGEST
        if (sealed.sequence, sealed.previous_digest) != (len(before) + 1, previous):
            self._world.breaks("chain", f"{sealed.event.topic} does not follow what stands in {sealed.stream}")

    def _in_place(self, sealed: SealedEvent) -> None:
        """R10: one terminal event, after it what section 7 lists, and nothing after a claim."""
        if not sealed.stream.startswith("run:"):
            return
        before, event = self.of(sealed.stream), sealed.event
        begins = isinstance(event, RunOpened | ContinuationStarted)
        if begins is bool(before):
            self._world.breaks("R10", f"{event.topic} at {sealed.sequence}")
        if any(isinstance(one, RunClaimed) for one in before):
            self._world.breaks("R10", f"{event.topic} after the claim")
        if any(isinstance(one, RunEnded) for one in before) and event.topic not in AFTER_TERMINAL:
            self._world.breaks("R10", f"{event.topic} after the terminal event")

    def _fact(self, process: Seen, event: Event, claimed_with: set[RunId]) -> None:
        match event:
            case RunAdmitted():
                self._admitted(event, claimed_with)
            case ToolDispatched():
                self._t1(process, event)
            case ToolResponded(operation_id=None):
                if event.effect is not Said.NONE or event.call_id in self._calls_dispatched(event.run_id):
                    self._world.breaks("R9", f"call {event.call_id} was dispatched, and is answered as if it was not")
            case ToolResponded(operation_id=operation_id) if operation_id is not None:
                self._t2(event, operation_id)
            case RunClaimed():
                self._claimed(process, event)
            case ContinuationStarted():
                self._drivers[event.run_id] = (process, running(), event.epoch)
                self._started(event)
            case RunOpened():
                self._drivers[event.run_id] = (process, running(), event.epoch)
                self._opened(event)
            case RunEnded():
                self._ended(event)
            case ToolAttested():
                self._attested[event.operation_id] = event.statement
                self._settled(event.operation_id, event.topic)
            case ToolReconciled() | ToolRedeliveryStarted():
                self._settled(event.operation_id, event.topic)
            case ToolRecoveryDecided(disposition=Disposition.COMPLETED):
                self._settled(event.operation_id, event.topic)
            case _:
                pass

    def _admitted(self, event: RunAdmitted, claimed_with: set[RunId]) -> None:
        """A run is admitted when the one before it has ended, a continuation by the claim of the one before it. R10."""
        admitted = [one for one in self.of(session_stream(event.session_id)) if isinstance(one, RunAdmitted)]
        if len({one.run_id for one in admitted}) < len(admitted):
            self._world.breaks("R12", f"run {event.run_id} was admitted twice")
        if len(admitted) < 2:
            return
        before = admitted[-2].run_id
        if event.kind is RunKind.CONTINUATION:
            if before not in claimed_with:
                self._world.breaks("R12", f"{event.run_id} continues what is not the session's head")
        elif not any(isinstance(one, RunEnded) for one in self.of(run_stream(before))):
            self._world.breaks("R10", f"{event.run_id} was admitted while {before} was open")

    def _t1(self, process: Seen, event: ToolDispatched) -> None:
        if event.call_id in [one.call_id for one in self._dispatched.values() if one.run_id == event.run_id]:
            self._world.breaks("R9", f"call {event.call_id} was dispatched twice")
        calls = [one for one in self.of(run_stream(event.run_id)) if isinstance(one, ToolCalled)]
        if any(isinstance(one, CancelRequested) for one in self.of(run_stream(event.run_id))):
            self._world.breaks("7", f"operation {event.operation_id} was dispatched after the run was stopped")
        if event.call_id not in [call.call_id for call in calls]:
            self._world.breaks("R6", f"the call of operation {event.operation_id} was not recorded")
        if any(isinstance(e, ToolResponded) and e.call_id == event.call_id for e in self.of(run_stream(event.run_id))):
            self._world.breaks("R9", f"call {event.call_id} was dispatched after its answer")
        self._dispatched[event.operation_id] = event
        self._world.at_work[event.operation_id] = process.name

    def _t2(self, event: ToolResponded, operation_id: OperationId) -> None:
        if operation_id not in self._dispatched:
            self._world.breaks("R6", f"the outcome of operation {operation_id} has no dispatch")
        if operation_id in self._said:
            self._world.breaks("R9", f"operation {operation_id} has two outcomes")
        self._said[operation_id] = event
        done = [effect for effect in self._world.effects if effect.operation_id == operation_id]
        if event.effect is Said.NONE and done:
            self._world.breaks("R9", f"operation {operation_id} is said to have had no effect")
        if event.effect is Said.DONE and not done:
            self._world.breaks("R9", f"operation {operation_id} is said to be done")

    def _opened(self, event: RunOpened) -> None:
        """The history that a turn is given ends with all that was known when it was opened. SPEC section 12."""
        if event.context is None:
            return
        previous = event.context.previous
        if previous.high_water != len(self._streams[run_stream(previous.run_id)]):
            self._world.breaks("12", f"{event.run_id} was opened with a history that had moved on")

    def _ended(self, event: RunEnded) -> None:
        """Nothing is left open by a run that completed, no call unanswered; repair touches no live work. 7 and 11."""
        events = self.of(run_stream(event.run_id))
        dispatched = {one.call_id: one for one in events if isinstance(one, ToolDispatched)}
        answered = {one.call_id for one in events if isinstance(one, ToolResponded)}
        if event.status is RunStatus.COMPLETED and set(dispatched) - answered:
            self._world.breaks("7", f"{event.run_id} is completed, and an operation is open")
        if any(isinstance(e, ToolCalled) and e.call_id not in {*dispatched, *answered} for e in events):
            self._world.breaks("7", f"{event.run_id} has ended, and a call that was not dispatched has no answer")
        process, fiber, epoch = self._drivers[event.run_id]
        lives = process.alive and fiber is not None and not fiber.ended and fiber is not running()
        if event.recovered and lives and event.epoch == epoch:
            self._world.breaks("11", f"{event.run_id} was repaired while {process.name} drives it")

    def _settled(self, operation_id: OperationId, by: str) -> None:
        dispatch = self._dispatched.get(operation_id)
        events = [] if dispatch is None else self.of(run_stream(dispatch.run_id))
        if not any(isinstance(event, RunEnded) for event in events):
            self._world.breaks("7", f"{by}: the run of operation {operation_id} has not ended")
        if operation_id in self._world.at_work:
            self._world.breaks("R9", f"{by}: operation {operation_id} is not over")

    def _claimed(self, process: Seen, event: RunClaimed) -> None:
        """R9 and R12: one claim of a boundary, and only past what is settled and over; R14: nothing moved since."""
        sealed = self._streams[event.stream]
        if (event.segments[-1].high_water, event.segments[-1].digest) != (len(sealed) - 1, sealed[-2].digest):
            self._world.breaks("R14", f"{event.run_id} had moved on when it was claimed")
        if process.saw is not None and process.saw != event.target.workspace_identity:
            self._world.breaks("R14", f"{event.run_id} was claimed for a workspace that is not there any more")
        if event.boundary_digest in self._boundaries:
            self._world.breaks("R12", f"the boundary of {event.run_id} was claimed twice")
        self._boundaries.add(event.boundary_digest)
        runs = {segment.run_id for segment in event.segments}
        for operation_id, dispatch in self._dispatched.items():
            if dispatch.run_id not in runs:
                continue
            if operation_id in self._world.at_work:
                self._world.breaks(
                    "R9", f"{event.run_id} is continued past operation {operation_id}, which is not over"
                )
            if operation_id not in self._said and operation_id not in self._attested:
                self._world.breaks("R9", f"{event.run_id} is continued past operation {operation_id}, which is open")

    def _started(self, event: ContinuationStarted) -> None:
        stream = self._streams[run_stream(event.source.run_id)]
        claim = stream[-1].event if stream else None
        if not isinstance(claim, RunClaimed) or (claim.claim_id, claim.target.run_id) != (event.claim_id, event.run_id):
            self._world.breaks("R12", f"{event.run_id} was started without the claim of its source")

    def _calls_dispatched(self, run_id: RunId) -> set[str]:
        return {one.call_id for one in self._dispatched.values() if one.run_id == run_id}

    # ---- the outside world and the provider ------------------------------------------------------------------------

    def acts(self, effect: Effect) -> None:
        """An implementation does its effect, now."""
        if effect.operation_id not in self._dispatched:
            self._world.breaks("R6", f"operation {effect.operation_id} acts before its T1 is durable")
        if self._world.store.events._tables.lock._is_owned():  # type: ignore[attr-defined]
            self._world.breaks("R8", f"operation {effect.operation_id} acts inside a transaction")
        if any(one.tool == effect.tool for one in self._world.effects):
            self._world.breaks("R9", f"{effect.tool} was executed twice")
        if effect.operation_id in self._said:
            self._world.breaks("R9", f"operation {effect.operation_id} acts after it was answered")
        if effect.operation_id in self._attested:
            self._world.breaks("R9", f"operation {effect.operation_id} acts after it was settled")
        self._world.effects.append(effect)

    def taken(self, process: Seen, seen: Ownership | None) -> None:
        """A session was taken; from a living owner only by command."""
        if seen is None or seen.incarnation_id is None or process.forces:
            return
        owner = next(one for one in self._world.processes.values() if seen.incarnation_id in one.incarnations)
        if owner.alive and owner is not process:
            self._world.breaks("15", f"{process.name} took the session from {owner.name}, which lives")

    def answers(self, process: Seen, request: ModelRequest, run_id: RunId) -> None:
        """The provider answers a request, now."""
        events = self.of(run_stream(run_id))
        shown = request.history[-1].event_id
        self._world.answered[run_id, shown] += 1
        if self._world.answered[run_id, shown] > 1:
            self._world.breaks("R12", f"{run_id} was answered twice from {shown} on")
        first = events[0] if events else None
        if first is None or (isinstance(first, ContinuationStarted) and first.kind is not StartKind.RUNTIME_ADMISSION):
            self._world.breaks("R12", f"{run_id} asks the provider before it began")
        if illegal := check_provider_legality(request.history):
            self._world.breaks("replay", f"the provider is shown an illegal history: {illegal}")
        known = {event.event_id: event for stream in list(self._streams) for event in self.of(stream)}
        for item in request.history:
            fact = known.get(item.event_id)
            if isinstance(item, ResultItem) and item.computed is None:
                said = item.result["result"] if isinstance(item.result, dict) else item.result  # beside a note
                if not isinstance(fact, ToolResponded) or fact.result != said:
                    self._world.breaks("R7", f"{run_id} is shown a result of {item.tool_name} that is not committed")
            elif fact is None:
                self._world.breaks("R7", f"{run_id} is shown a {item.kind} that is not committed")
