"""What an import gives to a run beside its own facts: an opening, an end where none is recorded, and seals.

SPEC section 19. No protocol is declared: where nobody promised that a dispatch comes before an effect, its absence
proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...domain import canonical
from ...domain.events.event import RunEvent, Timestamp
from ...domain.events.run import NOT_RECORDED, Context, ExecutionProfile, PrefixRef, RunEnded, RunOpened, RunStatus
from ...domain.identifiers import EventId, ExecutionIdentity, IncarnationId, derive_id
from ...domain.reasons import FailureClass
from ...domain.recovery.resolver import resolve
from ...domain.recovery.scanner import Scanner
from ...domain.recovery.verdict import Resolution
from ...domain.replay.context import unsettled_of
from ...domain.sealing import FIRST_PREVIOUS_DIGEST, OversizedEvent, SealedEvent, seal
from ...ports.history_format import FindingCode, Place, ReadRun
from .lines import Reading
from .parts import Setting

IMPORTED = IncarnationId("imported")
"""Stands where our events name the life that made them; it was never registered, so nobody knows of its end."""


def spine(identity: ExecutionIdentity, event_id: EventId, at: Timestamp) -> dict[str, Any]:
    """The fields that every event of a run has."""
    return {"event_id": event_id, "occurred_at": at, **identity._asdict()}


def opening(
    identity: ExecutionIdentity, at: Timestamp, setting: Setting, model: str | None, previous: ReadRun | None
) -> RunOpened:
    """The first event of an imported run.

    Args:
        identity: the run.
        at: the time of its first fact.
        setting: what the file says of the execution.
        model: the model that the run itself names, None where it names none.
        previous: the run before it in the session, whose history it was given.
    """
    return RunOpened(
        **spine(identity, EventId(derive_id(identity.run_id, "opened")), at),
        cwd=setting.cwd,
        profile=ExecutionProfile(  # no foreign file says account and policy: nothing of ours is taken for the same
            provider=setting.provider,
            model=model or setting.model,
            account=NOT_RECORDED,
            system_prompt_digest=canonical.sha256_hex(setting.system.encode("utf-8", "surrogatepass")),
            permission_policy=NOT_RECORDED,
        ),
        incarnation_id=IMPORTED,
        epoch=1,
        context=None if previous is None or not previous.sealed else context_of(previous),
    )


def ending(identity: ExecutionIdentity, at: Timestamp, status: RunStatus, failure: FailureClass | None) -> RunEnded:
    """The terminal event of an imported run."""
    return RunEnded(
        **spine(identity, EventId(derive_id(identity.run_id, "ended")), at),
        status=status,
        failure_class=failure,
        incarnation_id=IMPORTED,
        epoch=1,
    )


def sealed_run(events: Iterable[RunEvent], places: Mapping[str, Place], reading: Reading) -> tuple[SealedEvent, ...]:
    """Seal a run's events in order; one that cannot be stored is left out, which is told."""
    sealed: list[SealedEvent] = []
    digest = FIRST_PREVIOUS_DIGEST
    for event in events:
        place = places.get(event.event_id, Place(1, 0))
        try:
            one = seal(event, len(sealed) + 1, digest)
        except OversizedEvent as error:
            reading.tell(FindingCode.TOO_LARGE, place, str(error))
        except canonical.CanonicalError as error:
            reading.tell(FindingCode.NOT_EXPRESSIBLE, place, f"{event.topic}: {error.reason}")
        else:
            sealed.append(one)
            digest = one.digest
    return tuple(sealed)


def context_of(previous: ReadRun) -> Context:
    """The history that a turn after this run was given: all of it, unsettled calls shown as unknown."""
    last = previous.sealed[-1]
    ref = PrefixRef(**previous.identity._asdict(), high_water=last.sequence, digest=last.digest)
    try:
        unsettled = unsettled_of(previous.identity.run_id, resolution_of(previous))
        return Context(previous=ref, unsettled=tuple(unsettled.values()))
    except ValueError:  # a call id that no event can have, which is told where it stands, and never imported
        return Context(previous=ref)


def resolution_of(run: ReadRun) -> Resolution:
    """The verdicts on a run that is imported: absence proves nothing in it."""
    scanner = Scanner()
    for fact in run.facts:
        scanner.feed(fact)
    return resolve(scanner, foreign=True)
