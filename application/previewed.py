"""The ids of what repair would write and has not: made from the run, so every look gives the same. SPEC section 13.

A plan of a store and a judgement of its export show one history so, under one digest. Repair itself makes fresh ids.
"""

from __future__ import annotations

from typing import Final

from ..domain.identifiers import IncarnationId, RunId, derive_id

PREVIEW: Final = IncarnationId("preview")
"""Stands where repair would write its own life; nothing with it is ever stored."""
TERMINAL: Final = 1
"""The position of a run's terminal event: repair makes no other id before it."""


def previewed_id(run_id: RunId, position: int) -> str:
    """The id of a fact that repair would write for a run.

    Args:
        position: from 1, in the order in which repair makes ids.
    """
    return derive_id(run_id, "preview", str(position))
