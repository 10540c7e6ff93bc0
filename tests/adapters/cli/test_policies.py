"""Which calls need a person: options, what a run recorded, or the default."""

from __future__ import annotations

import pytest

from safepoint.adapters.cli.policies import PolicyOptions, described, gate_of
from safepoint.adapters.cli.usage import UsageError

TOOLS = ("read_file", "write_file", "run_shell")


def policy(options: PolicyOptions, *, scripted: bool = False, recorded: str | None = None) -> str:
    return gate_of(options, tools=TOOLS, scripted=scripted, recorded=recorded).policy_id()


@pytest.mark.parametrize(
    ("options", "scripted", "expected"),
    [
        (PolicyOptions(), True, "allow *, else deny"),
        (PolicyOptions(), False, "deny"),
        (PolicyOptions(ask=True), False, "ask"),
        (PolicyOptions(ask=True), True, "ask"),
        (PolicyOptions(deny=True), True, "deny"),
        (PolicyOptions(allow_all=True), False, "allow *, else deny"),
        (PolicyOptions(allow=("write_file",)), False, 'allow ["write_file"], else deny'),
        (PolicyOptions(allow=("write_file",), ask=True), True, 'allow ["write_file"], else ask'),
    ],
)
def test_without_a_terminal(options: PolicyOptions, scripted: bool, expected: str) -> None:
    assert policy(options, scripted=scripted) == expected


def test_with_a_terminal_the_person_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("safepoint.adapters.cli.policies.has_terminal", lambda: True)
    assert policy(PolicyOptions()) == "ask"
    assert policy(PolicyOptions(deny=True)) == "deny"
    assert policy(PolicyOptions(), scripted=True) == "allow *, else ask"


@pytest.mark.parametrize(
    "recorded",
    ["ask", "deny", "allow *, else deny", "allow *, else ask", 'allow ["run_shell","write_file"], else ask'],
)
def test_a_recorded_policy_is_made_again(recorded: str) -> None:
    assert policy(PolicyOptions(), recorded=recorded) == recorded


@pytest.mark.parametrize(
    "recorded",
    ["", "allow sha256:00, else ask", "theirs", "allow {}, else ask", "allow [, else ask", "allow [x], else ask"],
)
def test_a_policy_that_cannot_be_made_again_gives_the_default_and_never_permits_all(recorded: str) -> None:
    assert policy(PolicyOptions(), recorded=recorded) == "deny"
    assert policy(PolicyOptions(), recorded=recorded, scripted=True) == "deny"


def test_an_option_outweighs_what_was_recorded() -> None:
    assert policy(PolicyOptions(deny=True), recorded="allow *, else ask") == "deny"


def test_a_tool_that_is_not_there_is_not_permitted() -> None:
    with pytest.raises(UsageError, match="There is no tool named write_fiel"):
        policy(PolicyOptions(allow=("write_fiel",)))


def test_asking_and_denying_contradict_each_other() -> None:
    with pytest.raises(UsageError, match="contradict"):
        policy(PolicyOptions(ask=True, deny=True))


@pytest.mark.parametrize(
    ("options", "recorded", "expected"),
    [
        (PolicyOptions(ask_elsewhere=True), None, "ask (as asked)"),
        (PolicyOptions(ask_elsewhere=True), "ask", "ask (as the run recorded)"),
        (PolicyOptions(ask_elsewhere=True), "deny", "ask (as asked)"),
        (
            PolicyOptions(ask_elsewhere=True),
            'allow ["write_file"], else ask',
            'allow ["write_file"], else ask (as the run recorded)',
        ),
        (PolicyOptions(deny=True), "ask", "deny (as asked)"),
        (PolicyOptions(), None, "deny (by default)"),
    ],
)
def test_where_a_policy_comes_from_is_said(options: PolicyOptions, recorded: str | None, expected: str) -> None:
    """Where a person sits is none of the policy: a resume that asks elsewhere keeps what the run recorded."""
    gate = gate_of(options, tools=TOOLS, scripted=False, recorded=recorded)
    assert described(gate, options, recorded) == expected


def test_asking_elsewhere_and_denying_contradict_each_other() -> None:
    with pytest.raises(UsageError, match="contradict"):
        policy(PolicyOptions(ask_elsewhere=True, deny=True))
