"""What tools of MCP servers are bound to, answer, and come to when their server fails."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import anyio
import pytest
from mcp_types import (
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)

import safepoint
from safepoint.adapters.mcp import Server, ServerFileUnusable, connect, servers_from
from safepoint.adapters.mcp.connection import Connection
from safepoint.adapters.mcp.remote_tool import RemoteTool, declaration_of
from safepoint.adapters.mcp.results import result_of
from safepoint.adapters.memory.model_provider import PlannedModel, calls, says
from safepoint.adapters.tools.declaration import ToolDefinitionError
from safepoint.application.tool_boundary import ToolNotOver
from safepoint.domain.events.run import RunStatus
from safepoint.domain.reasons import FailureClass
from safepoint.ports.tool_catalog import BoundCall, SchemaMismatch

from .agents import bank, effects, free_port, listening, opened, until

PAY_FIVE: Any = {"amount": 5}
SERVER = Server(name="bank", command="bank")


@asynccontextmanager
async def running(folder: Path, *asked: tuple[str, dict[str, Any]], **more: Any) -> AsyncIterator[Any]:
    """A run whose model has called tools of the server; each is then carried out by `run.call`."""
    async with connect([bank(folder, **more)]) as connected, opened(folder, connected.tools) as runtime:
        session = runtime.session("bill")
        async with session.record("Go.") as run:
            parts = [safepoint.tool_call(f"c{at}", f"bank__{tool}", args) for at, (tool, args) in enumerate(asked)]
            await run.model_step(safepoint.step(*parts))
            yield run


async def left_open(folder: Path, call: Any, before: Any = bool, after: Any = bool, **more: Any) -> Any:
    """A run of which this call has no outcome, and never will have one in this process."""

    async def carry_out() -> None:
        async with running(folder, call, **more) as run:
            runs.append(run)
            before()
            try:
                await run.call("c0")
            finally:
                after()

    runs: list[Any] = []
    with pytest.raises(ToolNotOver):
        await carry_out()
    return runs[0]


def test_each_answer_is_kept_as_strict_json_within_bounds(tmp_path: Path) -> None:
    asked: list[tuple[str, dict[str, Any]]] = [
        ("pay", {"amount": 5}),
        ("statement", {}),
        ("picture", {}),
        ("novel", {"letters": 600_000}),
        ("fail", {}),
        ("pay", {"amount": "much"}),
        ("pay", {"amount": 1, "to": "me"}),
    ]

    async def main() -> list[Any]:
        async with running(tmp_path, *asked) as run:
            return [await run.call(f"c{at}") for at in range(len(asked))]

    paid, data, picture, novel, failed, misfit, unnamed = anyio.run(main)
    assert (paid.result, paid.effect) == ("paid 5", "done")
    assert data.result == {"cents": 10_000}
    text, image = picture.result
    assert text == {"type": "text", "text": "look"}
    assert (image["mime_type"], image["bytes"], len(image["sha256"])) == ("image/png", 3_000, 64)
    assert (novel.code, novel.is_error, len(novel.result)) == ("result_too_large", False, 512 * 1024 - 2)
    assert (failed.is_error, failed.effect) == (True, "unknown")
    assert "Error executing tool fail" in failed.result
    assert (misfit.effect, misfit.code) == ("none", "args_schema_mismatch")
    assert "amount: type" in misfit.result
    assert "to: the tool has no such argument" in unnamed.result
    assert effects(tmp_path) == ["pay 5", "fail"]


def test_a_server_that_dies_in_the_middle_of_a_call_leaves_it_indeterminate(tmp_path: Path) -> None:
    async def main() -> None:
        run = await left_open(tmp_path, ("pay", {"amount": 5}), before=(tmp_path / "die").touch)
        assert run.answer("c0") is None
        assert (run.outcome.status, run.outcome.failure) == (RunStatus.FAILED, FailureClass.TOOL_NOT_OVER)
        async with connect([bank(tmp_path)]) as connected, opened(tmp_path, connected.tools) as runtime:
            plan = await runtime.session("bill").plan()
            assert isinstance(plan, safepoint.Park)

    anyio.run(main)
    assert effects(tmp_path) == ["pay 5"]


def test_a_server_over_http_that_dies_leaves_its_call_indeterminate(tmp_path: Path) -> None:
    port = free_port()

    async def carry_out() -> None:
        async with (
            connect([bank(tmp_path, str(port))]) as connected,
            opened(tmp_path, connected.tools) as runtime,
            runtime.session("bill").record("Go.") as run,
        ):
            runs.append(run)
            await run.model_step(safepoint.step(safepoint.tool_call("c0", "bank__pay", PAY_FIVE)))
            (tmp_path / "die").touch()
            await run.call("c0")

    runs: list[Any] = []
    with listening(tmp_path, port), pytest.raises(ToolNotOver):
        anyio.run(carry_out)
    assert runs[0].answer("c0") is None
    assert effects(tmp_path) == ["pay 5"]


def test_our_own_loop_calls_them_too(tmp_path: Path) -> None:
    async def main() -> None:
        async with connect([bank(tmp_path)]) as connected:
            model = PlannedModel([calls(("bank__pay", PAY_FIVE)), says("Paid."), calls(("bank__pay", PAY_FIVE))])
            async with safepoint.open(tmp_path / "store.sqlite", model=model, tools=connected.tools) as runtime:
                session = runtime.session("bill")
                assert (await session.run("Pay.")).outcome.text == "Paid."
                (tmp_path / "die").touch()
                ended = (await session.run("Again.")).outcome
                assert (ended.status, ended.failure) == (RunStatus.FAILED, FailureClass.TOOL_NOT_OVER)

    anyio.run(main)
    assert effects(tmp_path) == ["pay 5", "pay 5"]


def test_a_server_over_http_gets_the_headers_that_were_given_for_it() -> None:
    seen: list[str | None] = []

    class Refuses(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(self.headers["Authorization"])
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_error(403)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the library's word)
            """Say nothing."""

    async def main(port: int) -> None:
        server = Server(name="web", url=f"http://127.0.0.1:{port}/mcp", headers={"Authorization": "Bearer secret"})
        async with connect([server]) as connected:
            assert connected.tools == ()
            assert "secret" not in connected.gone["web"]

    with HTTPServer(("127.0.0.1", 0), Refuses) as http:
        thread = Thread(target=http.serve_forever)
        thread.start()
        anyio.run(main, http.server_port)
        http.shutdown()
        thread.join()
    assert set(seen) == {"Bearer secret"}


def test_a_call_that_takes_too_long_is_indeterminate_and_a_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "hang").touch()

    async def main() -> None:
        hurried: dict[str, Any] = {"trusted": True, "call_seconds_max": 0.5}
        async with running(tmp_path, ("balance", {}), **hurried) as run:
            read = await run.call("c0")
            assert (read.is_error, read.effect) == (True, "none")
            (tmp_path / "hang").unlink()
        (tmp_path / "hang").touch()
        run = await left_open(tmp_path, ("pay", {"amount": 5}), after=(tmp_path / "hang").unlink, **hurried)
        assert run.answer("c0") is None

    anyio.run(main)
    assert effects(tmp_path) == ["balance", "pay 5"]


def test_a_call_that_is_given_up_is_indeterminate(tmp_path: Path) -> None:
    (tmp_path / "hang").touch()

    runs: list[Any] = []

    async def main() -> None:
        with anyio.CancelScope() as scope:

            async def give_up() -> None:
                await anyio.to_thread.run_sync(until, partial(effects, tmp_path))
                scope.cancel()

            async with anyio.create_task_group() as group:
                group.start_soon(give_up)
                async with running(tmp_path, ("pay", {"amount": 5})) as run:
                    runs.append(run)
                    try:
                        await run.call("c0")
                    finally:
                        (tmp_path / "hang").unlink()
        assert scope.cancelled_caught
        assert runs[0].answer("c0") is None

    anyio.run(main)
    assert effects(tmp_path) == ["pay 5"]


def test_once_its_server_is_lost_a_call_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path, ("balance", {}), ("pay", {"amount": 5}), trusted=True) as run:
            (tmp_path / "die").touch()
            read = await run.call("c0")
            assert (read.is_error, read.effect) == (True, "none")
            refused = await run.call("c1")
            assert (refused.is_error, refused.effect) == (True, "none")
            assert "its connection was closed" in refused.result

    anyio.run(main)
    assert effects(tmp_path) == ["balance"]


async def unanswered(session: safepoint.Session, before: Any = bool) -> None:
    """A run whose call of the server is left without an outcome."""
    async with session.record("Go.") as run:
        await run.model_step(safepoint.step(safepoint.tool_call("c", "bank__pay", PAY_FIVE)))
        before()
        await run.call("c")


async def codes(session: safepoint.Session) -> tuple[safepoint.ParkReason, ...]:
    """Why the session is parked."""
    plan = await session.plan()
    assert isinstance(plan, safepoint.Park)
    return plan.codes


def test_a_call_whose_server_died_is_over_in_this_process_once_the_server_was_waited_for(tmp_path: Path) -> None:
    async def main() -> None:
        async with connect([bank(tmp_path)]) as connected, opened(tmp_path, connected.tools) as runtime:
            session = runtime.session("bill")
            with pytest.raises(ToolNotOver):
                await unanswered(session, (tmp_path / "die").touch)
            await anyio.to_thread.run_sync(until, lambda: not len(runtime.parts.live_operations()))
            assert await codes(session) == (safepoint.ParkReason.DANGLING_TOOL_STATE,)
            (one,) = await session.unsettled()
            await session.settle(one.operation_id, "completed", by="ada", note="the bank says so", result="paid 5")
            async with session.record_resume() as run:
                await run.model_step(safepoint.step("Paid."))

    anyio.run(main)
    assert effects(tmp_path) == ["pay 5"]


def test_a_call_that_took_too_long_runs_on_as_long_as_its_server_does(tmp_path: Path) -> None:
    (tmp_path / "hang").touch()
    found: list[Any] = []

    async def main() -> None:
        ready, leave, gone = anyio.Event(), anyio.Event(), anyio.Event()

        async def hold() -> None:
            async with connect([bank(tmp_path, call_seconds_max=0.5)]) as connected:
                found.extend(connected.tools)
                ready.set()
                await leave.wait()
            gone.set()

        async with anyio.create_task_group() as group:
            group.start_soon(hold)
            await ready.wait()
            async with opened(tmp_path, found) as runtime:
                session = runtime.session("bill")
                with pytest.raises(ToolNotOver):
                    await unanswered(session)
                assert safepoint.ParkReason.EFFECT_MAY_BE_RUNNING in await codes(session)
                (tmp_path / "hang").unlink()
                leave.set()
                await gone.wait()
                assert await codes(session) == (safepoint.ParkReason.DANGLING_TOOL_STATE,)

    anyio.run(main)


def test_servers_that_cannot_be_asked_are_named_and_hinder_no_other(tmp_path: Path) -> None:
    silent = Server(name="silent", command="sleep", args=("60",), connect_seconds_max=0.5)
    absent = Server(name="absent", url="http://127.0.0.1:9/mcp")

    async def main() -> None:
        async with connect([silent, bank(tmp_path), absent]) as connected:
            assert "bank__pay" in [tool.spec.name for tool in connected.tools]
            assert set(connected.gone) == {"silent", "absent"}
            assert connected.gone["silent"] == "it listed no tools within 0.5 s"
        with pytest.raises(ValueError, match="one name"):
            async with connect([silent, silent]):
                pytest.fail("which of the two?")
        with pytest.raises(LookupError, match="mine"):  # and not in a group of errors
            async with connect([]):
                raise LookupError("mine")

    anyio.run(main)


@pytest.mark.parametrize(
    ("hints", "trusted", "untrusted"),
    [
        (None, "outcome_unknown", "outcome_unknown"),
        (ToolAnnotations(), "outcome_unknown", "outcome_unknown"),
        (ToolAnnotations(read_only_hint=True), "replay_safe", "outcome_unknown"),
        (ToolAnnotations(idempotent_hint=True), "idempotent", "outcome_unknown"),
        (ToolAnnotations(read_only_hint=True, idempotent_hint=True), "replay_safe", "outcome_unknown"),
        (ToolAnnotations(read_only_hint=False, destructive_hint=True), "outcome_unknown", "outcome_unknown"),
    ],
)
def test_hints_are_promises_of_trusted_servers_alone(
    hints: ToolAnnotations | None, trusted: str, untrusted: str
) -> None:
    tool = Tool(name="t", input_schema={"type": "object"}, annotations=hints)
    for trust, mode in ((True, trusted), (False, untrusted)):
        declared = declaration_of(Server(name="s", command="c", trusted=trust, key_valid_seconds=60), tool)
        assert declared.recovery == mode
        assert declared.key_valid_seconds == (60 if mode == "idempotent" else None)


def remote(schema: dict[str, Any]) -> RemoteTool:
    return RemoteTool(Connection(SERVER), Tool(name="t", input_schema=schema))


@pytest.mark.parametrize(
    ("schema", "arguments", "says"),
    [
        ({"type": "object", "properties": {"a": {"type": "integer"}}}, {"a": 1}, None),
        ({"type": "object", "properties": {"a": {"type": "integer"}}}, {"a": "secret"}, "a: type"),
        ({"type": "object", "properties": {"a": {"enum": [1]}}, "required": ["a"]}, {}, "arguments: required"),
        ({"type": "object", "additionalProperties": True}, {"b": 1}, None),
        ({"type": "object"}, {"b": 1}, "b: the tool has no such argument"),
        ({"type": "object"}, [], "arguments: an object is expected"),
    ],
)
def test_arguments_are_checked_against_the_servers_schema_before_anything_is_sent(
    schema: dict[str, Any], arguments: Any, says: str | None
) -> None:
    bound = remote(schema).bind(arguments)
    if says is None:
        assert isinstance(bound, BoundCall)
    else:
        assert isinstance(bound, SchemaMismatch)
        assert says in bound.detail
        assert "secret" not in bound.detail


def test_a_reference_to_another_place_is_not_followed() -> None:
    asked: list[str] = []

    class Schemas(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

    with HTTPServer(("127.0.0.1", 0), Schemas) as http:
        thread = Thread(target=http.serve_forever)
        thread.start()
        elsewhere = f"http://127.0.0.1:{http.server_port}/schema.json"
        bound = remote({"type": "object", "properties": {"a": {"$ref": elsewhere}}}).bind({"a": 1})
        http.shutdown()
        thread.join()
    assert isinstance(bound, SchemaMismatch)
    assert "the server's schema cannot be read" in bound.detail
    assert asked == []


def test_another_schema_is_another_tool_and_a_schema_that_is_none_makes_no_tool() -> None:
    one, other = remote({"type": "object"}), remote({"type": "object", "required": ["a"]})
    assert one.spec.schema_digest != other.spec.schema_digest
    for none in ({"type": "no such type"}, {"type": "object", "properties": {"a": {"pattern": "("}}}):
        with pytest.raises(ToolDefinitionError, match="bank__t"):
            remote(none)


def test_bytes_are_named_and_not_kept() -> None:
    content: list[Any] = [
        TextContent(text="two"),
        ImageContent(data="not base64!", mime_type="image/png"),
        ResourceLink(uri="file:///a", name="a"),
        EmbeddedResource(resource=BlobResourceContents(uri="file:///b", blob="AAAA", mime_type="x/y")),
        EmbeddedResource(resource=TextResourceContents(uri="file:///c", text="c")),
    ]
    shown: Any = result_of(CallToolResult(content=content, structured_content={"n": 1}))
    assert shown["structured"] == {"n": 1}
    assert [block["type"] for block in shown["content"]] == ["image", "resource_link", "resource", "resource"]
    assert [block.get("bytes") for block in shown["content"]] == [11, None, 3, None]


def test_a_file_of_servers_is_read_as_other_programs_write_it(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(
        json.dumps(
            {
                "other": 1,
                "mcpServers": {
                    "bank": {"command": "bank", "args": ["-v"], "env": {"KEY": "secret"}, "trusted": True},
                    "web": {"type": "http", "url": "http://127.0.0.1:1/mcp", "call_seconds_max": 5},
                },
            }
        )
    )
    first, second = servers_from(file)
    assert (first.name, first.args, first.trusted, "secret" in repr(first)) == ("bank", ("-v",), True, False)
    assert (second.url, second.trusted, second.call_seconds_max) == ("http://127.0.0.1:1/mcp", False, 5.0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "Invalid JSON"),
        ("{}", "mcpServers"),
        ('{"mcpServers": {"a": {"command": "x", "token": "secret"}}}', "token"),
        ('{"mcpServers": {"a": {"command": "x", "trusted": "yes"}}}', "trusted"),
        ('{"mcpServers": {"a": {}}}', "a command or a url"),
        ('{"mcpServers": {"a b": {"command": "x"}}}', "cannot name a server"),
        ('{"mcpServers": {"a": {"command": "x", "call_seconds_max": 0}}}', "call_seconds_max"),
    ],
)
def test_a_file_of_servers_that_cannot_be_used_says_where_and_no_values(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(text)
    with pytest.raises(ServerFileUnusable, match=says) as refused:
        servers_from(file)
    assert "secret" not in str(refused.value)
