"""The tool `http_request`, against real servers on loopback: one that honours keys, one that ignores them, others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from safepoint.adapters.memory.model_provider import PlannedModel, calls, says
from safepoint.adapters.memory.tables import Failure
from safepoint.adapters.tools.builtin.http_exchange import RESPONSE_BYTES_MAX, ExchangeBroken, origin_of
from safepoint.adapters.tools.builtin.http_request import REDIRECTS_MAX, HttpTool, NoFinalAnswer
from safepoint.adapters.tools.catalog import FunctionCatalog
from safepoint.application.reconciliation import Completed, Left, LeftAlone, NowParked
from safepoint.application.resume_run import Continued
from safepoint.domain.errors import RefusedWithoutEffect, StoreFull
from safepoint.domain.events.event import Json
from safepoint.domain.events.tool import Effect, Observation, RecoveryMode, ToolResponded
from safepoint.domain.reasons import RecoveryReason
from safepoint.ports.tool_catalog import BoundCall, SchemaMismatch, SyncCall, ToolContext, Workspace

from ...application.wiring import Process, World, go
from .http_server import Answering, Effects, Plan, honouring, ignoring, serving, then

DAY = 86_400


@pytest.fixture
def server() -> Iterator[Effects]:
    with serving(honouring) as effects:
        yield effects


def bound(tool: HttpTool, **arguments: Json) -> BoundCall:
    call = tool.bind({**arguments})
    assert isinstance(call, BoundCall), call
    return call


def send(tool: HttpTool, context: ToolContext, **arguments: Json) -> Any:
    call = bound(tool, **arguments)
    assert isinstance(call.implementation, SyncCall)
    call.evidence(Workspace(context.workspace, None))
    return call.implementation.run(arguments, context)


# What is promised, before anything is sent


@pytest.mark.parametrize(
    ("method", "seconds", "mode"),
    [
        ("GET", DAY, RecoveryMode.REPLAY_SAFE),
        ("HEAD", None, RecoveryMode.REPLAY_SAFE),
        ("POST", DAY, RecoveryMode.IDEMPOTENT),
        ("DELETE", DAY, RecoveryMode.IDEMPOTENT),
        ("POST", None, RecoveryMode.OUTCOME_UNKNOWN),
        ("PUT", None, RecoveryMode.OUTCOME_UNKNOWN),
    ],
)
def test_what_may_be_sent_again_depends_on_the_method_and_on_what_the_owner_says_of_the_server(
    method: str, seconds: int | None, mode: RecoveryMode
) -> None:
    call = bound(HttpTool({"http://127.0.0.1:1": seconds}), url="http://127.0.0.1:1/x", method=method)
    assert call.contract.mode is mode
    assert call.contract.key_valid_seconds == (DAY if mode is RecoveryMode.IDEMPOTENT else None)
    assert not call.writes_workspace


def test_a_model_cannot_say_that_a_server_honours_keys_nor_set_the_key() -> None:
    tool = HttpTool({"http://127.0.0.1:1": None})
    assert isinstance(tool.bind({"url": "http://127.0.0.1:1", "key_valid_seconds": DAY}), SchemaMismatch)
    call = bound(tool, url="http://127.0.0.1:1", method="POST", headers={"idempotency-KEY": "mine"})
    assert call.contract.mode is RecoveryMode.OUTCOME_UNKNOWN


@pytest.mark.parametrize(
    "arguments",
    [
        {"url": "http://elsewhere.example/x"},
        {"url": "http://127.0.0.1:1@elsewhere.example/"},
        {"url": "https://127.0.0.1:1/"},
        {"url": "file:///etc/passwd"},
        {"url": "/x"},
        {"url": "http://127.0.0.1:1/a b"},
        {"url": "http://127.0.0.1:1/\r\nX: y"},
        {"url": "http://127.0.0.1:notaport/"},
        {"url": "http://127.0.0.1:1/", "headers": {"Host": "elsewhere"}},
        {"url": "http://127.0.0.1:1/", "headers": {"Idempotency-Key": "mine"}},
        {"url": "http://127.0.0.1:1/", "headers": {"X": "a\r\nY: b"}},
        {"url": "http://127.0.0.1:1/", "headers": {"X\n": "a"}},
        {"url": "http://127.0.0.1:1/", "method": "GET", "body": "x"},
    ],
)
def test_what_is_never_sent_is_refused_before_t1(arguments: dict[str, Json], context: ToolContext) -> None:
    call = bound(HttpTool({"http://127.0.0.1:1": DAY}), **arguments)
    with pytest.raises(RefusedWithoutEffect):
        call.evidence(Workspace(context.workspace, None))


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("http://Example.COM:80/a?b#c", "http://example.com"),
        ("https://example.com:443", "https://example.com"),
        ("https://example.com:8443/", "https://example.com:8443"),
        ("http://[::1]:8080/", "http://[::1]:8080"),
    ],
)
def test_an_origin_is_scheme_host_and_unusual_port(url: str, origin: str) -> None:
    assert origin_of(url) == origin


def test_an_owner_that_promises_less_than_a_second_promises_nothing() -> None:
    with pytest.raises(ValueError, match="at least one second"):
        HttpTool({"http://127.0.0.1:1": 0})


# What is sent


def test_a_post_carries_the_key_of_its_operation_and_the_answer_is_the_result(
    server: Effects, context: ToolContext
) -> None:
    tool = HttpTool({server.url: DAY}, lambda origin: {"Authorization": "Bearer of-the-owner"})
    result = send(tool, context, url=f"{server.url}/pay?x=1", method="POST", body='{"n":1}', headers={"X-Y": "z"})
    assert (result["status"], result["text"], result["truncated"]) == (201, '{"receipt": 1}', False)
    assert "authorization" not in str(result).lower()
    ((method, path, headers),) = server.received
    assert (method, path) == ("POST", "/pay?x=1")
    assert headers["idempotency-key"] == context.idempotency_key
    assert (headers["x-y"], headers["authorization"]) == ("z", "Bearer of-the-owner")


def test_no_key_is_sent_where_none_is_honoured_and_none_with_a_read(server: Effects, context: ToolContext) -> None:
    send(HttpTool({server.url: None}), context, url=server.url, method="POST")
    send(HttpTool({server.url: DAY}), context, url=server.url)
    assert ["idempotency-key" in headers for _, _, headers in server.received] == [False, False]


def redirecting(times: int, onward: str = "/next") -> Plan:
    def plan(effects: Effects, to: Answering) -> None:
        if len(effects.received) <= times:
            to.answer(302, {}, location=onward)
        else:
            to.answer(200, {"at": to.path})

    return plan


def test_redirects_of_reads_are_followed_so_often_and_no_more(context: ToolContext) -> None:
    with serving(redirecting(REDIRECTS_MAX)) as server:
        result = send(HttpTool({server.url: None}), context, url=server.url)
        assert (result["status"], result["url"]) == (200, f"{server.url}/next")
    with serving(redirecting(REDIRECTS_MAX + 1)) as server, pytest.raises(RefusedWithoutEffect, match="redirected"):
        send(HttpTool({server.url: None}), context, url=server.url)


@pytest.mark.parametrize(("method", "onward"), [("POST", "/next"), ("GET", "http://elsewhere.example/next")])
def test_a_redirect_of_a_write_or_to_another_server_is_told_and_not_followed(
    method: str, onward: str, context: ToolContext
) -> None:
    with serving(redirecting(9, onward)) as server:
        result = send(HttpTool({server.url: None}), context, url=server.url, method=method)
        assert (result["status"], result["headers"]["location"]) == (302, onward)
        assert len(server.received) == 1


def test_of_a_large_answer_the_beginning_is_kept(context: ToolContext) -> None:
    with serving(lambda effects, to: to.answer(200, b"x" * (RESPONSE_BYTES_MAX + 1))) as server:
        result = send(HttpTool({server.url: None}), context, url=server.url)
        assert (len(result["text"]), result["truncated"]) == (RESPONSE_BYTES_MAX, True)


def dripping(effects: Effects, to: Answering) -> None:
    """A byte now and then: no single read takes long."""
    to.send_response(200)
    to.send_header("content-length", "100000")
    to.end_headers()
    for _ in range(200):
        try:
            to.wfile.write(b"x")
            to.wfile.flush()
        except OSError:
            return
        time.sleep(0.05)


def test_an_answer_that_drips_is_ended_when_its_time_is_up(context: ToolContext) -> None:
    with serving(dripping) as server, pytest.raises(ExchangeBroken, match="took too long"):
        send(HttpTool({server.url: None}), context, url=server.url, timeout_seconds=1)


def test_a_request_that_is_cancelled_ends_at_once(context: ToolContext, cancel: threading.Event) -> None:
    with serving(dripping) as server:
        threading.Timer(0.2, cancel.set).start()
        with pytest.raises(ExchangeBroken, match="cancelled"):
            send(HttpTool({server.url: None}), context, url=server.url)


# What is known of the effect


def answered(call: BoundCall, error: BaseException) -> Effect:
    return call.raised(error).effect


def test_where_nobody_listens_nothing_was_sent(context: ToolContext) -> None:
    with serving(honouring) as server:
        url = server.url
    with pytest.raises(RefusedWithoutEffect, match="could not be reached"):
        send(HttpTool({url: None}), context, url=url, method="POST")


def broken_off(effects: Effects, to: Answering) -> None:
    effects.done.append(to.key)
    to.close_connection = True


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_an_answer_that_breaks_off_leaves_the_effect_of_a_write_unknown(method: str, context: ToolContext) -> None:
    with serving(broken_off) as server:
        tool = HttpTool({server.url: None})
        with pytest.raises(ExchangeBroken) as caught:
            send(tool, context, url=server.url, method=method)
        known = answered(bound(tool, url=server.url, method=method), caught.value)
        assert known is (Effect.UNKNOWN if method == "POST" else Effect.NONE)


@pytest.mark.parametrize(
    ("status", "seconds", "final"),
    [(200, DAY, True), (402, DAY, True), (422, DAY, True), (409, None, True), (429, None, True), (500, None, False)]
    + [(status, DAY, False) for status in (408, 409, 425, 429, 500, 503)],
)
def test_an_answer_that_does_not_say_what_became_of_it_is_none(
    status: int, seconds: int | None, final: bool, context: ToolContext
) -> None:
    with serving(lambda effects, to: to.answer(status, {"said": "so"})) as server:
        tool = HttpTool({server.url: seconds})
        if final:
            assert send(tool, context, url=server.url, method="POST")["status"] == status
            return
        with pytest.raises(NoFinalAnswer, match=f"{status}.*so") as caught:
            send(tool, context, url=server.url, method="POST")
        assert answered(bound(tool, url=server.url, method="POST"), caught.value) is Effect.UNKNOWN


def test_a_read_is_told_every_answer(context: ToolContext) -> None:
    with serving(lambda effects, to: to.answer(503, {})) as server:
        assert send(HttpTool({server.url: None}), context, url=server.url)["status"] == 503


# After a crash: effects are counted by the server


def lost(plan: Plan, seconds: int | None, use: Callable[[World, Effects, FunctionCatalog], None]) -> None:
    """A process that died when its payment was made and the answer was not recorded yet."""
    with serving(plan) as server:
        catalog = FunctionCatalog([HttpTool({server.url: seconds})])
        world = World()
        dead = Process(world)
        dead.events_store.fail_at(ToolResponded.topic, Failure.FULL)
        pay = calls(("http_request", {"url": f"{server.url}/pay", "method": "POST", "body": "7"}))
        with pytest.raises(StoreFull):
            go(lambda: dead.turn("pay", PlannedModel([pay]), catalog))
        dead.die()
        assert len(server.done) == 1
        use(world, server, catalog)


def became(process: Process, catalog: FunctionCatalog) -> Completed | NowParked | LeftAlone:
    (one,) = go(lambda: process.reconcile(catalog)).operations
    return one.became


def test_a_server_that_honours_keys_is_asked_again_and_pays_once() -> None:
    def use(world: World, server: Effects, catalog: FunctionCatalog) -> None:
        process = Process(world)
        assert became(process, catalog) == Completed(Observation.REDELIVERED, is_error=False)
        assert (server.count(), len(server.done)) == (2, 1)
        keys = {headers["idempotency-key"] for _, _, headers in server.received}
        assert keys == {process.dispatches(process.head())[0].idempotency_key}
        (response,) = process.responses(process.head())
        assert isinstance(response.result, dict)
        assert (response.result["status"], response.result["text"]) == (201, '{"receipt": 1}')
        assert isinstance(go(lambda: process.resume([says("paid")], catalog)), Continued)
        assert (server.count(), len(server.done)) == (2, 1)

    lost(honouring, DAY, use)


def test_r3_043_a_server_that_ignores_keys_is_not_asked_again() -> None:
    def use(world: World, server: Effects, catalog: FunctionCatalog) -> None:
        parked = became(Process(world), catalog)
        assert isinstance(parked, NowParked)
        assert parked.reason is RecoveryReason.CONTRACT_FORBIDS_RECOVERY
        assert (server.count(), len(server.done)) == (1, 1)

    lost(ignoring, None, use)


@pytest.mark.parametrize("status", [302, 400, 401, 402, 403, 404, 409, 410, 422, 429, 500])
def test_what_is_answered_to_the_second_delivery_is_no_outcome_unless_it_is_a_success(status: int) -> None:
    """A token that has expired, or a route that moved, is answered before anybody looks at the key."""

    def use(world: World, server: Effects, catalog: FunctionCatalog) -> None:
        process = Process(world)
        left = became(process, catalog)
        assert isinstance(left, LeftAlone)
        assert left.why is Left.NOT_DELIVERED
        assert str(status) in left.detail
        assert process.responses(process.head()) == []
        assert became(process, catalog) == Completed(Observation.REDELIVERED, is_error=False)
        assert len(server.done) == 1

    lost(then((201, "ok"), (status, "not now"), (201, "ok")), DAY, use)


def test_in_the_continuation_an_equal_call_has_the_recorded_key_and_is_told_so_and_the_next_turn_pays_anew() -> None:
    def use(world: World, server: Effects, catalog: FunctionCatalog) -> None:
        process = Process(world)
        assert became(process, catalog) == Completed(Observation.REDELIVERED, is_error=False)
        (first,) = process.dispatches(process.head())
        pay = calls(("http_request", {"url": f"{server.url}/pay", "method": "POST", "body": "7"}))
        assert isinstance(go(lambda: process.resume([pay, says("paid")], catalog)), Continued)
        assert (server.count(), len(server.done)) == (3, 1), "the receiver did nothing new"
        (response,) = process.responses(process.head())
        assert isinstance(response.result, dict)
        assert str(first.operation_id) in str(response.result["note"])
        assert "did nothing new" in str(response.result["note"])
        answer: Any = response.result["result"]
        assert answer["status"] == 201
        go(lambda: process.turn("pay again", PlannedModel([pay, says("paid twice")]), catalog))
        assert (server.count(), len(server.done)) == (4, 2)

    lost(honouring, DAY, use)


@pytest.mark.parametrize(("second", "effect"), [(200, Effect.DONE), (401, Effect.UNKNOWN)])
def test_an_equal_call_after_an_answer_that_says_nothing_has_the_same_key_and_the_same_rule(
    second: int, effect: Effect
) -> None:
    with serving(then((500, "paid, and fell over"), (second, "again"))) as server:
        process = Process()
        pay = calls(("http_request", {"url": f"{server.url}/pay", "method": "POST", "body": "7"}))
        catalog = FunctionCatalog([HttpTool({server.url: DAY})])
        result = go(lambda: process.turn("pay", PlannedModel([pay, pay, says("ok")]), catalog))
        assert (server.count(), len(server.done)) == (2, 1)
        assert [one.effect for one in process.responses(result.run_id)] == [Effect.UNKNOWN, effect]
        watched = process.ledger.session(result.session_id).watched
        assert len(watched) == (effect is Effect.UNKNOWN)


def test_a_failure_of_the_second_delivery_settles_nothing_and_a_third_may() -> None:
    def use(world: World, server: Effects, catalog: FunctionCatalog) -> None:
        process = Process(world)
        left = became(process, catalog)
        assert isinstance(left, LeftAlone)
        assert left.why is Left.NOT_DELIVERED
        assert "503" in left.detail
        assert process.responses(process.head()) == []
        assert became(process, catalog) == Completed(Observation.REDELIVERED, is_error=False)
        assert (server.count(), len(server.done)) == (3, 1)

    lost(then((201, "ok"), (503, "busy"), (201, "ok")), DAY, use)


def test_when_the_server_is_gone_the_first_delivery_stays_unknown() -> None:
    kept: list[tuple[World, FunctionCatalog]] = []
    lost(honouring, DAY, lambda world, server, catalog: kept.append((world, catalog)))
    ((world, catalog),) = kept
    left = became(Process(world), catalog)
    assert isinstance(left, LeftAlone)
    assert left.why is Left.NOT_DELIVERED
