"""A tool may be known by its promise alone: somebody else's loop carries it out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from safepoint.adapters.tools.catalog import FunctionCatalog
from safepoint.adapters.tools.declaration import ToolDefinitionError
from safepoint.adapters.tools.decorator import tool
from safepoint.adapters.tools.promised_tool import contract
from safepoint.domain.errors import RefusedWithoutEffect
from safepoint.domain.events.tool import RecoveryMode
from safepoint.ports.tool_catalog import AsyncCall, BoundCall, SchemaMismatch, SyncCall, ToolContext

NO_CONTEXT = cast(ToolContext, None)


def bound(given: Any, arguments: Any = None) -> BoundCall:
    found = FunctionCatalog([given]).bind(given.spec.name, {} if arguments is None else arguments)
    assert isinstance(found, BoundCall), found
    return found


def test_a_tool_of_which_nothing_is_said_promises_nothing() -> None:
    call = bound(contract("act"))
    assert (call.contract.mode, call.contract.contract_id) == (RecoveryMode.OUTCOME_UNKNOWN, "act")
    assert call.writes_workspace
    assert call.needs_permission


def test_a_promise_is_named_as_that_of_a_function_is() -> None:
    """The same promise of the same schema has the same digests, whoever carries the tool out."""

    @tool(recovery="idempotent", key_valid_seconds=60, resource_key="bank")
    def pay(amount: int) -> None:
        """Pay."""

    catalog = FunctionCatalog([pay])
    (of_function,) = catalog.tools()
    promised = contract(
        "pay", recovery="idempotent", key_valid_seconds=60, resource_key="bank", input_schema=of_function.input_schema
    )
    assert promised.spec.profile == of_function.profile


def test_a_promise_may_depend_on_the_arguments() -> None:
    def mode(arguments: Mapping[str, Any]) -> str:
        return "replay_safe" if arguments["method"] == "GET" else "never_auto_retry"

    request = contract("request", recovery=mode, resource_key=lambda arguments: arguments["method"])
    assert bound(request, {"method": "GET"}).contract.mode is RecoveryMode.REPLAY_SAFE
    assert bound(request, {"method": "PUT"}).contract.mode is RecoveryMode.NEVER_AUTO_RETRY
    assert bound(request, {"method": "PUT"}).resource_key == "PUT"
    assert isinstance(request.bind({}), SchemaMismatch)


@pytest.mark.parametrize("arguments", [[1], "text", None, 5])
def test_arguments_are_an_object(arguments: Any) -> None:
    assert isinstance(contract("act").bind(arguments), SchemaMismatch)


def test_a_declaration_that_contradicts_itself_is_refused_at_once() -> None:
    with pytest.raises(ToolDefinitionError, match="key_valid_seconds"):
        contract("pay", recovery="idempotent")
    with pytest.raises(ToolDefinitionError, match="no recovery mode"):
        contract("pay", recovery="sometimes")


def test_what_only_another_loop_can_carry_out_refuses_here() -> None:
    call = bound(contract("act"))
    assert call.elsewhere
    assert isinstance(call.implementation, AsyncCall)

    async def run() -> None:
        assert isinstance(call.implementation, AsyncCall)
        with pytest.raises(RefusedWithoutEffect):
            await call.implementation.run({}, NO_CONTEXT)

    anyio.run(run)


def test_what_can_be_called_here_is_called_with_its_arguments_by_name() -> None:
    def look(path: str) -> str:
        return Path(path).name

    async def fetch(url: str) -> str:
        return url.upper()

    reading = bound(contract("look", recovery="replay_safe", carry_out=look), {"path": "a/b"})
    fetching = bound(contract("fetch", recovery="replay_safe", carry_out=fetch), {"url": "x"})
    assert not reading.elsewhere
    assert not fetching.elsewhere
    assert isinstance(reading.implementation, SyncCall)
    assert reading.implementation.run({"path": "a/b"}, NO_CONTEXT) == "b"

    async def run() -> object:
        assert isinstance(fetching.implementation, AsyncCall)
        return await fetching.implementation.run({"url": "x"}, NO_CONTEXT)

    assert anyio.run(run) == "X"


def test_what_cannot_be_called_with_its_arguments_has_no_effect() -> None:
    def pay(amount: int) -> str:
        return pytest.fail("it was called")

    call = bound(contract("pay", carry_out=pay))
    assert isinstance(call.implementation, AsyncCall)

    async def run() -> None:
        assert isinstance(call.implementation, AsyncCall)
        with pytest.raises(RefusedWithoutEffect, match="carry_out cannot be called with these arguments"):
            await call.implementation.run({}, NO_CONTEXT)

    anyio.run(run)
