"""What repair at start came to, each session counted once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..domain.errors import StoreError
from ..domain.identifiers import SessionId
from .repair_session import Repaired, RepairKind

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

    def count(self, results: Sequence[Repaired]) -> None:
        """Add what became of some sessions."""
        for result in results:
            match result.kind:
                case RepairKind.RUN_CLOSED:
                    self.runs_closed += 1
                case RepairKind.CLAIM_REPAIRED:
                    self.claims_repaired += 1
                case RepairKind.NOTHING_OPEN | RepairKind.CLOSED_BEFORE:
                    self.nothing_open += 1
                case RepairKind.QUARANTINED:
                    self.quarantined_count += 1
                    if len(self.quarantined) < NAMED_MAX:
                        self.quarantined.append(result)


class RepairStep(NamedTuple):
    """One batch: what it came to, and the report up to now."""

    repaired: Sequence[Repaired]
    report: RepairReport
