"""Ids of the facts that a decision adds to those of its command: the same on every retry. SPEC section 7, F16."""

from __future__ import annotations

from enum import StrEnum

from ..identifiers import EventId, derive_id
from .event import Event


class Derived(StrEnum):
    """Why a decision adds a fact; the value is part of stored ids."""

    CALL_CLOSED = "close"
    PERMISSION_CLOSED = "permission"
    EFFECT_WATCHED = "watch"
    EFFECT_CLEARED = "clear"
    NOTICES_TAKEN = "notices"
    NOTICE_TOLD = "notice"
    GRANTS_TAKEN = "grants"
    GRANT_KEPT = "grant"
    GRANT_TOLD = "granted"


def derived_id(seed: Event, why: Derived, position: int = 0) -> EventId:
    """The id of a fact that follows from `seed`.

    Args:
        seed: a candidate of the command.
        why: the kind of the fact.
        position: from 0 without a gap, where several of one kind follow, so that all can be found again.
    """
    return EventId(derive_id(seed.event_id, why, str(position)))
