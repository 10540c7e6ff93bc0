"""The story that the demo tells: one agent, five instants of death, and what must be counted after each.

The agent changes `config.json` from port 3000 to 4000 and then records a payment. It is killed while it changes the
file.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...ports.failpoints import Failpoint

PORT_BEFORE = '{"port": 3000}\n'
PORT_AFTER = '{"port": 4000}\n'
PORT_OF_SOMEBODY_ELSE = '{"port": 5000}\n'
PAYMENT = "paid 10.00 to the hosting company"

SCRIPT = {
    "calls_log": "requests.jsonl",
    "repeat_not_executed": True,
    "steps": [
        {
            "text": "I change the port.",
            "calls": [{"tool": "write_file", "args": {"path": "config.json", "content": PORT_AFTER}}],
        },
        {
            "text": "I pay for it.",
            "calls": [{"tool": "record_effect", "args": {"path": "payments.txt", "line": PAYMENT}}],
        },
        {"text": "The port is 4000 and the bill is paid."},
    ],
}
"""What the scripted agent does; a step that was not executed is asked for again, as a model would."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What the parent process counts from files: requests to the provider, writes of the file, payments."""

    requests: int
    writes: int
    payments: int


@dataclass(frozen=True, slots=True)
class Act:
    """One death.

    Attributes:
        edited: another process changes the file before anybody looks again.
        verdict, reason: what the resolver must say of the write.
        decision: `continue` or `park`, before anybody looked at the file again.
        observation: what a look at the file must find, None where nothing is open.
        killed: counted after the death.
        ended: counted when everything that may go on has gone on.
    """

    key: str
    instant: str
    failpoint: Failpoint
    edited: bool
    verdict: str
    reason: str
    decision: str
    observation: str | None
    killed: Counts
    ended: Counts


ACTS = (
    Act(
        "a",
        "before T1",
        Failpoint.STEP_RECORDED,
        False,
        "definitely_not_dispatched",
        "new_protocol_before_dispatch",
        "continue",
        None,
        Counts(1, 0, 0),
        Counts(4, 1, 1),
    ),
    Act(
        "b",
        "after T1, before the write",
        Failpoint.T1_COMMITTED,
        False,
        "indeterminate",
        "dispatch_without_response",
        "park",
        "matches_prior_state",
        Counts(1, 0, 0),
        Counts(1, 0, 0),
    ),
    Act(
        "c",
        "after the write, before T2",
        Failpoint.EFFECT_DONE,
        False,
        "indeterminate",
        "dispatch_without_response",
        "park",
        "matches_expected_state",
        Counts(1, 1, 0),
        Counts(3, 1, 1),
    ),
    Act(
        "d",
        "as (c), then edited by another process",
        Failpoint.EFFECT_DONE,
        True,
        "indeterminate",
        "dispatch_without_response",
        "park",
        "diverged",
        Counts(1, 1, 0),
        Counts(1, 1, 0),
    ),
    Act(
        "e",
        "after T2",
        Failpoint.T2_COMMITTED,
        False,
        "completed",
        "matching_response",
        "continue",
        None,
        Counts(1, 1, 0),
        Counts(3, 1, 1),
    ),
)
"""Every act of the story, with the exact counts that prove it."""
