"""What the scanner is fed: one small value per event, in the lane that the event belongs to.

Our own events become facts in `event_facts`; an importer makes them from its envelopes. The scanner therefore knows
no storage format, and a fact is the same before and after its event is sealed. SPEC sections 5, 9 and 10.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, TypeAlias

from ..identifiers import ExecutionIdentity


class Flaw(StrEnum):
    """A fault that only foreign envelopes can have; our own events cannot express it."""

    MALFORMED = "malformed"
    """The content is not of the shape that its kind requires."""
    REFERENCES_DISAGREE = "references_disagree"
    """The envelope's references name another operation or call than its content."""


class Ordinary(NamedTuple):
    """Any fact that is not a tool's: text, steps, permissions, workspace. `late`: may follow the terminal event."""

    event_id: str
    identity: ExecutionIdentity
    late: bool = False
    marker: str | None = None


class Opened(NamedTuple):
    """The first fact of a run of ours; `marker` is the tool-boundary protocol that it declares."""

    event_id: str
    identity: ExecutionIdentity
    marker: str | None = None


class Ended(NamedTuple):
    """The terminal fact."""

    event_id: str
    identity: ExecutionIdentity
    marker: str | None = None


class Claimed(NamedTuple):
    """The seal of a continuation; nothing follows."""

    event_id: str
    identity: ExecutionIdentity


class Conflicted(NamedTuple):
    """An envelope that speaks in two lanes, or not in the form of the one that it claims."""

    event_id: str
    identity: ExecutionIdentity
    marker: str | None = None


class Called(NamedTuple):
    """The model asked for a tool; `args_hash` is recomputed from the arguments, None when they were not strict JSON."""

    event_id: str
    identity: ExecutionIdentity
    call_id: str
    tool_name: str
    args_hash: str | None


class Dispatched(NamedTuple):
    """T1."""

    event_id: str
    identity: ExecutionIdentity
    operation_id: str
    call_id: str
    tool_name: str
    args_hash: str
    mode: str
    flaw: Flaw | None = None


class Responded(NamedTuple):
    """T2 when it names an operation; otherwise an answer that was made before T1."""

    event_id: str
    identity: ExecutionIdentity
    call_id: str
    tool_name: str
    operation_id: str | None
    is_error: bool
    effect: str
    flaw: Flaw | None = None


class RedeliveryStarted(NamedTuple):
    """A second delivery with the recorded key is about to start."""

    event_id: str
    identity: ExecutionIdentity
    operation_id: str
    call_id: str | None = None


class Reconciled(NamedTuple):
    """What the outside world looked like; `call_id` where the envelope states one."""

    event_id: str
    identity: ExecutionIdentity
    operation_id: str
    observation: str
    call_id: str | None = None
    flaw: Flaw | None = None


class Decided(NamedTuple):
    """The end of a recovery."""

    event_id: str
    identity: ExecutionIdentity
    operation_id: str
    disposition: str
    reason: str
    evidence: tuple[str, ...]
    outcome_event_id: str | None = None
    call_id: str | None = None
    flaw: Flaw | None = None


class Attested(NamedTuple):
    """A person's statement; `supersedes` names the decision that it replaces."""

    event_id: str
    identity: ExecutionIdentity
    operation_id: str
    statement: str
    supersedes: str | None = None
    call_id: str | None = None


RecoveryFact: TypeAlias = RedeliveryStarted | Reconciled | Decided | Attested
Fact: TypeAlias = Ordinary | Opened | Ended | Claimed | Conflicted | Called | Dispatched | Responded | RecoveryFact
