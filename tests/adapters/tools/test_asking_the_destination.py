"""A third party's reconciler asks the destination what became of a payment, by the key of the call. r3-047."""

from __future__ import annotations

import http.client
import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from safepoint.adapters.memory.model_provider import PlannedModel, calls, says
from safepoint.adapters.memory.tables import Failure
from safepoint.adapters.tools.decorator import tool
from safepoint.application.reconciliation import Completed, Left, LeftAlone, NowParked
from safepoint.application.resume_run import Continued
from safepoint.domain import canonical
from safepoint.domain.errors import StoreFull
from safepoint.domain.events.tool import Observation, RecoveryMode, ToolReconciled, ToolResponded
from safepoint.domain.reasons import RecoveryReason
from safepoint.domain.recovery.verdict import VerdictStatus
from safepoint.domain.tool_results import prepare_result
from safepoint.ports.contract_kit.reconciler import ReconcilerContract, Subject
from safepoint.ports.reconciler import AskedOperation, NotSeenNow, Observed, Reconciler
from safepoint.ports.tool_catalog import ToolContext

from ...application.wiring import Process, World, check_sound, go
from ...contracts.test_reconciler import asked_of
from .http_server import Answering, Effects, serving


def bank(effects: Effects, to: Answering) -> None:
    """Makes a payment under a key, and tells of it by that key."""
    if to.command == "POST":
        effects.done.append(to.key)
        to.answer(201, {"paid": to.key})
    elif to.path.removeprefix("/payments/") in effects.done:
        to.answer(200, {"paid": to.path.removeprefix("/payments/")})
    else:
        to.answer(404, {})


def ask(url: str, method: str, path: str, key: str | None = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    try:
        connection.request(method, path, headers={} if key is None else {"Idempotency-Key": key})
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


class Payments(Reconciler):
    """Asks the bank; that it knows of no payment is no proof that none was made, so that is for a person."""

    reconciler_id = "bank.payments"
    version = 1

    def __init__(self, url: str) -> None:
        self.url = url

    @property
    def contract_ids(self) -> Collection[str]:
        return ("bank.pay",)

    def observe(self, asked: AskedOperation) -> Observed:
        if asked.evidence != {"bank": 1}:
            return Observed(Observation.UNREADABLE, detail="evidence of another version")
        try:
            status, told = ask(self.url, "GET", f"/payments/{asked.idempotency_key}")
        except (OSError, http.client.HTTPException) as error:
            raise NotSeenNow(f"the bank does not answer: {error}") from error
        digest = canonical.sha256_hex(canonical.encode(told))
        match status:
            case 200:
                return Observed(Observation.MATCHES_EXPECTED_STATE, prepare_result(told), digest)
            case 404:
                return Observed(Observation.MATCHES_PRIOR_STATE, None, digest)
            case _:
                raise NotSeenNow(f"the bank answers {status}")

    def tidy(self, asked: AskedOperation) -> None:
        """Nothing was left beside it."""


def paying(url: str, *, arrives: bool = True) -> Any:
    def pay(context: ToolContext, amount: int) -> Any:
        """Pay an amount."""
        return ask(url, "POST", "/payments", context.idempotency_key)[1] if arrives else None

    return tool(recovery="reconcile", contract_id="bank.pay", evidence=lambda arguments, workspace: {"bank": 1})(pay)


@contextmanager
def lost(*, arrives: bool = True) -> Iterator[tuple[World, Effects, Any]]:
    """A process that died when its payment was made, or was lost on the way, and no answer was recorded."""
    with serving(bank) as server:
        world, pay = World(), paying(server.url, arrives=arrives)
        dead = Process(world)
        dead.events_store.fail_at(ToolResponded.topic, Failure.FULL)
        with pytest.raises(StoreFull):
            go(lambda: dead.turn("pay", PlannedModel([calls(("pay", {"amount": 7}))]), [pay]))
        dead.die()
        yield world, server, pay


def became(process: Process, pay: Any) -> Completed | NowParked | LeftAlone:
    (one,) = go(lambda: process.reconcile([pay])).operations
    return one.became


def test_r3_047_a_bank_that_knows_the_payment_settles_it_and_is_named_as_the_source() -> None:
    with lost() as (world, server, pay):
        process = Process(world, reconcilers=[Payments(server.url)])
        assert became(process, pay) == Completed(Observation.MATCHES_EXPECTED_STATE, is_error=False)
        (seen,) = process.of(process.head(), ToolReconciled)
        assert seen.reconciler_id == "bank.payments"
        (response,) = process.responses(process.head())
        assert response.result == {"paid": server.done[0]}
        assert isinstance(go(lambda: process.resume([says("paid")], [pay])), Continued)
        assert server.count() == 1
        check_sound(process, process.head())


def test_r3_047_that_the_bank_knows_of_none_does_not_send_it_again() -> None:
    with lost(arrives=False) as (world, server, pay):
        process = Process(world, reconcilers=[Payments(server.url)])
        parked = became(process, pay)
        assert isinstance(parked, NowParked)
        assert parked.reason is RecoveryReason.RECONCILE_MATCHES_PRIOR_STATE
        assert server.count() == 0


def test_r3_047_a_bank_that_cannot_be_asked_leaves_it_unknown_until_it_can() -> None:
    with lost() as (world, server, pay):
        there = Payments(server.url)
        gone = Payments("http://127.0.0.1:1")
        left = became(Process(world, reconcilers=[gone]), pay)
        assert isinstance(left, LeftAlone)
        assert left.why is Left.NOT_SEEN
        process = Process(world, reconcilers=[there])
        (verdict,) = process.verdicts(process.head())
        assert verdict.status is VerdictStatus.INDETERMINATE
        assert isinstance(became(process, pay), Completed)
        assert server.count() == 1


class Payment(Subject):
    """A payment at the bank."""

    def __init__(self, server: Effects, reconciler: Payments) -> None:
        self._server, self._reconciler = server, reconciler

    def asked(self) -> AskedOperation:
        return asked_of(RecoveryMode.RECONCILE, {"bank": 1})

    def happen(self) -> None:
        ask(self._server.url, "POST", "/payments", self.asked().idempotency_key)

    def meddle(self) -> None:
        """Another payment; ours is not changed by it."""
        ask(self._server.url, "POST", "/payments", "another key")

    def hide(self) -> None:
        self._reconciler.url = "http://127.0.0.1:1"

    def world(self) -> object:
        return list(self._server.done)


class TestPayments(ReconcilerContract):
    meddling_shows = False

    @pytest.fixture
    def server(self) -> Iterator[Effects]:
        with serving(bank) as effects:
            yield effects

    @pytest.fixture
    def reconciler(self, server: Effects) -> Payments:
        return Payments(server.url)

    @pytest.fixture
    def subject(self, server: Effects, reconciler: Payments) -> Subject:
        return Payment(server, reconciler)
