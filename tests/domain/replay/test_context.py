"""What a new turn is shown of earlier ones. SPEC section 12."""

from __future__ import annotations

from safepoint.domain.events.run import Context, RunStatus, ShownUnsettled
from safepoint.domain.events.tool import Statement
from safepoint.domain.identifiers import OperationId, RunId
from safepoint.domain.reasons import ReplayBlock
from safepoint.domain.replay.context import older_turn, project_context, told_of
from safepoint.domain.replay.history import replay
from safepoint.domain.replay.legality import check_provider_legality
from safepoint.domain.sentences import SentenceId, render

from .story import Story, call, say, shape, think

UNKNOWN = "Outcome unknown: interrupted after it was dispatched; it was not repeated; inspect before acting."


def history_of(*turns: list[Story], recorded: tuple[ShownUnsettled, ...] = ()) -> list[str]:
    context = project_context([[run.part_of_turn() for run in turn] for turn in turns], recorded)
    assert context.blocked == ()
    items = replay(context.segments, None).items
    assert check_provider_legality(items) is None
    return shape(items)


def test_a_completed_turn_is_shown_whole_with_its_final_answer() -> None:
    run = Story().user("U").step(call("A")).run_tool("A").step(think("t", "s"), say("final")).end(RunStatus.COMPLETED)
    assert history_of([run]) == ["user U", "call A", "result A", "thinking t", "text final"]


def test_the_last_text_of_a_failed_turn_is_shown_too() -> None:
    assert history_of([Story().user("U").step(say("half")).end()]) == ["user U", "text half"]


def test_only_what_its_own_continuations_trimmed_stays_out_of_a_turn() -> None:
    first = Story("r1").user("U").step(call("A")).run_tool("A").step(say("trimmed")).end()
    second = Story("r2", source=first.ref()).step(say("final")).end(RunStatus.COMPLETED)
    assert history_of([first, second]) == ["user U", "call A", "result A", "text final"]


def test_r3_001_an_unknown_call_is_answered_with_the_truth_and_recorded() -> None:
    """A stop is not a proof of no effect: the call is followed at once by one computed result."""
    run = Story().user("U").step(say("x"), call("A", tool="run_shell")).dispatch("A").end(RunStatus.CANCELLED)
    context = project_context([[run.part_of_turn()]])
    items = replay(context.segments, None).items
    assert shape(items) == ["user U", "text x", "call A", "result A"]
    assert check_provider_legality(items) is None
    result = items[-1]
    assert (result.result, result.is_error, result.computed) == (UNKNOWN, True, SentenceId.OUTCOME_UNKNOWN)  # type: ignore[union-attr]
    assert result.event_id == run.events[5].event_id  # the dispatch that it speaks of
    assert context.unsettled == (
        ShownUnsettled(run_id=RunId("r1"), operation_id=OperationId("op-r1-A"), sentence_id=SentenceId.OUTCOME_UNKNOWN),
    )
    assert run.resumed().blocked is ReplayBlock.TOOL_RECOVERY_UNSETTLED


def test_r3_001_after_a_person_settled_it_the_turn_shows_what_was_attested() -> None:
    run = Story().user("U").step(call("A")).dispatch("A").end(RunStatus.CANCELLED)
    run.attest("A", Statement.COMPLETED, "stopped, outcome unknown")
    context = project_context([[run.part_of_turn()]])
    assert context.unsettled == ()
    assert "attested by Ada" in str(replay(context.segments, None).items[-1].result)  # type: ignore[union-attr]


def test_r3_003_a_call_that_was_never_dispatched_is_not_in_the_next_turns_history() -> None:
    run = Story().user("U").step(think("t", "s"), call("A"))
    before = list(run.events)
    assert history_of([run], [Story("r2").user("U2")]) == ["user U", "user U2"]
    assert run.events == before


def test_in_a_context_a_call_that_was_never_dispatched_is_no_gap() -> None:
    run = Story().user("U").step(say("x"), call("A")).step(say("y")).end()
    assert history_of([run]) == ["user U", "text x", "text y"]


def test_only_the_last_run_of_a_turn_can_show_an_unknown_call() -> None:
    first = Story("r1").user("U").step(call("A")).dispatch("A").end()
    second = Story("r2", source=first.ref()).step(say("final")).end(RunStatus.COMPLETED)
    context = project_context([[first.part_of_turn(), second.part_of_turn()]])
    assert [(run_id, segment.blocked) for run_id, segment in context.blocked] == [
        ("r1", ReplayBlock.TOOL_RECOVERY_UNSETTLED)
    ]


def test_a_call_that_repair_closed_is_shown_with_its_answer() -> None:
    run = Story().user("U").step(call("A"), call("B")).run_tool("A").refuse("B").end()
    assert history_of([run]) == ["user U", "call A", "call B", "result A", "result B"]


def test_r3_157_the_whole_stopped_turn_stays_visible() -> None:
    run = Story().user("U").step(say("text"), call("Q")).refuse("Q", result="cancelled").end(RunStatus.CANCELLED)
    assert history_of([run], [Story("r2").user("U2")]) == ["user U", "text text", "call Q", "result Q", "user U2"]


def test_parked_and_legacy_calls_have_sentences_of_their_own() -> None:
    parked = Story("r1").user("U").step(call("A")).dispatch("A").end().park("A")
    legacy = Story("r2", protocol=None).user("V").step(call("B")).end()
    context = project_context([[parked.part_of_turn()], [legacy.part_of_turn()]])
    assert [shown.sentence_id for shown in context.unsettled] == [
        SentenceId.OUTCOME_UNKNOWN_PARKED,
        SentenceId.OUTCOME_UNKNOWN_DISPATCH_UNKNOWN,
    ]
    assert context.unsettled[1].operation_id == "B"  # there is no operation: the call's id stands in its place


def test_in_a_foreign_run_a_missing_dispatch_proves_nothing() -> None:
    run = Story().user("U").step(call("A")).end()
    context = project_context([[run.part_of_turn(foreign=True)]])
    assert [shown.sentence_id for shown in context.unsettled] == [SentenceId.OUTCOME_UNKNOWN_DISPATCH_UNKNOWN]


def test_the_recorded_sentence_is_shown_and_not_todays_choice() -> None:
    run = Story().user("U").step(call("A")).dispatch("A").end()
    said = SentenceId.OUTCOME_UNKNOWN_PARKED
    recorded = ShownUnsettled(run_id=RunId("r1"), operation_id=OperationId("op-r1-A"), sentence_id=said)
    context = project_context([[run.part_of_turn()]], [recorded])
    assert replay(context.segments, None).items[-1].result == render(said)  # type: ignore[union-attr]
    assert context.unsettled == (recorded,)


def test_a_step_with_an_unknown_call_keeps_its_thinking_because_nothing_of_it_is_missing() -> None:
    run = Story().user("U").step(think("t", "s"), call("A"), call("B")).dispatch("A", "B").outcome("B").end()
    assert history_of([run]) == ["user U", "thinking t", "call A", "call B", "result A", "result B"]


def test_a_corrupt_turn_makes_no_history_until_it_is_left_out() -> None:
    good = Story("r1").user("U").end(RunStatus.COMPLETED)
    bad = Story("r2").user("V").step(call("A")).dispatch("A").outcome("A").outcome("A").end()
    context = project_context([[good.part_of_turn()], [bad.part_of_turn()]])
    assert [(run_id, segment.blocked) for run_id, segment in context.blocked] == [
        ("r2", ReplayBlock.TOOL_RECOVERY_CORRUPTION)
    ]


def test_what_is_left_out_or_cut_off_is_told_and_never_missing_silently() -> None:
    told = told_of([RunId("r2")], cut_turns=7)
    assert [said.sentence_id for said in told] == [SentenceId.CONTEXT_CUT, SentenceId.TURN_LEFT_OUT]
    assert "7" in told[0].text
    assert told_of([], 0) == ()


def test_the_walk_to_older_turns_ends_at_a_cut() -> None:
    oldest = Story("r0").user().end().ref()
    root = Story("r1", context=Context(previous=oldest)).events[0]
    runs = [RunId("r1"), RunId("r1b")]
    assert older_turn(root, runs, []) == oldest  # type: ignore[arg-type]
    assert older_turn(root, runs, [RunId("r5")]) == oldest  # type: ignore[arg-type]
    assert older_turn(root, runs, [RunId("r1b")]) is None  # type: ignore[arg-type]
    assert older_turn(Story("r9").events[0], [], []) is None  # type: ignore[arg-type]
