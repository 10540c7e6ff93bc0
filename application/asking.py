"""Asks whether a call may be dispatched: the policy first, then a person, by a durable question. SPEC F4, F6."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from ..domain.events.outside import PermissionDecided, PermissionRequested
from ..domain.events.tool import ToolCalled
from ..domain.identifiers import OperationId, RequestId
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
from ..ports.tool_catalog import BoundCall
from .abandonable_call import AbandonableCall, Returned
from .run_recorder import RunRecorder
from .stopping import Stopping


class DeniedByPolicy(NamedTuple):
    """The policy says no; nobody was asked."""

    by: str
    why: str


class Asking:
    """Asks one gate about the calls of one run.

    Args:
        stopping: ends the waiting for a person.
    """

    def __init__(self, recorder: RunRecorder, gate: PermissionGate, ids: Ids, stopping: Stopping) -> None:
        self._recorder = recorder
        self._gate = gate
        self._ids = ids
        self._stopping = stopping

    async def __call__(
        self, call: ToolCalled, bound: BoundCall, asked: str, repeats: OperationId | None
    ) -> PermissionAnswer | DeniedByPolicy:
        """Ask; a failure to ask is Undecided, never an Allowed.

        Args:
            asked: hash of tool name and arguments, which the answer is bound to.
            repeats: the operation whose effect the call may repeat; only a person may allow that.

        Raises:
            StoreError, WriteRefused: question or answer could not be recorded.
        """
        request = self._request(call, bound, asked, repeats)
        by_policy = self._by_policy(request)
        if isinstance(by_policy, Denied):
            return DeniedByPolicy(*by_policy)
        if isinstance(by_policy, Allowed) and repeats is None:
            return by_policy
        await self._recorder.append(self._requested(call, request))
        answer = await self._decided(request)
        if not isinstance(answer, Undecided):
            decided = PermissionDecided(
                **self._recorder.spine(),
                request_id=request.request_id,
                approved=isinstance(answer, Allowed),
                decided_by=answer.by,
            )
            await self._recorder.append(decided)
        return answer

    def _by_policy(self, request: PermissionRequest) -> PermissionAnswer | None:
        try:
            return self._gate.by_policy(request)
        except Exception as error:  # noqa: BLE001 (a policy that fails permits nothing)
            return Denied("policy", f"it could not be asked ({type(error).__name__})")

    async def _decided(self, request: PermissionRequest) -> PermissionAnswer:
        """Wait for a person, and after a stop only as long as for live work."""
        question = AbandonableCall(partial(self._gate.decide, request, self._stopping), "safepoint permission")
        if not question.start():
            return Undecided("nobody could be asked")
        scope = self._stopping.after_bound()
        try:
            with scope:
                await question.finished()
        finally:
            self._stopping.done(scope)
            question.give_up()  # an answer after the stop is nobody's: the question is closed by then
        if isinstance(question.ended, Returned):
            answer: PermissionAnswer = question.ended.value
            return answer
        return Undecided("nobody could be asked")

    def _request(
        self, call: ToolCalled, bound: BoundCall, asked: str, repeats: OperationId | None
    ) -> PermissionRequest:
        return PermissionRequest(
            request_id=self._ids.fresh(RequestId),
            session_id=call.session_id,
            tool_name=call.tool_name,
            arguments=call.args,
            args_hash=asked,
            contract_digest=bound.contract.digest,
            mode=bound.contract.mode,
            reason=AskReason.POLICY if repeats is None else AskReason.REPEAT_OF_UNSETTLED_EFFECT,
            repeats=repeats,
        )

    def _requested(self, call: ToolCalled, request: PermissionRequest) -> PermissionRequested:
        return PermissionRequested(
            **self._recorder.spine(),
            request_id=request.request_id,
            call_id=call.call_id,
            tool_name=call.tool_name,
            args_hash=request.args_hash,
            contract_digest=request.contract_digest,
            reason=request.reason,
            repeats=request.repeats,
        )
