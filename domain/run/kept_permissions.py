"""What a person said of a call that its run could not carry out any more: it is kept for the next run. SPEC 13, F6.

A decision after the end is kept in the same form, so that a person who was quick is not asked again.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..events.derived import Derived, derived_id
from ..events.event import SessionEvent
from ..events.run import RunEnded
from ..events.session import GrantPosted, NoticePosted
from ..identifiers import GrantId, NoticeId, RequestId, derive_id
from ..operation.state import Operation
from ..sentences import SentenceId
from .state import Permission, Run


def grant_of(request_id: RequestId) -> GrantId:
    """The id of the grant that a decision becomes; one question has one decision, so it has one grant."""
    return GrantId(derive_id(request_id, "grant"))


def notice_of(request_id: RequestId) -> NoticeId:
    """The id of the notice that tells the model of that grant."""
    return NoticeId(derive_id(request_id, "granted"))


def kept_permissions(run: Run, closed: Iterable[Operation], ended: RunEnded) -> tuple[SessionEvent, ...]:
    """Keep the decisions on calls that are closed because the run ends before they were dispatched.

    Args:
        closed: the calls; it is proven that they were not dispatched.
        ended: the terminal event; ids and time of the derived facts come from it.
    """
    decided = [one for operation in closed for one in run.permissions_of(operation.call_id) if one.decided is not None]
    grants = tuple(_grant(one, ended, position) for position, one in enumerate(decided))
    permitted = [grant for grant in grants if grant.approved]
    return (*grants, *(_notice(grant, ended, position) for position, grant in enumerate(permitted)))


def _grant(permission: Permission, ended: RunEnded, position: int) -> GrantPosted:
    asked, decided = permission.requested, permission.decided
    assert decided is not None
    return GrantPosted(
        event_id=derived_id(ended, Derived.GRANT_KEPT, position),
        session_id=ended.session_id,
        occurred_at=ended.occurred_at,
        grant_id=grant_of(asked.request_id),
        request_id=asked.request_id,
        tool_name=asked.tool_name,
        call_id=asked.call_id,
        args_hash=asked.args_hash,
        contract_digest=asked.contract_digest,
        approved=decided.approved,
        decided_by=decided.decided_by,
        repeats=asked.repeats,
    )


def _notice(grant: GrantPosted, ended: RunEnded, position: int) -> NoticePosted:
    return NoticePosted(
        event_id=derived_id(ended, Derived.GRANT_TOLD, position),
        session_id=ended.session_id,
        occurred_at=ended.occurred_at,
        notice_id=notice_of(grant.request_id),
        sentence_id=SentenceId.PERMISSION_GRANTED,
        parameters={"by": grant.decided_by, "tool": grant.tool_name},
    )
