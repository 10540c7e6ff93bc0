"""Which answer belongs to which call, where providers repeat ids, leave them out, or write one thing twice.

SPEC sections 4 and 5: an empty or already used id gets a fresh one and the provider's is kept beside it; what is said
twice alike is one thing; what is said twice otherwise is corruption.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from ...domain.events.event import Json
from ...domain.identifiers import derive_id, parse_id
from .exact_json import key_of
from .parts import CallMade, ResultGiven
from .values import Arguments


class CallKind(StrEnum):
    """What a call in a file is."""

    NEW = "new"
    REUSED_ID = "reused_id"
    MADE_ID = "made_id"
    REPEATED = "repeated"
    CLASHING = "clashing"


class ResultKind(StrEnum):
    """What an answer in a file is."""

    ANSWER = "answer"
    REPEATED = "repeated"
    SECOND = "second"
    ORPHAN = "orphan"


@dataclass(slots=True)
class PairedCall:
    """A call and, once it came, its answer."""

    call_id: str
    name: str
    arguments: bytes
    answer: tuple[Json, bool] | None = None


class Pairing:
    """The calls of one run.

    Args:
        run_id: the seed of ids that have to be made.
        answers_left: how many answers the rest of the file holds, by the provider's id.
    """

    def __init__(self, run_id: str, answers_left: Counter[str]) -> None:
        self._run_id = run_id
        self._answers_left = answers_left
        self._calls: dict[str, list[PairedCall]] = {}
        self._made = 0

    @property
    def unanswered(self) -> bool:
        """Whether a call has no answer yet."""
        return any(call.answer is None for calls in self._calls.values() for call in calls)

    def call(self, part: CallMade, arguments: Arguments) -> tuple[CallKind, PairedCall]:
        """Take a call in."""
        known = self._calls.setdefault(part.provider_id, [])
        last = known[-1] if known and part.provider_id else None
        if last is None:
            kind = CallKind.NEW if is_id(part.provider_id) else CallKind.MADE_ID
        else:
            same = (last.name, last.arguments) == (part.name, arguments.key)
            left = self._answers_left[part.provider_id]
            if same and left <= (0 if last.answer is not None else 1):
                return CallKind.REPEATED, last
            if last.answer is None:
                return CallKind.CLASHING, last
            kind = CallKind.REUSED_ID
        call = PairedCall(self._id_for(part.provider_id, kind), part.name, arguments.key)
        known.append(call)
        return kind, call

    def result(self, part: ResultGiven) -> tuple[ResultKind, PairedCall | None]:
        """Take an answer in."""
        self._answers_left[part.provider_id] -= 1
        known = self._calls.get(part.provider_id, [])
        answer = (part.result, part.is_error)
        waiting = [call for call in known if call.answer is None]
        if waiting:
            named = [call for call in waiting if part.name == call.name] if not part.provider_id else []
            call = (named or waiting)[0]
            call.answer = answer
            return ResultKind.ANSWER, call
        if not known:
            return ResultKind.ORPHAN, None
        repeated = next((call for call in known if call.answer is not None and _alike(call.answer, answer)), None)
        return (ResultKind.SECOND, known[-1]) if repeated is None else (ResultKind.REPEATED, repeated)

    def _id_for(self, provider_id: str, kind: CallKind) -> str:
        if kind is CallKind.NEW:
            return provider_id
        self._made += 1
        return derive_id(self._run_id, "call", str(self._made))


def _alike(one: tuple[Json, bool], other: tuple[Json, bool]) -> bool:
    return one == other and key_of(one[0]) == key_of(other[0])


def is_id(text: str) -> bool:
    """Whether a foreign text can be an id of ours as it stands."""
    try:
        parse_id(text, "a call id")
    except ValueError:
        return False
    return True
