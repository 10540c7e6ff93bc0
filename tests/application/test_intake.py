"""A finished model step becomes facts: fresh call ids where the provider's cannot be used, strict arguments. SPEC 4."""

from __future__ import annotations

from typing import Any

import pytest

from safepoint.adapters.memory.event_store import MemoryStore
from safepoint.adapters.memory.failpoints import RecordingFailpoints
from safepoint.adapters.memory.ids import CountingIds
from safepoint.adapters.system.clock import SystemClock
from safepoint.application.async_ledger import AsyncLedger
from safepoint.application.intake import Step, step_of
from safepoint.application.ledger import Ledger, Receipt
from safepoint.application.ownership import Owned
from safepoint.application.run_recorder import RunRecorder
from safepoint.application.spines import Spines
from safepoint.domain.events.event import Event
from safepoint.domain.events.model import ModelStepCompleted, ModelText, ModelThinking, Usage
from safepoint.domain.reasons import ResponseCode
from safepoint.domain.tool_arguments import ARGUMENTS_BYTES_MAX
from safepoint.ports.model_step import CallBlock, StepFinished, TextBlock, ThinkingBlock
from safepoint.ports.provider_failures import ProviderFailed, ProviderStreamIncomplete

from ..domain.facts import Facts, run_of, sealed


def taken_in(*blocks: Any, given: tuple[str, ...] = (), finish: str = "stop", **fields: Any) -> Step:
    """The facts of a step in a run that has used these call ids before."""
    r = Facts()
    history: list[Event] = [r.opened(), r.user(), *r.step(*given)]
    store, ids = MemoryStore(), CountingIds()
    ledger = AsyncLedger(Ledger(store.events, store.owners))
    begun = Receipt(tuple(sealed(history)))
    recorder = RunRecorder(
        ledger, Spines(SystemClock(), ids), RecordingFailpoints(), r.identity, Owned(*r.guard), begun
    )
    return step_of(StepFinished(blocks=blocks, finish_reason=finish, **fields), recorder, run_of(history), ids)


def call(call_id: str | None = "c", arguments: str = "{}", tool: str = "write", **more: Any) -> CallBlock:
    return CallBlock(call_id, tool, arguments, **more)


def test_a_step_keeps_the_order_of_its_blocks_and_ends_with_its_completion() -> None:
    step = taken_in(
        ThinkingBlock("hm", "c2ln", {"a": 1}),
        TextBlock("one", {"b": 2}),
        call("x", '{"p": 1}', provider_options={"o": 3}),
        TextBlock("two"),
        finish="tool_calls",
        model="m-1",
        provider_response_id="r-1",
        usage=Usage(input_tokens=3, output_tokens=5),
    )
    thinking, one, called, two, completed = step.facts
    assert isinstance(thinking, ModelThinking)
    assert (thinking.text, thinking.signature, thinking.provider_options) == ("hm", "c2ln", {"a": 1})
    assert isinstance(one, ModelText)
    assert (one.text, one.provider_options) == ("one", {"b": 2})
    assert step.calls == (called,)
    assert (step.calls[0].args, step.calls[0].provider_call_id, step.calls[0].provider_options) == (
        {"p": 1},
        "x",
        {"o": 3},
    )
    assert isinstance(two, ModelText)
    assert step.text == "onetwo"
    assert isinstance(completed, ModelStepCompleted)
    assert (completed.finish_reason, completed.model, completed.provider_response_id) == ("tool_calls", "m-1", "r-1")
    assert completed.usage == Usage(input_tokens=3, output_tokens=5)
    assert {fact.step_id for fact in step.facts} == {completed.step_id}
    assert len({fact.event_id for fact in step.facts}) == 5


@pytest.mark.parametrize("offered", [None, "", "used", "a\n", "\x00", "x" * 201, "\u2028", "\ud800"], ids=ascii)
def test_an_id_that_cannot_be_used_gets_a_fresh_one_and_stays_beside_it(offered: str | None) -> None:
    if offered == "\ud800":  # not even the provider's own can be stored then
        with pytest.raises(ProviderFailed):
            taken_in(call(offered))
        return
    (called,) = taken_in(call(offered), given=("used",)).calls
    assert called.call_id not in {offered, "used"}
    assert called.call_id
    assert called.provider_call_id == offered


def test_an_id_that_is_fresh_in_the_run_is_kept() -> None:
    (called,) = taken_in(call("toolu_1"), given=("used",)).calls
    assert (called.call_id, called.provider_call_id) == ("toolu_1", "toolu_1")


def test_an_id_that_a_provider_repeats_names_its_first_call_alone() -> None:
    first, second, third = taken_in(call("x"), call("x"), call("x")).calls
    assert first.call_id == "x"
    assert len({first.call_id, second.call_id, third.call_id}) == 3
    assert {one.provider_call_id for one in (first, second, third)} == {"x"}


@pytest.mark.parametrize(
    ("text", "args"),
    [("{}", {}), ('{"a": [1, null]}', {"a": [1, None]}), ("[1]", [1]), ("null", None), ('"x"', "x")],
)
def test_strict_json_becomes_arguments(text: str, args: Any) -> None:
    step = taken_in(call("x", text))
    assert (step.calls[0].args, step.calls[0].args_text, step.unreadable) == (args, None, {})


@pytest.mark.parametrize("text", ["", "{", '{"a": NaN}', '{"a": 1, "a": 2}', '{"a": "\\ud800"}', "{}{}", "{'a': 1}"])
def test_anything_else_is_kept_as_text_and_never_mended(text: str) -> None:
    step = taken_in(call("x", text))
    (called,) = step.calls
    assert (called.args, called.args_text) == (None, text)
    assert step.unreadable[called.call_id].code is ResponseCode.ARGS_NOT_STRICT_JSON


def test_arguments_that_are_too_large_are_kept_in_part_and_say_so() -> None:
    step = taken_in(call("x", '{"a": "' + "x" * ARGUMENTS_BYTES_MAX + '"}'))
    (called,) = step.calls
    assert called.args is None
    assert called.args_text is not None
    assert len(called.args_text) <= ARGUMENTS_BYTES_MAX
    assert step.unreadable[called.call_id].code is ResponseCode.ARGS_TOO_LARGE


def test_a_step_without_a_finish_reason_was_not_finished() -> None:
    with pytest.raises(ProviderStreamIncomplete):
        taken_in(TextBlock("half an answ"), finish="")


@pytest.mark.parametrize(
    "block",
    [
        call(tool=""),
        call(tool="rm\n"),
        call(tool="x" * 201),
        TextBlock("\ud800"),
        ThinkingBlock("\ud800"),
        TextBlock("x", {"a": {1, 2}}),  # type: ignore[dict-item]
        TextBlock("x" * 1_100_000),
    ],
    ids=["no tool name", "a control character", "a long name", "a surrogate", "in thinking", "no JSON", "too large"],
)
def test_a_step_that_cannot_be_recorded_whole_is_not_recorded_at_all(block: Any) -> None:
    with pytest.raises(ProviderFailed) as failed:
        taken_in(TextBlock("before"), block, TextBlock("after"))
    assert "rm" not in failed.value.detail
