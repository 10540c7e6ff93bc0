"""The one-shot right to call the provider for a run. SPEC section 14 and R12.

Only the commit that began the run gives it, and only to the attempt that made its candidates: never to another retry.
"""

from __future__ import annotations

import os
import threading
from typing import NoReturn, Self, SupportsIndex, final
from weakref import WeakKeyDictionary, WeakSet

from ..domain.commands import OpenRun, StartContinuation
from ..domain.errors import SafepointError, StoreUnavailable
from ..domain.events.run import ContinuationStarted, RunOpened
from ..domain.identifiers import RunId
from .async_ledger import AsyncLedger
from .ledger import Receipt


class ProofUsed(SafepointError):
    """A start proof was presented twice; the provider was not called."""

    def __init__(self, run_id: RunId) -> None:
        super().__init__(f"the start of run {run_id} was used already")
        self.run_id = run_id


@final
class StartProof:
    """Cannot be made by hand, copied, pickled, inherited from, taken along by a fork, or used twice.

    What it is worth is written down beside it, by whoever made it: another object of this type is worth nothing.
    """

    __slots__ = ("__weakref__",)

    def __new__(cls, *_: object) -> Self:
        """Refuse: only a commit gives one."""
        raise TypeError("a start proof comes from the commit that began its run")

    def __init_subclass__(cls) -> None:
        raise TypeError("there is one kind of start proof")

    @property
    def run_id(self) -> RunId:
        """The run that may call the provider.

        Raises:
            TypeError: no commit gave this object.
        """
        run_id = _RUNS.get(self)
        if run_id is None:
            raise TypeError("no commit gave this start proof")
        return run_id

    def use(self) -> RunId:
        """Spend the proof; of several threads one does.

        Raises:
            ProofUsed: it was spent before, or this process was forked from the one that may spend it.
            TypeError: no commit gave this object.
        """
        run_id = self.run_id
        with _SPENDING:
            if self not in _UNUSED:
                raise ProofUsed(run_id)
            _UNUSED.discard(self)
        return run_id

    def __reduce__(self) -> NoReturn:
        raise TypeError("a start proof cannot be copied")

    __copy__ = __reduce__

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("a start proof cannot be copied")

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise TypeError("a start proof cannot be copied")


_RUNS: WeakKeyDictionary[StartProof, RunId] = WeakKeyDictionary()
_UNUSED: WeakSet[StartProof] = WeakSet()
_SPENDING = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_UNUSED.clear)  # a fork owns nothing, and may not ask in its parent's name


def _proof(receipt: Receipt) -> StartProof | None:
    for sealed in receipt.events:
        if isinstance(sealed.event, RunOpened | ContinuationStarted):
            proof = object.__new__(StartProof)
            _RUNS[proof] = sealed.event.run_id
            _UNUSED.add(proof)
            return proof
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
