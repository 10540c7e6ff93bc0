"""The contract of `PermissionGate`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ...domain.events.run import NOT_RECORDED
from ...domain.events.tool import RecoveryMode
from ...domain.identifiers import OperationId, RequestId, SessionId
from ..permission_gate import Allowed, AskReason, PermissionGate, PermissionRequest, Undecided


class NeverSet:
    """A signal that nobody gives."""

    def is_set(self) -> bool:
        """False."""
        return False


class AlreadySet:
    """A signal that was given."""

    def is_set(self) -> bool:
        """True."""
        return True


QUESTION = PermissionRequest(
    request_id=RequestId("request-1"),
    session_id=SessionId("session-1"),
    tool_name="pay",
    arguments={"amount": 3},
    args_hash="a" * 64,
    contract_digest="c" * 64,
    mode=RecoveryMode.OUTCOME_UNKNOWN,
)
"""A question about a call that has an effect."""


class PermissionGateContract:
    """Subclass it, override the fixtures, and pytest checks an implementation of the port."""

    @pytest.fixture
    def gate(self) -> PermissionGate:
        """The implementation; nobody answers its questions."""
        pytest.fail("override the fixture `gate`")

    @pytest.fixture
    def equal_gate(self) -> PermissionGate:
        """Another object with an equal policy."""
        pytest.fail("override the fixture `equal_gate`")

    def test_reading_is_never_asked_about(self, gate: PermissionGate) -> None:
        reading = replace(QUESTION, mode=RecoveryMode.REPLAY_SAFE)
        assert isinstance(gate.by_policy(reading), Allowed)
        assert isinstance(gate.decide(reading, NeverSet()), Allowed)

    @pytest.mark.parametrize("mode", RecoveryMode)
    def test_no_policy_allows_the_repeat_of_an_unsettled_effect(self, gate: PermissionGate, mode: RecoveryMode) -> None:
        repeat = replace(
            QUESTION, mode=mode, reason=AskReason.REPEAT_OF_UNSETTLED_EFFECT, repeats=OperationId("operation-1")
        )
        assert not isinstance(gate.by_policy(repeat), Allowed)
        assert not isinstance(gate.decide(repeat, NeverSet()), Allowed)

    def test_a_policy_answers_or_leaves_it_to_a_person(self, gate: PermissionGate) -> None:
        by_policy = gate.by_policy(QUESTION)
        assert not isinstance(by_policy, Undecided)
        decided = gate.decide(QUESTION, NeverSet())
        assert decided == by_policy if by_policy is not None else isinstance(decided, Undecided)

    def test_whoever_is_cancelled_allows_nothing_that_a_person_must_allow(self, gate: PermissionGate) -> None:
        if gate.by_policy(QUESTION) is None:
            assert isinstance(gate.decide(QUESTION, AlreadySet()), Undecided)

    def test_equal_policies_have_equal_names(self, gate: PermissionGate, equal_gate: PermissionGate) -> None:
        assert gate.policy_id() == equal_gate.policy_id()
        assert 1 <= len(gate.policy_id()) <= 2_000
        assert gate.policy_id() != NOT_RECORDED

    def test_asking_does_not_change_the_policys_name(self, gate: PermissionGate) -> None:
        before = gate.policy_id()
        gate.decide(QUESTION, NeverSet())
        assert gate.policy_id() == before
