"""A claim beside 100,000 others. SPEC section 21, row 8."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from safepoint.domain.commands import ClaimContinuation
from safepoint.domain.events.run import PrefixRef
from safepoint.ports.event_store import OwnerGuard

from .bars import CLAIM_BESIDE_CLAIMS
from .material import Place
from .measuring import Measured, median, microseconds, ratios
from .workplace import Workplace

SESSIONS_PER_TRANSACTION = 100
_FEWER = 100
"""A hundredth of the claims is measured, too: what grows slowly would show between the two."""


def claim_beside_claims(work: Workplace) -> Iterator[Measured]:
    """Row 8: claims beside 100,000 against claims beside none; beside 1,000, for people."""
    many = work.sizes.claims
    with ExitStack() as open_places:
        places = {
            count: open_places.enter_context(Place(work.fresh(f"claims-{count}.sqlite")))
            for count in (0, many // _FEWER, many)
        }
        for count, place in places.items():
            work.tell(f"making a store of {count:,} claims")
            _kept_claims(place, count)
        work.settle()
        taken: dict[int, list[float]] = {count: [] for count in places}
        for place in places.values():
            _each_claim(place, 1)  # reads what a first command reads
        for _ in range(work.sizes.rounds):
            for count, place in places.items():
                taken[count].append(_each_claim(place, work.sizes.pairs))
    figures = {f"beside {count:,}": microseconds(median(seconds)) for count, seconds in taken.items()}
    yield Measured(CLAIM_BESIDE_CLAIMS, ratios(taken[many], taken[0]), figures=figures)


def _each_claim(place: Place, claims: int) -> float:
    """The median time of a claim; each claims a run of a session of its own that was interrupted before."""
    guards = place.own_many(claims)
    commands = [
        ClaimContinuation(*guard, boundary.run_id, *place.facts.claim(guard, boundary))
        for guard, boundary in zip(guards, _interrupted(place, guards), strict=True)
    ]
    times = []
    for command in commands:
        place.ledger.session(command.session_id)
        place.ledger.run(command.run_id)
        started = time.perf_counter()
        place.ledger.execute(command)
        times.append(time.perf_counter() - started)
    return median(times)


def _kept_claims(place: Place, count: int) -> None:
    """Sessions whose run was interrupted and claimed."""
    rest = place.own_many(count)
    while rest:
        some, rest = rest[:SESSIONS_PER_TRANSACTION], rest[SESSIONS_PER_TRANSACTION:]
        boundaries = _interrupted(place, some)
        place.keep_together(
            [(guard, place.facts.claim(guard, boundary)) for guard, boundary in zip(some, boundaries, strict=True)]
        )


def _interrupted(place: Place, guards: Sequence[OwnerGuard]) -> list[PrefixRef]:
    """Runs that ended without an answer, one in each session."""
    facts = place.facts
    identities = [facts.spines.identity(guard.session_id) for guard in guards]
    place.keep_together(
        [
            (guard, [*facts.opening(guard, identity), facts.ended(guard, identity, interrupted=True)])
            for guard, identity in zip(guards, identities, strict=True)
        ]
    )
    return [place.boundary(identity) for identity in identities]
