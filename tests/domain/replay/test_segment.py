"""One segment alone: what a resume keeps of a run, what it trims, and what blocks a history. SPEC section 12."""

from __future__ import annotations

from safepoint.domain.events.run import RunStatus
from safepoint.domain.events.tool import Effect, Statement, ToolAttested, ToolResponded
from safepoint.domain.reasons import ReplayBlock
from safepoint.domain.replay.legality import check_provider_legality

from .story import Story, call, say, shape, think


def test_calls_and_results_stand_in_call_order_next_to_their_step() -> None:
    run = Story().user("U").step(say("a"), call("A"), call("B"), call("C"))
    run.dispatch("C", "B", "A").outcome("C", "A", "B").end()
    assert shape(run.resumed().items) == [
        "user U", "text a", "call A", "call B", "call C", "result A", "result B", "result C",
    ]  # fmt: skip


def test_model_text_after_the_last_result_is_trimmed_and_listed() -> None:
    run = Story().user("U").step(call("A")).run_tool("A").step(think("t", "sig"), say("half an answer")).end()
    segment = run.resumed()
    assert shape(segment.items) == ["user U", "call A", "result A"]
    assert segment.trimmed == (run.events[6].event_id, run.events[7].event_id)


def test_an_undispatched_call_at_the_end_is_trimmed() -> None:
    run = Story().user("U").step(say("now"), call("A"))
    segment = run.resumed()
    assert shape(segment.items) == ["user U"]
    assert len(segment.trimmed) == 2


def test_a_continuation_that_came_to_nothing_contributes_nothing() -> None:
    source = Story("r0").user().end().ref()
    segment = Story("r1", source=source).step(say("I was about to")).end().resumed()
    assert not segment.contributes
    assert len(segment.trimmed) == 1


def test_a_message_that_arrived_while_a_step_was_open_follows_its_last_result() -> None:
    run = Story().user("U").step(call("A"), call("B")).dispatch("A", "B")
    run.outcome("A").user("also this", steering=True).host("by the way").outcome("B").step(say("ok")).user("V").end()
    assert shape(run.resumed().items) == [
        "user U", "call A", "call B", "result A", "result B", "user also this", "host by the way", "text ok", "user V",
    ]  # fmt: skip


def test_a_response_recorded_after_the_terminal_event_stands_where_its_step_is() -> None:
    run = Story().user("U").step(call("A")).dispatch("A").user("V", steering=True).end().settle("A")
    assert shape(run.resumed().items) == ["user U", "call A", "result A", "user V"]


def test_an_unmatched_call_before_a_later_step_is_a_gap() -> None:
    run = Story().user("U").step(call("A")).step(call("B")).run_tool("B")
    segment = run.resumed()
    assert segment.blocked is ReplayBlock.PROVIDER_REPLAY_NON_SUFFIX_GAP
    assert segment.blocking == (run.events[2].event_id,)
    assert segment.items == ()


def test_messages_after_an_unmatched_call_are_no_gap() -> None:
    segment = Story().user("U").step(call("A")).user("V", steering=True).host("W").resumed()
    assert shape(segment.items) == ["user U", "user V", "host W"]
    assert len(segment.trimmed) == 1


def test_an_indeterminate_operation_blocks() -> None:
    run = Story().user("U").step(call("A")).dispatch("A").end()
    segment = run.resumed()
    assert segment.blocked is ReplayBlock.TOOL_RECOVERY_UNSETTLED
    assert segment.blocking == (run.events[4].event_id,)


def test_a_parked_operation_blocks() -> None:
    segment = Story().user("U").step(call("A")).dispatch("A").end().park("A").resumed()
    assert segment.blocked is ReplayBlock.TOOL_RECOVERY_UNSETTLED


def test_corruption_blocks_before_anything_else() -> None:
    segment = Story().user("U").step(call("A")).dispatch("A").outcome("A").outcome("A").end().resumed()
    assert segment.blocked is ReplayBlock.TOOL_RECOVERY_CORRUPTION


def test_a_user_message_that_says_nothing_blocks() -> None:
    assert Story().user("").end().resumed().blocked is ReplayBlock.PROVIDER_REPLAY_UNSUPPORTED


def test_terminal_facts_errors_and_partial_facts_are_not_replayed() -> None:
    run = Story().user("U").step(call("A")).run_tool("A").end(RunStatus.CANCELLED)
    kinds = {item.kind for item in run.resumed().items}
    assert kinds == {"user", "call", "result"}


def test_an_empty_text_is_not_shown_unless_it_carries_options() -> None:
    run = Story().user("U").step(say(""), say("", {"sig": 1}), call("A")).run_tool("A").end()
    items = run.resumed().items
    assert [item.event_id for item in items if item.kind == "text"] == [run.events[3].event_id]


def test_an_attested_result_says_who_attested_it() -> None:
    run = Story().user("U").step(call("A")).dispatch("A").end().attest("A", Statement.COMPLETED, "paid", by="Ada")
    (result,) = (item for item in run.resumed().items if item.kind == "result")
    assert result.result == {
        "note": "Completed, as attested by Ada; this was not observed by the program.",
        "result": "paid",
    }
    assert not result.is_error


def test_a_result_that_is_not_whole_says_so_to_the_model() -> None:
    run = Story().user("U").step(call("A")).dispatch("A")
    run.write(
        ToolResponded,
        call_id="A",
        tool_name="write_file",
        operation_id=run.operation("A"),
        result="begin",
        is_error=False,
        effect=Effect.DONE,
        code="result_too_large",
        original_length=600_000,
        original_digest="a" * 64,
    )
    assert run.end().resumed().items[-1].result == {  # type: ignore[union-attr]
        "note": "Only the beginning of the result is shown; the whole result had 600000 bytes.",
        "result": "begin",
    }


def test_an_attested_absence_is_an_error_that_says_so() -> None:
    run = Story().user("U").step(call("A")).dispatch("A").end().attest("A", Statement.NOT_EXECUTED, "no", by="Ada")
    (result,) = (item for item in run.resumed().items if item.kind == "result")
    assert result.is_error
    assert "attested by Ada" in str(result.result)


def test_a_statement_that_work_is_over_changes_no_answer() -> None:
    run = Story().user("U").step(call("A")).dispatch("A").end()
    run.attest("A", Statement.OVER, "x")
    run.events.pop()  # no response comes with it
    assert run.resumed().blocked is ReplayBlock.TOOL_RECOVERY_UNSETTLED


def test_an_answer_after_a_statement_that_work_is_over_is_nobodys_attestation() -> None:
    run = Story().user("U").step(call("A")).dispatch("A").end()
    run.write(ToolAttested, operation_id=run.operation("A"), statement=Statement.OVER, by="Ada", note="looked")
    assert run.settle("A", "done").resumed().items[-1].result == "done"  # type: ignore[union-attr]


def test_thinking_survives_byte_for_byte_before_its_calls() -> None:
    text, signature = "  a\u2028b\té😀 \\u0041", "c2ln//=="
    run = Story().user("U").step(think(text, signature, {"b": [1.5, None], "a": "x"}), call("A")).run_tool("A").end()
    thinking = run.resumed().items[1]
    assert (thinking.text, thinking.signature) == (text, signature)  # type: ignore[union-attr]
    assert list(thinking.provider_options) == ["b", "a"]  # type: ignore[union-attr, arg-type]


def test_r3_018_thinking_goes_with_the_call_that_is_left_out() -> None:
    """Providers refuse a reasoning item whose following item is missing."""
    run = Story().user("U").step(think("R", "sig"), call("A")).end()
    assert shape(run.resumed().items) == ["user U"]
    partly = Story().user("U").step(think("R", "sig"), call("A", provider_options={"id": 1}), call("B")).run_tool("A")
    segment = partly.end().resumed()
    assert shape(segment.items) == ["user U", "call A", "result A"]
    assert segment.items[1].provider_options is None  # type: ignore[union-attr]  # an item id without its reasoning
    assert segment.left_out == (partly.events[2].event_id,)
    assert segment.trimmed == (partly.events[4].event_id,)


def test_thinking_at_the_end_of_its_step_is_left_out() -> None:
    run = Story().user("U").step(think("a", "s"), call("A"), think("b", "s")).run_tool("A").step(think("c", "s"))
    segment = run.user("V").end().resumed()
    assert shape(segment.items) == ["user U", "thinking a", "call A", "result A", "user V"]
    assert len(segment.left_out) == 2


def test_what_is_trimmed_is_listed_once_and_not_as_left_out() -> None:
    run = Story().user("U").step(call("A")).run_tool("A").step(say("x"), think("c", "s")).end()
    segment = run.resumed()
    assert segment.trimmed == (run.events[6].event_id, run.events[7].event_id)
    assert segment.left_out == ()


def test_arguments_that_were_no_strict_json_are_shown_as_their_text() -> None:
    run = Story().user("U").step({**call("A"), "args": None, "args_text": "{oops"}).refuse("A").end()
    item = run.resumed().items[1]
    assert (item.args, item.args_text) == (None, "{oops")  # type: ignore[union-attr]


def test_r3_015_parallel_siblings_all_keep_their_results() -> None:
    """Siblings stored one below the other, as a tree, are one step by its id."""
    run = Story().user("U").step(call("A"), call("B"), call("C")).dispatch("A", "B", "C").outcome("A", "B", "C")
    items = run.step(say("M")).user("V").end().resumed().items
    assert [item.call_id for item in items if item.kind == "call"] == ["A", "B", "C"]
    assert [item.call_id for item in items if item.kind == "result"] == ["A", "B", "C"]
    assert check_provider_legality(items) is None


def test_r3_010_what_was_written_between_a_call_and_its_result_does_not_land_inside_the_pair() -> None:
    run = Story().user("U").step(call("A")).dispatch("A").host("summary").outcome("A").step(say("M")).end()
    assert shape(run.resumed().items) == ["user U", "call A", "result A", "host summary"]


def test_r3_041_two_finished_steps_before_the_next_request_are_both_whole() -> None:
    run = Story().user("U").step(call("A")).run_tool("A").step(call("B")).run_tool("B").end()
    segment = run.resumed()
    assert shape(segment.items) == ["user U", "call A", "result A", "call B", "result B"]
    assert segment.trimmed == ()


def test_r3_005_a_tool_that_raised_is_a_pair_with_an_error() -> None:
    run = Story().user("U").step(call("A")).dispatch("A")
    segment = run.outcome("A", result="boom", is_error=True, effect=Effect.UNKNOWN).end().resumed()
    assert shape(segment.items) == ["user U", "call A", "result A"]
    assert segment.items[-1].is_error  # type: ignore[union-attr]


def test_r3_008_a_step_with_an_unknown_sibling_is_never_shown_short() -> None:
    run = Story().user("U").step(call("A"), call("B"), call("C")).dispatch("A", "B", "C").outcome("A", "C").end()
    segment = run.resumed()
    assert segment.blocked is ReplayBlock.TOOL_RECOVERY_UNSETTLED
    assert segment.items == ()
