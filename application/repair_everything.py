"""Repair at start: every session that a dead owner left, in bounded batches. SPEC section 11 and ADR 0040.

A batch is read in one view, taken in one transaction, decided, written in one group, and released in one transaction.
Killed anywhere, it is finished by whoever does it again: what was not released is owned by the dead once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..domain.errors import StoreDamaged, StoreError, StoreNotAdopted, WriteRefused
from ..domain.identifiers import SessionId
from ..domain.reasons import ParkReason, WriteRefusal
from ..ports.session_owners import Ownership
from ..ports.store_keeping import StoreKeeping
from ..ports.views import FamilyViews
from .ledger import Ledger, Receipt
from .ownership import Owned, SessionOwnership
from .repair_order import RepairOrder, in_batches
from .repair_report import RepairFailure, RepairReport, RepairStep
from .repair_session import RepairCommand, Repaired, RepairKind, RepairSession, quarantined
from .uncollected import uncollected

FAILURES_MAX = 3
"""How many sessions in a row may fail before the whole store is said to."""

WRITTEN = frozenset({RepairKind.RUN_CLOSED, RepairKind.CLAIM_REPAIRED})


def nothing_awaited(repaired: Repaired) -> bool:
    """Of what repair closes, nobody is going to begin anything."""
    return False


class RepairEverything:
    """Repairs all sessions whose owner is dead, or is this process and does not use them.

    Args:
        ledger: reads and writes; shared with whatever else writes in this process.
        ownership: takes and releases.
        repair: decides what closes a session.
        keeping: lists who owns what.
        views: tell claims and children apart, for the order alone.
    """

    def __init__(
        self,
        ledger: Ledger,
        ownership: SessionOwnership,
        repair: RepairSession,
        keeping: StoreKeeping,
        views: FamilyViews,
    ) -> None:
        self._ledger = ledger
        self._ownership = ownership
        self._repair = repair
        self._order = RepairOrder(ownership, keeping, views)
        self._failures = 0
        self._awaited: Callable[[Repaired], bool] = nothing_awaited
        self._written: dict[SessionId, Repaired] = {}
        """What was closed where giving it up failed: whoever tries again finds nothing open, and still tells it."""

    def __call__(self, progress: Callable[[RepairStep], None] = lambda step: None) -> RepairReport:
        """Repair everything; idempotent.

        Args:
            progress: told after each batch.

        Raises:
            StoreUnavailable, StoreFull: it is not about some sessions but about the store. Some batches may be done;
                doing it again goes on.
            StoreNotAdopted: the whole store may not be written.
        """
        report = RepairReport()
        for step in self.steps(report):
            progress(step)
        return report

    def steps(
        self, report: RepairReport, awaited: Callable[[Repaired], bool] = nothing_awaited
    ) -> Iterator[RepairStep]:
        """As a call, a batch at a time: whoever stops asking stops repair between two transactions.

        Args:
            report: filled as it goes on.
            awaited: of which closed runs something is to be begun by whoever asks. Their sessions stay owned until
                then, so that the next start finds those of which nothing was begun (ADR 0042).
        """
        self._failures, self._awaited, self._written = 0, awaited, {}
        for batch in self._order.batches(report):
            yield self._batch(batch, report)

    def again(
        self, report: RepairReport, awaited: Callable[[Repaired], bool] = nothing_awaited
    ) -> Iterator[RepairStep]:
        """As `steps`, of the sessions alone that failed there, in their order: all others are counted already."""
        self._failures, self._awaited = 0, awaited
        failed, report.failed = report.failed, []
        for batch in in_batches(failed):
            yield self._one_by_one([one.session_id for one in batch], report)

    def _batch(self, rows: Sequence[Ownership], report: RepairReport) -> RepairStep:
        """A batch, together; where that fails, each session of it alone."""
        try:
            results = self._together(rows)
        except StoreNotAdopted:
            raise
        except StoreError:
            return self._one_by_one([row.session_id for row in rows], report)
        report.taken_by_others += len(rows) - len(results)
        report.count(results)
        return RepairStep(results, report)

    def _one_by_one(self, session_ids: Sequence[SessionId], report: RepairReport) -> RepairStep:
        results = [one for session_id in session_ids if (one := self._alone(session_id, report)) is not None]
        report.count(results)
        return RepairStep(results, report)

    def _alone(self, session_id: SessionId, report: RepairReport) -> Repaired | None:
        try:
            row, _, _ = self._ownership.owner_of(session_id)  # what became of the batch is not known
            free = row is not None and self._ownership.may_be_taken(row)
            results = self._together([row]) if row is not None and free else []
        except StoreNotAdopted:
            raise
        except StoreDamaged as damage:
            return quarantined(session_id, ParkReason.RUNTIME_LEDGER_UNREADABLE, damage.detail)
        except StoreError as error:
            self._failures += 1
            if self._failures >= FAILURES_MAX:
                raise
            report.failed.append(RepairFailure(session_id, error))
            return None
        self._failures = 0
        if not results:
            report.taken_by_others += 1
            return None
        return self._written.pop(session_id, results[0])

    @uncollected()
    def _together(self, rows: Sequence[Ownership]) -> list[Repaired]:
        """One result for each session, but for those that somebody else has by now."""
        damaged = self._ledger.read_anew([row.session_id for row in rows])
        results = [
            quarantined(session_id, ParkReason.RUNTIME_LEDGER_UNREADABLE, damage.detail)
            for session_id, damage in damaged.items()
        ]
        left = (self._repair.left_as_it_is(row, self._awaited) for row in rows if row.session_id not in damaged)
        results += [one for one in left if one is not None]
        untouched = {one.session_id for one in results}
        held = self._ownership.own_all([row for row in rows if row.session_id not in untouched])
        try:
            results += self._repair_all(list(held.values()))
            try:
                self._give_up(held, results)
            except StoreError:
                self._written |= {one.session_id: one for one in results if one.kind in WRITTEN}
                raise
        finally:
            for one in held.values():
                self._ownership.keep(one)  # awaited, or what was written is not known: the next repair finds out
        self._keep_none([row for row in rows if row.session_id in untouched], results)
        for row in rows:
            self._ledger.forget(row.session_id)  # others may take it now, and the next batch needs the room
        return results

    def _give_up(self, held: dict[SessionId, Owned], results: Sequence[Repaired]) -> None:
        """Take out of `held`, and give up, what nobody awaits; what repair left as it is keeps its dead owner."""
        kept = {one.session_id for one in results if self._awaited(one)}
        left = {one.session_id for one in results if one.kind is RepairKind.QUARANTINED}
        closed = [session_id for session_id in held if session_id not in kept | left]
        for session_id in left & held.keys():
            self._ownership.hand_back(held.pop(session_id))
        self._ownership.release_all([held.pop(session_id) for session_id in closed])

    def _keep_none(self, rows: Sequence[Ownership], results: Sequence[Repaired]) -> None:
        """Give up what of the damaged ones is this process's own: the dead keep theirs, so each start names them."""
        left = {one.session_id for one in results if one.kind is RepairKind.QUARANTINED}
        for session_id, incarnation_id, _ in rows:
            if session_id in left and incarnation_id is not None and self._ownership.is_mine(incarnation_id):
                self._ownership.give_up_unused(session_id)

    def _repair_all(self, owned: Sequence[Owned]) -> list[Repaired]:
        results: list[Repaired] = []
        commands: list[tuple[Owned, RepairCommand]] = []
        for one in owned:
            try:
                decided = self._repair.decide(one)
            except StoreNotAdopted:
                raise
            except StoreDamaged as damage:
                decided = quarantined(one.session_id, ParkReason.RUNTIME_LEDGER_UNREADABLE, damage.detail)
            if isinstance(decided, Repaired):
                results.append(decided)
            else:
                commands.append((one, decided))
        answers = self._ledger.execute_all([command for _, command in commands])
        for (one, command), answer in zip(commands, answers, strict=True):
            if (result := self._result(one, command, answer)) is not None:
                results.append(result)
        return results

    def _result(self, owned: Owned, command: RepairCommand, answer: Receipt | Exception) -> Repaired | None:
        """What an answer of the ledger means; None where the session has another owner by now."""
        match answer:
            case Receipt():
                return self._repair.tell(owned, command)
            case StoreNotAdopted():
                raise answer
            case StoreDamaged():
                return quarantined(owned.session_id, ParkReason.RUNTIME_LEDGER_UNREADABLE, answer.detail)
            case WriteRefused(code=WriteRefusal.OWNER_FENCED):
                return None
            case WriteRefused(code=WriteRefusal.RUN_SEALED):
                return self._repair(owned)  # it ended meanwhile: look again
            case _:
                raise answer
