"""Text that comes in pieces: bounded, printable while it comes, and whole at the end. SPEC F5."""

from __future__ import annotations

from typing import Final

from pydantic import TypeAdapter, ValidationError

from ...domain.events.event import ToolName
from ...ports.provider_failures import ProviderFailed, ProviderStreamIncomplete

ANSWER_CHARS_MAX: Final = 4 * 1024 * 1024
"""Text, reasoning and arguments of one step together; more than this is no answer."""

_TOOL_NAME: Final = TypeAdapter(ToolName)


class AnswerSize:
    """Counts the characters of one answer."""

    def __init__(self) -> None:
        self._chars = 0

    def add(self, text: str) -> None:
        """Count a piece.

        Raises:
            ProviderFailed: the answer is longer than an answer may be.
        """
        self._chars += len(text)
        if self._chars > ANSWER_CHARS_MAX:
            raise ProviderFailed(f"the provider's answer has more than {ANSWER_CHARS_MAX} characters")


def shown(text: str) -> str:
    """Make a delta printable: half of a surrogate pair may end it."""
    return text.encode("utf-8", "replace").decode()


def whole(text: str) -> str:
    """Join surrogate pairs that were cut apart by deltas.

    Raises:
        ProviderFailed: a lone surrogate is left.
    """
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError as error:
        raise ProviderFailed("the provider sent text that is not Unicode (a lone surrogate)") from error


def tool_name(name: object) -> str:
    """The name of a called tool.

    Raises:
        ProviderStreamIncomplete: there is none.
        ProviderFailed: no event can hold it.
    """
    if not isinstance(name, str) or not name:
        raise ProviderStreamIncomplete("the provider's answer holds a tool call without a name")
    try:
        return _TOOL_NAME.validate_python(whole(name))
    except ValidationError as error:
        raise ProviderFailed("the provider named a tool with control characters, or at more than 200") from error
