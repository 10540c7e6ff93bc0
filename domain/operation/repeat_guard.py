"""The repeat guard: an effect that is not certain is not repeated under a new call id unasked. SPEC F9."""

from __future__ import annotations

from collections.abc import Collection

from .. import canonical
from ..events.event import Json
from ..events.session import EffectWatched
from ..events.tool import RecordedContract, RecoveryMode
from ..session.state import Session


def arguments_only_hash(args: Json) -> str:
    """Hash of a call's arguments without its tool's name, for a tool that was renamed meanwhile."""
    return canonical.sha256_hex(canonical.encode(args))


def repeated_effect(
    session: Session, contract: RecordedContract, args_hash: str, idempotency_key: str | None
) -> EffectWatched | None:
    """The watched effect that a call would repeat, or None when it is free to go.

    Not asked: `replay_safe` calls, contracts that say `repeat: free`, and `idempotent` ones with the recorded key.

    Args:
        session: the session's state.
        contract: what is promised for this call.
        args_hash: of tool name and arguments.
        idempotency_key: the key that it would be delivered with, None where it has none.
    """
    if contract.mode is RecoveryMode.REPLAY_SAFE or contract.repeat_free:
        return None
    for watched in session.watched.values():
        if watched.args_hash != args_hash:
            continue
        if contract.mode is RecoveryMode.IDEMPOTENT and watched.idempotency_key == idempotency_key:
            continue
        return watched
    return None


def renamed_effect(session: Session, args: Json, tool_names: Collection[str]) -> EffectWatched | None:
    """The watched effect whose tool is gone from the catalog and whose arguments equal these: it may have been renamed.

    Args:
        session: the session's state.
        args: the arguments of the call that is about to run; `{}` never matches.
        tool_names: the tools of the present catalog.
    """
    if not args:
        return None
    present = arguments_only_hash(args)
    for watched in session.watched.values():
        if watched.tool_name not in tool_names and watched.has_arguments and watched.arguments_only_hash == present:
            return watched
    return None
