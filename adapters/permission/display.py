"""How a question is shown to a person: bounded, and with nothing in it that could move a cursor or hide a letter."""

from __future__ import annotations

from collections.abc import Iterator

from ...domain import canonical
from ...domain.events.event import Json
from ...ports.permission_gate import AskReason, PermissionRequest

ARGUMENTS_MAX = 30
ARGUMENT_CHARS_MAX = 1_000


def question_lines(request: PermissionRequest) -> Iterator[str]:
    """Say what is asked for, line by line, without line ends."""
    yield f"The model wants to call {visible(request.tool_name)} (recovery: {request.mode.value}):"
    yield from _argument_lines(request.arguments)
    if request.reason is AskReason.REPEAT_OF_UNSETTLED_EFFECT:
        earlier = "an earlier call" if request.repeats is None else f"operation {visible(request.repeats)}"
        yield f"This may repeat an effect: {earlier} asked for the same, and how that ended is not certain."


def visible(text: str) -> str:
    """Write every character that is not printable, such as a control or direction mark, as its escape."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _argument_lines(arguments: Json) -> Iterator[str]:
    members = list(arguments.items()) if isinstance(arguments, dict) else [("arguments", arguments)]
    for name, value in members[:ARGUMENTS_MAX]:
        yield f"  {_bounded(visible(name))}: {_bounded(visible(canonical.encode(value).decode()))}"
    if len(members) > ARGUMENTS_MAX:
        yield f"  … and {len(members) - ARGUMENTS_MAX} more arguments that are not shown"


def _bounded(text: str) -> str:
    hidden = len(text) - ARGUMENT_CHARS_MAX
    return text if hidden <= 0 else f"{text[:ARGUMENT_CHARS_MAX]}… ({hidden} more characters are not shown)"
