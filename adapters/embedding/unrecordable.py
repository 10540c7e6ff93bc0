"""What of an agent in a framework is refused, because it could not be recorded. SPEC R3 and section 17."""

from __future__ import annotations

from ...domain.errors import SafepointError


class AgentUnsupported(SafepointError):
    """An agent uses what happens where nobody here can record it; it is told before any of it is asked or carried out.

    Attributes:
        what: the part of the agent, such as a tool.
    """

    def __init__(self, what: str, instead: str) -> None:
        super().__init__(f"{what} cannot be recorded: {instead}")
        self.what = what


class NotRecordable(SafepointError):
    """What the model said, or is to be shown, has no place in the record: the run ends here, nothing of it is lost.

    Attributes:
        what: it.
    """

    def __init__(self, what: str, instead: str) -> None:
        super().__init__(f"{what} cannot be recorded: {instead}")
        self.what = what
