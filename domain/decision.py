"""What a decision answers: the candidates to seal, or a refusal. SPEC sections 7 and 22."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from .events.event import Event
from .reasons import WriteRefusal


@dataclass(frozen=True, slots=True)
class Refusal:
    """Nothing is written, and why.

    Attributes:
        code: stable.
        detail: the same for a person, naming the thing.
    """

    code: WriteRefusal
    detail: str


Decision: TypeAlias = tuple[Event, ...] | Refusal
"""Candidates of one commit, in the order of their streams."""


def misfit(detail: str) -> Refusal:
    """Refuse candidates that the state does not allow."""
    return Refusal(WriteRefusal.TRANSITION_SHAPE_CONFLICT, detail)
