"""The claim, the start, and the repair of a claim: who may continue a boundary. SPEC sections 7 and 14."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..boundary import boundary_digest
from ..commands import ClaimContinuation, RepairContinuation, StartContinuation
from ..decision import Decision, Refusal, misfit
from ..events.run import ContinuationStarted, PrefixRef, RunClaimed, RunOpened, RunStatus, StartKind
from ..events.session import RunKind
from ..identifiers import RunId
from ..operation.watch_list import of_other_turns
from ..reasons import WriteRefusal
from ..recovery.resolver import resolve
from ..run.seals import claimed as claimed_before
from ..run.state import Run
from ..session.decisions import take_inbox
from ..session.state import Session
from .state import Progress, continuation_of


@dataclass(frozen=True, slots=True)
class AncestorHead:
    """What stands at an ancestor's high-water, and the claim right after it; None where there is no such fact."""

    run_id: RunId
    digest: str | None
    claimed: RunClaimed | None


def claim(
    session: Session,
    source: Run,
    source_digest: str,
    ancestors: Sequence[AncestorHead],
    command: ClaimContinuation,
    *,
    foreign: bool,
) -> Decision:
    """Seal the source at exactly the plan's boundary and admit the target; heads and digests only, never a scan.

    Args:
        session: the session's state.
        source: the state of the run to continue.
        source_digest: digest of the source's newest event.
        ancestors: what stands at each older segment's high-water, in the claim's order.
        command: the claim.
        foreign: the store cannot vouch that the source's facts are complete.
    """
    claimed = command.claimed
    if refusal := claimed_before(source):
        return refusal
    if session.head is None or session.head.run_id != command.run_id or command.run_id in session.abandoned:
        return misfit("it is not the session's head run")
    if source.opening is None or source.ended is None or source.ended.status is RunStatus.COMPLETED:
        return misfit("only a run that ended failed or cancelled is continued")
    boundary = PrefixRef(**source.opening.identity._asdict(), high_water=source.sequence, digest=source_digest)
    if claimed.segments[-1] != boundary:
        return misfit("the source has moved on since the plan was made")
    if boundary_digest(claimed.segments) != claimed.boundary_digest:
        return misfit("the boundary digest is not of these segments")
    if refusal := _lineage(source.opening, claimed, ancestors):
        return refusal
    verdicts = resolve(source.tools, foreign=foreign).verdicts
    if open_ := next((verdict for verdict in verdicts if not verdict.is_settled), None):
        return Refusal(WriteRefusal.OPERATION_OPEN, f"call {open_.call_id} ({open_.tool_name}) is {open_.status}")
    if not _admits(command, claimed):
        return misfit("the admission is not of the claim's target")
    return (claimed, command.admitted)


def _lineage(
    opening: RunOpened | ContinuationStarted, claimed: RunClaimed, ancestors: Sequence[AncestorHead]
) -> Refusal | None:
    """The older segments are those that the source was made from, and each still is what its descendant saw."""
    older = claimed.segments[:-1]
    made_from = opening.boundary_digest if isinstance(opening, ContinuationStarted) else None
    if made_from != (boundary_digest(older) if older else None):
        return misfit("the older segments are not those that the source was made from")
    if len(older) != len(ancestors):
        return misfit("an ancestor could not be found")
    for count, (segment, head) in enumerate(zip(older, ancestors, strict=True), 1):
        seal = head.claimed
        if (
            (head.run_id, head.digest) != (segment.run_id, segment.digest)
            or seal is None
            or seal.target.run_id != claimed.segments[count].run_id
            or seal.segments != claimed.segments[:count]
        ):
            return misfit(f"ancestor {segment.run_id} is not what the plan saw")
    return None


def _admits(command: ClaimContinuation, claimed: RunClaimed) -> bool:
    admitted, target = command.admitted, claimed.target
    ids = (admitted.run_id, admitted.turn_id, admitted.invocation_id)
    return (
        ids == (target.run_id, target.turn_id, target.invocation_id)
        and admitted.kind is RunKind.CONTINUATION
        and admitted.claim_id == claimed.claim_id
    )


def start(session: Session, source: Run, target: Run, command: StartContinuation) -> Decision:
    """The target's first commit: the claim names it, it is empty, and its header is the one frozen in the claim."""
    if refusal := _startable(session, source, target, command.started, StartKind.RUNTIME_ADMISSION):
        return refusal
    taken, messages = take_inbox(session, command.started)
    budget = () if command.budget is None else (command.budget,)
    claimed = continuation_of(source, target).claimed
    lineage = () if claimed is None else tuple(segment.run_id for segment in claimed.segments)
    told = of_other_turns(session, command.started, lineage)
    return (*told, *taken, command.started, *budget, *command.host_messages, *messages)


def repair(session: Session, source: Run, target: Run, command: RepairContinuation) -> Decision:
    """Close an unstarted claim: start and end in one commit; takes no notice and no grant. SPEC section 14."""
    if refusal := _startable(session, source, target, command.started, StartKind.CLAIM_REPAIR):
        return refusal
    if command.ended.run_id != command.started.run_id or command.ended.status is RunStatus.COMPLETED:
        return misfit("a repaired claim ends failed or cancelled")
    return (command.started, command.ended)


def _startable(
    session: Session, source: Run, target: Run, started: ContinuationStarted, kind: StartKind
) -> Refusal | None:
    continuation = continuation_of(source, target)
    claimed = continuation.claimed
    if claimed is None:
        return misfit("the source is not claimed")
    if continuation.progress is not Progress.CLAIMED:
        return Refusal(WriteRefusal.RUN_SEALED, f"run {started.run_id} was started before")
    if session.head is None or session.head.run_id != started.run_id:
        return misfit("it is not the session's head run")
    frozen = claimed.target
    same = (
        started.kind is kind
        and started.claim_id == claimed.claim_id
        and (started.run_id, started.turn_id, started.invocation_id)
        == (frozen.run_id, frozen.turn_id, frozen.invocation_id)
        and (started.cwd, started.workspace_identity, started.profile, started.protocol)
        == (frozen.cwd, frozen.workspace_identity, frozen.profile, frozen.protocol)
        and started.source == claimed.segments[-1]
        and (started.boundary_digest, started.replay_digest, started.projection_version)
        == (claimed.boundary_digest, claimed.replay_digest, claimed.projection_version)
    )
    return None if same else misfit("the start is not what the claim froze")
