"""Which reconciler looks up which contract. SPEC section 10."""

from __future__ import annotations

from collections.abc import Iterable

from ..domain.events.tool import RecordedContract
from ..ports.reconciler import Reconciler


class Reconcilers:
    """Reconcilers by the contract ids that they know; fixed for the life of a runtime.

    Args:
        reconcilers: ours, and those of third parties.

    Raises:
        ValueError: two of them know one contract, so that it would depend on their order who is asked.
    """

    def __init__(self, reconcilers: Iterable[Reconciler] = ()) -> None:
        self._by_contract: dict[str, Reconciler] = {}
        for reconciler in reconcilers:
            for contract_id in reconciler.contract_ids:
                known = self._by_contract.setdefault(contract_id, reconciler)
                if known is not reconciler:
                    both = f"{known.reconciler_id} and {reconciler.reconciler_id}"
                    raise ValueError(f"contract {contract_id} would be looked up by two reconcilers: {both}")

    def of(self, contract: RecordedContract) -> Reconciler | None:
        """The one for a contract as T1 recorded it, whatever its version: which versions it knows is its own matter."""
        return self._by_contract.get(contract.contract_id)
