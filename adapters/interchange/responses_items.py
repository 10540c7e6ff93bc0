"""The items of OpenAI's responses API, which Codex writes down, too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...domain.events.event import Json
from ...ports.history_format import FindingCode, Place
from ..histories.openai_responses import CUSTOM_CALL, kept_of_call, kept_of_message, thought_of
from .contents import Members, content_of, members_of, tell_unknown, text_block, text_in
from .lines import Reading
from .parts import CallMade, ModelSaid, ModelThought, Part, ResultGiven, UserSaid

_OUTPUTS = frozenset(
    {"function_call_output", "custom_tool_call_output", "local_shell_call_output", "computer_call_output"}
)
_NOT_CONVERSATION = frozenset({"mcp_list_tools", "ghost_snapshot"})
_COMPACTED = frozenset({"compaction", "compaction_summary"})
_INSTRUCTIONS = frozenset({"system", "developer"})


@dataclass(slots=True)
class Steps:
    """Model items that stand together are one step: the items do not say it."""

    number: int = 0
    open: bool = False

    def of_model(self) -> str:
        """The step of an item of the model."""
        if not self.open:
            self.number, self.open = self.number + 1, True
        return f"step-{self.number}"

    def interrupt(self) -> None:
        """Something that is not the model's stands here."""
        self.open = False


def parts_of_item(item: Members, place: Place, steps: Steps, at: str | None, reading: Reading) -> Iterator[Part]:
    """What one item consists of; instructions are for the caller."""
    kind = text_in(item, "type") or ("message" if "role" in item else None)
    if kind in _OUTPUTS:
        steps.interrupt()
        call_id = text_in(item, "call_id")
        if call_id is None:
            reading.tell(FindingCode.UNKNOWN_SHAPE, place, "an answer that names no call")
            return
        failed = item.get("status") == "failed"
        yield ResultGiven(place, call_id, item.get("output"), failed, at=at)
    elif kind == "message":
        yield from _message(item, place, steps, at, reading)
    elif kind == "reasoning":
        thought = thought_of(item)
        yield ModelThought(place, steps.of_model(), thought.text, options=thought.provider_options, at=at)
    elif kind in {"function_call", "custom_tool_call", "local_shell_call", "computer_call"}:
        yield from _call(item, place, steps.of_model(), at, reading)
    elif kind is not None and kind.endswith("_call"):
        yield from _executed_by_provider(item, kind, place, steps.of_model(), at)
    elif kind in _NOT_CONVERSATION:
        reading.tell_once(FindingCode.NOT_CONVERSATION, place, kind or "")
    elif kind in _COMPACTED:
        reading.tell_once(FindingCode.COMPACTED, place, kind or "")
    else:
        tell_unknown(item, place, reading)


def is_instruction(item: Members) -> bool:
    """Whether an item is a message of the system or the developer."""
    return text_in(item, "role") in _INSTRUCTIONS and item.get("type", "message") == "message"


def _message(item: Members, place: Place, steps: Steps, at: str | None, reading: Reading) -> Iterator[Part]:
    role, content = item.get("role"), item.get("content")
    if role == "user":
        steps.interrupt()
        if (said := content_of(content, place, reading)) is not None:
            yield UserSaid(place, said.text, said.attachments, at=at)
    elif role == "assistant":
        step = steps.of_model()
        if isinstance(content, str):
            yield ModelSaid(place, step, content, kept_of_message(item), at)
        kept = kept_of_message(item) if len(_list(content)) == 1 else None
        for block in _list(content):
            text = text_in(members_of(block), "refusal") if members_of(block).get("type") == "refusal" else None
            text = text_block(block) if text is None else text
            if text is None:
                tell_unknown(block, place, reading)
            else:
                yield ModelSaid(place, step, text, kept, at)
    else:
        reading.tell(FindingCode.UNKNOWN_TYPE, place, "a message of another role")


def _call(item: Members, place: Place, step: str, at: str | None, reading: Reading) -> Iterator[CallMade]:
    kind = text_in(item, "type") or ""
    name = text_in(item, "name") or (None if kind.endswith("tool_call") or kind == "function_call" else kind)
    if name is None:
        reading.tell(FindingCode.UNKNOWN_SHAPE, place, "a call without a name")
        return
    args = next((item[key] for key in ("arguments", "input", "action") if item.get(key) is not None), None)
    if args is None and kind == "function_call":
        reading.tell(FindingCode.UNKNOWN_SHAPE, place, "a call without arguments")
    spelled = args is None or (isinstance(args, str) and kind == "function_call")
    if isinstance(args, str) and not spelled:  # a custom tool's input is a text, not JSON
        args = {"input": args}
    options = kept_of_call(item) if kind in {"function_call", CUSTOM_CALL} else None
    yield CallMade(place, step, text_in(item, "call_id") or "", name, args, spelled, options, at)


def _executed_by_provider(item: Members, kind: str, place: Place, step: str, at: str | None) -> Iterator[Part]:
    """A call that the provider itself carried out; its answer is in the item."""
    call_id = text_in(item, "id") or ""
    args = item.get("arguments", item.get("action", item.get("queries")))
    options: Json = {key: value for key, value in item.items() if key not in {"id", "name", "arguments", "output"}}
    yield CallMade(place, step, call_id, text_in(item, "name") or kind, args, isinstance(args, str), options, at)
    if item.get("status") in (None, "completed", "failed") or "output" in item:
        failed = item.get("status") == "failed" or item.get("error") is not None
        yield ResultGiven(place, call_id, item.get("output") or item.get("error"), failed, at=at)


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
