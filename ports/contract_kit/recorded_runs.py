"""Sealed commits for the contracts of stores: one session of runs, recorded as the ledger would record them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from pydantic import JsonValue

from ...domain.events import model, outside, run, session, tool
from ...domain.events.event import Event
from ...domain.identifiers import (
    ClaimId,
    EventId,
    IncarnationId,
    InvocationId,
    OperationId,
    RequestId,
    RunId,
    SessionId,
    StepId,
    ToolCallId,
    TurnId,
)
from ...domain.sealing import FIRST_PREVIOUS_DIGEST, SealedEvent, seal
from ..event_store import Commit, EventStore, OwnerGuard, Stored
from ..incarnations import Incarnation
from ..session_owners import SessionOwners

NOON = "2026-03-01T12:00:00.000000Z"
DIGEST = "ab" * 32


def incarnation_named(name: str) -> Incarnation:
    """The facts of a life that nobody lives."""
    return Incarnation(
        incarnation_id=IncarnationId(name),
        pid=1,
        process_start_time=1,
        host="host",
        boot_id="boot",
        pid_namespace="pid",
    )


class Parent(NamedTuple):
    """Who started a child run."""

    parent_session_id: SessionId
    parent_run_id: RunId
    parent_operation_id: OperationId


class RecordedSession:
    """Makes the commits of one session, each event at the next place of its stream.

    Args:
        name: tells its ids from those of other sessions.
        incarnation: its owner, with epoch 1.
    """

    def __init__(self, name: str = "one", incarnation: str = "life") -> None:
        self.name = name
        self.session_id = SessionId(f"session-{name}")
        self.guard = OwnerGuard(self.session_id, IncarnationId(incarnation), 1)
        self._heads: dict[str, tuple[int, str]] = {}
        self._ids = 0

    def own(self, owners: SessionOwners) -> None:
        """Record the owner, so that commits are not fenced."""
        owners.register(incarnation_named(self.guard.incarnation_id))
        assert owners.take(self.session_id, self.guard.incarnation_id, owners.owner(self.session_id)) is not None

    def commit(self, *events: Event, guard: OwnerGuard | None = None) -> Commit:
        """Seal events at the next places of their streams."""
        sealed = tuple(self.sealed(events))
        return Commit(guard or self.guard, sealed)

    def sealed(self, events: Iterable[Event]) -> Iterable[SealedEvent]:
        """Seal events at the next places of their streams."""
        for event in events:
            sequence, digest = self._heads.get(event.stream, (0, FIRST_PREVIOUS_DIGEST))
            one = seal(event, sequence + 1, digest)
            self._heads[event.stream] = (one.sequence, one.digest)
            yield one

    def keep(self, store: EventStore, *events: Event) -> Commit:
        """Commit events and make sure that they were kept."""
        commit = self.commit(*events)
        assert store.append([commit]) == [Stored()]
        return commit

    def fork(self) -> RecordedSession:
        """The same session as another writer saw it up to here: its next events take the same places, with other
        ids.
        """
        other = RecordedSession(self.name, self.guard.incarnation_id)
        other._heads, other._ids = dict(self._heads), self._ids + 1000
        return other

    def event_id(self) -> EventId:
        """An id that no other event has."""
        self._ids += 1
        return EventId(f"event-{self.name}-{self._ids:04d}")

    def opened(self, run_name: str = "a", at: str = NOON, *, parent: Parent | None = None) -> tuple[Event, ...]:
        """Open the session (when it has no run yet) and a run with its user message; with a parent, as its child."""
        run_id = self.run_id(run_name)
        admitted = session.RunAdmitted(
            event_id=self.event_id(),
            session_id=self.session_id,
            occurred_at=at,
            run_id=run_id,
            turn_id=TurnId(f"turn-{run_id}"),
            invocation_id=InvocationId(f"invocation-{run_id}"),
            kind=session.RunKind.TURN if parent is None else session.RunKind.CHILD,
        )
        opened = run.RunOpened(
            **self._spine(run_name, at),
            cwd="/work",
            profile=run.ExecutionProfile(
                provider="scripted", model="m", system_prompt_digest=DIGEST, permission_policy="ask"
            ),
            protocol=run.TOOL_BOUNDARY_PROTOCOL,
            incarnation_id=self.guard.incarnation_id,
            epoch=1,
            **({} if parent is None else parent._asdict()),
        )
        user = model.UserMessage(**self._spine(run_name, at), text="hello")
        if f"session:{self.session_id}" in self._heads:
            return (admitted, opened, user)
        first = session.SessionOpened(event_id=self.event_id(), session_id=self.session_id, occurred_at=at)
        return (first, admitted, opened, user)

    def run_id(self, run_name: str = "a") -> RunId:
        """The id of a run of this session."""
        return RunId(f"run-{self.name}-{run_name}")

    def operation_id(self, call: str, run_name: str = "a") -> OperationId:
        """The id of the operation that a call became."""
        return OperationId(f"operation-{self.name}-{run_name}-{call}")

    def called(self, call: str, run_name: str = "a", args: JsonValue = None) -> tool.ToolCalled:
        """The model asked for a tool."""
        return tool.ToolCalled(
            **self._spine(run_name),
            step_id=StepId("step"),
            call_id=ToolCallId(call),
            tool_name="write_file",
            args={"call": call} if args is None else args,
        )

    def dispatched(self, call: str, run_name: str = "a") -> tool.ToolDispatched:
        """T1."""
        return tool.ToolDispatched(
            **self._spine(run_name),
            operation_id=self.operation_id(call, run_name),
            call_id=ToolCallId(call),
            tool_name="write_file",
            args_hash=DIGEST,
            contract=tool.RecordedContract(
                mode=tool.RecoveryMode.RECONCILE, contract_id="write_file", version=1, digest=DIGEST
            ),
            incarnation_id=self.guard.incarnation_id,
            life=tool.Life.TASK,
        )

    def responded(self, call: str, run_name: str = "a", effect: tool.Effect = tool.Effect.DONE) -> tool.ToolResponded:
        """T2."""
        return tool.ToolResponded(
            **self._spine(run_name),
            call_id=ToolCallId(call),
            tool_name="write_file",
            operation_id=self.operation_id(call, run_name),
            result="ok",
            is_error=effect is not tool.Effect.DONE,
            effect=effect,
        )

    def recovery_of(self, call: str, run_name: str = "a") -> tuple[Event, ...]:
        """Every fact that may follow a dispatch beside its response."""
        operation = self.operation_id(call, run_name)
        redelivered = tool.ToolRedeliveryStarted(
            **self._spine(run_name),
            operation_id=operation,
            idempotency_key="key",
            incarnation_id=self.guard.incarnation_id,
            life=tool.Life.TASK,
        )
        reconciled = tool.ToolReconciled(
            **self._spine(run_name),
            operation_id=operation,
            observation=tool.Observation.DIVERGED,
            reconciler_id="reconciler",
            reconciler_version=1,
        )
        decided = tool.ToolRecoveryDecided(
            **self._spine(run_name),
            operation_id=operation,
            disposition=tool.Disposition.PARKED,
            reason="reconcile_diverged",
            evidence_event_ids=(reconciled.event_id,),
        )
        attested = tool.ToolAttested(
            **self._spine(run_name),
            operation_id=operation,
            statement=tool.Statement.COMPLETED,
            by="somebody",
            note="I looked",
        )
        return (redelivered, reconciled, decided, attested)

    def ended(self, run_name: str = "a", status: run.RunStatus = run.RunStatus.FAILED) -> run.RunEnded:
        """The terminal event."""
        return run.RunEnded(
            **self._spine(run_name),
            status=status,
            failure_class=None if status is run.RunStatus.COMPLETED else "provider_failed",
            incarnation_id=self.guard.incarnation_id,
            epoch=1,
        )

    def claimed(self, claim: str = "claim", run_name: str = "a") -> run.RunClaimed:
        """The seal."""
        spine = self._spine(run_name)
        sequence, digest = self._heads[f"run:{self.run_id(run_name)}"]
        identity = {name: value for name, value in spine.items() if name not in {"event_id", "occurred_at"}}
        target = self.run_id(f"{run_name}-target")
        return run.RunClaimed(
            **spine,
            claim_id=ClaimId(f"{claim}-{self.name}"),
            segments=(run.PrefixRef(**identity, high_water=sequence, digest=digest),),
            boundary_digest=digest,
            replay_digest=DIGEST,
            projection_version=1,
            target=run.TargetHeader(
                run_id=target,
                turn_id=TurnId(f"turn-{target}"),
                invocation_id=InvocationId(f"invocation-{target}"),
                cwd="/work",
                profile=run.ExecutionProfile(
                    provider="scripted", model="m", system_prompt_digest=DIGEST, permission_policy="ask"
                ),
            ),
            trigger=run.Trigger.PERSON,
            incarnation_id=self.guard.incarnation_id,
            epoch=1,
        )

    def admitted_target(self, claim: str = "claim", run_name: str = "a") -> session.RunAdmitted:
        """The session admits what a claim continues with."""
        target = self.run_id(f"{run_name}-target")
        return session.RunAdmitted(
            event_id=self.event_id(),
            session_id=self.session_id,
            occurred_at=NOON,
            run_id=target,
            turn_id=TurnId(f"turn-{target}"),
            invocation_id=InvocationId(f"invocation-{target}"),
            kind=session.RunKind.CONTINUATION,
            claim_id=ClaimId(f"{claim}-{self.name}"),
        )

    def asked(self, call: str, run_name: str = "a") -> outside.PermissionRequested:
        """A call waits for a person."""
        return outside.PermissionRequested(
            **self._spine(run_name),
            request_id=RequestId(f"request-{self.name}-{call}"),
            call_id=ToolCallId(call),
            tool_name="write_file",
            args_hash=DIGEST,
            contract_digest=DIGEST,
            reason="policy",
        )

    def decided(self, call: str, run_name: str = "a") -> outside.PermissionDecided:
        """A person approved."""
        return outside.PermissionDecided(
            **self._spine(run_name),
            request_id=RequestId(f"request-{self.name}-{call}"),
            approved=True,
            decided_by="somebody",
        )

    def text(self, said: str, run_name: str = "a") -> model.ModelText:
        """Text of the model."""
        return model.ModelText(**self._spine(run_name), step_id=StepId("step"), text=said)

    def watched(
        self, call: str, status: session.WatchStatus = session.WatchStatus.INDETERMINATE, run_name: str = "a"
    ) -> session.EffectWatched:
        """An effect is watched from now on."""
        return session.EffectWatched(
            event_id=self.event_id(),
            session_id=self.session_id,
            occurred_at=NOON,
            operation_id=self.operation_id(call, run_name),
            run_id=self.run_id(run_name),
            tool_name="write_file",
            args_hash=DIGEST,
            arguments_only_hash=DIGEST,
            has_arguments=True,
            mode=tool.RecoveryMode.RECONCILE,
            status=status,
        )

    def cleared(self, call: str, run_name: str = "a") -> session.EffectCleared:
        """A watched effect is watched no more."""
        return session.EffectCleared(
            event_id=self.event_id(),
            session_id=self.session_id,
            occurred_at=NOON,
            operation_id=self.operation_id(call, run_name),
            by=session.ClearedBy.ATTESTED,
        )

    def _spine(self, run_name: str, at: str = NOON) -> dict[str, Any]:
        run_id = self.run_id(run_name)
        return {
            "event_id": self.event_id(),
            "session_id": self.session_id,
            "run_id": run_id,
            "turn_id": f"turn-{run_id}",
            "invocation_id": f"invocation-{run_id}",
            "occurred_at": at,
        }
