"""The edges of a lineage: each verified against claim, start event and both digests. SPEC sections 6 and 14."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from ..boundary import boundary_digest, boundary_violations
from ..events.event import Json
from ..events.run import ContinuationStarted, PrefixRef, RunClaimed, RunOpened
from ..reasons import ParkReason
from ..replay.history import History
from ..replay.origin import Origin, origin_of
from ..replay.segment import Segment
from ..replay.versions import PROJECTIONS
from .facts import SegmentFacts
from .outcome import Reason


def lineage_reasons(lineage: Sequence[SegmentFacts], contributing: Sequence[bool]) -> Iterator[Reason]:
    """Everything that is wrong with the shape of a lineage and with each of its edges, replay digests excepted.

    Args:
        lineage: readable segments, oldest first.
        contributing: for each, whether it shows the provider anything.
    """
    refs = [segment.ref for segment in lineage]
    for violation in boundary_violations(refs, contributing):
        yield Reason(violation.code, {"run": violation.run_id, "detail": violation.detail})
    if not isinstance(lineage[0].opening, RunOpened):
        detail = "the oldest run that could be found does not begin a turn"
        yield Reason(ParkReason.RUNTIME_LINEAGE_MISSING, {"run": refs[0].run_id, "detail": detail})
    for number, (older, newer) in enumerate(pairwise(lineage), 1):
        yield from _edge_reasons(older, newer, refs[:number])


def _edge_reasons(older: SegmentFacts, newer: SegmentFacts, segments: Sequence[PrefixRef]) -> Iterator[Reason]:
    def wrong(code: ParkReason, detail: str) -> Reason:
        return Reason(code, {"run": newer.ref.run_id, "ancestor": older.ref.run_id, "detail": detail})

    started = newer.opening
    if not isinstance(started, ContinuationStarted):
        yield wrong(ParkReason.RUNTIME_LINEAGE_START_MISMATCH, "it does not begin as a continuation")
        return
    if _identity(started.source) != _identity(older.ref):
        yield wrong(ParkReason.RUNTIME_LINEAGE_START_MISMATCH, "it names another source")
    elif started.source != older.ref:
        yield wrong(ParkReason.SOURCE_PREFIX_DIGEST_MISMATCH, "the ancestor is not what it was made from")
    claim = older.claimed
    if claim is None:
        yield wrong(ParkReason.RUNTIME_LINEAGE_CLAIM_MISMATCH, "no claim follows the ancestor's boundary")
        return
    if not _names(claim, newer, segments):
        yield wrong(ParkReason.RUNTIME_LINEAGE_CLAIM_MISMATCH, "the claim names another target or boundary")
    if not _is_as_claimed(started, claim):
        yield wrong(ParkReason.RUNTIME_LINEAGE_START_MISMATCH, "its start is not what the claim froze")


def _identity(ref: PrefixRef) -> tuple[str, str, str, str]:
    return (ref.session_id, ref.run_id, ref.turn_id, ref.invocation_id)


def _names(claim: RunClaimed, newer: SegmentFacts, segments: Sequence[PrefixRef]) -> bool:
    target, ref = claim.target, newer.ref
    return (
        (target.run_id, target.turn_id, target.invocation_id) == (ref.run_id, ref.turn_id, ref.invocation_id)
        and claim.segments == tuple(segments)
        and claim.boundary_digest == boundary_digest(segments)
    )


def _is_as_claimed(started: ContinuationStarted, claim: RunClaimed) -> bool:
    target = claim.target
    return (
        (started.claim_id, started.boundary_digest) == (claim.claim_id, claim.boundary_digest)
        and (started.replay_digest, started.projection_version) == (claim.replay_digest, claim.projection_version)
        and (started.cwd, started.workspace_identity, started.profile, started.protocol)
        == (target.cwd, target.workspace_identity, target.profile, target.protocol)
    )


class Histories:
    """The histories that lead up to each edge of a lineage, each grown and never made anew.

    There is one for each provider that was shown the lineage and for each projection version: a chain costs time
    linear in its events, and each ancestor is projected once a version.
    """

    def __init__(self, lineage: Sequence[SegmentFacts], earlier: Sequence[Segment]) -> None:
        """Begin with nothing.

        Args:
            lineage: readable segments, oldest first, none of which is blocked.
            earlier: the segments of the turns before.
        """
        self._lineage = lineage
        self._earlier = earlier
        self._projected: dict[int, list[Segment]] = {}
        self._grown: dict[tuple[Origin, int], tuple[History, int]] = {}

    def projected(self, version: int) -> list[Segment]:
        """The lineage's segments, each projected alone, as a version projects them."""
        if version not in self._projected:
            project = PROJECTIONS[version].project
            self._projected[version] = [project(s.blocks, s.resolution, resumed=True) for s in self._lineage]
        return self._projected[version]

    def before(self, count: int, target: Origin, version: int) -> History:
        """The history of the earlier turns and the first `count` segments; for one target, counts never decrease."""
        history, grown = self._grown.get((target, version), (None, 0))
        if history is None:
            history = PROJECTIONS[version].begin(target)
            for segment in self._earlier:
                history.add(segment)
        for segment in self.projected(version)[grown:count]:
            history.add(segment)
        self._grown[target, version] = (history, count)
        return history


def replay_reasons(lineage: Sequence[SegmentFacts], histories: Histories) -> Iterator[Reason]:
    """Edges whose recorded replay digest is not what its version makes of the ancestors now."""
    for number, (older, newer) in enumerate(pairwise(lineage), 1):
        claim = older.claimed
        if claim is None:
            continue  # reported by `lineage_reasons`
        where: dict[str, Json] = {
            "run": newer.ref.run_id,
            "ancestor": older.ref.run_id,
            "version": claim.projection_version,
        }
        if claim.projection_version not in PROJECTIONS:
            yield Reason(ParkReason.PROVIDER_REPLAY_UNSUPPORTED, where)
        elif (
            histories.before(number, origin_of(claim.target.profile), claim.projection_version).digest
            != claim.replay_digest
        ):
            yield Reason(ParkReason.RUNTIME_LINEAGE_REPLAY_MISMATCH, where)
