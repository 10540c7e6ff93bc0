"""Makes the facts of the tool boundary: T1, T2, and what a call leaves running. SPEC sections 5 and 8.

T1 and T2 are assembled without validating them again: what they are made of is the call's, which was validated and
stored, this program's own, or strict JSON by now.
"""

from __future__ import annotations

from ..domain import canonical
from ..domain.events.assembling import assembled
from ..domain.events.event import Json, Timestamp, seconds_between
from ..domain.events.outside import BackgroundStarted, JobKind
from ..domain.events.tool import RecordedContract, RecoveryMode, ToolCalled, ToolDispatched, ToolResponded
from ..domain.identifiers import HandleId, IncarnationId, OperationId, derive_id, key_of
from ..domain.tool_results import PreparedResult
from ..ports.tool_catalog import LeftRunning
from .preflight import Admitted
from .spines import RunSpine


def dispatch_of(
    spine: RunSpine,
    call: ToolCalled,
    admitted: Admitted,
    operation_id: OperationId,
    incarnation_id: IncarnationId,
    evidence: Json,
) -> ToolDispatched:
    """Make T1.

    Raises:
        ValueError: the evidence is no strict JSON.
    """
    if evidence is not None:
        evidence = canonical.decode_canonical(canonical.encode(evidence))  # nobody else has a part of it
    bound = admitted.bound
    idempotent = bound.contract.mode is RecoveryMode.IDEMPOTENT
    key = None if admitted.again is None else admitted.again.idempotency_key
    members = {
        **spine,
        "operation_id": operation_id,
        "call_id": call.call_id,
        "tool_name": call.tool_name,
        "args_hash": admitted.args_hash,
        "contract": _contract(admitted, spine["occurred_at"]),
        "idempotency_key": (key or key_of(operation_id)) if idempotent else None,
        "evidence": evidence,
        "incarnation_id": incarnation_id,
        "life": bound.life,
        "grant_id": admitted.grant_id,
        "repeats": admitted.repeats,
    }
    return assembled(ToolDispatched, members)


def _contract(admitted: Admitted, at: Timestamp) -> RecordedContract:
    """The contract as it holds for this delivery: a key that is used again gets no younger by that."""
    contract, again = admitted.bound.contract, admitted.again
    if again is None or again.key_valid_until is None or contract.key_valid_seconds is None:
        return contract
    left = max(1, min(contract.key_valid_seconds, seconds_between(at, again.key_valid_until)))
    return contract.model_copy(update={"key_valid_seconds": left})


def response_of(
    spine: RunSpine, call: ToolCalled, operation_id: OperationId | None, prepared: PreparedResult
) -> ToolResponded:
    """Make T2, or the answer to a call that is not dispatched.

    Raises:
        ValueError: the result is a text with a lone surrogate.
    """
    result = prepared.result
    if type(result) is str and not result.isascii():
        result.encode()  # some say what a person, or another program, said
    members = {
        **spine,
        "call_id": call.call_id,
        "tool_name": call.tool_name,
        "operation_id": operation_id,
        "result": result,
        "is_error": prepared.is_error,
        "effect": prepared.effect,
        "code": None if prepared.code is None else prepared.code.value,
        "original_length": prepared.original_length,
        "original_digest": prepared.original_digest,
    }
    return assembled(ToolResponded, members)


def background_of(spine: RunSpine, operation_id: OperationId, left: LeftRunning) -> BackgroundStarted:
    """Make the fact that work goes on after its tool returned."""
    return BackgroundStarted(
        **spine,
        handle_id=HandleId(derive_id(operation_id, "handle")),
        kind=JobKind.SHELL,
        operation_id=operation_id,
        handle=left.handle,
        detached=left.detached,
    )
