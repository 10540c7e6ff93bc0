"""Which policy permits nothing more than which. SPEC section 13, F6."""

from __future__ import annotations

import itertools

import pytest

from safepoint.domain.events.run import NOT_RECORDED
from safepoint.domain.permission_policy import NAME_CHARS_MAX, Otherwise, PermissionPolicy, name_of, narrows

MANY = [f"tool-{number}" for number in range(500)]


def listed(*names: str, otherwise: str = "deny") -> str:
    return name_of(names, otherwise)


NARROWER = [
    ("ask", "deny"),
    ("allow *, else ask", "allow *, else deny"),
    ("allow *, else ask", "ask"),
    ("allow *, else ask", "deny"),
    ("allow *, else deny", listed("pay", "read")),
    (listed("pay", "read"), listed("pay")),
    (listed("pay", "read"), "deny"),
    (listed("pay", otherwise="ask"), listed("pay")),
    (listed("pay", otherwise="ask"), "ask"),
    (listed(*MANY), "deny"),
    (listed(*MANY, otherwise="ask"), listed(*MANY)),
    (listed("pay"), listed()),
    ("theirs", "deny"),  # whatever it permits
    ("theirs", listed()),
    ("", "deny"),
    (NOT_RECORDED, "deny"),
    (NOT_RECORDED, "ask"),  # a person says yes or no to each, as if none had been said
]
WIDER_OR_UNKNOWN = [
    *((now, recorded) for recorded, now in NARROWER if (recorded, now) != (listed("pay"), listed())),
    ("deny", "allow *, else deny"),
    ("allow *, else deny", "ask"),  # a repeat that was denied would be asked about
    ("allow *, else deny", listed("pay", otherwise="ask")),
    (listed("pay"), listed("read")),
    (listed(*MANY), listed("tool-1")),  # only its digest is known
    (listed(*MANY), listed(*MANY, "tool-500")),
    ("theirs", "ask"),
    ("theirs", listed("pay")),
    (NOT_RECORDED, listed("pay")),
    (NOT_RECORDED, listed("pay", otherwise="ask")),
    (NOT_RECORDED, "allow *, else ask"),
    (NOT_RECORDED, "theirs"),
    (NOT_RECORDED, NOT_RECORDED),
]


@pytest.mark.parametrize(("recorded", "now"), NARROWER)
def test_a_policy_that_permits_less_narrows(recorded: str, now: str) -> None:
    assert narrows(recorded, now)


@pytest.mark.parametrize(("recorded", "now"), WIDER_OR_UNKNOWN)
def test_a_policy_that_may_permit_more_does_not(recorded: str, now: str) -> None:
    assert not narrows(recorded, now)


def level(policy: PermissionPolicy, tool: str) -> int:
    allowed = policy.allow_all or (policy.allowed is not None and tool in policy.allowed)
    return 2 if allowed else int(policy.otherwise is Otherwise.ASK)


def test_it_is_what_looking_at_every_call_gives() -> None:
    """For every pair of small policies: no tool, known or not, and no repeat is treated more kindly."""
    tools = ("a", "b", "another")
    policies = [
        PermissionPolicy(otherwise, frozenset(allowed), allow_all)
        for otherwise in Otherwise
        for allow_all in (False, True)
        for size in range(3)
        for allowed in itertools.combinations(("a", "b"), size)
    ]
    for before, after in itertools.product(policies, repeat=2):
        kinder = any(level(after, tool) > level(before, tool) for tool in tools)
        kinder_to_repeats = after.otherwise is Otherwise.ASK and before.otherwise is Otherwise.DENY
        assert after.permits_nothing_more_than(before) is not (kinder or kinder_to_repeats), (before, after)


@pytest.mark.parametrize("name", ["ask", "deny", "allow *, else ask", 'allow ["b","a"], else deny', listed(*MANY)])
def test_a_name_says_what_is_permitted(name: str) -> None:
    policy = PermissionPolicy.named(name)
    assert policy is not None
    assert len(name) <= NAME_CHARS_MAX
    assert policy.permits_nothing_more_than(policy)


@pytest.mark.parametrize(
    "name",
    ["", "theirs", "allow x, else ask", "allow {}, else ask", "allow [1], else ask", "allow sha256:00, else ask"],
)
def test_another_name_says_nothing(name: str) -> None:
    assert PermissionPolicy.named(name) is None
