"""What the facts of a session amount to. SPEC sections 3 and 13, F9."""

from __future__ import annotations

from typing import Any

from safepoint.domain.events.catalogue import EVENTS
from safepoint.domain.events.event import SessionEvent
from safepoint.domain.events.session import (
    ClearedBy,
    EffectCleared,
    EffectWatched,
    GrantsTaken,
    NoticesTaken,
    OperationAttested,
    RunAbandoned,
    WatchStatus,
)
from safepoint.domain.events.tool import RecoveryMode, Statement
from safepoint.domain.session.state import Session, evolve

from ..facts import DIGEST, Facts, session_of

R1, R2 = Facts("r1"), Facts("r2")


def watched(operation_id: str, status: WatchStatus = WatchStatus.INDETERMINATE) -> EffectWatched:
    return R1.fact(
        EffectWatched,
        operation_id=operation_id,
        run_id="r1",
        tool_name="write",
        args_hash=DIGEST,
        arguments_only_hash=DIGEST,
        has_arguments=True,
        mode=RecoveryMode.OUTCOME_UNKNOWN,
        status=status,
    )


def taken(notice_ids: tuple[str, ...] = (), grant_ids: tuple[str, ...] = ()) -> list[SessionEvent]:
    return [
        R2.fact(NoticesTaken, run_id="r2", notice_ids=notice_ids),
        R2.fact(GrantsTaken, run_id="r2", grant_ids=grant_ids),
    ]


def asked(**fields: Any) -> Any:
    R1.step("c")
    return R1.requested("c", **fields)


def test_the_last_admitted_run_is_the_head_and_the_one_before_it_is_known() -> None:
    first, second = R1.admitted(), R2.admitted()
    session = session_of([R1.session_opened(), first, second])
    assert (session.head, session.previous) == (second, first)


def test_notices_and_grants_wait_until_they_are_taken_over_once() -> None:
    one, two = R1.notice(notice_id="n1"), R1.notice(notice_id="n2")
    grants = R1.grant(asked(), "g1"), R1.grant(asked(), "g2")
    waiting = session_of([R1.session_opened(), R1.admitted(), one, two, *grants])
    assert (waiting.notices, waiting.grants) == ((one, two), grants)
    later = R1.notice(notice_id="n3")
    after = session_of([R1.session_opened(), one, two, *grants, later, R2.admitted(), *taken(("n1", "n2"), ("g1",))])
    assert after.notices == (later,)
    assert after.grants == (grants[1],)
    assert dict(after.granted) == {"g1": grants[0]}


def test_what_a_run_did_not_use_of_its_grants_lapses_with_it() -> None:
    given = [R1.session_opened(), R1.admitted(), R1.grant(asked()), R2.admitted(), *taken(grant_ids=("g1",))]
    assert list(session_of(given).granted) == ["g1"]
    assert list(session_of([*given, Facts("r3").admitted()]).granted) == []


def test_an_effect_is_watched_until_it_is_cleared_and_its_status_can_change() -> None:
    given = [watched("o1"), watched("o2"), watched("o1", WatchStatus.RECOVERED)]
    session = session_of(given)
    assert {key: effect.status for key, effect in session.watched.items()} == {
        "o1": WatchStatus.RECOVERED,
        "o2": WatchStatus.INDETERMINATE,
    }
    cleared = R1.fact(EffectCleared, operation_id="o1", by=ClearedBy.SETTLED)
    assert list(session_of([*given, cleared, cleared]).watched) == ["o2"]


def test_an_abandoned_run_is_remembered() -> None:
    abandoned = R1.fact(RunAbandoned, run_id="r1", by="Ada", note="", last_good_sequence=3)
    assert session_of([abandoned]).abandoned == {"r1"}


def attested(operation_id: str, statement: Statement) -> OperationAttested:
    said = {"run_id": "r1", "tool_name": "pay", "statement": statement, "by": "Ada", "note": "seen"}
    return R1.fact(OperationAttested, operation_id=operation_id, **said)


def test_what_a_person_said_of_an_operation_is_remembered_and_that_it_is_over_beside_it() -> None:
    one, two = attested("o1", Statement.NOT_EXECUTED), attested("o2", Statement.OVER)
    session = session_of([one, two])
    assert dict(session.attested) == {one.operation_id: one}
    assert session.declared_over == {two.operation_id}


def test_every_fact_of_a_session_has_a_rule() -> None:
    handled = {type(event) for event in (R1.session_opened(), R1.admitted(), watched("o"), R1.notice(), *taken())}
    handled |= {type(R1.grant(asked())), EffectCleared, OperationAttested, RunAbandoned}
    assert handled == {cls for cls in EVENTS.values() if issubclass(cls, SessionEvent)}


def test_folding_changes_no_earlier_state() -> None:
    before = session_of([R1.session_opened(), R1.admitted(), watched("o1"), R1.notice()])
    copy = Session(**vars(before))
    for event in (watched("o2"), R1.fact(EffectCleared, operation_id="o1", by=ClearedBy.SETTLED), *taken(("n1",))):
        evolve(before, event)
    assert before == copy
