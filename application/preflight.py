"""What is checked before T1, in order: arguments, tool, schema, loops, repeats, permission. SPEC section 8.

A refusal is a real, committed answer: call and response, effect `none`, no dispatch (F2).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from ..domain.canonical import args_hash
from ..domain.events.event import Timestamp
from ..domain.events.session import EffectWatched, GrantPosted
from ..domain.events.tool import RecoveryMode, ToolCalled
from ..domain.identifiers import GrantId, OperationId
from ..domain.operation.key_validity import why_invalid
from ..domain.operation.repeat_guard import freely_repeated, renamed_effect, repeated_effect
from ..domain.operation.state import operations_of
from ..domain.operation.watch_list import is_certain, unsettled_delivery
from ..domain.own_copies import own
from ..domain.reasons import ResponseCode
from ..domain.sentences import SentenceId, render
from ..domain.session.state import Session
from ..domain.tool_arguments import ARGUMENTS_BYTES_MAX, NotStrictJson
from ..domain.tool_results import sayable
from ..ports.permission_gate import Allowed, Denied, Undecided
from ..ports.tool_catalog import BoundCall, SchemaMismatch, ToolCatalog, UnknownTool
from .asking import Asking, DeniedByPolicy
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
    """The call may be dispatched, once, with what T1 must name.

    Attributes:
        repeats: the operation whose effect it knowingly repeats, or delivers once more.
        again: an earlier delivery of the same idempotent call, uncertain or settled in this turn, whose key it has.
    """

    bound: BoundCall
    args_hash: str
    grant_id: GrantId | None = None
    repeats: OperationId | None = None
    again: EffectWatched | None = None


@dataclass(frozen=True, slots=True)
class LoopLimits:
    """Bounds on what a model may ask for in one run."""

    identical_calls_max: int = IDENTICAL_CALLS_MAX
    calls_max: int = CALLS_MAX


class Preflight:
    """Checks the calls of one run.

    Args:
        catalog: binds arguments to contracts.
        asking: asks the permission gate.
        grants: decisions of a person that this run's first commit took over.
    """

    def __init__(
        self,
        recorder: RunRecorder,
        catalog: ToolCatalog,
        asking: Asking,
        grants: tuple[GrantPosted, ...] = (),
        limits: LoopLimits = LoopLimits(),
    ) -> None:
        self._recorder = recorder
        self._catalog = catalog
        self._asking = asking
        self._grants = list(grants)
        self._limits = limits
        self._seen: Counter[str] = Counter()
        self._names = frozenset(tool.name for tool in catalog.tools())

    def bind(self, call: ToolCalled, unreadable: NotStrictJson | None) -> BoundCall | Refused:
        """Check what can be told from the call alone: strict arguments, known tool, schema, loop limits.

        Args:
            unreadable: why the call's arguments were kept as text, None where they are strict JSON.
        """
        if unreadable is not None:
            return not_strict(unreadable)
        bound = self._catalog.bind(call.tool_name, own(call.args))
        match bound:
            case UnknownTool(name=name):
                return Refused(ResponseCode.UNKNOWN_TOOL, render(SentenceId.UNKNOWN_TOOL, {"tool": name}))
            case SchemaMismatch(detail=detail):
                return mismatch(detail)
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
        """Look at the session, and ask a person where one must be asked: repeats and permission.

        Raises:
            StoreError, WriteRefused: the question could not be recorded, so nobody was asked.
        """
        asked = args_hash(call.tool_name, call.args)
        if not bound.needs_permission:
            return Admitted(bound, asked)
        session, now = await self._recorder.session(), self._recorder.spine()["occurred_at"]
        again = await self._delivered_before(session, bound, asked, now)
        key = None if again is None else again.idempotency_key
        watched = repeated_effect(session, bound.contract, asked, key, now) or self._renamed(session, call, bound)
        repeats = None if watched is None else watched.operation_id
        admitted = Admitted(bound, asked, None, repeats or _unasked(session, bound, asked, again), again)
        grant = self._grant(asked, bound, repeats)
        if grant is not None:
            return replace(admitted, grant_id=grant.grant_id) if grant.approved else _denied(grant.decided_by)
        match await self._asking(call, bound, asked, repeats):
            case Allowed():
                return admitted
            case Denied(by=by, why=why):
                return _denied(by, why)
            case DeniedByPolicy(by=by, why=why):
                return _denied(by, why) if watched is None else await self._unasked_repeat(call, watched)
            case Undecided():
                return _undecided() if watched is None else await self._unasked_repeat(call, watched)

    async def _delivered_before(
        self, session: Session, bound: BoundCall, asked: str, now: Timestamp
    ) -> EffectWatched | None:
        """An earlier delivery of the same idempotent call, uncertain or settled in this turn, with a valid key (F9)."""
        if bound.contract.mode is not RecoveryMode.IDEMPOTENT:
            return None
        watched = [one for one in session.watched.values() if one.args_hash == asked]
        if not watched and (here := unsettled_delivery(operations_of(await self._recorder.run()), asked)) is not None:
            watched = [here]
        for one in watched:
            if one.idempotency_key is not None and why_invalid(one.occurred_at, one.key_valid_until, now) is None:
                return one
        return None

    async def _unasked_repeat(self, call: ToolCalled, watched: EffectWatched) -> Refused:
        known = SentenceId.REPEAT_OF_UNSETTLED_EFFECT
        if is_certain(watched):
            known = SentenceId.REPEAT_OF_SETTLED_EFFECT
            opening = (await self._recorder.run()).opening
            if opening is not None and watched.occurred_at > opening.occurred_at:  # the history shows it as unknown
                known = SentenceId.REPEAT_OF_EFFECT_SETTLED_MEANWHILE
        return Refused(ResponseCode.REPEAT_OF_UNSETTLED_EFFECT, render(known, {"tool": call.tool_name}))

    def _renamed(self, session: Session, call: ToolCalled, bound: BoundCall) -> EffectWatched | None:
        return None if bound.contract.repeat_free else renamed_effect(session, call.args, self._names)

    def _grant(self, asked: str, bound: BoundCall, repeats: OperationId | None) -> GrantPosted | None:
        """A person's decision on exactly this, used once; a yes to a plain question is none to a repeat."""
        for grant in self._grants:
            same = (grant.args_hash, grant.contract_digest) == (asked, bound.contract.digest)
            if same and (not grant.approved or repeats is None or grant.repeats == repeats):
                self._grants.remove(grant)
                return grant
        return None


def _unasked(session: Session, bound: BoundCall, asked: str, again: EffectWatched | None) -> OperationId | None:
    """The watched effect that the call repeats with nobody's leave, by its key or its contract; T1 names it."""
    known = again or next(freely_repeated(session, bound.contract, asked), None)
    return None if known is None else known.operation_id


def mismatch(detail: str) -> Refused:
    """The refusal of arguments that do not fit their tool."""
    return Refused(ResponseCode.ARGS_SCHEMA_MISMATCH, render(SentenceId.ARGS_SCHEMA_MISMATCH, {"detail": detail}))


def not_strict(arguments: NotStrictJson) -> Refused:
    """The refusal of arguments that are no strict JSON, or too large."""
    if arguments.code is ResponseCode.ARGS_TOO_LARGE:
        facts = {"size": arguments.size_bytes, "limit": ARGUMENTS_BYTES_MAX}
        return Refused(arguments.code, render(SentenceId.ARGS_TOO_LARGE, {**facts}))
    return Refused(arguments.code, render(SentenceId.ARGS_NOT_STRICT_JSON, {"detail": arguments.detail}))


def _denied(by: str, why: str = "") -> Refused:
    said = SentenceId.PERMISSION_DENIED_BECAUSE if why else SentenceId.PERMISSION_DENIED
    return Refused(ResponseCode.PERMISSION_DENIED, render(said, {"by": by, "why": sayable(why)}))


def _undecided() -> Refused:
    return Refused(ResponseCode.PERMISSION_DENIED, render(SentenceId.PERMISSION_UNDECIDED))
