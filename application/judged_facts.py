"""What the planner is told of a file: everything that a store would know, and a host that is the recorded one."""

from __future__ import annotations

from collections.abc import Mapping

from ..domain.events.event import SessionEvent
from ..domain.events.run import ExecutionProfile, RunOpened
from ..domain.identifiers import ClaimId, InvocationId, RunId, TurnId, derive_id
from ..domain.planning.facts import (
    Candidate,
    ExistingContinuation,
    FreshIds,
    PlanFacts,
    SegmentFacts,
    SegmentReading,
    Standing,
    Unreadable,
)
from ..domain.planning.observations import WorkspaceFound
from ..domain.reasons import ParkReason
from ..domain.replay.context import ContextHistory
from ..domain.session.state import Session, evolve
from ..ports.history_format import Finding, FindingCode, History, ReadRun
from .judged_lineage import JudgedRun, as_repair_would_leave_it, segment_of_file
from .lineage import KnownSegments, LineageBroken, read_ancestors, read_earlier

_DAMAGE = frozenset({FindingCode.DIGEST_MISMATCH, FindingCode.EVENTS_MISSING})


def facts_of(history: History, runs: Mapping[RunId, JudgedRun], *, foreign: bool) -> PlanFacts:
    """The facts to plan with.

    Args:
        history: the file.
        runs: its runs, judged, in order.
        foreign: facts may be missing in it.
    """
    candidate, existing = _candidate(history, runs)
    lineage: tuple[SegmentReading, ...] = ()
    earlier: ContextHistory | None = None
    if candidate is not None:
        read = as_repair_would_leave_it(runs[candidate.run_id].read, foreign=foreign)
        known = _known(history, runs, read, foreign=foreign)
        source = known.segment(candidate.run_id, None)
        lineage = () if source is None else read_ancestors(known, source)
        lineage, earlier = _earlier(known, lineage)
        status = source.survey.terminals if source is not None else []
        candidate = candidate._replace(status=status[-1].status if status else None)
    unread = tuple(_unreadable(finding, candidate) for finding in history.unreadable)
    source_facts = lineage[-1] if lineage and isinstance(lineage[-1], SegmentFacts) else None
    profile, workspace, cwd = _host(source_facts)
    return PlanFacts(
        session_id=history.session_id,
        fresh=_fresh(history),
        candidate=candidate,
        lineage=(*(unread if candidate is not None else unread[1:]), *lineage),
        session_unreadable=unread[0] if unread and candidate is None else None,
        workspace=workspace,
        profile=profile,
        tools=() if profile is None else profile.tools,
        protocol=None if source_facts is None or source_facts.opening is None else source_facts.opening.protocol,
        cwd=cwd,
        earlier=earlier,
        adopt=not history.foreign,
        existing=existing,
    )


def session_of(history: History) -> Session:
    """The session's own state, of a file that has one."""
    session = Session()
    for sealed in history.session or ():
        if isinstance(sealed.event, SessionEvent):
            session = evolve(session, sealed.event)
    return session


def _candidate(
    history: History, runs: Mapping[RunId, JudgedRun]
) -> tuple[Candidate | None, ExistingContinuation | None]:
    """The session's head run; where that is only reserved by a claim, the run that is claimed."""
    session = session_of(history)
    if session.head is None:
        newest = list(runs)[-1:]
        return (Candidate(newest[0], None, newest[0]) if newest else None), None
    head = session.head.run_id
    run_id, existing = head, None
    if head not in runs and session.previous is not None and session.previous.run_id in runs:
        run_id = session.previous.run_id
        claimed = runs[run_id].claimed
        if claimed is not None:
            existing = ExistingContinuation(claimed.claim_id, head, Standing.UNSTARTED)
    return (Candidate(run_id, None, head, run_id in session.abandoned) if run_id in runs else None), existing


def _known(history: History, runs: Mapping[RunId, JudgedRun], source: ReadRun, *, foreign: bool) -> KnownSegments:
    def segment(run_id: RunId, high_water: int | None) -> SegmentFacts | None:
        read = source if run_id == source.identity.run_id else runs[run_id].read if run_id in runs else None
        return None if read is None else segment_of_file(read, high_water, foreign=foreign)

    return KnownSegments(segment)


def _earlier(
    known: KnownSegments, lineage: tuple[SegmentReading, ...]
) -> tuple[tuple[SegmentReading, ...], ContextHistory | None]:
    """The turns before a lineage; what is missing of them stands in the lineage's place, first."""
    chain = [segment for segment in lineage if isinstance(segment, SegmentFacts)]
    if len(chain) != len(lineage) or not chain or not isinstance(chain[0].opening, RunOpened):
        return lineage, None  # which the planner reports
    try:
        return lineage, read_earlier(known, chain)
    except LineageBroken as broken:
        return (Unreadable(ParkReason.RUNTIME_LINEAGE_MISSING, broken.run_id, broken.detail), *lineage), None
    except ValueError:
        detail = "an earlier run has a call under an id that no event can have"
        return (Unreadable(ParkReason.SOURCE_RUN_UNREADABLE, chain[0].ref.run_id, detail), *lineage), None


def _unreadable(finding: Finding, candidate: Candidate | None) -> Unreadable:
    code = ParkReason.RUNTIME_LEDGER_UNREADABLE if finding.code in _DAMAGE else ParkReason.SOURCE_RUN_UNREADABLE
    place = finding.place
    detail = f"line {place.line}, byte {place.offset}: {finding.code.value}"
    return Unreadable(code, RunId("unknown") if candidate is None else candidate.run_id, detail)


def _host(source: SegmentFacts | None) -> tuple[ExecutionProfile | None, WorkspaceFound, str]:
    """The host that the source recorded: the same workspace, the same profile."""
    opening = None if source is None else source.opening
    if source is None or opening is None:
        return None, WorkspaceFound(None, None), ""
    seen = source.survey
    return opening.profile, WorkspaceFound(seen.workspace_identity, seen.cwd), seen.cwd or ""


def _fresh(history: History) -> FreshIds:
    made = [derive_id(history.session_id, "judged", kind) for kind in ("claim", "run", "turn", "invocation")]
    return FreshIds(ClaimId(made[0]), RunId(made[1]), TurnId(made[2]), InvocationId(made[3]))
