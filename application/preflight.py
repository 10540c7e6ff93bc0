"""What is checked before T1, in order: arguments, tool, schema, loops, repeats, permission. SPEC section 8.

A refusal is a real, committed answer: call and response, effect `none`, no dispatch (F2).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial

from anyio import to_thread

from ..domain.canonical import args_hash
from ..domain.events.outside import PermissionDecided, PermissionRequested
from ..domain.events.session import EffectWatched, GrantPosted
from ..domain.events.tool import RecoveryMode, ToolCalled
from ..domain.identifiers import GrantId, OperationId, RequestId
from ..domain.operation.repeat_guard import renamed_effect, repeated_effect
from ..domain.reasons import ResponseCode
from ..domain.sentences import SentenceId, render
from ..ports.cancel_signal import CancelSignal
from ..ports.ids import Ids
from ..ports.permission_gate import (
    Allowed,
    AskReason,
    Denied,
    PermissionAnswer,
    PermissionGate,
    PermissionRequest,
    Undecided,
)
from ..ports.tool_catalog import BoundCall, SchemaMismatch, ToolCatalog, UnknownTool
from .run_recorder import RunRecorder

IDENTICAL_CALLS_MAX = 50
CALLS_MAX = 5_000


@dataclass(frozen=True, slots=True)
class Refused:
    """The call is answered with this, and not dispatched."""

    code: ResponseCode
    said: str


@dataclass(frozen=True, slots=True)
class Admitted:
    """The call may be dispatched, once, with what T1 must name."""

    bound: BoundCall
    args_hash: str
    grant_id: GrantId | None = None
    repeats: OperationId | None = None
    recorded_key: str | None = None


@dataclass(frozen=True, slots=True)
class LoopLimits:
    """Bounds on what a model may ask for in one run."""

    identical_calls_max: int = IDENTICAL_CALLS_MAX
    calls_max: int = CALLS_MAX


class Preflight:
    """Checks the calls of one run.

    Args:
        catalog: binds arguments to contracts.
        gate: may say yes or no.
        grants: decisions of a person that this run's first commit took over.
        cancel: ends the waiting for a person.
    """

    def __init__(
        self,
        recorder: RunRecorder,
        catalog: ToolCatalog,
        gate: PermissionGate,
        ids: Ids,
        cancel: CancelSignal,
        grants: tuple[GrantPosted, ...] = (),
        limits: LoopLimits = LoopLimits(),
    ) -> None:
        self._recorder = recorder
        self._catalog = catalog
        self._gate = gate
        self._ids = ids
        self._cancel = cancel
        self._grants = {(grant.args_hash, grant.contract_digest): grant for grant in grants}
        self._limits = limits
        self._seen: Counter[str] = Counter()

    def bind(self, call: ToolCalled) -> BoundCall | Refused:
        """The part that looks at nothing but the call: strict arguments, known tool, schema, loop limits."""
        if call.args_text is not None:
            return _not_strict(call)
        bound = self._catalog.bind(call.tool_name, call.args)
        match bound:
            case UnknownTool(name=name):
                return Refused(ResponseCode.UNKNOWN_TOOL, render(SentenceId.UNKNOWN_TOOL, {"tool": name}))
            case SchemaMismatch(detail=detail):
                return Refused(
                    ResponseCode.ARGS_SCHEMA_MISMATCH, render(SentenceId.ARGS_SCHEMA_MISMATCH, {"detail": detail})
                )
            case BoundCall():
                return self._within_limits(call, bound)

    def _within_limits(self, call: ToolCalled, bound: BoundCall) -> BoundCall | Refused:
        asked = args_hash(call.tool_name, call.args)
        self._seen[asked] += 1
        for count, limit, what in (
            (self._seen[asked], self._limits.identical_calls_max, "identical calls in one run"),
            (self._seen.total(), self._limits.calls_max, "calls in one run"),
        ):
            if count > limit:
                said = render(SentenceId.LOOP_LIMIT, {"limit": f"{limit} {what}"})
                return Refused(ResponseCode.LOOP_LIMIT, said)
        return bound

    async def admit(self, call: ToolCalled, bound: BoundCall) -> Admitted | Refused:
        """The part that looks at the session and asks a person: repeats and permission."""
        asked = args_hash(call.tool_name, call.args)
        watched = self._repeats(call, bound, asked)
        key = self._recorded_key(bound, asked)
        if watched is None and not bound.needs_permission:
            return Admitted(bound, asked)
        grant = self._grants.pop((asked, bound.contract.digest), None)
        if grant is not None:
            if not grant.approved:
                return _denied(grant.decided_by)
            return Admitted(bound, asked, grant.grant_id, watched.operation_id if watched else None, key)
        answer = await self._ask(call, bound, asked, watched)
        if isinstance(answer, Allowed):
            return Admitted(bound, asked, None, watched.operation_id if watched else None, key)
        if watched is not None and isinstance(answer, Undecided):
            said = render(SentenceId.REPEAT_OF_UNSETTLED_EFFECT, {"tool": call.tool_name})
            return Refused(ResponseCode.REPEAT_OF_UNSETTLED_EFFECT, said)
        return _denied(answer.by if isinstance(answer, Denied) else "nobody")

    def _repeats(self, call: ToolCalled, bound: BoundCall, asked: str) -> EffectWatched | None:
        session = self._recorder.session()
        watched = repeated_effect(session, bound.contract, asked, self._recorded_key(bound, asked))
        if watched is None and bound.needs_permission and not bound.contract.repeat_free:
            watched = renamed_effect(session, call.args, {tool.name for tool in self._catalog.tools()})
        return watched

    def _recorded_key(self, bound: BoundCall, asked: str) -> str | None:
        """The key of an earlier, uncertain delivery of the same idempotent call: it is delivered with that one (F9)."""
        if bound.contract.mode is not RecoveryMode.IDEMPOTENT:
            return None
        for watched in self._recorder.session().watched.values():
            if watched.args_hash == asked and watched.mode is RecoveryMode.IDEMPOTENT:
                return watched.idempotency_key
        return None

    async def _ask(
        self, call: ToolCalled, bound: BoundCall, asked: str, watched: EffectWatched | None
    ) -> PermissionAnswer:
        reason = AskReason.POLICY if watched is None else AskReason.REPEAT_OF_UNSETTLED_EFFECT
        request = PermissionRequest(
            request_id=self._ids.fresh(RequestId),
            session_id=call.session_id,
            tool_name=call.tool_name,
            arguments=call.args,
            args_hash=asked,
            contract_digest=bound.contract.digest,
            mode=bound.contract.mode,
            reason=reason,
            repeats=None if watched is None else watched.operation_id,
        )
        by_policy = self._gate.by_policy(request)
        if by_policy is not None:
            return by_policy
        await self._recorder.append(_requested(self._recorder, call, request))
        answer = await to_thread.run_sync(partial(self._gate.decide, request, self._cancel))
        if not isinstance(answer, Undecided):
            decided = PermissionDecided(
                **self._recorder.spine(),
                request_id=request.request_id,
                approved=isinstance(answer, Allowed),
                decided_by=answer.by,
            )
            await self._recorder.append(decided)
        return answer


def _requested(recorder: RunRecorder, call: ToolCalled, request: PermissionRequest) -> PermissionRequested:
    return PermissionRequested(
        **recorder.spine(),
        request_id=request.request_id,
        call_id=call.call_id,
        tool_name=call.tool_name,
        args_hash=request.args_hash,
        contract_digest=request.contract_digest,
        reason=request.reason,
        repeats=request.repeats,
    )


def _not_strict(call: ToolCalled) -> Refused:
    said = render(SentenceId.ARGS_NOT_STRICT_JSON, {"detail": "kept as the text that was sent"})
    return Refused(ResponseCode.ARGS_NOT_STRICT_JSON, said)


def _denied(by: str) -> Refused:
    return Refused(ResponseCode.PERMISSION_DENIED, render(SentenceId.PERMISSION_DENIED, {"by": by}))
