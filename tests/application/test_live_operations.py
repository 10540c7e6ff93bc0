"""What is left of a session in this process, and what happens when the last of it is over. SPEC section 15."""

from __future__ import annotations

from safepoint.application.live_operations import LiveOperations
from safepoint.domain.identifiers import OperationId, SessionId

A, B = OperationId("a"), OperationId("b")
ONE, TWO = SessionId("one"), SessionId("two")


def test_an_operation_is_live_from_before_t1_until_nothing_of_it_is_left() -> None:
    live = LiveOperations()
    assert A not in live
    assert not live.any_began
    live.began(A, ONE)
    assert A in live
    assert live.of(ONE)
    assert not live.of(TWO)
    live.ended(A)
    live.ended(A)
    assert A not in live
    assert len(live) == 0
    assert live.any_began


def test_what_is_to_happen_when_a_session_is_over_happens_once_after_its_last_operation() -> None:
    live = LiveOperations()
    happened: list[str] = []
    live.began(A, ONE)
    live.began(B, ONE)
    live.when_over(ONE, lambda: happened.append("over"))
    live.ended(A)
    assert happened == []
    live.ended(B)
    assert happened == ["over"]
    live.began(A, ONE)
    live.ended(A)
    assert happened == ["over"]


def test_a_session_of_which_nothing_is_left_is_over_at_once_whatever_runs_in_others() -> None:
    live = LiveOperations()
    happened: list[str] = []
    live.began(A, TWO)
    live.when_over(ONE, lambda: happened.append("over"))
    assert happened == ["over"]
