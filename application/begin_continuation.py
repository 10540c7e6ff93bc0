"""Claims the boundary of an interrupted run, and starts its continuation, once. SPEC section 14, ADR 0021.

Only what this very attempt acquired goes on: of two that claim one boundary, one gets it and the other is told.
"""

from __future__ import annotations

from typing import Final

from ..domain.commands import ClaimContinuation, StartContinuation
from ..domain.errors import StoreUnavailable, WriteRefused
from ..domain.events.model import HostMessage
from ..domain.events.run import BudgetSet, RunClaimed, StartKind
from ..domain.events.session import RunAdmitted, RunKind
from ..domain.identifiers import ExecutionIdentity
from ..domain.planning.outcome import Continue, NoteCode, Reason
from ..domain.reasons import ParkReason, WriteRefusal
from ..ports.failpoints import Failpoint, Failpoints
from .async_ledger import AsyncLedger
from .ownership import Owned
from .repair_session import started_from
from .spines import Spines
from .start_proof import StartAttempt
from .start_turn import Begun, BoundContent

FOREIGN_RUN: Final = "foreign_run"
"""Stands in a claim beside the drift that was accepted, where a foreign run was continued knowingly. SPEC section 6."""


class BeginContinuation:
    """Writes the claim, and then the first commit of its target."""

    def __init__(self, ledger: AsyncLedger, spines: Spines, failpoints: Failpoints) -> None:
        self._ledger = ledger
        self._spines = spines
        self._failpoints = failpoints

    async def __call__(self, owned: Owned, plan: Continue, content: BoundContent | None) -> Begun | Reason:
        """Claim, then start.

        Args:
            owned: the right to write the session.
            plan: as it was revalidated.
            content: what the new run is bound to.

        Returns:
            What may be driven; or why another attempt has the boundary: then nothing goes on here.

        Raises:
            StoreError, WriteRefused: it could not be written; a claim may stand, which repair closes.
        """
        claim = claim_of(owned, plan, self._spines)
        try:
            acquired = await self._acquire(claim)
        except WriteRefused as refused:
            if refused.code is WriteRefusal.RUN_CLAIMED:
                return Reason(ParkReason.CONTINUATION_ALREADY_EXISTS, {"detail": refused.detail})
            raise
        if not acquired:
            return Reason(ParkReason.CONTINUATION_ALREADY_EXISTS, {"claim": plan.claim_id})
        self._failpoints.hit(Failpoint.CLAIM_COMMITTED)
        attempt = StartAttempt(self._start(owned, plan, claim.claimed))
        try:
            receipt, proof = await attempt(self._ledger)
        except StoreUnavailable:
            receipt, proof = await attempt(self._ledger)  # now it can be known whether the first one was kept
        self._failpoints.hit(Failpoint.START_COMMITTED)
        if proof is None:
            return Reason(ParkReason.CONTINUATION_STARTED_INDETERMINATE, {"claim": plan.claim_id})
        granted = (await self._ledger.session(owned.session_id)).granted
        return Begun(
            _identity(owned, plan),
            owned,
            receipt,
            proof,
            plan.replay.items,
            tuple(granted.values()),
            plan.budgets,
            plan.used,
            content,
            plan.claim_id,
        )

    async def _acquire(self, claim: ClaimContinuation) -> bool:
        """Claim, once; when its commit is in doubt, this very attempt finds out: nobody else has its ids."""
        try:
            return (await self._ledger.execute(claim)).first
        except StoreUnavailable:
            await self._ledger.execute(claim)
            return True

    def _start(self, owned: Owned, plan: Continue, claimed: RunClaimed) -> StartContinuation:
        started = started_from(claimed, StartKind.RUNTIME_ADMISSION, owned, self._spines)
        messages = tuple(
            HostMessage(
                **self._spines.run(started.identity),
                sentence_id=told.sentence_id,
                parameters=told.parameters,
                text=told.text,
            )
            for told in plan.told
        )
        budgets = plan.budgets
        budget = None if budgets is None else BudgetSet(**self._spines.run(started.identity), budgets=budgets)
        return StartContinuation(*owned.guard, plan.target.run_id, plan.source.run_id, started, messages, budget)


def claim_of(owned: Owned, plan: Continue, spines: Spines) -> ClaimContinuation:
    """The command that claims the boundary of a plan."""
    source, target = plan.source, plan.target
    identity = ExecutionIdentity(source.session_id, source.run_id, source.turn_id, source.invocation_id)
    claimed = RunClaimed(
        **spines.run(identity),
        claim_id=plan.claim_id,
        segments=plan.segments,
        boundary_digest=plan.boundary_digest,
        replay_digest=plan.replay.digest,
        projection_version=plan.replay.version,
        target=target,
        accepted_drift=(*(drift.value for drift in plan.accepted_drift), *_adopted(plan)),
        trigger=plan.trigger,
        incarnation_id=owned.incarnation_id,
        epoch=owned.epoch,
    )
    admitted = RunAdmitted(
        **spines.session(owned.session_id),
        run_id=target.run_id,
        turn_id=target.turn_id,
        invocation_id=target.invocation_id,
        kind=RunKind.CONTINUATION,
        claim_id=plan.claim_id,
    )
    return ClaimContinuation(*owned.guard, source.run_id, claimed, admitted)


def _identity(owned: Owned, plan: Continue) -> ExecutionIdentity:
    target = plan.target
    return ExecutionIdentity(owned.session_id, target.run_id, target.turn_id, target.invocation_id)


def _adopted(plan: Continue) -> tuple[str, ...]:
    """What a person consented to beside drift: a run that is foreign."""
    return (FOREIGN_RUN,) if any(note.code is NoteCode.FOREIGN_ADOPTED for note in plan.notes) else ()
