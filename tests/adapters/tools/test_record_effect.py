"""The stand-in for a payment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from safepoint.adapters.memory.failpoints import RecordingFailpoints
from safepoint.adapters.tools.builtin import builtin_tools, record_effect
from safepoint.adapters.tools.catalog import FunctionCatalog
from safepoint.domain.errors import RefusedWithoutEffect
from safepoint.domain.events.event import Json
from safepoint.domain.events.tool import Life, RecoveryMode
from safepoint.ports.tool_catalog import BoundCall, ToolContext


def bind(**arguments: Json) -> BoundCall:
    bound = FunctionCatalog([record_effect]).bind("record_effect", {"path": "p", "line": "l", **arguments})
    assert isinstance(bound, BoundCall), bound
    return bound


@pytest.mark.parametrize("mode", RecoveryMode)
def test_the_contract_that_is_asked_for_is_declared(mode: RecoveryMode) -> None:
    call = bind(contract=mode.value)
    assert (call.contract.mode, call.life) == (mode, Life.TASK)


def test_it_is_never_retried_by_default() -> None:
    assert bind().contract.mode is RecoveryMode.NEVER_AUTO_RETRY


def test_effects_on_two_files_may_happen_at_once() -> None:
    assert bind(path="a").resource_key != bind(path="b").resource_key
    assert bind(path="a", line="x").resource_key == bind(path="a", line="y").resource_key


@pytest.mark.parametrize(("path", "writes"), [("effects", True), ("/tmp/effects", False)])
def test_only_a_path_below_the_workspace_counts_as_writing_it(path: str, writes: bool) -> None:
    assert bind(path=path).writes_workspace is writes


def test_a_line_is_appended_durably_anywhere(context: ToolContext, workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "effects").write_text("earlier\n")
    assert record_effect(context, str(tmp_path / "effects"), "paid 3 €") == {"recorded": "paid 3 €"}
    record_effect(context, "effects", "inside")
    assert (tmp_path / "effects").read_text() == "earlier\npaid 3 €\n"
    assert (workspace / "effects").read_text() == "inside\n"


def test_the_effect_happens_between_its_two_failpoints(
    context: ToolContext, workspace: Path, failpoints: RecordingFailpoints
) -> None:
    seen: list[tuple[str, str]] = []
    failpoints.at_hit = lambda hit: seen.append((hit.rpartition(".")[2], (workspace / "e").read_text()))
    record_effect(context, "e", "x")
    assert seen == [("before_effect", ""), ("after_effect", "x\n")]


def test_the_same_key_appends_the_same_line_once_wherever_a_delivery_was_cut_off(
    context: ToolContext, workspace: Path
) -> None:
    def deliver(key: str, line: str = "paid") -> Json:
        return record_effect(replace(context, idempotency_key=key), "e", line, "idempotent")

    assert deliver("k1") == deliver("k1") == {"recorded": "paid"}
    assert (workspace / "e").read_text() == "paid\n"
    deliver("k2")
    assert (workspace / "e").read_text() == "paid\npaid\n", "another key is another effect"
    (workspace / "e").write_text("paid\n")  # killed after it noted the key and before the line
    deliver("k2")
    deliver("k2")
    assert (workspace / "e").read_text() == "paid\npaid\n"
    (workspace / "e.keys").write_text((workspace / "e.keys").read_text() + '{"key":"k3",')  # killed while it noted it
    deliver("k3")
    deliver("k3")
    assert (workspace / "e").read_text() == "paid\npaid\npaid\n"


@pytest.mark.parametrize(
    ("path", "line"), [("e", "two\nlines"), ("e", "two\rlines"), ("no/such/folder", "x"), ("", "x")]
)
def test_what_cannot_be_one_line_of_a_file_is_refused(
    context: ToolContext, workspace: Path, path: str, line: str
) -> None:
    with pytest.raises(RefusedWithoutEffect):
        record_effect(context, path, line)
    assert list(workspace.iterdir()) == []


def test_it_is_offered_with_the_scripted_provider_only() -> None:
    names = {
        scripted: [spec.name for spec in FunctionCatalog(builtin_tools(scripted=scripted)).tools()]
        for scripted in (True, False)
    }
    changing = ["write_file", "edit_file", "append_file", "delete_file", "move_file"]
    assert names[False] == ["read_file", "list_files", *changing, "run_shell"]
    assert names[True] == [*names[False], "record_effect"]
