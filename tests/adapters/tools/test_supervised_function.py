"""Functions that run in a process of their own, by a real supervisor."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TypeAlias

import pytest

from safepoint.adapters.process.supervisor import ProcessSupervisor
from safepoint.adapters.tools.catalog import FunctionCatalog
from safepoint.domain.events.event import Json
from safepoint.domain.events.tool import Effect
from safepoint.domain.reasons import ResponseCode
from safepoint.ports.tool_catalog import BoundCall, Settled, SupervisedCall, ToolContext

Run: TypeAlias = Callable[..., Settled]


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    return importlib.import_module("example_tools")


@pytest.fixture
def run(tools: ModuleType, context: ToolContext, tmp_path: Path) -> Run:
    catalog = FunctionCatalog([tools.pay, tools.pay_later, tools.look])
    supervisor = ProcessSupervisor(tmp_path / "store.locks")

    def run_supervised(name: str, **arguments: Json) -> Settled:
        bound = catalog.bind(name, arguments)
        assert isinstance(bound, BoundCall), bound
        assert isinstance(bound.implementation, SupervisedCall)
        slot = supervisor.prepare(context.operation_id)
        slot.start(bound.implementation.work(arguments, context))
        ended = slot.wait(60.0)
        assert ended is not None
        return bound.implementation.settle(ended, context)

    return run_supervised


def payments(context: ToolContext) -> str:
    path = context.workspace / "payments"
    return path.read_text() if path.exists() else ""


def test_it_gets_typed_arguments_and_its_key_in_another_process(run: Run, context: ToolContext) -> None:
    settled = run("pay", amount=3, how="with pid", currency="EUR")
    assert settled.left_running is None
    assert isinstance(settled.result.result, dict)
    paid = settled.result.result["paid"]
    assert isinstance(paid, list)
    assert paid[:2] == [3, "EUR"]
    assert paid[2] != os.getpid()
    assert (settled.result.is_error, settled.result.effect) == (False, Effect.DONE)
    assert payments(context) == "key-1 3\n"


def test_an_asynchronous_function_can_run_so_too(run: Run, context: ToolContext) -> None:
    assert run("pay_later", amount=4).result.result == 4
    assert payments(context) == "4\n"


@pytest.mark.parametrize("how", ["declined", "refused"])
def test_a_typed_refusal_crosses_the_border_as_one(run: Run, context: ToolContext, how: str) -> None:
    result = run("pay", amount=3, how=how).result
    assert (result.effect, result.code) == (Effect.NONE, ResponseCode.REFUSED_WITHOUT_EFFECT)
    assert payments(context) == ""


def test_any_other_exception_leaves_the_effect_unknown(run: Run, context: ToolContext) -> None:
    result = run("pay", amount=3, how="raised").result
    assert (result.effect, result.code) == (Effect.UNKNOWN, ResponseCode.TOOL_RAISED)
    assert "ValueError: boom" in str(result.result)
    assert payments(context) == "key-1 3\n"


def test_a_process_that_was_killed_leaves_the_effect_unknown(run: Run) -> None:
    result = run("pay", amount=3, how="killed").result
    assert (result.effect, result.is_error) == (Effect.UNKNOWN, True)
    assert "signal 9" in str(result.result)


def test_a_result_that_is_no_json_does_not_undo_the_effect(run: Run) -> None:
    result = run("pay", amount=3, how="unformattable").result
    assert (result.effect, result.code) == (Effect.DONE, ResponseCode.RESULT_NOT_STRICT_JSON)


@pytest.mark.parametrize(("fail", "is_error"), [(False, False), (True, True)])
def test_what_only_reads_has_no_effect_however_it_ends(run: Run, fail: bool, is_error: bool) -> None:
    result = run("look", fail=fail).result
    assert (result.effect, result.is_error) == (Effect.NONE, is_error)


def test_a_function_that_cannot_be_loaded_there_has_done_nothing(
    run: Run, tools: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools.pay, "__module__", "no_such_module")
    result = run("pay", amount=3).result
    assert (result.effect, result.code) == (Effect.NONE, ResponseCode.REFUSED_WITHOUT_EFFECT)


SCRIPT = """
from pathlib import Path
import sys, threading
from safepoint.adapters.process.supervisor import ProcessSupervisor
from safepoint.adapters.tools.catalog import FunctionCatalog
from safepoint.adapters.tools.decorator import tool
from safepoint.adapters.memory.failpoints import RecordingFailpoints
from safepoint.domain.identifiers import ExecutionIdentity
from safepoint.ports.tool_catalog import ToolContext

class Declined(Exception):
    pass

@tool(timeout_seconds=30, no_effect_errors=(Declined,))
def pay(amount: int) -> int:
    if amount > 5:
        raise Declined("too much")
    return amount + 1

if __name__ == "__main__":
    identity = ExecutionIdentity("s", "r", "t", "i")
    context = ToolContext(identity, "o", "k", Path.cwd(), threading.Event(), print, RecordingFailpoints())
    catalog = FunctionCatalog([pay])
    supervisor = ProcessSupervisor(Path(sys.argv[1]))
    for amount in (3, 6):
        call = catalog.bind("pay", {"amount": amount})
        slot = supervisor.prepare(f"operation-{amount}")
        slot.start(call.implementation.work({"amount": amount}, context))
        result = call.implementation.settle(slot.wait(60), context).result
        print(result.result, result.effect)
"""


def test_a_tool_in_the_users_own_script_is_found_there(tmp_path: Path) -> None:
    """Its own exception class is recognised too, although the script has another module name in the other process."""
    script = tmp_path / "agent.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), str(tmp_path / "locks")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.stderr == ""
    assert ended.stdout.splitlines() == ["4 done", "The tool refused before it did anything: too much none"]


def test_the_evidence_crosses_the_border_too(run: Run, context: ToolContext) -> None:
    object.__setattr__(context, "evidence", {"a": [1, None]})
    assert run("look", fail=False).result.result == {"a": [1, None]}
