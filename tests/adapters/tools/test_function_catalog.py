"""Plain Python functions as tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from safepoint.adapters.tools.catalog import FunctionCatalog
from safepoint.adapters.tools.declaration import ToolDefinitionError
from safepoint.adapters.tools.decorator import tool
from safepoint.domain.errors import RefusedWithoutEffect
from safepoint.domain.events.event import Json
from safepoint.domain.events.tool import Effect, Life, RecoveryMode
from safepoint.domain.reasons import ResponseCode
from safepoint.ports.tool_catalog import AsyncCall, BoundCall, SchemaMismatch, SyncCall, ToolContext, Workspace

GOLDEN_DIGESTS = {
    "greet": (
        "1b3ec56f8a13e09329fc523b02dfb711075d5b6f763118e6f73e03464b586766",
        "97997b3edd887f32ea421550c4b0ab5ab2836276a8847b5d70ab5a8ebe68f8ec",
    ),
    "fetch": (
        "de252169770cfe24ff76a46002e233eed5a0e8ab3ca28e9b17bcb5bc213e732e",
        "404ec004d9aa180f7f44b689c1e3be7b8565f699df955d016e0afbaa075898d7",
    ),
    "work": (
        "c1703bbd419e6b6143424ead5cf9f0888177bd01c78e0f26694dcd934fc5677c",
        "910deff5ec7b01121869d08557614a0765e0845ea0230d4c6c0fb4724ecd9238",
    ),
}


def greet(name: str, times: int = 1) -> str:
    """Greet somebody.

    As often as you like.
    """
    return f"Hello {name}" * times


def mode_of(arguments: Mapping[str, Any]) -> str:
    return "replay_safe" if arguments["method"] == "GET" else "idempotent"


@tool(
    recovery=mode_of,
    resource_key=lambda arguments: f"host:{arguments['host']}",
    key_valid_seconds=3600,
    concurrency_limit=2,
    contract_id="http",
    version=3,
)
def fetch(host: str, method: str = "GET") -> str:
    """Fetch something."""
    return host


@tool(recovery="idempotent", key_valid_seconds=60, repeat_free=True, timeout_seconds=5)
async def work(context: ToolContext, n: int) -> str:
    """Work."""
    await anyio.lowlevel.checkpoint()
    return f"{context.idempotency_key}:{n}"


def bind(function: Callable[..., Any], **arguments: Json) -> BoundCall:
    catalog = FunctionCatalog([function])
    bound = catalog.bind(catalog.tools()[0].name, arguments)
    assert isinstance(bound, BoundCall), bound
    return bound


def test_a_function_that_declares_nothing_promises_nothing() -> None:
    call = bind(greet, name="A")
    assert call.contract.mode is RecoveryMode.OUTCOME_UNKNOWN
    assert (call.contract.contract_id, call.contract.version) == ("greet", 1)
    assert (call.life, call.needs_permission, call.writes_workspace) == (Life.TASK, True, True)
    assert (call.resource_key, call.timeout_seconds, call.concurrency_limit) == (None, None, None)
    assert call.evidence(Workspace(Path("/"), None)) is None


def test_a_declared_function_is_still_that_function() -> None:
    assert fetch("h") == "h"
    assert fetch.__name__ == "fetch"


def test_the_name_and_the_docstring_are_what_the_model_sees() -> None:
    (spec,) = FunctionCatalog([greet]).tools()
    assert (spec.name, spec.description) == ("greet", "Greet somebody.\n\nAs often as you like.")


def test_mode_and_resource_key_may_depend_on_the_arguments() -> None:
    reading, writing = bind(fetch, host="h"), bind(fetch, host="g", method="POST")
    assert (reading.contract.mode, reading.contract.key_valid_seconds) == (RecoveryMode.REPLAY_SAFE, None)
    assert (writing.contract.mode, writing.contract.key_valid_seconds) == (RecoveryMode.IDEMPOTENT, 3600)
    assert (reading.resource_key, writing.resource_key) == ("host:h", "host:g")
    assert (reading.needs_permission, writing.needs_permission) == (False, True)
    assert (reading.writes_workspace, writing.writes_workspace) == (False, True)
    assert reading.contract.digest == writing.contract.digest
    assert (reading.contract.contract_id, reading.contract.version) == ("http", 3)


@pytest.mark.parametrize("answer", ["sometimes", None, "idempotent"])
def test_a_contract_that_cannot_be_told_refuses_the_call(answer: str | None) -> None:
    """`idempotent` cannot be told without the time for which a key is known."""

    @tool(recovery=lambda arguments: answer)  # type: ignore[arg-type, return-value]
    def odd(n: int) -> None: ...

    mismatch = FunctionCatalog([odd]).bind("odd", {"n": 1})
    assert isinstance(mismatch, SchemaMismatch)
    assert "contract cannot be told" in mismatch.detail


def test_a_contract_that_raises_refuses_the_call() -> None:
    @tool(resource_key=lambda arguments: str(arguments["nothing"]))
    def odd(n: int) -> None: ...

    assert isinstance(FunctionCatalog([odd]).bind("odd", {"n": 1}), SchemaMismatch)


def test_a_synchronous_function_runs_with_the_stored_arguments(context: ToolContext) -> None:
    call = bind(greet, name="A")
    assert isinstance(call.implementation, SyncCall)
    assert call.implementation.run({"name": "B", "times": 2}, context) == "Hello BHello B"


def test_an_asynchronous_function_runs_on_the_loop_with_its_key(context: ToolContext) -> None:
    call = bind(work, n=1)
    assert isinstance(call.implementation, AsyncCall)
    assert call.life is Life.TASK
    assert call.contract.repeat_free
    run = call.implementation.run

    async def main() -> object:
        return await run({"n": 2}, context)

    assert anyio.run(main) == "key-1:2"


@pytest.mark.parametrize(
    ("declared", "life"),
    [
        ({}, Life.TASK),
        ({"timeout_seconds": 5}, Life.SUPERVISED),
        ({"timeout_seconds": 5, "supervised": False}, Life.TASK),
        ({"timeout_seconds": 5, "recovery": "replay_safe"}, Life.TASK),
        ({"supervised": True}, Life.SUPERVISED),
        ({"supervised": True, "recovery": "replay_safe"}, Life.SUPERVISED),
    ],
)
def test_a_synchronous_tool_with_a_time_out_runs_supervised_unless_it_opts_out(
    declared: dict[str, Any], life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("safepoint.adapters.tools.function_tool.check_importable", lambda function: None)

    def some(n: int) -> None: ...

    assert bind(tool(**declared)(some), n=1).life is life


def test_a_time_out_alone_does_not_take_an_asynchronous_tool_off_the_loop() -> None:
    assert bind(work, n=1).timeout_seconds == 5
    assert bind(work, n=1).life is Life.TASK


def test_a_function_that_no_other_process_can_find_cannot_run_supervised() -> None:
    @tool(timeout_seconds=5)
    def inside(n: int) -> None: ...

    with pytest.raises(ToolDefinitionError, match="declare supervised=False"):
        FunctionCatalog([inside])


def test_a_tool_that_may_turn_out_to_be_supervised_must_be_found_too() -> None:
    @tool(timeout_seconds=5, recovery=mode_of, key_valid_seconds=5)
    def inside(method: str) -> None: ...

    with pytest.raises(ToolDefinitionError, match="top of a module"):
        FunctionCatalog([inside])


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        ({"recovery": "sometimes"}, "no recovery mode"),
        ({"recovery": "idempotent"}, "needs key_valid_seconds"),
        ({"recovery": "reconcile", "key_valid_seconds": 5}, "for idempotent only"),
        ({"version": 0}, "version must be more than 0"),
        ({"timeout_seconds": 0}, "timeout_seconds must be more than 0"),
        ({"timeout_seconds": float("nan")}, "timeout_seconds must be more than 0"),
        ({"concurrency_limit": -1}, "concurrency_limit must be more than 0"),
    ],
)
def test_a_declaration_that_contradicts_itself_is_refused(declared: dict[str, Any], told: str) -> None:
    with pytest.raises(ToolDefinitionError, match=told):
        tool(**declared)(lambda: None)


def test_two_tools_cannot_have_one_name_and_a_name_is_bounded_text() -> None:
    with pytest.raises(ToolDefinitionError, match="another tool has this name"):
        FunctionCatalog([greet, tool(name="greet")(lambda: None)])
    for name in ("read\0file", "x" * 201):
        with pytest.raises(ToolDefinitionError, match="its name is empty, too long or holds control characters"):
            FunctionCatalog([tool(name=name)(lambda: None)])


def test_what_a_tool_raises_proves_nothing_unless_its_type_says_so() -> None:
    class Declined(Exception): ...

    @tool(no_effect_errors=(Declined,))
    def pay() -> None: ...

    call = bind(pay)
    for harmless in (Declined("no"), RefusedWithoutEffect("no")):
        assert (call.raised(harmless).effect, call.raised(harmless).code) == (
            Effect.NONE,
            ResponseCode.REFUSED_WITHOUT_EFFECT,
        )
    assert (call.raised(ValueError("x")).effect, call.raised(ValueError("x")).code) == (
        Effect.UNKNOWN,
        ResponseCode.TOOL_RAISED,
    )
    assert call.raised(SystemExit(1)).effect is Effect.UNKNOWN


def test_an_exception_that_cannot_say_what_it_is_is_still_recorded() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert "Mute" in str(bind(greet, name="A").raised(Mute()).result)


def test_a_tool_that_only_reads_never_has_an_effect() -> None:
    call = bind(fetch, host="h")
    for prepared in (call.returned("x"), call.raised(ValueError()), call.timed_out(), call.unformatted(1.0)):
        assert prepared.effect is Effect.NONE


def test_a_formatter_makes_json_and_its_failure_does_not_undo_the_effect() -> None:
    @tool(format_result=sorted)
    def numbers() -> set[int]:
        return {2, 1}

    call = bind(numbers)
    assert call.returned({2, 1}).result == [1, 2]
    broken = call.returned({1, "a"})
    assert (broken.code, broken.effect) == (ResponseCode.RESULT_NOT_STRICT_JSON, Effect.DONE)
    assert "TypeError" in str(broken.result)


def test_evidence_is_computed_from_arguments_and_workspace(tmp_path: Path) -> None:
    @tool(recovery="reconcile", evidence=lambda arguments, workspace: {"at": str(workspace.path / arguments["path"])})
    def write(path: str) -> None: ...

    assert bind(write, path="a").evidence(Workspace(tmp_path, None)) == {"at": str(tmp_path / "a")}


def test_digests_of_schema_and_contract_are_what_they_were() -> None:
    """Field report r3-054: what is stored in profiles must be found again by the next release."""
    specs = FunctionCatalog([work, greet, fetch]).tools()
    assert {spec.name: (spec.schema_digest, spec.contract_digest) for spec in specs} == GOLDEN_DIGESTS


def test_only_what_the_owner_declares_changes_the_contracts_digest() -> None:
    def some(n: int) -> None:
        """Some."""

    def of(function: Callable[..., Any]) -> str:
        return FunctionCatalog([function]).tools()[0].contract_digest

    base = of(tool(some))
    changes: list[dict[str, Any]] = [
        {"recovery": "replay_safe"},
        {"version": 2},
        {"contract_id": "other"},
        {"repeat_free": True},
        {"concurrency_limit": 1},
        {"resource_key": "r"},
        {"no_effect_errors": (ValueError,)},
        {"writes_workspace": False},
    ]
    digests = {of(tool(**change)(some)) for change in changes}
    assert len(digests | {base}) == len(changes) + 1
    assert of(tool(description="in other words")(some)) == base
