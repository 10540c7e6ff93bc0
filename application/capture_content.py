"""Keeps what a workspace holds before a run begins that is to be bound to it. SPEC section 16."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

from ..ports.checkpoints import Capture, Checkpoint
from ..ports.workspace import CouldNotLook
from .agent import Agent
from .run_checkpoints import CheckpointsUnusable
from .supervised_calls import in_thread

NewKey: TypeAlias = Callable[[], str]


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
        if agent.checkpoints is None or agent.workspace_identity is None:
            raise CheckpointsUnusable(CouldNotLook(str(agent.workspace), "the workspace has no identity"))
        folder = str(agent.workspace)
        captured: Capture = await in_thread(partial(agent.checkpoints.capture, folder, self.new_key()))
        if not isinstance(captured, Checkpoint):
            raise CheckpointsUnusable(captured)
        return captured


NOWHERE: Final = CaptureContent()
"""For a composition in which no content is kept."""
