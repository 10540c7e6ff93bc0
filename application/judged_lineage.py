"""The runs of a file as the planner wants them: judged, cut at boundaries, ended as repair would. SPEC section 19."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..domain.commands import EndRun
from ..domain.decision import Refusal
from ..domain.events.event import RunEvent
from ..domain.events.run import PrefixRef, RunClaimed, RunEnded, RunStatus
from ..domain.identifiers import EventId, RunId
from ..domain.planning.facts import SegmentFacts
from ..domain.reasons import FailureClass
from ..domain.recovery.event_facts import event_facts
from ..domain.recovery.resolver import resolve
from ..domain.recovery.scanner import Scanner
from ..domain.recovery.verdict import Resolution
from ..domain.run.ending import end_run
from ..domain.run.state import Run
from ..domain.sealing import SealedEvent, seal
from ..domain.session.state import Session
from ..ports.history_format import ReadRun
from .previewed import PREVIEW, TERMINAL, previewed_id


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """A run with the verdicts on all that the file holds of it."""

    read: ReadRun
    resolution: Resolution

    @property
    def ended(self) -> RunEnded | None:
        """Its terminal event, None while it is open."""
        return next((event for event in self.read.events if isinstance(event, RunEnded)), None)

    @property
    def status(self) -> RunStatus | None:
        """How it ended, None while it is open."""
        return None if self.ended is None else self.ended.status

    @property
    def claimed(self) -> RunClaimed | None:
        """The claim that seals it, None where nobody continues it."""
        last = self.read.sealed[-1].event if self.read.sealed else None
        return last if isinstance(last, RunClaimed) else None


def judged(read: ReadRun, *, foreign: bool) -> JudgedRun:
    """Judge a run's facts by the one scanner and the one resolver; `foreign` as for `resolve`."""
    return JudgedRun(read, _resolved(read, len(read.facts), foreign=foreign))


def segment_of_file(read: ReadRun, high_water: int | None, *, foreign: bool) -> SegmentFacts | None:
    """A run up to a sequence, or up to a claim at its end.

    Args:
        read: a run whose facts stand beside its events one by one, unless the whole of it is asked for.
        high_water: the boundary, from 1; by default all events but a claim.
        foreign: absence proves nothing in it.
    """
    sealed = read.sealed
    if not sealed:
        return None
    ends_claimed = isinstance(sealed[-1].event, RunClaimed)
    boundary = len(sealed) - ends_claimed if high_water is None else min(high_water, len(sealed))
    whole = boundary == len(sealed)
    following = sealed[boundary].event if not whole else None
    ref = PrefixRef(**read.identity._asdict(), high_water=boundary, digest=sealed[boundary - 1].digest)
    return SegmentFacts.of(
        ref,
        (one.event for one in sealed[:boundary] if isinstance(one.event, RunEvent)),
        _resolved(read, len(read.facts) if whole else boundary, foreign=foreign),
        foreign,
        following if isinstance(following, RunClaimed) else None,
    )


def as_repair_would_leave_it(read: ReadRun, *, foreign: bool) -> ReadRun:
    """An open run with the closings and the terminal event that repair would write; any other as it is."""
    events = read.events
    if not events or any(isinstance(event, RunEnded) for event in events):
        return read
    run = Run()
    for event in events:
        run.take(event)
    cancelled = run.cancel_requested is not None
    ended = RunEnded(
        **read.identity._asdict(),
        event_id=EventId(previewed_id(RunId(read.identity.run_id), TERMINAL)),
        occurred_at=events[-1].occurred_at,
        status=RunStatus.CANCELLED if cancelled else RunStatus.FAILED,
        failure_class=None if cancelled else FailureClass.APP_RESTARTED,
        recovered=True,
        incarnation_id=PREVIEW,
        epoch=1,
    )
    stopped_by = None if run.cancel_requested is None else run.cancel_requested.by
    command = EndRun(read.identity.session_id, PREVIEW, 1, RunId(read.identity.run_id), ended, stopped_by)
    decided = end_run(Session(), run, command, foreign=foreign)
    added = [ended] if isinstance(decided, Refusal) else [event for event in decided if isinstance(event, RunEvent)]
    facts = (*read.facts, *map(event_facts, added))
    return replace(read, facts=facts, sealed=(*read.sealed, *_sealed_after(read.sealed[-1], added)))


def _sealed_after(last: SealedEvent, events: Sequence[RunEvent]) -> list[SealedEvent]:
    sealed: list[SealedEvent] = []
    for event in events:
        last = seal(event, last.sequence + 1, last.digest)
        sealed.append(last)
    return sealed


def _resolved(read: ReadRun, facts: int, *, foreign: bool) -> Resolution:
    scanner = Scanner()
    for fact in read.facts[:facts]:
        scanner.feed(fact)
    return resolve(scanner, foreign=foreign)
