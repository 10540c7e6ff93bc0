"""What a program is handed is its own: whatever becomes of it, the model is shown what is committed. ADR 0091."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import safepoint
from safepoint.adapters.memory.model_provider import PlannedModel, calls, says
from safepoint.adapters.memory.permission_gate import ScriptedGate
from safepoint.domain import canonical
from safepoint.ports.model_provider import ModelRequest, StartProof
from safepoint.ports.model_step import ModelPart, TextBlock, ThinkingBlock
from safepoint.ports.permission_gate import Allowed, PermissionAnswer, PermissionRequest

from ...changing import CHANGED, change_all
from .loops import opened, recording

FORMATS: Any = ("openai-chat", "openai-responses", "anthropic")
JSON = st.recursive(
    st.integers(0, 9) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("xyz", max_size=2), inner, max_size=2),
    max_leaves=6,
)
OBJECT = st.dictionaries(st.text("xyz", min_size=1, max_size=2), JSON, max_size=3)


class Gone(Exception):
    """The program ends here."""


def step_of(number: int, **arguments: Any) -> Any:
    """A step with all that has options of its provider, and one call."""
    call = safepoint.tool_call(f"c{number}", "put", arguments)
    thought = ThinkingBlock("Well.", None, {"type": "reasoning", "id": f"rs_{number}", "summary": [{"text": "Well."}]})
    options: Any = {
        "anthropic_block": {"citations": [{"title": "bill"}]},
        "responses_item": {"id": f"msg_{number}", "annotations": [{"type": "bill"}]},
    }
    return safepoint.step(thought, TextBlock("I put.", options), call)


def views(run: safepoint.RecordedRun) -> list[Any]:
    """Each way in which a run shows its history."""
    return [run.history(), *(run.history(one) for one in FORMATS)]


def read_again(folder: Path) -> list[Any]:
    """The same as a program reads it that was not there."""
    with safepoint.open_sync(folder / "store.sqlite", workspace=folder, tools=[put_promised()]) as runtime:
        plan = runtime.session("bill").plan()
    assert isinstance(plan, safepoint.Continue)
    items = plan.replay.items
    return [items, *(safepoint.messages(items, one) for one in FORMATS)]


def put_promised() -> Any:
    return safepoint.contract("put", recovery="never_auto_retry")


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(OBJECT, JSON), min_size=1, max_size=2), st.booleans())
def test_whatever_is_changed_the_model_is_shown_what_is_stored(said: list[tuple[Any, Any]], block: bool) -> None:
    """The program changes all that it is handed, and all that it gave, as soon as it has or has given it."""
    shown: list[Any] = []

    async def turn(folder: Path) -> None:
        async with (
            safepoint.open(folder / "store.sqlite", workspace=folder, tools=[put_promised()]) as runtime,
            runtime.session("bill").record("Put.") as run,
        ):
            for number, (document, answer) in enumerate(said):
                finished = step_of(number, doc=document)
                step = await run.model_step(finished)
                change_all((step, finished, document))

                def put(doc: Any, answer: Any = answer) -> Any:
                    change_all(doc)
                    return answer

                answered = await carried_out(run, f"c{number}", put, block=block)
                change_all((answered, answer, run.answer(f"c{number}")))
                change_all(views(run))
            shown.append(views(run))
            raise Gone

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        before = [canonical.encode(answer) for _, answer in said]
        with pytest.raises(Gone):
            anyio.run(turn, folder)
        assert shown == [read_again(folder)]
        assert CHANGED not in repr(shown)
        results = [item.result for item in shown[0][0] if item.kind == "result"]
        assert [canonical.encode(one) for one in results] == before


async def carried_out(run: safepoint.RecordedRun, call: str, put: Callable[..., Any], *, block: bool) -> Any:
    """The committed answer of a call that was carried out by a function, or in a block."""
    if not block:
        return await run.call(call, put)
    async with run.tool_call(call) as operation:
        change_all((operation.call, operation.arguments))
        answer = put(**operation.arguments)
        operation.result(answer)
        change_all(answer)
    change_all(operation.answer)
    return operation.answer


def test_a_call_that_was_changed_is_not_carried_out_and_is_as_it_was(tmp_path: Path) -> None:
    """What is meant by it is not known: what was recorded, or what it is now."""
    paid: list[int] = []

    def pay(amount: int) -> None:
        paid.append(amount)

    async def main() -> None:
        async with recording(tmp_path) as runtime, runtime.session("bill").record("Pay.") as run:
            step = await run.model_step(safepoint.step(safepoint.tool_call("c1", "pay", {"amount": 5})))
            call: Any = step.calls[0]
            call.args["amount"] = 5000
            for wanted in (partial(run.call, call, pay), partial(run.decline, call, "no")):
                with pytest.raises(ValueError, match=r"call c1 of pay is not as it was recorded.*give its id"):
                    await wanted()
            with pytest.raises(ValueError, match="not as it was recorded"):
                run.tool_call(call)
            assert run.answer(call) is None
            await run.call(call.call_id, pay)
            await run.model_step(safepoint.step("Paid."))

    anyio.run(main)
    assert paid == [5]


def test_the_synchronous_twin_hands_out_copies_too(tmp_path: Path) -> None:
    with safepoint.open_sync(tmp_path / "store.sqlite", workspace=tmp_path, tools=[put_promised()]) as runtime:
        session = runtime.session("bill")
        with suppress(Gone), session.record("Put.") as run:
            change_all(run.model_step(step_of(0, doc={})))
            change_all(run.call("c0", lambda doc: {"kept": [doc]}))
            change_all([run.answer("c0"), run.history(), *(run.history(one) for one in FORMATS)])
            shown = [run.history(), *(run.history(one) for one in FORMATS)]
            raise Gone
    assert shown == read_again(tmp_path)
    assert CHANGED not in repr(shown)


def test_messages_made_of_a_plan_are_not_the_plan(tmp_path: Path) -> None:
    with safepoint.open_sync(tmp_path / "store.sqlite", workspace=tmp_path, tools=[put_promised()]) as runtime:
        session = runtime.session("bill")
        with suppress(Gone), session.record("Put.") as run:
            run.model_step(step_of(0, doc={"n": [1]}))
            run.call("c0", lambda doc: [{"type": "text", "text": "kept"}])
            raise Gone
        plan = session.plan()
        assert isinstance(plan, safepoint.Continue)
        before = repr(plan.replay.items)
        assert change_all([safepoint.messages(plan.replay, one) for one in FORMATS]) > 10
        assert repr(plan.replay.items) == before
        change_all(plan.replay.items)
        again = session.plan()
        assert isinstance(again, safepoint.Continue)
        assert repr(again.replay.items) == before


class ChangingModel(PlannedModel):
    """Changes the history that it is shown, once it has looked at it."""

    def __init__(self, *steps: Any) -> None:
        super().__init__(steps)
        self.shown: list[str] = []

    async def stream(self, request: ModelRequest, proof: StartProof) -> AsyncGenerator[ModelPart, None]:
        self.shown.append(repr(request.history))
        parts = [part async for part in super().stream(request, proof)]
        change_all(request.history)
        for part in parts:
            yield part


class ChangingGate(ScriptedGate):
    """Changes the question, once it has answered it."""

    def by_policy(self, request: PermissionRequest) -> PermissionAnswer | None:
        answer = super().by_policy(request)
        change_all(request)
        return answer


def test_in_our_loop_model_gate_and_tool_change_nothing(tmp_path: Path) -> None:
    def key_of(arguments: Any) -> str:
        change_all(arguments["doc"])
        return "all"

    def evidence(arguments: Any, workspace: Any) -> Any:
        change_all(arguments["doc"])
        return {"found": []}

    found: list[Any] = []
    asked: Any = {"doc": {"n": [1]}}

    @safepoint.tool(recovery="reconcile", resource_key=key_of, evidence=evidence)
    def put(context: safepoint.ToolContext, doc: dict[str, Any]) -> Any:
        """Put."""
        found.append((repr(doc), repr(context.evidence)))
        change_all((doc, context.evidence))
        return doc

    @safepoint.tool(recovery="replay_safe")
    def look() -> str:
        """Look."""
        return "seen"

    model = ChangingModel(calls(("put", asked)), calls(("look", {})), says("Put."))
    gate = ChangingGate({"put": Allowed("a person")})

    async def main() -> None:
        async with opened(tmp_path, model, tools=[put, look], permission=gate) as runtime:
            session = runtime.session("bill")
            await session.run("Put.")
            async with session.record("And?") as run:
                assert [item.args for item in run.history() if item.kind == "call"] == [asked, {}]
                run.needs_no_answer()

    anyio.run(main)
    assert found == [("{'n': [1]}", "{'found': []}")]
    assert len(model.shown) == 3
    assert all(f"args={asked}" in shown for shown in model.shown[1:])


def test_a_promise_that_changes_the_arguments_changes_nothing(tmp_path: Path) -> None:
    def key_of(arguments: Any) -> str:
        change_all(arguments)
        return "all"

    promised = safepoint.contract("pay", recovery="never_auto_retry", resource_key=key_of)
    paid: list[Any] = []

    async def main() -> None:
        async with recording(tmp_path, tools=[promised]) as runtime, runtime.session("bill").record("Pay.") as run:
            step = await run.model_step(safepoint.step(safepoint.tool_call("c1", "pay", {"amount": 5})))
            await run.call(step.calls[0], lambda **arguments: paid.append(arguments))
            (call,) = (item for item in run.history() if item.kind == "call")
            assert call.args == {"amount": 5}
            await run.model_step(safepoint.step("Paid."))

    anyio.run(main)
    assert paid == [{"amount": 5}]
