"""Keeps what a workspace holds before a run begins that is to be bound to it. SPEC section 16."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

from ..ports.checkpoints import Capture, CaptureLimits, Checkpoint, NotKept
from ..ports.workspace import CouldNotLook
from .agent import Agent, Binding
from .in_thread import in_thread
from .run_checkpoints import CheckpointsUnusable

NewKey: TypeAlias = Callable[[], str]

UNASKED: Final = CaptureLimits(new_bytes=64 * 1024 * 1024, read_bytes=256 * 1024 * 1024)
"""What is copied and read without being asked for: at most about two seconds, the first time."""


def _no_key() -> str:
    raise RuntimeError("whoever keeps content names the store that it is kept for")


class CaptureContent:
    """Captures the folder of an agent.

    Args:
        new_key: names a new checkpoint.
    """

    def __init__(self, new_key: NewKey = _no_key) -> None:
        self.new_key = new_key

    async def __call__(self, agent: Agent) -> Checkpoint:
        """Capture, while nothing of the session is under way.

        Raises:
            CheckpointsUnusable: it cannot be kept: the folder is none that can, or has no identity.
        """
        captured = await self._captured(agent, None)
        if not isinstance(captured, Checkpoint):
            raise CheckpointsUnusable(captured)
        return captured

    async def for_turn(self, agent: Agent) -> Checkpoint | NotKept | None:
        """Decide what a new turn is bound to, and capture that; before anything of it is begun. R18.

        Returns:
            Why it is bound to nothing; None where it was not to be.

        Raises:
            CheckpointsUnusable: it was to be bound whatever it costs, and cannot be.
        """
        match agent.binding:
            case Binding.NEVER:
                return None
            case Binding.WHERE_POSSIBLE:
                return await self._captured(agent, UNASKED)
            case Binding.ALWAYS:
                return await self(agent)

    async def _captured(self, agent: Agent, limits: CaptureLimits | None) -> Capture:
        if agent.checkpoints is None or agent.workspace_identity is None:
            return CouldNotLook(str(agent.workspace), "the workspace has no identity")
        capture = partial(agent.checkpoints.capture, str(agent.workspace), self.new_key(), limits)
        answer: Capture = await in_thread(capture)
        return answer


NOWHERE: Final = CaptureContent()
"""For a composition in which no content is kept."""
