"""Asks whether a call may be dispatched: the policy first, then a person, by a durable question. SPEC F4, F6."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from ..domain.events.outside import PermissionRequested
from ..domain.events.tool import ToolCalled
from ..domain.identifiers import OperationId, RequestId
from ..domain.own_copies import own
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
from .open_questions import OpenQuestion, OpenQuestions
from .run_recorder import RunRecorder
from .stopping import CallCancel, Stopping


class DeniedByPolicy(NamedTuple):
    """The policy says no; nobody was asked."""

    by: str
    why: str


class Asking:
    """Asks one gate about the calls of one run.

    Args:
        stopping: ends the waiting for a person.
        questions: where a person at another terminal finds what waits.
    """

    def __init__(
        self, recorder: RunRecorder, gate: PermissionGate, ids: Ids, stopping: Stopping, questions: OpenQuestions
    ) -> None:
        self._recorder = recorder
        self._gate = gate
        self._ids = ids
        self._stopping = stopping
        self._questions = questions

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
        with self._questions.waiting(request.request_id) as question:
            await self._recorder.append(self._requested(call, request))
            answer = await self._by_gate(request, question)
            if isinstance(answer, Undecided) and not question.taken:
                return answer
            if isinstance(answer, Undecided) or not question.take():
                return await question.answered()
            await self._questions.record(request.request_id, answer)
        return answer

    def _by_policy(self, request: PermissionRequest) -> PermissionAnswer | None:
        try:
            return self._gate.by_policy(request)
        except Exception as error:  # noqa: BLE001 (a policy that fails permits nothing)
            return Denied("policy", f"it could not be asked ({type(error).__name__})")

    async def _by_gate(self, request: PermissionRequest, question: OpenQuestion) -> PermissionAnswer:
        """Wait for a person, here or elsewhere, and after a stop only as long as for live work."""
        if question.taken:
            return Undecided("it is answered already")
        cancel = CallCancel(self._stopping)
        call = AbandonableCall(partial(self._gate.decide, request, cancel), "safepoint permission")
        if not call.start():
            return Undecided("nobody could be asked")
        scope = question.waiting = self._stopping.after_bound()
        try:
            with scope:
                await call.finished()
        finally:
            self._stopping.done(scope)
            question.waiting = None
            cancel.set()
            call.give_up()  # an answer after the stop is nobody's: the question is closed by then
        if isinstance(call.ended, Returned):
            answer: PermissionAnswer = call.ended.value
            return answer
        return Undecided("nobody could be asked")

    def _request(
        self, call: ToolCalled, bound: BoundCall, asked: str, repeats: OperationId | None
    ) -> PermissionRequest:
        return PermissionRequest(
            request_id=self._ids.fresh(RequestId),
            session_id=call.session_id,
            tool_name=call.tool_name,
            arguments=own(call.args),
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
