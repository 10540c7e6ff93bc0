"""What must be true after a kill at each failpoint: the harness's own copy of `docs/crash-contract.md`.

All numbers are for one story: the model asks for one call of a tool, and then says "Done.". Exact, never "at most".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from safepoint.ports.failpoints import Failpoint


class Verdict(StrEnum):
    """The verdict on the one call, with its reason."""

    NO_CALL = "no call recorded"
    NOT_DISPATCHED = "definitely_not_dispatched / new_protocol_before_dispatch"
    INDETERMINATE = "indeterminate / dispatch_without_response"
    COMPLETED = "completed / matching_response"


class Resume(StrEnum):
    """What resuming does."""

    CONTINUES = "continues"
    PARKS = "parks: dangling_tool_state"
    NOTHING_TO_DO = "parks: resume_candidate_missing"

    @property
    def code(self) -> str | None:
        """The park reason."""
        return None if self is Resume.CONTINUES else self.value.removeprefix("parks: ")


@dataclass(frozen=True, slots=True)
class Expectation:
    """One row of the crash contract.

    Attributes:
        effects: how often the effect has happened right after the kill, and still after the resume.
        requests: how often the provider was asked, likewise.
        verdict: on the call, right after the kill.
        resume: what a resume then does.
    """

    effects: tuple[int, int]
    requests: tuple[int, int]
    verdict: Verdict
    resume: Resume


_UNKNOWN_BEFORE = Expectation((0, 0), (1, 1), Verdict.INDETERMINATE, Resume.PARKS)
_UNKNOWN_AFTER = Expectation((1, 1), (1, 1), Verdict.INDETERMINATE, Resume.PARKS)
_ANSWERED = Expectation((1, 1), (1, 2), Verdict.COMPLETED, Resume.CONTINUES)
_DONE = Expectation((1, 1), (2, 2), Verdict.COMPLETED, Resume.NOTHING_TO_DO)
_SPOKEN = Expectation((1, 1), (2, 3), Verdict.COMPLETED, Resume.CONTINUES)

EXPECTED: Final[Mapping[Failpoint, Expectation]] = MappingProxyType(
    {
        Failpoint.BEFORE_T1: Expectation((0, 1), (1, 3), Verdict.NO_CALL, Resume.CONTINUES),
        Failpoint.STEP_RECORDED: Expectation((0, 0), (1, 2), Verdict.NOT_DISPATCHED, Resume.CONTINUES),
        Failpoint.T1_COMMITTED: _UNKNOWN_BEFORE,
        Failpoint.IMPLEMENTATION_RUNNING: _UNKNOWN_BEFORE,
        Failpoint.EFFECT_DONE: _UNKNOWN_AFTER,
        Failpoint.RESPONSE_WRITTEN: _UNKNOWN_AFTER,
        Failpoint.T2_COMMITTED: _ANSWERED,
        Failpoint.RESULT_DELIVERED: _ANSWERED,
        Failpoint.BEFORE_TERMINAL: _SPOKEN,
        Failpoint.AFTER_TERMINAL: _DONE,
        Failpoint.RECOVERY_DECIDED: _UNKNOWN_AFTER,
        Failpoint.CLAIM_COMMITTED: _ANSWERED,
        Failpoint.START_COMMITTED: _ANSWERED,
        Failpoint.FIRST_STEP: _SPOKEN,
        Failpoint.CONTINUATION_ENDED: _DONE,
    }
)
"""For a tool whose effect can be counted and whose contract lets recovery do nothing (`never_auto_retry`)."""


@dataclass(frozen=True, slots=True)
class LookedUp:
    """What a look at the file settles after a kill between T1 and T2, and what a resume then does.

    Attributes:
        effects: how often the file was changed, right after the kill, and still after the resume.
        requests: how often the provider was asked, likewise.
    """

    effects: tuple[int, int]
    requests: tuple[int, int]
    observation: str
    became: str


_NOT_WRITTEN = LookedUp((0, 0), (1, 1), "matches_prior_state", "parked: reconcile_matches_prior_state")
_WRITTEN = LookedUp((1, 1), (1, 2), "matches_expected_state", "completed")

OF_FILES: Final[Mapping[Failpoint, LookedUp]] = MappingProxyType(
    {
        Failpoint.T1_COMMITTED: _NOT_WRITTEN,
        Failpoint.IMPLEMENTATION_RUNNING: _NOT_WRITTEN,
        Failpoint.EFFECT_DONE: _WRITTEN,
        Failpoint.RESPONSE_WRITTEN: _WRITTEN,
    }
)
"""For the tools that change a file, with `resume --reconcile`; at every other point the first table holds for them."""

_READ_AGAIN = LookedUp((0, 0), (1, 2), "effect_free", "completed")
_DELIVERED = LookedUp((0, 1), (1, 2), "redelivered", "completed")
_DELIVERED_AGAIN = LookedUp((1, 1), (1, 2), "redelivered", "completed")
_NEVER_STARTED = LookedUp((0, 0), (1, 2), "handle_settled", "completed, an error")
_ENDED = LookedUp((1, 1), (1, 2), "handle_settled", "completed")
_NO_PROMISE = "parked: contract_forbids_recovery"
_BETWEEN: Final = tuple(OF_FILES)

OF_PROMISES: Final[Mapping[str, Mapping[Failpoint, LookedUp]]] = MappingProxyType(
    {
        "replay_safe": dict.fromkeys(_BETWEEN, _READ_AGAIN),
        "idempotent": dict(zip(_BETWEEN, (_DELIVERED, _DELIVERED, _DELIVERED_AGAIN, _DELIVERED_AGAIN), strict=True)),
        "reattach": dict(zip(_BETWEEN, (_NEVER_STARTED, _NEVER_STARTED, _ENDED, _ENDED), strict=True)),
        "never_auto_retry": {
            point: LookedUp((effects, effects), (1, 1), "unreadable", _NO_PROMISE)
            for point, effects in zip(_BETWEEN, (0, 0, 1, 1), strict=True)
        },
    }
)
"""By what the tool promised, with `resume --reconcile`; `reattach` is that of `run_shell`."""

OF_RUNS: Final = tuple(point for point in Failpoint if not point.startswith(("P10", "P11")))
"""The points of an ordinary run, in order."""
OF_CONTINUATIONS: Final = tuple(point for point in Failpoint if point.startswith("P11"))
"""The points of a resume of a run that was killed at P6, in order."""
