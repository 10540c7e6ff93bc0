"""Runs as tests tell them: user text, a step of the model, dispatch, outcome, the end. Ids can be read and repeat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from safepoint.domain.canonical import args_hash
from safepoint.domain.events.event import Json, RunEvent
from safepoint.domain.events.model import HostMessage, ModelStepCompleted, ModelText, ModelThinking, UserMessage
from safepoint.domain.events.run import (
    TOOL_BOUNDARY_PROTOCOL,
    Context,
    ContinuationStarted,
    ExecutionProfile,
    PrefixRef,
    RunClaimed,
    RunEnded,
    RunOpened,
    RunStatus,
    StartKind,
    TargetHeader,
    ToolProfile,
    Trigger,
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
    ToolResponded,
)
from safepoint.domain.identifiers import EventId
from safepoint.domain.recovery.event_facts import event_facts
from safepoint.domain.recovery.resolver import resolve
from safepoint.domain.recovery.scanner import Scanner
from safepoint.domain.recovery.verdict import Resolution
from safepoint.domain.replay.blocks import SegmentBlocks
from safepoint.domain.replay.context import TurnSegment
from safepoint.domain.replay.segment import Segment, project_segment
from safepoint.domain.sealing import FIRST_PREVIOUS_DIGEST, SealedEvent, seal

AT = "2026-11-29T12:00:00.000000Z"
DIGEST = "0" * 64
TOOLS = ("write_file", "read_file", "run_shell")


def profile(**changed: Any) -> ExecutionProfile:
    tools = tuple(ToolProfile(name=name, schema_digest=DIGEST, contract_digest=DIGEST) for name in TOOLS)
    fields = {
        "provider": "anthropic",
        "model": "m1",
        "account": "team",
        "system_prompt_digest": DIGEST,
        "permission_policy": "ask",
        "tools": tools,
    }
    return ExecutionProfile(**{**fields, **changed})


def think(text: str, signature: str | None = None, options: Json = None) -> dict[str, Any]:
    return {"text": text, "signature": signature, "provider_options": options, "of": ModelThinking}


def say(text: str, options: Json = None) -> dict[str, Any]:
    return {"text": text, "provider_options": options, "of": ModelText}


def call(call_id: str, args: Json = None, tool: str = "write_file", **more: Any) -> dict[str, Any]:
    return {"call_id": call_id, "tool_name": tool, "args": args if args is not None else {}, **more, "of": ToolCalled}


class Story:
    """One run; each method writes facts and returns the story."""

    def __init__(
        self,
        name: str = "r1",
        *,
        session: str = "s1",
        source: PrefixRef | None = None,
        boundary_digest: str = DIGEST,
        replay_digest: str = DIGEST,
        claim_id: str = "",
        repaired: bool = False,
        context: Context | None = None,
        protocol: str | None = TOOL_BOUNDARY_PROTOCOL,
        workspace: str | None = "workspace:v1:w",
        made_with: ExecutionProfile | None = None,
    ) -> None:
        self.name = name
        self.spine: dict[str, Any] = {
            "session_id": session,
            "run_id": name,
            "turn_id": f"turn-{name}",
            "invocation_id": f"inv-{name}",
        }
        self.events: list[RunEvent] = []
        self.steps = 0
        self.called: dict[str, ToolCalled] = {}
        owner = {"incarnation_id": "i1", "epoch": 1}
        header = {
            "cwd": "/w",
            "workspace_identity": workspace,
            "profile": made_with or profile(),
            "protocol": protocol,
        }
        if source is None:
            self.write(RunOpened, **header, **owner, context=context)
        else:
            self.write(
                ContinuationStarted,
                **header,
                **owner,
                claim_id=claim_id or f"claim-{name}",
                boundary_digest=boundary_digest,
                source=source,
                replay_digest=replay_digest,
                projection_version=1,
                kind=StartKind.CLAIM_REPAIR if repaired else StartKind.RUNTIME_ADMISSION,
            )

    def write(self, of: type[RunEvent], /, **fields: Any) -> Story:
        event_id = EventId(f"{self.name}-{len(self.events) + 1}")
        self.events.append(of(event_id=event_id, occurred_at=AT, **self.spine, **fields))
        return self

    def user(self, text: str = "do it", **more: Any) -> Story:
        return self.write(UserMessage, text=text, **more)

    def host(self, text: str = "note", sentence_id: str = "host_note") -> Story:
        return self.write(HostMessage, text=text, sentence_id=sentence_id)

    def step(self, *parts: dict[str, Any], finish: str = "stop") -> Story:
        self.steps += 1
        step_id = f"{self.name}-step{self.steps}"
        for part in parts:
            fields = dict(part)
            self.write(fields.pop("of"), step_id=step_id, **fields)
            if type(self.events[-1]) is ToolCalled:
                self.called[self.events[-1].call_id] = self.events[-1]
        return self.write(ModelStepCompleted, step_id=step_id, finish_reason=finish)

    def dispatch(self, *call_ids: str, mode: RecoveryMode = RecoveryMode.OUTCOME_UNKNOWN) -> Story:
        for call_id in call_ids:
            called = self.called[call_id]
            self.write(
                ToolDispatched,
                operation_id=self.operation(call_id),
                call_id=call_id,
                tool_name=called.tool_name,
                args_hash=args_hash(called.tool_name, called.args),
                contract=RecordedContract(mode=mode, contract_id="c", version=1, digest=DIGEST),
                incarnation_id="i1",
                life=Life.TASK,
            )
        return self

    def outcome(
        self, *call_ids: str, result: Json = "done", is_error: bool = False, effect: Effect = Effect.DONE
    ) -> Story:
        for call_id in call_ids:
            self._respond(call_id, self.operation(call_id), result, is_error, effect)
        return self

    def run_tool(self, *call_ids: str, result: Json = "done") -> Story:
        return self.dispatch(*call_ids).outcome(*call_ids, result=result)

    def refuse(self, *call_ids: str, result: Json = "refused") -> Story:
        for call_id in call_ids:
            self._respond(call_id, None, result, True, Effect.NONE)
        return self

    def park(self, call_id: str, reason: str = "contract_forbids_recovery") -> Story:
        """A bundle that found no proof; the operation was dispatched as `outcome_unknown`."""
        return self._bundle(call_id, Observation.UNREADABLE, Disposition.PARKED, reason)

    def settle(self, call_id: str, result: Json = "done") -> Story:
        """A bundle with an outcome that came late."""
        return self._bundle(call_id, Observation.LATE_OUTCOME, Disposition.COMPLETED, "late_outcome", result)

    def _bundle(
        self, call_id: str, observation: Observation, disposition: Disposition, reason: str, result: Json = None
    ) -> Story:
        evidence = [event.event_id for event in self.events if getattr(event, "call_id", None) == call_id]
        about = {"operation_id": self.operation(call_id)}
        self.write(ToolReconciled, **about, observation=observation, reconciler_id="x", reconciler_version=1)
        evidence.append(self.events[-1].event_id)
        outcome = None
        if disposition is Disposition.COMPLETED:
            self.outcome(call_id, result=result)
            outcome = self.events[-1].event_id
            evidence.append(outcome)
        return self.write(
            ToolRecoveryDecided,
            **about,
            disposition=disposition,
            reason=reason,
            evidence_event_ids=tuple(evidence),
            outcome_event_id=outcome,
        )

    def attest(self, call_id: str, statement: Statement, result: Json = "it happened", by: str = "Ada") -> Story:
        operation_id = self.operation(call_id)
        self.write(ToolAttested, operation_id=operation_id, statement=statement, by=by, note="seen")
        done = statement is Statement.COMPLETED
        return self._respond(call_id, operation_id, result, not done, Effect.DONE if done else Effect.NONE)

    def end(self, status: RunStatus = RunStatus.FAILED, failure_class: str | None = "app_restarted") -> Story:
        failure = failure_class if status is RunStatus.FAILED else None
        return self.write(RunEnded, status=status, failure_class=failure, recovered=True, incarnation_id="i2", epoch=2)

    def claim(
        self,
        segments: Sequence[PrefixRef],
        target: str,
        boundary_digest: str,
        replay_digest: str,
        *,
        made_with: ExecutionProfile | None = None,
        trigger: Trigger = Trigger.PERSON,
    ) -> Story:
        header = TargetHeader.model_validate(
            {
                "run_id": target,
                "turn_id": f"turn-{target}",
                "invocation_id": f"inv-{target}",
                "cwd": "/w",
                "workspace_identity": "workspace:v1:w",
                "profile": made_with or profile(),
                "protocol": TOOL_BOUNDARY_PROTOCOL,
            }
        )
        return self.write(
            RunClaimed,
            claim_id=f"claim-{target}",
            segments=tuple(segments),
            boundary_digest=boundary_digest,
            replay_digest=replay_digest,
            projection_version=1,
            target=header,
            trigger=trigger,
            incarnation_id="i2",
            epoch=2,
        )

    def operation(self, call_id: str) -> str:
        return f"op-{self.name}-{call_id}"

    def _respond(self, call_id: str, operation_id: str | None, result: Json, is_error: bool, effect: Effect) -> Story:
        return self.write(
            ToolResponded,
            call_id=call_id,
            tool_name=self.called[call_id].tool_name,
            operation_id=operation_id,
            result=result,
            is_error=is_error,
            effect=effect,
        )

    def until(self, count: int) -> Story:
        """The same run, cut after some of its events."""
        cut = Story(self.name)
        cut.spine, cut.called, cut.events = self.spine, self.called, self.events[:count]
        return cut

    def before_claim(self) -> Story:
        """The same run without the claim that follows its boundary."""
        return self.until(len(self.events) - isinstance(self.events[-1], RunClaimed))

    # ---- what is made of it ----------------------------------------------------------------------------------------

    def resolution(self, *, foreign: bool = False) -> Resolution:
        scanner = Scanner()
        for event in self.events:
            scanner.feed(event_facts(event))
        return resolve(scanner, foreign=foreign)

    def resumed(self) -> Segment:
        return project_segment(self.events, self.resolution(), resumed=True)

    def part_of_turn(self, *, foreign: bool = False) -> TurnSegment:
        return TurnSegment(self.events[0].run_id, SegmentBlocks(self.events), self.resolution(foreign=foreign))

    def sealed(self) -> list[SealedEvent]:
        sealed: list[SealedEvent] = []
        for sequence, event in enumerate(self.events, 1):
            sealed.append(seal(event, sequence, sealed[-1].digest if sealed else FIRST_PREVIOUS_DIGEST))
        return sealed

    def ref(self) -> PrefixRef:
        """The prefix up to here."""
        last = self.sealed()[-1]
        return PrefixRef(**self.spine, high_water=last.sequence, digest=last.digest)


def shape(items: Sequence[Any]) -> list[str]:
    """A history as one can read it: kind and what tells items apart."""
    return [
        f"{item.kind} {item.call_id}" if item.kind in {"call", "result"} else f"{item.kind} {item.text}"
        for item in items
    ]
