"""Policies that answer without a person."""

from __future__ import annotations

from dataclasses import replace

import pytest

from safepoint.adapters.memory.permission_gate import ScriptedGate
from safepoint.adapters.permission.allow_list import AllowListGate
from safepoint.adapters.permission.deny import DenyGate
from safepoint.ports.contract_kit.permission_gate import QUESTION, NeverSet
from safepoint.ports.permission_gate import Allowed, AskReason, Denied, PermissionAnswer, PermissionRequest

REPEAT = replace(QUESTION, reason=AskReason.REPEAT_OF_UNSETTLED_EFFECT)


def test_what_is_listed_is_allowed_and_nobody_is_asked() -> None:
    person = ScriptedGate({})
    assert AllowListGate(["pay"], person).decide(QUESTION, NeverSet()) == Allowed("policy")
    assert person.asked == []


@pytest.mark.parametrize("answer", [Allowed("ann"), Denied("ann", "no")])
def test_what_is_not_listed_is_decided_by_the_other_policy(answer: PermissionAnswer) -> None:
    gate = AllowListGate(["pay_less"], ScriptedGate({"pay": answer}))
    assert gate.by_policy(QUESTION) is None
    assert gate.decide(QUESTION, NeverSet()) == answer


def test_a_person_may_allow_a_repeat_of_what_is_listed() -> None:
    gate = AllowListGate(["pay"], ScriptedGate({"pay": Allowed("ann")}))
    assert gate.by_policy(REPEAT) is None
    assert gate.decide(REPEAT, NeverSet()) == Allowed("ann")


@pytest.mark.parametrize(("asked", "told"), [(QUESTION, "does not permit pay"), (REPEAT, "nobody can be asked")])
def test_a_denial_says_why(asked: PermissionRequest, told: str) -> None:
    answer = DenyGate().decide(asked, NeverSet())
    assert isinstance(answer, Denied)
    assert told in answer.why


def test_names_are_exact() -> None:
    gate = AllowListGate(["pay*", "PAY", "pa"], DenyGate())
    assert isinstance(gate.decide(QUESTION, NeverSet()), Denied)
