"""A reconciler of one's own, which asks a bank about a payment, and the proof that it keeps the port's contract.

    python -m pytest examples/contract_kit/test_own_reconciler.py

The tool that pays is declared `reconcile` and gives the bank the idempotency key of its operation as a reference.
After a crash the bank is asked what it knows under that reference; nothing is ever paid again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import pytest

from safepoint.domain import canonical
from safepoint.domain.events.event import Json
from safepoint.domain.events.tool import Effect, Observation
from safepoint.domain.tool_results import PreparedResult
from safepoint.ports.contract_kit.reconciler import AtOnce, ReconcilerContract, Subject, asked_operation
from safepoint.ports.reconciler import AskedOperation, NotSeenNow, Observed, Reconciler


class Bank(Protocol):
    """What the reconciler needs of the bank: reading alone."""

    def amounts_under(self, reference: str) -> list[str]:
        """All payments that were made under a reference; ConnectionError where the bank cannot be asked."""
        ...


class Payments(Reconciler):
    """Looks payments up. What T1 recorded, the evidence, says which amount was meant."""

    reconciler_id = "acme.payments"
    version = 1

    def __init__(self, bank: Bank) -> None:
        self._bank = bank

    @property
    def contract_ids(self) -> Collection[str]:
        """See `Reconciler`."""
        return ("acme.pay",)

    def observe(self, asked: AskedOperation) -> Observed:
        """See `Reconciler`."""
        evidence = asked.evidence
        if not isinstance(evidence, dict) or not isinstance(meant := evidence.get("amount"), str):
            return Observed(Observation.UNREADABLE, detail="the evidence is of another version")
        try:
            paid = self._bank.amounts_under(asked.idempotency_key)
        except ConnectionError as error:
            raise NotSeenNow("the bank cannot be asked") from error
        seen: list[Json] = list(paid)
        digest = canonical.sha256_hex(canonical.encode(seen))
        if paid == [meant]:
            result = PreparedResult({"paid": meant}, is_error=False, effect=Effect.DONE)
            return Observed(Observation.MATCHES_EXPECTED_STATE, result, digest)
        if not paid:  # it may still be on its way: a person says that it never left
            return Observed(Observation.MATCHES_PRIOR_STATE, None, digest)
        return Observed(Observation.DIVERGED, None, digest, "another amount stands under the reference")

    def tidy(self, asked: AskedOperation) -> None:
        """See `Reconciler`: a payment leaves nothing beside itself."""


class BankInMemory(Subject):
    """One payment, and the bank's books in the hands of the test."""

    def __init__(self) -> None:
        self.books: dict[str, list[str]] = {}
        self.reachable = True

    def amounts_under(self, reference: str) -> list[str]:
        """See `Bank`."""
        if not self.reachable:
            raise ConnectionError
        return self.books.get(reference, [])

    def asked(self) -> AskedOperation:
        """See `Subject`."""
        return asked_operation("acme.pay", evidence={"amount": "10.00"}, arguments={"amount": "10.00"})

    def happen(self) -> None:
        """See `Subject`."""
        self.books[self.asked().idempotency_key] = ["10.00"]

    def meddle(self) -> None:
        """See `Subject`."""
        self.books[self.asked().idempotency_key] = ["99.00"]

    def hide(self) -> None:
        """See `Subject`."""
        self.reachable = False

    def world(self) -> object:
        """See `Subject`."""
        return {reference: list(amounts) for reference, amounts in self.books.items()}


class TestPayments(ReconcilerContract):
    """The contract of the port, on this implementation."""

    @pytest.fixture
    def subject(self) -> BankInMemory:
        """A fresh call that the implementation knows."""
        return BankInMemory()

    @pytest.fixture
    def reconciler(self, subject: BankInMemory) -> Reconciler:
        """The implementation."""
        return Payments(subject)

    @pytest.fixture
    def at_once(self) -> Iterator[AtOnce]:
        """Looks in threads."""

        def look(looks: Sequence[Callable[[], Observed | None]]) -> list[Observed | None]:
            return [seen.result() for seen in [pool.submit(one) for one in looks]]

        with ThreadPoolExecutor() as pool:
            yield look
