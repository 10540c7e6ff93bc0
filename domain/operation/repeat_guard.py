"""The repeat guard: an effect that is not certain is not repeated under a new call id unasked. SPEC F9."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from .. import canonical
from ..events.event import Json, Timestamp
from ..events.session import EffectWatched
from ..events.tool import RecordedContract, RecoveryMode
from ..session.state import Session
from .key_validity import why_invalid


def arguments_only_hash(args: Json) -> str:
    """Hash of a call's arguments without its tool's name, for a tool that was renamed meanwhile."""
    return canonical.sha256_hex(canonical.encode(args))


def repeated_effects(
    session: Session, contract: RecordedContract, args_hash: str, idempotency_key: str | None, at: Timestamp
) -> Iterator[EffectWatched]:
    """The watched effects that a call would repeat; none where it is free to go.

    Not asked: `replay_safe` calls, contracts that say `repeat: free`, and `idempotent` ones with the recorded key while
    that is valid.

    Args:
        session: the session's state.
        contract: what is promised for this call.
        args_hash: of tool name and arguments.
        idempotency_key: the key that it would be delivered with, None where it has none.
        at: the present time.
    """
    if contract.mode is RecoveryMode.REPLAY_SAFE or contract.repeat_free:
        return
    for watched in session.watched.values():
        if watched.args_hash == args_hash and not (
            contract.mode is RecoveryMode.IDEMPOTENT and _same_delivery(watched, idempotency_key, at)
        ):
            yield watched


def freely_repeated(session: Session, contract: RecordedContract, args_hash: str) -> Iterator[EffectWatched]:
    """The watched effects that a call repeats unasked, because its contract says so of every call: tests, builds.

    Arguments as for `repeated_effects`. The repeat takes their place, so that nobody is told of them for ever.
    """
    if contract.repeat_free and contract.mode is not RecoveryMode.REPLAY_SAFE:
        yield from (watched for watched in session.watched.values() if watched.args_hash == args_hash)


def repeated_effect(
    session: Session, contract: RecordedContract, args_hash: str, idempotency_key: str | None, at: Timestamp
) -> EffectWatched | None:
    """The first of `repeated_effects`, for a question to a person."""
    return next(repeated_effects(session, contract, args_hash, idempotency_key, at), None)


def delivered_again(
    session: Session, contract: RecordedContract, args_hash: str, idempotency_key: str | None, at: Timestamp
) -> Iterator[EffectWatched]:
    """The watched effects that an `idempotent` call delivers once more, with their key while that is valid.

    Arguments as for `repeated_effects`. Whoever keeps the keys takes both for one, so only the later outcome counts.
    """
    if contract.mode is not RecoveryMode.IDEMPOTENT:
        return
    for watched in session.watched.values():
        if watched.args_hash == args_hash and _same_delivery(watched, idempotency_key, at):
            yield watched


def _same_delivery(watched: EffectWatched, idempotency_key: str | None, at: Timestamp) -> bool:
    """Whether whoever keeps the keys would take both for one: past the key's validity it would act again."""
    if idempotency_key is None or watched.idempotency_key != idempotency_key:
        return False
    return why_invalid(watched.occurred_at, watched.key_valid_until, at) is None


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
