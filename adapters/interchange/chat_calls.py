"""Tool calls as OpenAI's chat messages carry them, beside the content."""

from __future__ import annotations

from collections.abc import Iterator

from ...ports.history_format import FindingCode, Place
from .contents import Members, members_of, text_in
from .lines import Reading
from .parts import CallMade


def chat_calls(message: Members, place: Place, step: str, at: str | None, reading: Reading) -> Iterator[CallMade]:
    """The calls in `tool_calls`, and the older single `function_call`."""
    listed = message.get("tool_calls")
    if listed is not None and not isinstance(listed, list):
        reading.tell(FindingCode.UNKNOWN_SHAPE, place._replace(path=f"{place.path}.tool_calls".lstrip(".")))
        listed = []
    for number, value in enumerate(listed or []):
        here = place._replace(path=f"{place.path}.tool_calls[{number}]".lstrip("."))
        call = members_of(value)
        # The older spelling has name and arguments in the call itself.
        function = members_of(call.get("function")) or members_of(call.get("custom")) or call
        yield from _call(function, text_in(call, "id"), here, step, at, reading)
    older = message.get("function_call")
    if isinstance(older, dict):
        here = place._replace(path=f"{place.path}.function_call".lstrip("."))
        yield from _call(older, None, here, step, at, reading)


def _call(
    function: Members, call_id: str | None, place: Place, step: str, at: str | None, reading: Reading
) -> Iterator[CallMade]:
    name = text_in(function, "name")
    if name is None:
        reading.tell(FindingCode.UNKNOWN_SHAPE, place, "a call without a name")
        return
    args = function.get("arguments", function.get("input"))
    if args is None:
        reading.tell(FindingCode.UNKNOWN_SHAPE, place, "a call without arguments")
    yield CallMade(place, step, call_id or "", name, args, isinstance(args, str) or args is None, at=at)
