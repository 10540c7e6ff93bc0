"""What of an agent in a framework is refused, because it could not be recorded. SPEC R3 and section 17."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ...domain.errors import SafepointError


class AgentUnsupported(SafepointError):
    """An agent uses what happens where nobody here can record it; it is told before any of it is asked or carried out.

    Attributes:
        what: the part of the agent, such as a tool.
    """

    def __init__(self, what: str, instead: str) -> None:
        super().__init__(f"{what} cannot be recorded: {instead}")
        self.what = what


def check_promised(names: Iterable[str], known: Collection[str]) -> None:
    """Refuse an agent's tool of which the runtime knows nothing: it would never be called, and only its model be told.

    Args:
        names: of the agent's tools.
        known: of the runtime's.

    Raises:
        AgentUnsupported: there is one.
    """
    for name in names:
        if name not in known:
            raise AgentUnsupported(f"the tool {name!r}", "open the runtime with it: `tools=[promised(...)]`")


class NotRecordable(SafepointError):
    """What the model said, or is to be shown, has no place in the record: the run ends here, nothing of it is lost.

    Attributes:
        what: it.
    """

    def __init__(self, what: str, instead: str) -> None:
        super().__init__(f"{what} cannot be recorded: {instead}")
        self.what = what
