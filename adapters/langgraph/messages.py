"""Messages of LangChain and what is recorded of them, and what a graph's state lacks of the record. SPEC section 12."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage

from ...application.call_answers import Answer
from ...domain.canonical import encode
from ...domain.events.event import Json
from ...domain.events.model import Usage
from ...domain.replay.items import CallItem, HostItem, Item, ResultItem, TextItem, UserItem
from ...ports.model_step import CallBlock, StepFinished, TextBlock
from ..histories.spelling import result_text

Messages: TypeAlias = Sequence[AnyMessage]


class Differs(ValueError):
    """State and record do not tell the same story; the text says where."""


def id_of(event_id: str) -> str:
    """The id of a message that is made of a recorded fact: the same each time, so that a state takes it once."""
    return f"safepoint:{event_id}"


def result_id(asked: AIMessage, call_id: str | None) -> str:
    """The id of the answer to a call: a state that has it already gets no second one."""
    return f"{asked.id}:{call_id}"


def step_of(message: AIMessage) -> StepFinished:
    """What is recorded of an answer of the model: its text and its calls; one that nobody can read is kept as text."""
    calls = [CallBlock(call["id"], call["name"], encode(call["args"]).decode()) for call in message.tool_calls]
    unread = [CallBlock(call["id"], call["name"] or "?", call["args"] or "") for call in message.invalid_tool_calls]
    text = message.text
    said = message.response_metadata
    reason = said.get("finish_reason") or said.get("stop_reason") or ("tool_calls" if calls else "stop")
    used = message.usage_metadata
    return StepFinished(
        blocks=(*((TextBlock(str(text)),) if text else ()), *calls, *unread),
        finish_reason=str(reason),
        model=said.get("model_name"),
        usage=None if used is None else Usage(input_tokens=used["input_tokens"], output_tokens=used["output_tokens"]),
    )


def shown(answer: Answer, asked: AIMessage, call: ToolCall) -> ToolMessage:
    """A committed answer as the graph's state takes it."""
    return _tool_message(answer.result, answer.is_error, answer.tool_name, asked, call)


def _tool_message(result: Json, is_error: bool, name: str, asked: AIMessage, call: ToolCall) -> ToolMessage:
    is_content = isinstance(result, str) or (
        isinstance(result, list) and all(isinstance(part, str | dict) for part in result)
    )
    content: Any = result if is_content else result_text(result)
    status: Any = "error" if is_error else "success"
    known = result_id(asked, call["id"])
    return ToolMessage(content, name=name, tool_call_id=call["id"] or "", status=status, id=known)


@dataclass(slots=True)
class _Step:
    """One recorded step of the model, and the answers to its calls."""

    step_id: str
    text: str = ""
    calls: list[CallItem] = field(default_factory=list)
    results: dict[str, ResultItem] = field(default_factory=dict)

    def message(self) -> AIMessage:
        """The step as a message, for a state that has lost it."""
        calls = [ToolCall(name=one.tool_name, args=_arguments(one), id=one.call_id) for one in self.calls]
        return AIMessage(self.text, tool_calls=calls, id=id_of(self.step_id))


def _arguments(call: CallItem) -> dict[str, Any]:
    return call.args if isinstance(call.args, dict) else {}


def last_turn(items: Iterable[Item]) -> tuple[Item, ...]:
    """What a history holds from its last user's message on."""
    turn: list[Item] = []
    for item in items:
        if isinstance(item, UserItem) and not item.steering:
            turn.clear()
        turn.append(item)
    return tuple(turn)


def lacking(state: Messages, turn: Sequence[Item]) -> tuple[list[AnyMessage], set[str]]:
    """What a graph's state lacks of a recorded turn, in order, and the ids of its messages that are recorded.

    A state that was saved later than the record is no difference: what it has more is recorded when it goes on.

    Raises:
        Differs: they do not tell the same story.
    """
    begin = turn[0] if turn and isinstance(turn[0], UserItem) else None
    known = {message.id for message in state}
    lacks: list[AnyMessage] = []
    if begin is not None and id_of(begin.event_id) not in known:
        lacks.append(HumanMessage(begin.text, id=id_of(begin.event_id)))
    said = iter(_answers(state, begin))
    recorded: set[str] = set()
    for item in _steps_and_notices(turn[1:] if begin is not None else turn):
        if isinstance(item, HostItem | UserItem):
            if id_of(item.event_id) not in known:
                lacks.append(HumanMessage(item.text, id=id_of(item.event_id)))
            continue
        message = next(said, None)
        if message is None:
            message = item.message()
            lacks.append(message)
        names = [call["name"] for call in message.tool_calls]
        readable = [call for call in item.calls if call.args_text is None]
        if names != [call.tool_name for call in readable]:
            raise Differs(f"the model called {names} there, and {[one.tool_name for one in readable]} here")
        recorded.add(str(message.id))
        for call, asked in zip(readable, message.tool_calls, strict=True):
            result = item.results.get(call.call_id)
            if result is not None and result_id(message, asked["id"]) not in known:
                lacks.append(_tool_message(result.result, result.is_error, result.tool_name, message, asked))
    return lacks, recorded


def answers_since(state: Messages, user_message_id: str) -> list[AIMessage]:
    """What the model said in a turn, in order; without answers that say nothing."""
    begin = next((place for place, one in enumerate(state) if one.id == user_message_id), None)
    if begin is None:
        return []
    return [one for one in state[begin:] if isinstance(one, AIMessage) and (one.text or one.tool_calls)]


def _answers(state: Messages, begin: UserItem | None) -> list[AIMessage]:
    return [] if begin is None else answers_since(state, id_of(begin.event_id))


def _steps_and_notices(items: Iterable[Item]) -> list[_Step | HostItem | UserItem]:
    steps: dict[str, _Step] = {}
    order: list[_Step | HostItem | UserItem] = []
    for item in items:
        if isinstance(item, HostItem | UserItem):
            order.append(item)
            continue
        if item.step_id not in steps:
            steps[item.step_id] = _Step(item.step_id)
            order.append(steps[item.step_id])
        step = steps[item.step_id]
        if isinstance(item, TextItem):
            step.text += item.text
        elif isinstance(item, CallItem):
            step.calls.append(item)
        elif isinstance(item, ResultItem):
            step.results[item.call_id] = item
    return order


def left_open(state: Messages) -> list[AnyMessage]:
    """Answers to calls of the newest step that no tool was called for, so that a provider takes the history."""
    known = {message.id for message in state}
    newest = next((one for one in reversed(state) if isinstance(one, AIMessage)), None)
    if newest is None:
        return []
    said = "Not executed: the turn was interrupted before dispatch."
    return [
        ToolMessage(
            said, name=call["name"], tool_call_id=call["id"] or "", status="error", id=result_id(newest, call["id"])
        )
        for call in newest.tool_calls
        if result_id(newest, call["id"]) not in known
    ]
