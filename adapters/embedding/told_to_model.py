"""What a framework's agent is about to show its model, beside what is recorded. SPEC section 17."""

from __future__ import annotations

from collections import Counter

from ...domain.replay.items import HostItem, UserItem
from .recorded import RecordedRun
from .unrecordable import NotRecordable


class ToldToModel:
    """Tells what the user said that is recorded from what is new; for one request.

    Args:
        run: open.
        asked: the model was asked before: until then, the recorded message stands alone.
    """

    def __init__(self, run: RecordedRun, *, asked: bool) -> None:
        self._run = run
        self._asked = asked
        self._known = Counter(item.text for item in run.history() if isinstance(item, UserItem | HostItem))

    async def say(self, text: str) -> None:
        """Record it as said meanwhile, unless it is recorded already; each text as often as it is said.

        Raises:
            NotRecordable: it is new, and the model was not asked yet.
            StoreError, WriteRefused: it was not recorded.
        """
        if self._known[text]:
            self._known[text] -= 1
        elif self._asked:
            await self._run.steer(text)
        else:
            raise NotRecordable("a prompt beside the recorded message", "give it to `session.record` alone")


def is_open(run: RecordedRun, call_id: str) -> bool:
    """Whether this run recorded such a call, and no answer to it; an earlier run's call is none of its own."""
    try:
        return run.answer(call_id) is None
    except ValueError:
        return False
