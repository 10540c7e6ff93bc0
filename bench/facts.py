"""The facts of a coding agent's runs, as its hosts would make them. What is measured writes, reads or repairs these."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import NamedTuple, TypeAlias

from safepoint.adapters.system.clock import SystemClock
from safepoint.adapters.system.ids import Uuid7Ids
from safepoint.application.spines import Spines
from safepoint.domain import canonical
from safepoint.domain.boundary import boundary_digest
from safepoint.domain.events.assembling import assembled
from safepoint.domain.events.event import Event
from safepoint.domain.events.model import ModelStepCompleted, ModelText, UserMessage
from safepoint.domain.events.run import (
    TOOL_BOUNDARY_PROTOCOL,
    ExecutionProfile,
    PrefixRef,
    RunClaimed,
    RunEnded,
    RunOpened,
    RunStatus,
    TargetHeader,
    Trigger,
)
from safepoint.domain.events.session import RunAdmitted, RunKind, SessionOpened
from safepoint.domain.events.tool import (
    Effect,
    Life,
    RecordedContract,
    RecoveryMode,
    ToolCalled,
    ToolDispatched,
    ToolResponded,
)
from safepoint.domain.identifiers import ClaimId, ExecutionIdentity, OperationId, StepId, ToolCallId
from safepoint.ports.event_store import OwnerGuard

TOOL = "write_file"
CALLS_PER_STEP = 4
PROFILE = ExecutionProfile(provider="p", model="m", system_prompt_digest="0" * 64, permission_policy="x")
CONTRACT = RecordedContract(mode=RecoveryMode.RECONCILE, contract_id="file.write", version=1, digest="0" * 64)

StepFact: TypeAlias = ModelText | ToolCalled | ModelStepCompleted


class Home(NamedTuple):
    """Where and with what a run is executed."""

    cwd: str = "/"
    workspace_identity: str | None = None
    profile: ExecutionProfile = PROFILE


class Opening(NamedTuple):
    """The facts that begin a session and its first run."""

    session_opened: SessionOpened
    admitted: RunAdmitted
    opened: RunOpened
    message: UserMessage


class Facts:
    """Makes facts with fresh ids and the present time."""

    def __init__(self) -> None:
        self.ids = Uuid7Ids()
        self.spines = Spines(SystemClock(), self.ids)
        self._written = count()

    def opening(self, guard: OwnerGuard, identity: ExecutionIdentity, home: Home | None = None) -> Opening:
        """Begin a session and its first run."""
        admitted = RunAdmitted(
            **self.spines.session(guard.session_id),
            run_id=identity.run_id,
            turn_id=identity.turn_id,
            invocation_id=identity.invocation_id,
            kind=RunKind.TURN,
        )
        opened = RunOpened(
            **self.spines.run(identity),
            **(home or Home())._asdict(),
            protocol=TOOL_BOUNDARY_PROTOCOL,
            incarnation_id=guard.incarnation_id,
            epoch=guard.epoch,
        )
        message = UserMessage(**self.spines.run(identity), text="Make the tests pass.")
        return Opening(SessionOpened(**self.spines.session(guard.session_id)), admitted, opened, message)

    def step(self, identity: ExecutionIdentity, calls: int) -> list[StepFact]:
        """A model step that says something and calls a tool so many times."""
        step_id = self.ids.fresh(StepId)
        text = ModelText(**self.spines.run(identity), step_id=step_id, text="I shall write the next file.")
        return [
            text,
            *(self._called(identity, step_id) for _ in range(calls)),
            ModelStepCompleted(**self.spines.run(identity), step_id=step_id, finish_reason="tool_calls"),
        ]

    def _called(self, identity: ExecutionIdentity, step_id: StepId) -> ToolCalled:
        return ToolCalled(
            **self.spines.run(identity),
            step_id=step_id,
            call_id=self.ids.fresh(ToolCallId),
            tool_name=TOOL,
            args={"path": "a.txt", "content": "hello world" * 10, "part": next(self._written)},
        )

    def dispatched(self, guard: OwnerGuard, identity: ExecutionIdentity, call: ToolCalled) -> ToolDispatched:
        """T1, with the fresh id of its operation; made as `tool_facts` makes it."""
        members = {
            **self.spines.run(identity),
            "operation_id": self.ids.fresh(OperationId),
            "call_id": call.call_id,
            "tool_name": TOOL,
            "args_hash": canonical.args_hash(TOOL, call.args),
            "contract": CONTRACT,
            "idempotency_key": None,
            "evidence": None,
            "incarnation_id": guard.incarnation_id,
            "life": Life.TASK,
            "grant_id": None,
            "repeats": None,
        }
        return assembled(ToolDispatched, members)

    def responded(self, identity: ExecutionIdentity, dispatch: ToolDispatched) -> ToolResponded:
        """T2, made as `tool_facts` makes it."""
        members = {
            **self.spines.run(identity),
            "call_id": dispatch.call_id,
            "tool_name": TOOL,
            "operation_id": dispatch.operation_id,
            "result": "ok",
            "is_error": False,
            "effect": Effect.DONE,
            "code": None,
            "original_length": None,
            "original_digest": None,
        }
        return assembled(ToolResponded, members)

    def steps(self, guard: OwnerGuard, identity: ExecutionIdentity, events: int) -> Iterator[Event]:
        """Steps of a run, each with all its answers, until there are at least so many events."""
        made = 0
        while made < events:
            facts = self.step(identity, CALLS_PER_STEP)
            yield from facts
            made += len(facts)
            for call in calls_of(facts):
                dispatch = self.dispatched(guard, identity, call)
                yield dispatch
                yield self.responded(identity, dispatch)
                made += 2

    def ended(self, guard: OwnerGuard, identity: ExecutionIdentity, *, interrupted: bool) -> RunEnded:
        """A terminal fact."""
        return RunEnded(
            **self.spines.run(identity),
            status=RunStatus.FAILED if interrupted else RunStatus.COMPLETED,
            failure_class="app_restarted" if interrupted else None,
            recovered=interrupted,
            incarnation_id=guard.incarnation_id,
            epoch=guard.epoch,
        )

    def claim(self, guard: OwnerGuard, boundary: PrefixRef) -> tuple[RunClaimed, RunAdmitted]:
        """The claim of a run that has no ancestors, and the admission of its target."""
        target = self.spines.identity(guard.session_id)
        ids = {name: value for name, value in target._asdict().items() if name != "session_id"}
        source = ExecutionIdentity(boundary.session_id, boundary.run_id, boundary.turn_id, boundary.invocation_id)
        claimed = RunClaimed(
            **self.spines.run(source),
            claim_id=self.ids.fresh(ClaimId),
            segments=(boundary,),
            boundary_digest=boundary_digest((boundary,)),
            replay_digest="0" * 64,
            projection_version=1,
            target=TargetHeader(**ids, cwd="/", profile=PROFILE, protocol=TOOL_BOUNDARY_PROTOCOL),
            trigger=Trigger.PERSON,
            incarnation_id=guard.incarnation_id,
            epoch=guard.epoch,
        )
        admitted = RunAdmitted(
            **self.spines.session(guard.session_id), **ids, kind=RunKind.CONTINUATION, claim_id=claimed.claim_id
        )
        return claimed, admitted


def calls_of(facts: list[StepFact]) -> list[ToolCalled]:
    """The calls of a step."""
    return [fact for fact in facts if isinstance(fact, ToolCalled)]
