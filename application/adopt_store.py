"""A person's word that a store which cannot vouch for its facts is the one to go on with. SPEC section 6."""

from __future__ import annotations

from typing import NamedTuple

from ..domain.errors import SafepointError
from ..ports.clock import Clock
from ..ports.store_keeping import StoreCondition, StoreKeeping, Trust


class AdoptionNotNeeded(SafepointError):
    """The store vouches for its facts; adopting it would only make them foreign."""


class Adopted(NamedTuple):
    """How the store stood before, how it stands now, and when it was adopted."""

    before: StoreCondition
    after: StoreCondition
    at: str


class AdoptStore:
    """Adopts one store.

    Args:
        keeping: the store as a whole.
        clock: the time that is recorded.
    """

    def __init__(self, keeping: StoreKeeping, clock: Clock) -> None:
        self._keeping = keeping
        self._clock = clock

    def __call__(self, *, by: str, note: str) -> Adopted:
        """Record it and raise the store's generation.

        Args:
            by: the person.
            note: why.

        Raises:
            AdoptionNotNeeded: nothing was changed.
            StoreError: it could not be written.
        """
        before = self._keeping.condition()
        if before.trust is Trust.OK:
            raise AdoptionNotNeeded(before.detail)
        at = self._clock.now()
        return Adopted(before, self._keeping.adopt(by=by, note=note, at=at), at)
