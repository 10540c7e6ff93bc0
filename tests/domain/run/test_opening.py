"""How an ordinary run begins: admitted, with its message and its inbox, in one commit. SPEC sections 5, 7 and 12."""

from __future__ import annotations

from typing import Any

import pytest

from safepoint.domain.events.event import Event
from safepoint.domain.events.run import Context, RunStatus
from safepoint.domain.events.session import ClearedBy, EffectCleared, EffectWatched, RunAbandoned, RunKind, WatchStatus
from safepoint.domain.events.tool import RecoveryMode
from safepoint.domain.run.decisions import open_run
from safepoint.domain.run.state import Run

from ..facts import DIGEST, Facts, accepted, prefix, refused, run_of, session_of, topics

R1 = Facts("r1")
TURN1: list[Event] = [R1.session_opened(), R1.admitted(), R1.opened(), R1.user(), R1.ended()]


def decide(history: list[Event], r: Facts, head: Facts | None = R1, **fields: Any) -> Any:
    digest = DIGEST if head is None else prefix(head, history).digest
    return open_run(session_of(history), None if head is None else run_of(history), digest, Run(), r.open_run(**fields))


def test_the_first_run_opens_its_session() -> None:
    decision = decide([], Facts("r1"), None)
    assert topics(decision) == ["session.opened.v1", "session.run_admitted.v1", "run.opened.v1", "message.user.v1"]


def test_a_later_run_only_joins_it() -> None:
    assert topics(decide(TURN1, Facts("r2"))) == ["session.run_admitted.v1", "run.opened.v1", "message.user.v1"]


def test_a_run_takes_the_inbox_over_in_its_first_commit() -> None:
    R1.step("c")
    inbox = [R1.notice("one", "n1"), R1.notice("two", "n2"), R1.grant(R1.requested("c"))]
    assert topics(decide([*TURN1, *inbox], Facts("r2"))) == [
        "session.run_admitted.v1",
        "session.notices_taken.v1",
        "session.grants_taken.v1",
        "run.opened.v1",
        "message.user.v1",
        "message.host.v1",
        "message.host.v1",
    ]


@pytest.mark.parametrize("end", [[], ["cancel"]], ids=["running", "being stopped"])
def test_a_session_whose_head_has_not_ended_is_busy(end: list[str]) -> None:
    history = [*TURN1[:-1], *([R1.cancelled()] if end else [])]
    assert refused(decide(history, Facts("r2"))) == "session_busy"


def test_an_unstarted_continuation_keeps_its_session_busy() -> None:
    history = [*TURN1, Facts("r2").admitted(RunKind.CONTINUATION, claim_id="claim")]
    decision = open_run(session_of(history), Run(), DIGEST, Run(), Facts("r3").open_run())
    assert refused(decision) == "session_busy"


def test_a_run_that_a_person_gave_up_keeps_nobody_waiting() -> None:
    abandoned = R1.fact(RunAbandoned, run_id="r1", by="Ada", note="", last_good_sequence=1)
    session = session_of([*TURN1[:-1], abandoned])
    r, r3 = Facts("r2"), Facts("r3")
    assert topics(open_run(session, None, "", Run(), r.open_run()))[0] == "session.run_admitted.v1"
    before = r3.open_run(opened=r3.opened(context=Context(previous=prefix(Facts("r0"), [Facts("r0").opened()]))))
    assert topics(open_run(session, None, "", Run(), before))[0] == "session.run_admitted.v1"


def test_a_run_id_is_used_once() -> None:
    again = Facts("r1", maker="'")
    decision = open_run(session_of(TURN1), run_of(TURN1), DIGEST, run_of(TURN1), again.open_run())
    assert refused(decision) == "duplicate_event_id"


@pytest.mark.parametrize(
    "fields",
    [
        {"admitted": {"run_id": "r9"}},
        {"admitted": {"turn_id": "t9"}},
        {"admitted": {"invocation_id": "i9"}},
        {"admitted": {"claim_id": "claim"}},
        {"admitted": {"kind": RunKind.CONTINUATION}},
        {"admitted": {"kind": RunKind.CHILD}},
        {"opened": {"parent_run_id": "p", "parent_session_id": "ps", "parent_operation_id": "po"}},
    ],
    ids=["run", "turn", "invocation", "a claim", "a continuation", "a child without parent", "a turn with a parent"],
)
def test_the_admission_is_of_the_run_that_is_opened(fields: dict[str, dict[str, Any]]) -> None:
    r = Facts("r2")
    parts = {name: getattr(r, name)(**changed) for name, changed in fields.items()}
    assert refused(decide(TURN1, r, **parts)) == "transition_shape_conflict"


def test_a_child_run_names_its_parent() -> None:
    r = Facts("r2")
    parent = {"parent_run_id": "p", "parent_session_id": "ps", "parent_operation_id": "po"}
    decision = decide(TURN1, r, admitted=r.admitted(RunKind.CHILD), opened=r.opened(**parent))
    assert topics(decision)[-1] == "message.user.v1"


def test_the_message_that_opens_a_run_does_not_steer_one() -> None:
    r = Facts("r2")
    assert refused(decide(TURN1, r, message=r.user(steering=True))) == "transition_shape_conflict"


@pytest.mark.parametrize("change", ["nothing", "run_id", "high_water", "digest"])
def test_the_history_of_a_turn_ends_with_all_that_its_session_holds(change: str) -> None:
    """A turn that was read before a late fact came would tell the model an outcome that nobody corrects later."""
    r, boundary = Facts("r2"), prefix(R1, TURN1)
    changed = {"run_id": "r0", "high_water": 2, "digest": "f" * 64}
    previous = boundary if change == "nothing" else boundary.model_copy(update={change: changed[change]})
    decision = decide(TURN1, r, opened=r.opened(context=Context(previous=previous)))
    if change == "nothing":
        assert topics(decision)[1] == "run.opened.v1"
    else:
        assert refused(decision) == "transition_shape_conflict"


@pytest.mark.parametrize("status", list(WatchStatus))
def test_effects_that_became_certain_are_watched_for_their_own_turn_only(status: WatchStatus) -> None:
    effect = R1.fact(
        EffectWatched,
        operation_id="o",
        run_id="r1",
        tool_name="write",
        args_hash=DIGEST,
        arguments_only_hash=DIGEST,
        has_arguments=True,
        mode=RecoveryMode.OUTCOME_UNKNOWN,
        status=status,
    )
    cleared = [event for event in accepted(decide([*TURN1, effect], Facts("r2"))) if isinstance(event, EffectCleared)]
    if status in {WatchStatus.RECOVERED, WatchStatus.ATTESTED}:
        assert [(event.operation_id, event.by) for event in cleared] == [("o", ClearedBy.TURN_ENDED)]
    else:
        assert cleared == []


def test_a_completed_run_is_followed_as_well() -> None:
    history = [*TURN1[:-1], R1.ended(RunStatus.COMPLETED)]
    assert topics(decide(history, Facts("r2")))[0] == "session.run_admitted.v1"
