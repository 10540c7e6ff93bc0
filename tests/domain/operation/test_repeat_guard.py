"""An effect that is not certain is not repeated under a new call id unasked. F9."""

from __future__ import annotations

from typing import Any

import pytest

from safepoint.domain.events.event import Event
from safepoint.domain.events.run import ToolProfile
from safepoint.domain.events.session import ClearedBy, EffectCleared, EffectWatched, GrantsTaken, WatchStatus
from safepoint.domain.events.tool import RecoveryMode, ToolDispatched
from safepoint.domain.operation.decisions import prepare
from safepoint.domain.operation.repeat_guard import delivered_again, renamed_effect, repeated_effect
from safepoint.domain.run.ending import end_run
from safepoint.domain.session.state import Session

from ..facts import AT, LATER, PROFILE, SOON, Facts, accepted, contract, refused, run_of, session_of, topics

PAY = {"to": "x", "amount": 5}

EARLIER, HOUR_AHEAD = "2026-11-29T11:59:59.999999Z", "2026-11-29T13:00:00.000000Z"


def watch_list(
    mode: RecoveryMode = RecoveryMode.OUTCOME_UNKNOWN,
    *,
    tool: str = "pay",
    args: Any = PAY,
    calls: tuple[str, ...] = ("a",),
    **dispatch: Any,
) -> list[Event]:
    """What a run leaves behind that was killed after it had dispatched some equal calls."""
    r = Facts("r1")
    given: list[Event] = [r.opened(), r.user(), *r.step(*calls, tool=tool, args=args)]
    given += [r.dispatch(call, mode, **dispatch) for call in calls]
    ended = accepted(end_run(session_of([]), run_of(given), r.end(), foreign=False))
    return [r.session_opened(), r.admitted(), *ended]


class Next:
    """The next run of the session, with one call."""

    def __init__(self, session: list[Event], *, tool: str = "pay", args: Any = PAY) -> None:
        self.r = Facts("r2")
        self.session = [*session, self.r.admitted()]
        self.history: list[Event] = [self.r.opened(), self.r.user(), *self.r.step("b", tool=tool, args=args)]

    def dispatch(self, mode: RecoveryMode = RecoveryMode.OUTCOME_UNKNOWN, /, **fields: Any) -> Any:
        dispatch = self.r.dispatch("b", mode, **fields)
        return prepare(session_of(self.session), run_of(self.history), self.r.prepare(dispatch))

    def ask(self, repeats: str | None, *, approved: bool = True) -> Next:
        self.history += [self.r.requested("b", repeats=repeats), self.r.decided("ask-b", approved=approved)]
        return self

    def grant(self, repeats: str | None) -> Next:
        asked = self.r.requested("b", repeats=repeats)
        self.session += [self.r.grant(asked), self.r.fact(GrantsTaken, run_id="r2", grant_ids=("g1",))]
        return self


def test_an_equal_call_is_not_dispatched_without_a_person() -> None:
    decision = Next(watch_list()).dispatch()
    assert refused(decision) == "transition_shape_conflict"
    assert "op-r1-a" in decision.detail


@pytest.mark.parametrize(
    ("tool", "args"),
    [("pay", {"to": "x", "amount": 6}), ("pay", {}), ("transfer", PAY)],
    ids=["other arguments", "no arguments", "another tool"],
)
def test_another_call_is_free_to_go(tool: str, args: Any) -> None:
    assert topics(Next(watch_list(), tool=tool, args=args).dispatch()) == ["tool.dispatched.v1"]


def test_a_call_that_only_reads_is_not_asked_about() -> None:
    assert topics(Next(watch_list()).dispatch(RecoveryMode.REPLAY_SAFE)) == ["tool.dispatched.v1"]


@pytest.mark.parametrize("mode", [RecoveryMode.OUTCOME_UNKNOWN, RecoveryMode.NEVER_AUTO_RETRY])
@pytest.mark.parametrize("named", [None, "op-r1-a"], ids=["unnamed", "named"])
def test_a_call_whose_contract_says_that_repeating_is_free_takes_the_place_of_what_it_repeats(
    mode: RecoveryMode, named: str | None
) -> None:
    following = Next(watch_list(calls=("a", "c")))
    decision = following.dispatch(contract=contract(mode, repeat_free=True), repeats=named)
    cleared = [event for event in accepted(decision) if isinstance(event, EffectCleared)]
    assert [(event.operation_id, event.by) for event in cleared] == [
        ("op-r1-a", ClearedBy.APPROVED_REPEAT),
        ("op-r1-c", ClearedBy.APPROVED_REPEAT),
    ]


@pytest.mark.parametrize("offered", ["pay", "transfer"])
@pytest.mark.parametrize("free", [True, False])
def test_t1_itself_takes_equal_arguments_of_a_tool_that_is_gone_for_a_repeat(offered: str, free: bool) -> None:
    """Preflight asks first; whoever bypasses it is refused."""
    following = Next(watch_list(), tool="transfer")
    profile = PROFILE.model_copy(
        update={"tools": (ToolProfile(name=offered, schema_digest="0" * 64, contract_digest="0" * 64),)}
    )
    following.history[0] = following.r.opened(profile=profile)
    decision = following.dispatch(contract=contract(repeat_free=free))
    if offered == "transfer" and not free:
        assert refused(decision) == "transition_shape_conflict"
        assert topics(following.ask("op-r1-a").dispatch(repeats="op-r1-a"))[1:] == ["session.effect_cleared.v1"]
    else:
        assert topics(decision) == ["tool.dispatched.v1"]


BOUND = {"key_valid_seconds": 10}
IDEMPOTENT: dict[str, tuple[dict[str, Any], str, dict[str, Any], str, bool]] = {
    "the recorded key": ({}, "k", {}, LATER, True),
    "another key": ({}, "k2", {}, LATER, False),
    "the recorded key when it is no longer valid": ({"key_valid_seconds": 9}, "k", {}, LATER, False),
    "a bound where there was none": ({}, "k", BOUND, LATER, True),
    "as long as it has left": (BOUND, "k", {"key_valid_seconds": 7}, SOON, True),
    "longer than it has left": (BOUND, "k", {"key_valid_seconds": 8}, SOON, False),
    "for ever": (BOUND, "k", {}, SOON, False),
    "the recorded key when the clock was set back": (BOUND, "k", BOUND, EARLIER, False),
    "the recorded key without a bound when the clock was set back": ({}, "k", {}, EARLIER, True),
}


@pytest.mark.parametrize(("then", "key", "now", "at", "free"), IDEMPOTENT.values(), ids=IDEMPOTENT)
def test_an_idempotent_call_is_one_more_delivery_with_the_recorded_key_alone_which_gets_no_younger(
    then: dict[str, Any], key: str, now: dict[str, Any], at: str, free: bool
) -> None:
    before = contract(RecoveryMode.IDEMPOTENT, **then)
    following = Next(watch_list(RecoveryMode.IDEMPOTENT, contract=before, idempotency_key="k"))
    promised = contract(RecoveryMode.IDEMPOTENT, **now)
    decision = following.dispatch(contract=promised, idempotency_key=key, occurred_at=at)
    if not free:
        assert refused(decision) == "transition_shape_conflict"
        return
    _, cleared = accepted(decision)
    assert isinstance(cleared, EffectCleared)
    assert (cleared.operation_id, cleared.by) == ("op-r1-a", ClearedBy.DELIVERED_AGAIN)


def test_a_key_of_which_nobody_knew_the_age_when_its_run_ended_does_not_become_valid_again() -> None:
    """T1 was an hour ahead; the clock was set right before the run ended, and later passes that hour."""
    ahead = contract(RecoveryMode.IDEMPOTENT, key_valid_seconds=3)
    session = watch_list(RecoveryMode.IDEMPOTENT, contract=ahead, idempotency_key="k", occurred_at=HOUR_AHEAD)
    following = Next(session)
    for at in (LATER, HOUR_AHEAD):
        again = contract(RecoveryMode.IDEMPOTENT, key_valid_seconds=1)
        decision = following.dispatch(contract=again, idempotency_key="k", occurred_at=at)
        assert refused(decision) == "transition_shape_conflict"


def test_a_key_means_nothing_where_no_idempotence_is_promised() -> None:
    before = watch_list(RecoveryMode.IDEMPOTENT, idempotency_key="k")
    assert refused(Next(before).dispatch(idempotency_key="k")) == "transition_shape_conflict"
    free = Next(before).dispatch(contract=contract(repeat_free=True), idempotency_key="k")
    assert topics(free) == ["tool.dispatched.v1", "session.effect_cleared.v1"]


def test_one_more_delivery_may_say_what_it_delivers_without_having_asked() -> None:
    before = watch_list(RecoveryMode.IDEMPOTENT, idempotency_key="k")
    decision = Next(before).dispatch(RecoveryMode.IDEMPOTENT, idempotency_key="k", repeats="op-r1-a")
    assert [event.by for event in accepted(decision) if isinstance(event, EffectCleared)] == [ClearedBy.DELIVERED_AGAIN]
    other = Next(before).dispatch(RecoveryMode.IDEMPOTENT, idempotency_key="k2", repeats="op-r1-a")
    assert refused(other) == "transition_shape_conflict"


def test_a_key_that_other_arguments_were_delivered_with_is_no_common_one() -> None:
    following = Next(watch_list(RecoveryMode.IDEMPOTENT, idempotency_key="k"), args={"to": "y"})
    assert topics(following.dispatch(RecoveryMode.IDEMPOTENT, idempotency_key="k")) == ["tool.dispatched.v1"]


def test_only_what_has_the_same_key_is_delivered_again() -> None:
    session = session_of(watch_list(RecoveryMode.IDEMPOTENT, idempotency_key="k"))
    promised, (watched,) = contract(RecoveryMode.IDEMPOTENT), session.watched.values()
    assert [*delivered_again(session, promised, watched.args_hash, "k", AT)] == [watched]
    for args_hash, key in ((watched.args_hash, "k2"), (watched.args_hash, None), ("0" * 64, "k")):
        assert [*delivered_again(session, promised, args_hash, key, AT)] == []
    assert [*delivered_again(session, contract(), watched.args_hash, "k", AT)] == []


def test_no_key_is_no_common_key() -> None:
    """A tool that became idempotent since: nobody has ever seen its key."""
    session = session_of(watch_list())
    promised = contract(RecoveryMode.IDEMPOTENT)
    watched = next(iter(session.watched.values()))
    assert watched.idempotency_key is None
    assert repeated_effect(session, promised, watched.args_hash, None, AT) == watched
    assert refused(Next(watch_list()).dispatch(RecoveryMode.IDEMPOTENT, idempotency_key="k"))


# ---- a person's permission -------------------------------------------------------------------------------------------


def test_an_approved_repeat_goes_and_only_its_own_outcome_counts_from_then_on() -> None:
    decision = accepted(Next(watch_list()).ask("op-r1-a").dispatch(repeats="op-r1-a"))
    dispatch, cleared = decision
    assert isinstance(dispatch, ToolDispatched)
    assert isinstance(cleared, EffectCleared)
    assert (cleared.operation_id, cleared.by) == ("op-r1-a", ClearedBy.APPROVED_REPEAT)
    assert (cleared.session_id, cleared.occurred_at) == ("s", dispatch.occurred_at)


def test_a_grant_for_the_repeat_is_a_permission() -> None:
    decision = Next(watch_list()).grant("op-r1-a").dispatch(repeats="op-r1-a", grant_id="g1")
    assert topics(decision) == ["tool.dispatched.v1", "session.effect_cleared.v1"]


UNASKED: dict[str, tuple[Any, dict[str, Any]]] = {
    "naming the effect without having asked": (lambda n: n, {"repeats": "op-r1-a"}),
    "having asked about something else": (lambda n: n.ask(None), {"repeats": "op-r1-a"}),
    "having asked about another effect": (lambda n: n.ask("op-r1-z"), {"repeats": "op-r1-a"}),
    "having asked without naming the effect": (lambda n: n.ask("op-r1-a"), {}),
    "a no": (lambda n: n.ask("op-r1-a", approved=False), {"repeats": "op-r1-a"}),
    "a grant for a plain question": (lambda n: n.grant(None), {"repeats": "op-r1-a", "grant_id": "g1"}),
    "a grant that is not named": (lambda n: n.grant("op-r1-a"), {"repeats": "op-r1-a"}),
}


@pytest.mark.parametrize(("asked", "fields"), UNASKED.values(), ids=UNASKED)
def test_nothing_less_than_a_persons_yes_to_the_repeat_allows_it(asked: Any, fields: dict[str, Any]) -> None:
    assert refused(asked(Next(watch_list())).dispatch(**fields)) == "transition_shape_conflict"


def test_one_yes_covers_all_equal_effects() -> None:
    decision = Next(watch_list(calls=("a", "b", "c"))).ask("op-r1-b").dispatch(repeats="op-r1-b")
    cleared = [event.operation_id for event in accepted(decision) if isinstance(event, EffectCleared)]
    assert cleared == ["op-r1-b", "op-r1-a", "op-r1-c"]


def test_an_effect_is_cleared_once_although_it_is_both_repeated_and_delivered_again() -> None:
    before = watch_list(RecoveryMode.IDEMPOTENT, idempotency_key="k")
    following = Next(before).ask("op-r1-a")
    decision = following.dispatch(RecoveryMode.IDEMPOTENT, idempotency_key="k", repeats="op-r1-a")
    assert [event.by for event in accepted(decision) if isinstance(event, EffectCleared)] == [ClearedBy.APPROVED_REPEAT]


def test_a_repeat_of_what_was_settled_meanwhile_needs_nobody() -> None:
    settled = Facts("r1").fact(EffectCleared, operation_id="op-r1-a", by=ClearedBy.SETTLED)
    assert topics(Next([*watch_list(), settled]).dispatch(repeats="op-r1-a")) == ["tool.dispatched.v1"]


@pytest.mark.parametrize("status", list(WatchStatus))
def test_every_kind_of_watched_effect_is_guarded(status: WatchStatus) -> None:
    *rest, watched = watch_list()
    assert isinstance(watched, EffectWatched)
    assert refused(Next([*rest, watched.model_copy(update={"status": status})]).dispatch())


# ---- renamed tools ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "recorded", "names", "found"),
    [
        (PAY, PAY, {"transfer"}, True),
        (PAY, PAY, {"transfer", "pay"}, False),
        ({"to": "y"}, PAY, {"transfer"}, False),
        ({}, {}, {"transfer"}, False),
        (None, PAY, {"transfer"}, False),
    ],
    ids=["gone, equal arguments", "still there", "other arguments", "no arguments", "no JSON"],
)
def test_equal_arguments_of_a_tool_that_is_gone_may_be_a_renamed_repeat(
    args: Any, recorded: Any, names: set[str], found: bool
) -> None:
    session = session_of(watch_list(args=recorded))
    assert (renamed_effect(session, args, names) is not None) == found


def test_a_renamed_repeat_that_was_allowed_is_cleared() -> None:
    following = Next(watch_list(), tool="transfer").ask("op-r1-a")
    assert topics(following.dispatch(repeats="op-r1-a")) == ["tool.dispatched.v1", "session.effect_cleared.v1"]
    assert refused(Next(watch_list(), tool="transfer").dispatch(repeats="op-r1-a"))


def test_a_session_that_watches_nothing_guards_nothing() -> None:
    assert repeated_effect(Session(), contract(), "0" * 64, None, AT) is None
