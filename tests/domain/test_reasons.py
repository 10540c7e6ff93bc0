"""The table of codes against SPEC section 22, of which a copy stands beside this file."""

from __future__ import annotations

import ast
import re
from enum import StrEnum
from pathlib import Path
from typing import get_args

import pytest

from safepoint.domain import explanations, reasons
from safepoint.domain.explanations import EXPLANATIONS, explain

SECTION = (Path(__file__).parent / "spec_section_22.md").read_text()
GROUPS: dict[str, type[StrEnum]] = {
    "Park reasons": reasons.ParkReason,
    "Revalidation codes": reasons.RevalidationCode,
    "Ledger issues": reasons.LedgerIssue,
    "Refusals of a write": reasons.WriteRefusal,
    "Preflight and response codes": reasons.ResponseCode,
    "Recovery reasons": reasons.RecoveryReason,
    "Failure classes": reasons.FailureClass,
}
KINDS: tuple[type[StrEnum], ...] = get_args(reasons.Code)
ALL_CODES = [code for kind in KINDS for code in kind]
EXPECTED_STATES = {"resume_feature_disabled", "resume_candidate_missing", "session_busy"}
# The commands that this version has; a later one that adds `settle` names it in the table and here.
COMMANDS = {
    *("run", "list", "status", "show", "plan", "resume", "cancel", "verify", "demo"),
    *(
        "rebuild",
        "adopt",
        "backup",
        "restore",
        "takeover",
        "settle",
        "abandon",
        "approve",
        "deny",
        "workspace",
        "reconcile",
    ),
}


def codes_of(group: str) -> list[str]:
    """The codes that the section lists under one bold heading, in its order."""
    text = re.split(rf"\*\*{group}\.?\*\*", SECTION)[1].split("**")[0]
    return re.findall(r"`([a-z0-9_]+)`", text)


@pytest.mark.parametrize(("group", "kind"), GROUPS.items())
def test_each_group_holds_exactly_the_codes_of_the_specification(group: str, kind: type[StrEnum]) -> None:
    assert [code.value for code in kind] == codes_of(group)


def test_every_kind_of_code_of_the_specification_has_its_enumeration() -> None:
    assert set(re.findall(r"\*\*([^*]+?)\.?\*\*", SECTION)) == set(GROUPS)
    assert set(GROUPS.values()) <= set(KINDS)
    in_module = {
        value
        for value in vars(reasons).values()
        if isinstance(value, type) and issubclass(value, StrEnum) and value is not StrEnum
    }
    assert set(KINDS) == in_module


def test_the_table_explains_every_code_and_nothing_else() -> None:
    assert set(EXPLANATIONS) == {code.value for code in ALL_CODES}


def test_no_code_is_explained_twice() -> None:
    tree = ast.parse(Path(explanations.__file__).read_text())
    keys = [
        key.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Dict)
        for key in node.keys
        if isinstance(key, ast.Attribute)
    ]
    assert len(keys) == len(set(keys)) == len(EXPLANATIONS)


@pytest.mark.parametrize("code", sorted(EXPLANATIONS))
def test_every_code_has_a_plain_sentence_and_a_next_step(code: str) -> None:
    explanation = explain(code)
    for text in (explanation.sentence, explanation.next_step):
        assert text.endswith(".")
        assert text[0].isupper()
        assert 20 <= len(text) <= 200
    # A sentence for people does not lean on the code, or on words that only the specification uses.
    jargon = re.compile(r"[a-z]+_[a-z]|\b(T1|T2|high-water|canonical|projection|bundle|idempoten\w+)\b")
    assert not jargon.search(explanation.sentence)


def test_only_the_ordinary_states_are_shown_as_hints() -> None:
    assert {code for code, explanation in EXPLANATIONS.items() if explanation.expected} == EXPECTED_STATES


def test_next_steps_name_only_commands_that_exist() -> None:
    steps = " ".join(explanation.next_step for explanation in EXPLANATIONS.values())
    named = set(re.findall(r"`safepoint ([a-z]+)", steps))
    assert named <= COMMANDS
    assert {"show", "plan", "resume", "run", "verify", "adopt", "restore"} <= named


def test_one_code_text_in_two_kinds_has_one_explanation() -> None:
    for text in ("owner_fenced", "session_busy", "store_unavailable"):
        assert explain(reasons.ParkReason(text)) is explain(reasons.WriteRefusal(text)) is explain(text)


def test_an_unknown_code_is_an_error() -> None:
    with pytest.raises(KeyError):
        explain("feature_off")
