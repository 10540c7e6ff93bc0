"""The one-shot right to call the provider for a run. SPEC section 14 and R12.

Only the commit that began the run gives it, and only to the attempt that made that commit: never to a later retry.
"""

from __future__ import annotations

from typing import NoReturn, final

from ..domain.errors import SafepointError
from ..domain.events.run import ContinuationStarted, RunOpened
from ..domain.identifiers import RunId
from .ledger import Receipt

_MINT = object()


class ProofUsed(SafepointError):
    """A start proof was presented twice; the provider was not called."""

    def __init__(self, run_id: RunId) -> None:
        super().__init__(f"the start of run {run_id} was used already")
        self.run_id = run_id


@final
class StartProof:
    """Cannot be made by hand, copied, pickled or used twice. `proof_of` makes it from a receipt."""

    __slots__ = ("_run_id", "_used")

    def __init__(self, mint: object, run_id: RunId) -> None:
        if mint is not _MINT:
            raise TypeError("a start proof comes from the commit that began its run")
        self._run_id = run_id
        self._used = False

    @property
    def run_id(self) -> RunId:
        """The run that may call the provider."""
        return self._run_id

    def use(self) -> RunId:
        """Spend the proof.

        Raises:
            ProofUsed: it was spent before.
        """
        if self._used:
            raise ProofUsed(self._run_id)
        self._used = True
        return self._run_id

    def __reduce__(self) -> NoReturn:
        raise TypeError("a start proof cannot be copied")

    __copy__ = __reduce__

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise TypeError("a start proof cannot be copied")


def proof_of(receipt: Receipt) -> StartProof | None:
    """The proof that a first commit gives; None when this was not the attempt that wrote it."""
    if not receipt.first:
        return None
    for sealed in receipt.events:
        if isinstance(sealed.event, RunOpened | ContinuationStarted):
            return StartProof(_MINT, sealed.event.run_id)
    return None
