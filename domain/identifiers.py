"""The identities of SPEC section 4: five ids for five questions, and the few that name supporting facts.

Each is its own type, so that a checker refuses one where another is meant. All are opaque text of 1 to 200
characters without control characters; `parse_id` is the one place that says so.
"""

from __future__ import annotations

import hashlib
import re
from typing import Annotated, NamedTuple, NewType, TypeAlias

from pydantic import StringConstraints

ID_LENGTH_MAX = 200
_PATTERN = r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]{1,200}$"
# Python's text may hold lone surrogates, which no stored text can; the expression above is never shown any. To compile
# this one takes as long as to import a dozen modules, so it waits until somebody asks.
_ID = r"[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]{1,200}"

SessionId = NewType("SessionId", str)
TurnId = NewType("TurnId", str)
RunId = NewType("RunId", str)
InvocationId = NewType("InvocationId", str)
OperationId = NewType("OperationId", str)

EventId = NewType("EventId", str)
ToolCallId = NewType("ToolCallId", str)
StepId = NewType("StepId", str)
ClaimId = NewType("ClaimId", str)
RequestId = NewType("RequestId", str)
GrantId = NewType("GrantId", str)
NoticeId = NewType("NoticeId", str)
HandleId = NewType("HandleId", str)
IncarnationId = NewType("IncarnationId", str)

_Text = StringConstraints(min_length=1, max_length=ID_LENGTH_MAX, pattern=_PATTERN)

SessionIdField: TypeAlias = Annotated[SessionId, _Text]
TurnIdField: TypeAlias = Annotated[TurnId, _Text]
RunIdField: TypeAlias = Annotated[RunId, _Text]
InvocationIdField: TypeAlias = Annotated[InvocationId, _Text]
OperationIdField: TypeAlias = Annotated[OperationId, _Text]
EventIdField: TypeAlias = Annotated[EventId, _Text]
ToolCallIdField: TypeAlias = Annotated[ToolCallId, _Text]
StepIdField: TypeAlias = Annotated[StepId, _Text]
ClaimIdField: TypeAlias = Annotated[ClaimId, _Text]
RequestIdField: TypeAlias = Annotated[RequestId, _Text]
GrantIdField: TypeAlias = Annotated[GrantId, _Text]
NoticeIdField: TypeAlias = Annotated[NoticeId, _Text]
HandleIdField: TypeAlias = Annotated[HandleId, _Text]
IncarnationIdField: TypeAlias = Annotated[IncarnationId, _Text]


class ExecutionIdentity(NamedTuple):
    """Where an event belongs: one invocation is exactly one (session, run, turn). SPEC section 4."""

    session_id: SessionId
    run_id: RunId
    turn_id: TurnId
    invocation_id: InvocationId


def parse_id(text: str, what: str) -> str:
    """Return `text` when it is a legal id, so that a caller may wrap it in its type.

    Args:
        text: 1 to 200 characters, none of them a control character, line separator or lone surrogate.
        what: the name of the id in the error, such as "session id".

    Raises:
        ValueError: the text is empty, too long or holds a control character. SPEC section 4.
    """
    plain = text.isascii() and text.isprintable() and 0 < len(text) <= ID_LENGTH_MAX
    if not plain and not re.fullmatch(_ID, text):
        raise ValueError(
            f"{what} must be 1 to {ID_LENGTH_MAX} characters without control characters, not {text[:40]!r}"
        )
    return text


def session_stream(session_id: SessionId) -> str:
    """Name the event stream of a session. SPEC section 3."""
    return f"session:{session_id}"


def run_stream(run_id: RunId) -> str:
    """Name the event stream of a run. SPEC section 3."""
    return f"run:{run_id}"


def session_of(stream: str) -> SessionId | None:
    """The session whose event stream has this name; None for any other stream."""
    kind, _, name = stream.partition(":")
    return SessionId(name) if kind == "session" else None


def run_of(stream: str) -> RunId | None:
    """The run whose event stream has this name; None for any other stream."""
    kind, _, name = stream.partition(":")
    return RunId(name) if kind == "run" else None


def derive_id(seed: str, *labels: str) -> str:
    """Make an id that is a pure function of another, for facts that a decision derives: the same on every retry (F16).

    Args:
        seed: the id that the command brought.
        labels: what tells the derived ids of one seed apart.
    """
    text = "\x00".join((seed, *labels))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def key_of(operation_id: OperationId) -> str:
    """The stable key of an operation, for whoever it talks to. F20."""
    return derive_id(operation_id, "key")
