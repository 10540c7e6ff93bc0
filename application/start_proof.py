"""The one-shot right to call the provider for a run. SPEC section 14 and R12.

Only the commit that began the run gives it, and only to the attempt that made its candidates: never to another retry.
"""

from __future__ import annotations

import threading
from typing import NoReturn, final

from ..domain.commands import OpenRun, StartContinuation
from ..domain.errors import SafepointError, StoreUnavailable
from ..domain.events.run import ContinuationStarted, RunOpened
from ..domain.identifiers import RunId
from .async_ledger import AsyncLedger
from .ledger import Receipt

_MINT = object()


class ProofUsed(SafepointError):
    """A start proof was presented twice; the provider was not called."""

    def __init__(self, run_id: RunId) -> None:
        super().__init__(f"the start of run {run_id} was used already")
        self.run_id = run_id


@final
class StartProof:
    """Cannot be made by hand, copied, pickled or used twice. It is made from a receipt, by `proof_of` or an attempt."""

    __slots__ = ("_run_id", "_unused")

    def __init__(self, mint: object, run_id: RunId) -> None:
        if mint is not _MINT:
            raise TypeError("a start proof comes from the commit that began its run")
        self._run_id = run_id
        self._unused = threading.Lock()

    @property
    def run_id(self) -> RunId:
        """The run that may call the provider."""
        return self._run_id

    def use(self) -> RunId:
        """Spend the proof.

        Raises:
            ProofUsed: it was spent before.
        """
        if not self._unused.acquire(blocking=False):
            raise ProofUsed(self._run_id)
        return self._run_id

    def __reduce__(self) -> NoReturn:
        raise TypeError("a start proof cannot be copied")

    __copy__ = __reduce__

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise TypeError("a start proof cannot be copied")


def proof_of(receipt: Receipt) -> StartProof | None:
    """The proof that a first commit gives; None when this was not the call that wrote it."""
    return _proof(receipt) if receipt.first else None


def _proof(receipt: Receipt) -> StartProof | None:
    for sealed in receipt.events:
        if isinstance(sealed.event, RunOpened | ContinuationStarted):
            return StartProof(_MINT, sealed.event.run_id)
    return None


class StartAttempt:
    """One attempt to begin a run, whose candidates nobody else has.

    When it is not known whether its commit was kept, only this very object can find out and still go on: an exact retry
    by anybody else gives no proof.

    Args:
        command: with ids that were made for this attempt alone.
    """

    def __init__(self, command: OpenRun | StartContinuation) -> None:
        self._command = command
        self._in_doubt = False
        self._given = False

    async def __call__(self, ledger: AsyncLedger) -> tuple[Receipt, StartProof | None]:
        """Commit, or converge on what an earlier call of this attempt committed.

        Returns:
            The first commit, and the proof; None where this attempt has given it before, or did not make the commit.

        Raises:
            StoreUnavailable: it is not known whether it was kept; call again.
            WriteRefused, StoreError: as the ledger says.
        """
        try:
            receipt = await ledger.execute(self._command)
        except StoreUnavailable:
            self._in_doubt = True
            raise
        if self._given or not (receipt.first or self._in_doubt):
            return receipt, None
        self._given = True
        return receipt, _proof(receipt)
