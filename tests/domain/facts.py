"""Facts and commands as the tests of aggregates and ledger tell them: of one run of one session, with readable ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any, TypeVar

from safepoint.domain.boundary import boundary_digest
from safepoint.domain.canonical import args_hash
from safepoint.domain.commands import (
    Append,
    AppendLate,
    ClaimContinuation,
    CommitAttestation,
    CommitOutcome,
    CommitRecovery,
    EndRun,
    LateFact,
    OpenRun,
    OrdinaryFact,
    PrepareTool,
    RecordStep,
    RefuseCall,
    RepairContinuation,
    StartContinuation,
    StartRedelivery,
    StepFact,
)
from safepoint.domain.decision import Decision, Refusal
from safepoint.domain.events.event import Event, Json, RunEvent, SessionEvent
from safepoint.domain.events.model import ModelStepCompleted, ModelText, UserMessage
from safepoint.domain.events.outside import BackgroundStarted, PermissionDecided, PermissionRequested
from safepoint.domain.events.run import (
    TOOL_BOUNDARY_PROTOCOL,
    CancelRequested,
    ContinuationStarted,
    ExecutionProfile,
    PrefixRef,
    RunClaimed,
    RunEnded,
    RunOpened,
    RunStatus,
    StartKind,
    TargetHeader,
    Trigger,
)
from safepoint.domain.events.session import (
    GrantPosted,
    NoticePosted,
    RunAdmitted,
    RunKind,
    SessionOpened,
)
from safepoint.domain.events.tool import (
    Disposition,
    Effect,
    Life,
    Observation,
    RecordedContract,
    RecoveryMode,
    Statement,
    ToolAttested,
    ToolCalled,
    ToolDispatched,
    ToolReconciled,
    ToolRecoveryDecided,
    ToolRedeliveryStarted,
    ToolResponded,
)
from safepoint.domain.identifiers import (
    ClaimId,
    EventId,
    ExecutionIdentity,
    IncarnationId,
    InvocationId,
    OperationId,
    RunId,
    SessionId,
    TurnId,
)
from safepoint.domain.reasons import WriteRefusal
from safepoint.domain.run.state import Run
from safepoint.domain.sealing import FIRST_PREVIOUS_DIGEST, SealedEvent, seal
from safepoint.domain.session.state import Session
from safepoint.domain.session.state import evolve as evolve_session

AT = "2026-11-29T12:00:00.000000Z"
SOON = "2026-11-29T12:00:03.000000Z"
LATER = "2026-11-29T12:00:10.000000Z"
DIGEST = "0" * 64
PROFILE = ExecutionProfile(provider="p", model="m", system_prompt_digest=DIGEST, permission_policy="ask")
WRITE: dict[str, Json] = {"path": "a"}
CONTRACT_DIGEST = "c" * 64

EventT = TypeVar("EventT", bound=Event)


def contract(mode: RecoveryMode = RecoveryMode.OUTCOME_UNKNOWN, **more: Any) -> RecordedContract:
    return RecordedContract(**{"contract_id": "c", "version": 1, "digest": CONTRACT_DIGEST, "mode": mode, **more})


class Facts:
    """Makes the facts and commands of one run; `made` counts them, so that two makers never share an id.

    Attributes:
        called: the calls that were made, by id.
    """

    def __init__(
        self,
        run: str = "r",
        *,
        session: str = "s",
        incarnation: str = "i1",
        epoch: int = 1,
        maker: str = "",
    ) -> None:
        self.run_id, self.session_id = RunId(run), SessionId(session)
        self.incarnation_id, self.epoch = IncarnationId(incarnation), epoch
        self.identity = ExecutionIdentity(
            self.session_id, self.run_id, TurnId(f"turn-{run}"), InvocationId(f"inv-{run}")
        )
        self.called: dict[str, ToolCalled] = {}
        self._maker = maker
        self._made = count(1)
        self._steps = count(1)

    @property
    def guard(self) -> tuple[SessionId, IncarnationId, int]:
        """Session, owner and epoch of every command."""
        return (self.session_id, self.incarnation_id, self.epoch)

    def event_id(self) -> EventId:
        return EventId(f"{self.run_id}{self._maker}.{next(self._made)}")

    def fact(self, of: type[EventT], /, **fields: Any) -> EventT:
        """Any fact: with the spine that its kind needs, unless the fields say otherwise."""
        spine: dict[str, Any] = {"event_id": self.event_id(), "occurred_at": AT, "session_id": self.session_id}
        if issubclass(of, RunEvent):
            spine |= self.identity._asdict()
        return of(**{**spine, **fields})

    @property
    def _owner(self) -> dict[str, Any]:
        return {"incarnation_id": self.incarnation_id, "epoch": self.epoch}

    # ---- how a run begins ------------------------------------------------------------------------------------------

    def session_opened(self) -> SessionOpened:
        return self.fact(SessionOpened)

    def admitted(self, kind: RunKind = RunKind.TURN, **fields: Any) -> RunAdmitted:
        ids = {name: value for name, value in self.identity._asdict().items() if name != "session_id"}
        return self.fact(RunAdmitted, **{**ids, "kind": kind, **fields})

    def opened(self, **fields: Any) -> RunOpened:
        header = {"cwd": "/w", "profile": PROFILE, "protocol": TOOL_BOUNDARY_PROTOCOL}
        return self.fact(RunOpened, **{**header, **self._owner, **fields})

    def user(self, text: str = "do it", *, steering: bool = False) -> UserMessage:
        return self.fact(UserMessage, text=text, steering=steering)

    def open_run(self, **fields: Any) -> OpenRun:
        parts: dict[str, Any] = {
            "session_opened": self.session_opened(),
            "admitted": self.admitted(),
            "opened": self.opened(),
            "message": self.user(),
        }
        return OpenRun(*self.guard, **{**parts, **fields})

    # ---- what a run does -------------------------------------------------------------------------------------------

    def step(self, *calls: str, tool: str = "write", args: Json = None, text: str = "") -> tuple[StepFact, ...]:
        """One model step that calls a tool once per call id; each with its own arguments unless some are given."""
        step_id = f"{self.run_id}-step{self._maker}{next(self._steps)}"
        facts: list[StepFact] = [self.fact(ModelText, step_id=step_id, text=text)] if text else []
        for call_id in calls:
            arguments = {"path": call_id} if args is None else args
            call = self.fact(ToolCalled, step_id=step_id, call_id=call_id, tool_name=tool, args=arguments)
            self.called[call_id] = call
            facts.append(call)
        return (*facts, self.fact(ModelStepCompleted, step_id=step_id, finish_reason="stop"))

    def dispatch(
        self, call_id: str, mode: RecoveryMode = RecoveryMode.OUTCOME_UNKNOWN, /, **fields: Any
    ) -> ToolDispatched:
        call = self.called[call_id]
        parts: dict[str, Any] = {
            "operation_id": self.operation(call_id),
            "call_id": call_id,
            "tool_name": call.tool_name,
            "args_hash": args_hash(call.tool_name, call.args),
            "contract": contract(mode),
            "incarnation_id": self.incarnation_id,
            "life": Life.TASK,
        }
        return self.fact(ToolDispatched, **{**parts, **fields})

    def outcome(self, call_id: str, /, **fields: Any) -> ToolResponded:
        parts: dict[str, Any] = {
            "call_id": call_id,
            "tool_name": self.called[call_id].tool_name,
            "operation_id": self.operation(call_id),
            "result": "done",
            "is_error": False,
            "effect": Effect.DONE,
        }
        return self.fact(ToolResponded, **{**parts, **fields})

    def refusal(self, call_id: str, /, **fields: Any) -> ToolResponded:
        none = {"operation_id": None, "result": "no", "is_error": True, "effect": Effect.NONE, "code": "unknown_tool"}
        return self.outcome(call_id, **{**none, **fields})

    def left_running(self, call_id: str, /, **fields: Any) -> BackgroundStarted:
        parts = {"handle_id": f"job-{call_id}", "kind": "shell", "handle": {}, "operation_id": self.operation(call_id)}
        return self.fact(BackgroundStarted, **{**parts, **fields})

    def requested(self, call_id: str, request: str = "", /, **fields: Any) -> PermissionRequested:
        call = self.called[call_id]
        parts: dict[str, Any] = {
            "request_id": request or f"ask-{call_id}",
            "call_id": call_id,
            "tool_name": call.tool_name,
            "args_hash": args_hash(call.tool_name, call.args),
            "contract_digest": CONTRACT_DIGEST,
            "reason": "policy",
        }
        return self.fact(PermissionRequested, **{**parts, **fields})

    def decided(self, request: str, /, *, approved: bool = True, **fields: Any) -> PermissionDecided:
        parts: dict[str, Any] = {"request_id": request, "approved": approved, "decided_by": "Ada"}
        return self.fact(PermissionDecided, **{**parts, **fields})

    def grant(self, asked: PermissionRequested, /, grant_id: str = "g1", **fields: Any) -> GrantPosted:
        parts: dict[str, Any] = {
            "grant_id": grant_id,
            "request_id": asked.request_id,
            "tool_name": asked.tool_name,
            "call_id": asked.call_id,
            "args_hash": asked.args_hash,
            "contract_digest": asked.contract_digest,
            "approved": True,
            "decided_by": "Ada",
            "repeats": asked.repeats,
        }
        return self.fact(GrantPosted, **{**parts, **fields})

    def cancelled(self, by: str = "Ada") -> CancelRequested:
        return self.fact(CancelRequested, by=by)

    def notice(self, text: str = "look again", notice_id: str = "n1", **fields: Any) -> NoticePosted:
        parts: dict[str, Any] = {"notice_id": notice_id, "sentence_id": "host_note", "parameters": {"text": text}}
        return self.fact(NoticePosted, **{**parts, **fields})

    def append(self, *facts: OrdinaryFact) -> Append:
        return Append(*self.guard, run_id=self.run_id, facts=facts)

    def record(self, facts: Sequence[StepFact]) -> RecordStep:
        return RecordStep(*self.guard, run_id=self.run_id, facts=tuple(facts))

    def refuse(self, response: ToolResponded) -> RefuseCall:
        return RefuseCall(*self.guard, run_id=self.run_id, response=response)

    def prepare(self, dispatch: ToolDispatched) -> PrepareTool:
        return PrepareTool(*self.guard, run_id=self.run_id, dispatch=dispatch)

    def commit(self, response: ToolResponded, left_running: BackgroundStarted | None = None) -> CommitOutcome:
        return CommitOutcome(*self.guard, run_id=self.run_id, response=response, left_running=left_running)

    # ---- how a run ends, and what may follow -----------------------------------------------------------------------

    def ended(self, status: RunStatus = RunStatus.FAILED, **fields: Any) -> RunEnded:
        failure = "app_restarted" if status is RunStatus.FAILED else None
        return self.fact(RunEnded, **{"status": status, "failure_class": failure, **self._owner, **fields})

    def end(self, status: RunStatus = RunStatus.FAILED, *, stopped_by: str | None = None, **fields: Any) -> EndRun:
        return EndRun(*self.guard, run_id=self.run_id, ended=self.ended(status, **fields), stopped_by=stopped_by)

    def late(
        self, fact: LateFact, *, grant: GrantPosted | None = None, notice: NoticePosted | None = None
    ) -> AppendLate:
        return AppendLate(*self.guard, run_id=self.run_id, fact=fact, grant=grant, notice=notice)

    def redelivery(self, call_id: str, /, key: str = "key", now: str = AT, **fields: Any) -> StartRedelivery:
        parts: dict[str, Any] = {
            "operation_id": self.operation(call_id),
            "idempotency_key": key,
            "incarnation_id": self.incarnation_id,
            "life": Life.TASK,
        }
        started = self.fact(ToolRedeliveryStarted, **{**parts, **fields})
        return StartRedelivery(*self.guard, run_id=self.run_id, started=started, now=now)

    def recovery(
        self,
        dispatch: ToolDispatched,
        sequence: int,
        *,
        observation: Observation = Observation.LATE_OUTCOME,
        outcome: ToolResponded | None = None,
        reason: str = "late_outcome",
        notice: NoticePosted | None = None,
    ) -> CommitRecovery:
        """A bundle about a dispatch, completed when it has an outcome and parked when it has none."""
        about = {"operation_id": dispatch.operation_id}
        observed = self.fact(
            ToolReconciled, **about, observation=observation, reconciler_id="test", reconciler_version=1
        )
        evidence = [self.called[dispatch.call_id].event_id, dispatch.event_id, observed.event_id]
        decided = self.fact(
            ToolRecoveryDecided,
            **about,
            disposition=Disposition.PARKED if outcome is None else Disposition.COMPLETED,
            reason=reason,
            evidence_event_ids=(*evidence, *(() if outcome is None else (outcome.event_id,))),
            outcome_event_id=None if outcome is None else outcome.event_id,
        )
        return CommitRecovery(*self.guard, self.run_id, sequence, observed, outcome, decided, notice)

    def attestation(
        self,
        call_id: str,
        sequence: int,
        statement: Statement = Statement.COMPLETED,
        *,
        response: ToolResponded | None = None,
        supersedes: str | None = None,
        notice: NoticePosted | None = None,
    ) -> CommitAttestation:
        attested = self.fact(
            ToolAttested,
            operation_id=self.operation(call_id),
            statement=statement,
            by="Ada",
            note="seen",
            supersedes=supersedes,
        )
        return CommitAttestation(*self.guard, self.run_id, sequence, attested, response, notice)

    def operation(self, call_id: str) -> OperationId:
        return OperationId(f"op-{self.run_id}-{call_id}")

    # ---- continuations ---------------------------------------------------------------------------------------------

    def target(self, **fields: Any) -> TargetHeader:
        """What this run will run with, as the claim of its source freezes it."""
        ids = {name: value for name, value in self.identity._asdict().items() if name != "session_id"}
        header = {"cwd": "/w", "profile": PROFILE, "protocol": TOOL_BOUNDARY_PROTOCOL}
        return TargetHeader(**{**ids, **header, **fields})

    def claim(self, target: Facts, segments: Sequence[PrefixRef], **fields: Any) -> ClaimContinuation:
        """The claim of this run, at the last segment, by a run of the given facts."""
        claim_id = ClaimId(f"claim-{target.run_id}")
        parts: dict[str, Any] = {
            "claim_id": claim_id,
            "segments": tuple(segments),
            "boundary_digest": boundary_digest(segments),
            "replay_digest": DIGEST,
            "projection_version": 1,
            "target": target.target(),
            "trigger": Trigger.PERSON,
        }
        claimed = self.fact(RunClaimed, **{**parts, **self._owner, **fields})
        admitted = target.admitted(RunKind.CONTINUATION, claim_id=claim_id)
        return ClaimContinuation(*self.guard, self.run_id, claimed, admitted)

    def started(
        self, claimed: RunClaimed, kind: StartKind = StartKind.RUNTIME_ADMISSION, **fields: Any
    ) -> ContinuationStarted:
        """The first fact of this run, as the claim of its source froze it."""
        frozen = {name: getattr(claimed.target, name) for name in ("cwd", "workspace_identity", "profile", "protocol")}
        same = ("claim_id", "boundary_digest", "replay_digest", "projection_version")
        repeated = {name: getattr(claimed, name) for name in same}
        parts = {**frozen, **repeated, "source": claimed.segments[-1], "kind": kind, **self._owner}
        return self.fact(ContinuationStarted, **{**parts, **fields})

    def start(self, claimed: RunClaimed, **fields: Any) -> StartContinuation:
        return StartContinuation(*self.guard, self.run_id, claimed.run_id, self.started(claimed, **fields))

    def repair(self, claimed: RunClaimed, status: RunStatus = RunStatus.FAILED, **fields: Any) -> RepairContinuation:
        started = self.started(claimed, **{"kind": StartKind.CLAIM_REPAIR, **fields})
        return RepairContinuation(*self.guard, self.run_id, claimed.run_id, started, self.ended(status))


# ---- given, then -----------------------------------------------------------------------------------------------------


def run_of(events: Iterable[Event]) -> Run:
    """The run that these facts amount to; facts of its session among them are left out."""
    run = Run()
    for event in events:
        if isinstance(event, RunEvent):
            run.take(event)
    return run


def session_of(events: Iterable[Event]) -> Session:
    """The session that these facts amount to; facts of runs among them are left out."""
    session = Session()
    for event in events:
        if isinstance(event, SessionEvent):
            session = evolve_session(session, event)
    return session


def sealed(events: Iterable[Event]) -> list[SealedEvent]:
    """The facts of one stream, sealed."""
    done: list[SealedEvent] = []
    for sequence, event in enumerate(events, 1):
        done.append(seal(event, sequence, done[-1].digest if done else FIRST_PREVIOUS_DIGEST))
    return done


def prefix(facts: Facts, events: Iterable[Event]) -> PrefixRef:
    """The boundary after these facts of a run."""
    last = sealed(event for event in events if isinstance(event, RunEvent))[-1]
    return PrefixRef(**facts.identity._asdict(), high_water=last.sequence, digest=last.digest)


def accepted(decision: Decision) -> tuple[Event, ...]:
    """The candidates of a decision that must not be a refusal."""
    assert not isinstance(decision, Refusal), decision
    return decision


def topics(decision: Decision) -> list[str]:
    return [event.topic for event in accepted(decision)]


def refused(decision: Decision) -> WriteRefusal:
    """The code of a decision that must be a refusal."""
    assert isinstance(decision, Refusal), decision
    assert decision.detail
    return decision.code
