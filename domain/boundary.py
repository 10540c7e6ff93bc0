"""Boundaries: immutable prefixes of runs, oldest first, and the digest that names the list. SPEC sections 6 and 14."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from . import canonical
from .events.run import PrefixRef
from .reasons import ParkReason

BOUNDARY_DOMAIN = "safepoint.boundary.v1"
SEGMENTS_MAX = 64
"""Segments that show the provider anything; past that the way on is a new turn."""


class BoundaryViolation(NamedTuple):
    """A list of prefixes that cannot be one lineage: at which segment, from 0, and what is wrong with it."""

    code: ParkReason
    position: int
    run_id: str | None
    detail: str


def boundary_digest(segments: Sequence[PrefixRef]) -> str:
    """Digest of a manifest of prefixes, oldest first; another order gives another digest. SPEC section 6.

    It names the list as it stands: whether that may be a lineage is `boundary_violations`' to say.
    """
    manifest = {"segments": [segment.model_dump(mode="json") for segment in segments]}
    return canonical.digest(BOUNDARY_DOMAIN, canonical.encode(manifest))


def boundary_violations(
    segments: Sequence[PrefixRef], contributing: Sequence[bool] | None = None
) -> tuple[BoundaryViolation, ...]:
    """Everything that keeps a list of prefixes from being one lineage.

    Args:
        segments: oldest first.
        contributing: for each segment, whether it shows the provider anything; all count where it is not given.
    """
    if not segments:
        return (BoundaryViolation(ParkReason.RUNTIME_LINEAGE_MISSING, 0, None, "there is no segment"),)
    found: list[BoundaryViolation] = []
    session_id = segments[0].session_id
    seen: set[tuple[str, str]] = set()
    for index, segment in enumerate(segments):

        def violated(code: ParkReason, detail: str, index: int = index, segment: PrefixRef = segment) -> None:
            found.append(BoundaryViolation(code, index, segment.run_id, detail))

        if segment.session_id != session_id:
            violated(ParkReason.RUNTIME_IDENTITY_MISMATCH, f"it belongs to session {segment.session_id}")
        ids = (("run", segment.run_id), ("invocation", segment.invocation_id), ("turn", segment.turn_id))
        for what, value in ids:
            if (what, value) in seen:
                violated(ParkReason.RUNTIME_LINEAGE_CYCLE, f"{what} {value} occurs twice")
        seen.update(ids)
    depth = len(segments) if contributing is None else sum(contributing)
    if depth > SEGMENTS_MAX:
        detail = f"{depth} segments show the provider something; at most {SEGMENTS_MAX} may"
        found.append(BoundaryViolation(ParkReason.RUNTIME_LINEAGE_DEPTH_EXCEEDED, len(segments) - 1, None, detail))
    return tuple(found)
