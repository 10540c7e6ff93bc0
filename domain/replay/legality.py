"""What every provider demands of a history, and its items grouped as messages and steps. SPEC sections 12 and 20."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from .items import CallItem, HostItem, Item, MessageItem, PartItem, ResultItem, UserItem


class Message(NamedTuple):
    """Something in the user's role."""

    item: MessageItem


class ModelStep(NamedTuple):
    """One step of the model: its parts in order, then the answers to all of its calls."""

    parts: tuple[PartItem, ...]
    results: tuple[ResultItem, ...]

    @property
    def calls(self) -> tuple[CallItem, ...]:
        """The calls among its parts, in order."""
        return tuple(part for part in self.parts if type(part) is CallItem)


HistoryStep: TypeAlias = Message | ModelStep


class IllegalityCode(StrEnum):
    """What a strict provider refuses."""

    EMPTY = "empty"
    FIRST_NOT_FROM_USER = "first_not_from_user"
    CALL_ID_REPEATED = "call_id_repeated"
    RESULT_WITHOUT_CALL = "result_without_call"
    CALL_NOT_ANSWERED = "call_not_answered"
    CALL_ANSWERED_TWICE = "call_answered_twice"
    THINKING_NOT_FOLLOWED = "thinking_not_followed"


class Illegality(NamedTuple):
    """The first thing in a history that a strict provider refuses, with the counts of the step that it is in."""

    code: IllegalityCode
    position: int
    call_id: str | None = None
    calls: int = 0
    responses: int = 0


def steps_of(items: Iterable[Item]) -> list[HistoryStep]:
    """Group a history's items: each message alone, each model step with its results.

    A step ends where a message comes, where a part of another step comes, or where a part comes after results.
    """
    grouped: list[HistoryStep] = []
    parts: list[PartItem] = []
    results: list[ResultItem] = []

    def end_step() -> None:
        if parts or results:
            grouped.append(ModelStep(tuple(parts), tuple(results)))
            parts.clear()
            results.clear()

    for item in items:
        if type(item) is UserItem or type(item) is HostItem:
            end_step()
            grouped.append(Message(item))
        elif type(item) is ResultItem:
            results.append(item)
        else:
            part: PartItem = item  # type: ignore[assignment]  # messages and results were dealt with above
            if results or (parts and parts[-1].step_id != part.step_id):
                end_step()
            parts.append(part)
    end_step()
    return grouped


def check_provider_legality(items: Iterable[Item]) -> Illegality | None:
    """Judge a history as strict providers do; None when all of them would take it.

    First something in the user's role; every call answered exactly once, before anything else comes; every call id
    once; thinking directly followed by an item of its own step.
    """
    steps = steps_of(items)
    if not steps:
        return Illegality(IllegalityCode.EMPTY, 0)
    if type(steps[0]) is not Message:
        return Illegality(IllegalityCode.FIRST_NOT_FROM_USER, 0)
    used: set[str] = set()
    for position, step in enumerate(steps):
        if type(step) is ModelStep and (found := _illegality_of(step, position, used)):
            return found
    return None


def _illegality_of(step: ModelStep, position: int, used: set[str]) -> Illegality | None:
    calls, responses = len(step.calls), len(step.results)

    def illegal(code: IllegalityCode, call_id: str | None = None) -> Illegality:
        return Illegality(code, position, call_id, calls, responses)

    waiting: set[str] = set()
    for call in step.calls:
        if call.call_id in used:
            return illegal(IllegalityCode.CALL_ID_REPEATED, call.call_id)
        used.add(call.call_id)
        waiting.add(call.call_id)
    own = set(waiting)
    for result in step.results:
        if result.call_id not in own:
            return illegal(IllegalityCode.RESULT_WITHOUT_CALL, result.call_id)
        if result.call_id not in waiting:
            return illegal(IllegalityCode.CALL_ANSWERED_TWICE, result.call_id)
        waiting.discard(result.call_id)
    if waiting:
        return illegal(IllegalityCode.CALL_NOT_ANSWERED, min(waiting))
    if not step.parts or step.parts[-1].kind == "thinking":
        return illegal(IllegalityCode.THINKING_NOT_FOLLOWED)
    return None
