"""Repair at start: every session that a dead owner left, in bounded batches. SPEC section 11 and ADR 0040.

A batch is read in one view, taken in one transaction, decided, written in one group, and released in one transaction.
Killed anywhere, it is finished by whoever does it again: what was not released is owned by the dead once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..domain.errors import StoreDamaged, StoreError, StoreNotAdopted, WriteRefused
from ..domain.identifiers import SessionId
from ..domain.reasons import ParkReason, WriteRefusal
from ..ports.incarnations import Liveness
from ..ports.session_owners import Ownership
from ..ports.store_keeping import StoreKeeping
from ..ports.views import PAGE_MAX, FamilyViews
from .ledger import Ledger, Receipt
from .live_operations import LiveOperations
from .ownership import Owned, SessionOwnership
from .repair_session import RepairCommand, Repaired, RepairKind, RepairSession, quarantined
from .uncollected import uncollected

BATCH_MAX = 250
"""How many sessions are repaired in one transaction; the ledger keeps the states of them all."""
FAILURES_MAX = 3
"""How many sessions in a row may fail before the whole store is said to."""
NAMED_MAX = 1_000
"""How many quarantined sessions are kept by name; all are counted."""


class RepairFailure(NamedTuple):
    """Why a session could not be repaired; nothing is said of it but that."""

    session_id: SessionId
    error: StoreError


@dataclass(slots=True)
class RepairReport:
    """What became of the sessions that were owned by somebody.

    Attributes:
        quarantined: sessions whose record is damaged, left as they are; at most `NAMED_MAX` of `quarantined_count`.
        alive: sessions whose owner lives, or that this process uses, and were not looked at.
        not_seen: sessions of which it could not be seen whether their owner lives.
        taken_by_others: sessions that somebody else took at the same moment.
        failed: sessions that could not be read or written, and are as they were: doing it again tries them again.
    """

    runs_closed: int = 0
    claims_repaired: int = 0
    nothing_open: int = 0
    quarantined: list[Repaired] = field(default_factory=list)
    quarantined_count: int = 0
    alive: int = 0
    not_seen: int = 0
    taken_by_others: int = 0
    failed: list[RepairFailure] = field(default_factory=list)

    @property
    def looked_at(self) -> int:
        """How many sessions were found without a living owner."""
        return self.runs_closed + self.claims_repaired + self.nothing_open + self.quarantined_count


class RepairStep(NamedTuple):
    """One batch: what it came to, and the report up to now."""

    repaired: Sequence[Repaired]
    report: RepairReport


@dataclass(slots=True)
class _Found:
    """What must come before ordinary runs."""

    claims: list[Ownership] = field(default_factory=list)
    children: dict[SessionId, tuple[Ownership, SessionId]] = field(default_factory=dict)


class RepairEverything:
    """Repairs all sessions whose owner is dead, or is this process and does not use them.

    Args:
        ledger: reads and writes; shared with whatever else writes in this process.
        ownership: takes and releases.
        repair: decides what closes a session.
        keeping: lists who owns what.
        views: tell claims and children apart, for the order alone.
        live: says what is left of a session's operations in this process.
    """

    def __init__(
        self,
        ledger: Ledger,
        ownership: SessionOwnership,
        repair: RepairSession,
        keeping: StoreKeeping,
        views: FamilyViews,
        live: LiveOperations,
    ) -> None:
        self._ledger = ledger
        self._ownership = ownership
        self._repair = repair
        self._keeping = keeping
        self._views = views
        self._live = live
        self._failures = 0
        self._awaited: Callable[[Repaired], bool] | None = None

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

    def steps(self, report: RepairReport, awaited: Callable[[Repaired], bool] | None = None) -> Iterator[RepairStep]:
        """As a call, a batch at a time: whoever stops asking stops repair between two transactions.

        Args:
            report: filled as it goes on.
            awaited: of which closed runs something is to be begun by whoever asks. Their sessions stay owned until
                then, so that the next start finds those of which nothing was begun (ADR 0042); None of none.
        """
        self._failures, self._awaited = 0, awaited
        found = self._survey(report)
        first = {row.session_id for row in found.claims} | found.children.keys()
        for batch in _batches(found.claims):
            yield self._batch(batch, report)
        for batch in _batches(_deepest_first(found.children)):
            yield self._batch(batch, report)
        for page in self._pages():
            ordinary = [row for row in page if row.session_id not in first and self._ownership.may_be_taken(row)]
            for batch in _batches(ordinary):
                yield self._batch(batch, report)

    def _survey(self, report: RepairReport) -> _Found:
        """Count what is left alone, and find what comes first."""
        found = _Found()
        for page in self._pages():
            rows = {row.session_id: row for row in page if self._ownership.may_be_taken(row)}
            for row in page:
                if row.session_id not in rows:
                    self._count_left(row, report)
            for kinship in self._views.kinships(list(rows)):
                row = rows[kinship.session_id]
                if kinship.unstarted:
                    found.claims.append(row)
                elif kinship.parent_session_id is not None:
                    found.children[row.session_id] = (row, kinship.parent_session_id)
        return found

    def _count_left(self, row: Ownership, report: RepairReport) -> None:
        assert row.incarnation_id is not None
        if self._ownership.liveness_of(row.incarnation_id) is Liveness.COULD_NOT_LOOK:
            report.not_seen += 1
        else:
            report.alive += 1

    def _pages(self) -> Iterator[Sequence[Ownership]]:
        after = ""
        while page := self._keeping.owned_sessions(after=after, limit=PAGE_MAX):
            yield page
            after = page[-1].session_id

    def _batch(self, rows: Sequence[Ownership], report: RepairReport) -> RepairStep:
        """A batch, together; where that fails, each session of it alone."""
        try:
            results = self._together(rows)
            report.taken_by_others += len(rows) - len(results)
        except StoreNotAdopted:
            raise
        except StoreError:
            results = [one for row in rows if (one := self._alone(row.session_id, report)) is not None]
        _count(results, report)
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
        return results[0]

    @uncollected()
    def _together(self, rows: Sequence[Ownership]) -> list[Repaired]:
        """One result for each session, but for those that somebody else has by now."""
        damaged = self._ledger.read_anew([row.session_id for row in rows])
        results = [
            quarantined(session_id, ParkReason.RUNTIME_LEDGER_UNREADABLE, damage.detail)
            for session_id, damage in damaged.items()
        ]
        readable = (row.session_id for row in rows if row.session_id not in damaged)
        results += [found for session_id in readable if (found := self._repair.unexplained(session_id)) is not None]
        left = {result.session_id for result in results}
        if self._awaited is not None:
            before = (self._repair.closed_before(row) for row in rows if row.session_id not in left)
            results += (awaited := [one for one in before if one is not None and self._awaited(one)])
            left |= {one.session_id for one in awaited}
        owned = self._ownership.own_all([row for row in rows if row.session_id not in left])
        try:
            results += self._repair_all(list(owned.values()))
        except BaseException:
            for one in owned.values():
                self._ownership.keep(one)  # what was written is not known: the next repair finds out
            raise
        kept = {one.session_id for one in results if self._awaited is not None and self._awaited(one)}
        self._release_all([one for one in owned.values() if one.session_id not in kept])
        for session_id in kept & owned.keys():
            self._ownership.keep(owned[session_id])
        for row in rows:
            self._ledger.forget(row.session_id)  # others may take it now, and the next batch needs the room
        return results

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

    def _release_all(self, owned: Sequence[Owned]) -> None:
        """Give up what has nothing open any more; what still lives in this process stays owned."""
        living = [one for one in owned if self._live.of(one.session_id)]
        for one in living:
            self._ownership.keep(one)
        self._ownership.release_all([one for one in owned if one not in living])


def _batches(rows: Sequence[Ownership]) -> Iterator[Sequence[Ownership]]:
    for start in range(0, len(rows), BATCH_MAX):
        yield rows[start : start + BATCH_MAX]


def _deepest_first(children: Mapping[SessionId, tuple[Ownership, SessionId]]) -> list[Ownership]:
    """Children before the parents that are children themselves."""
    depths: dict[SessionId, int] = {}
    for session_id in children:
        path, at = [], session_id
        while at in children and at not in depths and at not in path:  # a circle ends where it began
            path.append(at)
            at = children[at][1]
        depth = depths.get(at, 0)
        for one in reversed(path):
            depth += 1
            depths[one] = depth
    return [children[one][0] for one in sorted(children, key=lambda one: -depths[one])]


def _count(results: Sequence[Repaired], report: RepairReport) -> None:
    for result in results:
        match result.kind:
            case RepairKind.RUN_CLOSED:
                report.runs_closed += 1
            case RepairKind.CLAIM_REPAIRED:
                report.claims_repaired += 1
            case RepairKind.NOTHING_OPEN | RepairKind.CLOSED_BEFORE:
                report.nothing_open += 1
            case RepairKind.QUARANTINED:
                report.quarantined_count += 1
                if len(report.quarantined) < NAMED_MAX:
                    report.quarantined.append(result)
