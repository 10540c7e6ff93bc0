"""Which history a new turn is given: cut, with a damaged turn left out, or refused because it does not fit. F17."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from safepoint.adapters.memory.model_provider import Planned, PlannedModel, calls, says
from safepoint.adapters.memory.tables import Failure
from safepoint.application.plan_resume import PlanRequest
from safepoint.application.resume_run import Continued, Parked
from safepoint.application.run_turn import SessionQuarantined, TurnResult
from safepoint.application.turn_context import ContextChoice, HistoryTooLarge, HistoryUnusable
from safepoint.domain.commands import AbandonRun
from safepoint.domain.errors import StoreError
from safepoint.domain.events.model import HostMessage
from safepoint.domain.events.run import RunOpened, RunStatus
from safepoint.domain.events.session import RunAbandoned
from safepoint.domain.identifiers import RunId
from safepoint.domain.reasons import ParkReason
from safepoint.domain.replay.items import HostItem, UserItem
from safepoint.domain.sentences import SentenceId
from safepoint.ports.model_provider import ProviderProfile

from .counted_tools import Counted
from .wiring import SESSION, Process, check_sound, go

ALL = ContextChoice()
WITHOUT_DAMAGED = ContextChoice(leave_out_damaged=True)
ACT = calls(("act", {"n": 1}))


def model(steps: Sequence[Planned] = (says("ok"),), window: int | None = None) -> PlannedModel:
    return PlannedModel(list(steps), ProviderProfile("planned", "planned", None, window))


def turn(process: Process, text: str, choice: ContextChoice = ALL, window: int | None = None) -> TurnResult:
    return go(lambda: process.turn(text, model(window=window), context=choice))


def shown(asked: PlannedModel, at: int = 0) -> list[str]:
    """What the user said, as the model saw it."""
    return [item.text for item in asked.asked[at].request.history if isinstance(item, UserItem)]


def told(asked: PlannedModel, at: int = 0) -> list[str]:
    return [item.text for item in asked.asked[at].request.history if isinstance(item, HostItem)]


def turns(process: Process, number: int) -> list[TurnResult]:
    return [turn(process, f"turn {one}") for one in range(1, number + 1)]


def next_turn(
    process: Process, choice: ContextChoice = ALL, window: int | None = None, text: str = "now"
) -> tuple[PlannedModel, TurnResult]:
    asked = model(window=window)
    result = go(lambda: process.turn(text, asked, context=choice))
    assert result.outcome.status is RunStatus.COMPLETED
    check_sound(process, result.run_id)
    return asked, result


def opened(process: Process, run_id: RunId) -> RunOpened:
    (first,) = process.of(run_id, RunOpened)
    return first


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        (None, ["turn 1", "turn 2", "turn 3", "now"]),
        (9, ["turn 1", "turn 2", "turn 3", "now"]),
        (3, ["turn 1", "turn 2", "turn 3", "now"]),
        (2, ["turn 2", "turn 3", "now"]),
        (1, ["turn 3", "now"]),
        (0, ["now"]),
    ],
)
def test_a_person_may_cut_the_beginning_off_and_the_model_is_told_how_much(
    kept: int | None, expected: list[str]
) -> None:
    process = Process()
    turns(process, 3)
    asked, result = next_turn(process, ContextChoice(turns_max=kept))
    assert shown(asked) == expected
    missing = 4 - len(expected)
    said = [event.sentence_id for event in process.of(result.run_id, HostMessage)]
    assert said == ([SentenceId.CONTEXT_CUT] if missing else [])
    assert all(str(missing) in one for one in told(asked))
    context = opened(process, result.run_id).context
    assert context is not None
    assert (context.cut_before is None) is (missing == 0)


def test_a_cut_stays_in_force_for_the_turns_after_it_and_is_told_once() -> None:
    process = Process()
    turns(process, 3)
    next_turn(process, ContextChoice(turns_max=1), text="cut")
    asked, result = next_turn(process)
    assert shown(asked) == ["turn 3", "cut", "now"]
    assert process.of(result.run_id, HostMessage) == []
    assert len(told(asked)) == 1, "the message of the turn that was cut is part of the history"
    narrower, _ = next_turn(process, ContextChoice(turns_max=1), text="last")
    assert shown(narrower) == ["now", "last"]
    assert "2" in told(narrower)[-1], "of the three turns that the record leads to"


@pytest.mark.parametrize("kept", [0, 1])
def test_a_resume_of_a_turn_that_was_cut_shows_exactly_what_that_turn_was_given(kept: int) -> None:
    process, act = Process(), Counted()
    turns(process, 2)
    first = model([ACT])
    go(lambda: process.turn("cut", first, [act.function], context=ContextChoice(turns_max=kept)))
    second = model([says("done")])
    resumed = go(lambda: process.resume(second, [act.function]))
    assert isinstance(resumed, Continued)
    assert shown(second) == shown(first) == (["turn 2", "cut"] if kept else ["cut"])
    later = model([says("ok")])
    go(lambda: process.turn("later", later, [act.function]))
    assert shown(later) == [*shown(second), "later"]


# What does not fit


def test_a_history_that_does_not_fit_the_window_is_refused_with_both_numbers_before_anything_is_written() -> None:
    process = Process()
    turn(process, "x" * 4_000)
    before = process.session_events()
    with pytest.raises(HistoryTooLarge) as refused:
        turn(process, "now", window=500)
    assert (refused.value.have, refused.value.limit, refused.value.turns) == (1_001, 500, 1)
    assert "1001" in str(refused.value)
    assert "500" in str(refused.value)
    assert process.session_events() == before
    assert process.owner() is None, "the session is free"


def test_the_first_message_of_a_session_must_fit_as_well() -> None:
    process = Process()
    with pytest.raises(HistoryTooLarge) as refused:
        turn(process, "x" * 4_000, window=500)
    assert (refused.value.have, refused.value.turns) == (1_000, 0)
    assert process.session_events() == []


def test_a_message_that_does_not_fit_alone_is_refused_however_much_is_cut() -> None:
    process = Process()
    turns(process, 1)
    with pytest.raises(HistoryTooLarge) as refused:
        turn(process, "x" * 4_000, ContextChoice(fit=True), window=500)
    assert (refused.value.have, refused.value.turns) == (1_000, 0)


def test_an_interrupted_run_that_does_not_fit_parks_with_both_numbers_and_a_cut_turn_goes_on() -> None:
    process, act = Process(), Counted()
    turn(process, "x" * 4_000)
    go(lambda: process.turn("go", model([ACT]), [act.function]))
    parked = go(lambda: process.resume(model([says("done")], window=500), [act.function]))
    assert isinstance(parked, Parked)
    (reason,) = parked.reasons
    assert (reason.code, reason.detail["limit"]) == (ParkReason.HISTORY_TOO_LARGE, 500)
    assert isinstance(reason.detail["have"], int)
    assert reason.detail["have"] > 1_000
    asked, _ = next_turn(process, ContextChoice(fit=True), window=500)
    assert shown(asked) == ["go", "now"]


def test_as_many_of_the_newest_turns_are_kept_as_leave_room_for_the_turn_itself() -> None:
    process = Process()
    for size in (1_600, 800, 400):
        turn(process, f"{size}" + "x" * size)
    asked, _ = next_turn(process, ContextChoice(fit=True), window=500)
    assert [text[:4] for text in shown(asked)] == ["800x", "400x", "now"]
    whole, _ = next_turn(process, ContextChoice(fit=True))
    assert len(shown(whole)) == 4, "where the window is not known, nothing is cut: what was cut before stays so"


# What is damaged


def lose(process: Process, run_id: RunId) -> None:
    """A run's record is gone, as after somebody deleted it."""
    del process.world.store._tables.streams[f"run:{run_id}"]


def abandon(process: Process, run_id: RunId) -> None:
    owned = process.ownership.own(SESSION)
    fact = RunAbandoned(
        **process.spines.session(SESSION), run_id=run_id, by="ada", note="it is gone", last_good_sequence=0
    )
    process.ledger.execute(AbandonRun(owned.session_id, owned.incarnation_id, owned.epoch, run_id, fact))
    process.ownership.release(owned)


@pytest.mark.parametrize(
    ("damaged", "expected", "missing"),
    [(0, ["turn 2", "turn 3", "turn 4"], 0), (1, ["turn 3", "turn 4"], 1), (2, ["turn 4"], 2)],
)
def test_a_damaged_turn_is_left_out_at_a_persons_request_alone_and_the_model_is_told(
    damaged: int, expected: list[str], missing: int
) -> None:
    world = Process().world
    gone = turns(Process(world), 4)[damaged].run_id
    process = Process(world)
    lose(process, gone)
    with pytest.raises(HistoryUnusable) as unusable:
        turn(process, "now")
    assert unusable.value.run_ids == (gone,)
    asked, result = next_turn(process, WITHOUT_DAMAGED)
    assert shown(asked) == [*expected, "now"]
    said = [event.sentence_id for event in process.of(result.run_id, HostMessage)]
    assert said == [*([SentenceId.CONTEXT_CUT] if missing else []), SentenceId.TURN_LEFT_OUT]
    context = opened(process, result.run_id).context
    assert context is not None
    assert context.left_out == (gone,)
    later, _ = next_turn(process, text="later")
    assert shown(later) == [*expected, "now", "later"], "nobody has to say it again"


def test_after_a_damaged_run_was_given_up_the_conversation_goes_on_from_the_turn_before() -> None:
    world = Process().world
    gone = turns(Process(world), 3)[-1].run_id
    process = Process(world)
    lose(process, gone)
    with pytest.raises(SessionQuarantined):
        turn(process, "now")
    abandon(process, gone)
    asked, _ = next_turn(process)
    assert shown(asked) == ["turn 1", "turn 2", "now"]
    assert len(told(asked)) == 1
    later, _ = next_turn(process, text="later")
    assert shown(later) == ["turn 1", "turn 2", "now", "later"]


def test_where_every_turn_is_damaged_the_conversation_begins_anew_and_says_so() -> None:
    world = Process().world
    gone = turns(Process(world), 1)[0].run_id
    process = Process(world)
    lose(process, gone)
    abandon(process, gone)
    asked, result = next_turn(process)
    assert shown(asked) == ["now"]
    assert [event.sentence_id for event in process.of(result.run_id, HostMessage)] == [SentenceId.TURN_LEFT_OUT]
    assert opened(process, result.run_id).context is None


def test_a_turn_after_one_that_was_left_out_can_be_continued() -> None:
    world, act = Process().world, Counted()
    gone = turns(Process(world), 3)[1].run_id
    process = Process(world)
    lose(process, gone)
    first = model([ACT])
    go(lambda: process.turn("go", first, [act.function], context=WITHOUT_DAMAGED))
    second = model([says("done")])
    resumed = go(lambda: process.resume(second, [act.function], request=PlanRequest()))
    assert isinstance(resumed, Continued), resumed
    assert shown(second) == shown(first) == ["turn 3", "go"]


def test_what_could_not_be_looked_at_is_not_damaged() -> None:
    world = Process().world
    turns(Process(world), 2)
    process = Process(world)
    process.world.store.fail_next(Failure.UNREADABLE)
    with pytest.raises(StoreError):
        turn(process, "now", WITHOUT_DAMAGED)
