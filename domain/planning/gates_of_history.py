"""Gates 7 and 8: a history that providers accept and that fits, and ids that nobody has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .. import canonical
from ..reasons import ParkReason, ReplayBlock
from ..replay.items import Item
from ..replay.legality import check_provider_legality
from .outcome import Note, NoteCode, Reason
from .view import View

BYTES_PER_TOKEN = 4
"""The estimate where the provider cannot count; both numbers are shown."""

_BLOCKS = {
    ReplayBlock.PROVIDER_REPLAY_NON_SUFFIX_GAP: ParkReason.PROVIDER_REPLAY_NON_SUFFIX_GAP,
    ReplayBlock.PROVIDER_REPLAY_UNSUPPORTED: ParkReason.PROVIDER_REPLAY_UNSUPPORTED,
}
_BLOCKS_OF_EARLIER_TURNS = {
    **_BLOCKS,
    ReplayBlock.TOOL_RECOVERY_CORRUPTION: ParkReason.TOOL_RECOVERY_CORRUPTION,
    ReplayBlock.TOOL_RECOVERY_UNSETTLED: ParkReason.DANGLING_TOOL_STATE,
}


def history_can_be_made(view: View) -> Iterator[Reason]:
    """No segment is blocked; unsettled and corrupt operations of the lineage were reported with their own codes."""
    for run_id, blocked in () if view.facts.earlier is None else view.facts.earlier.blocked:
        if blocked.blocked is not None:
            code = _BLOCKS_OF_EARLIER_TURNS[blocked.blocked]
            yield Reason(code, {"run": run_id, "events": [*blocked.blocking], "earlier_turn": True})
    for facts, segment in zip(view.lineage, view.projected, strict=True):
        if segment.blocked in _BLOCKS:
            yield Reason(_BLOCKS[segment.blocked], {"run": facts.ref.run_id, "events": [*segment.blocking]})


def history_is_accepted(view: View) -> Iterator[Reason]:
    """It begins with something in the user's role, ends where a model may go on, and every call has its one answer."""
    replay = view.replay()
    if replay is None:
        return
    items = replay.items
    if not items or items[0].kind not in {"user", "host"}:
        first = items[0].event_id if items else None
        yield Reason(ParkReason.PROVIDER_RESUME_HEAD_UNSUPPORTED, {"event": first})
    if items and items[-1].kind not in {"user", "host", "result"}:
        yield Reason(ParkReason.PROVIDER_RESUME_BOUNDARY_UNSUPPORTED, {"event": items[-1].event_id})
    elif items and items[0].kind in {"user", "host"} and (illegal := check_provider_legality(items)):
        yield Reason(
            ParkReason.PROVIDER_REPLAY_UNSUPPORTED,
            {"illegal": illegal.code, "call": illegal.call_id, "calls": illegal.calls, "responses": illegal.responses},
        )


def history_fits(view: View) -> Iterator[Reason]:
    """It fits the model's window (F17)."""
    replay, window = view.replay(), view.facts.window
    if replay is None or window is None:
        return
    counted = window.history_tokens
    have = counted if counted is not None else estimated_tokens(replay.items)
    about = {"have": have, "limit": window.limit_tokens, "estimated": counted is None}
    if have > window.limit_tokens:
        yield Reason(ParkReason.HISTORY_TOO_LARGE, about)
    else:
        view.notes.append(Note(NoteCode.HISTORY_SIZE, about))


def estimated_tokens(items: Iterable[Item]) -> int:
    """Tokens of a history, estimated from the bytes of what is said in it."""
    size = 0
    for item in items:
        if item.kind == "call":
            text = item.provider_text or item.args_text
            size += len(item.tool_name) + (len(text.encode()) if text is not None else len(canonical.encode(item.args)))
        elif item.kind == "result":
            size += len(canonical.encode(item.result))
        else:
            size += len(item.text.encode())
    return -(-size // BYTES_PER_TOKEN)


def ids_are_fresh(view: View) -> Iterator[Reason]:
    """The continuation's ids are nobody's: not the store's, not an ancestor's."""
    fresh = view.facts.fresh
    taken = set(view.facts.ids_taken)
    for reading in view.lineage:
        taken.update((reading.ref.run_id, reading.ref.turn_id, reading.ref.invocation_id))
    reused = [an_id for an_id in fresh if an_id in taken]
    if reused:
        yield Reason(ParkReason.CONTINUATION_IDENTITY_REUSED, {"ids": [*reused]})
