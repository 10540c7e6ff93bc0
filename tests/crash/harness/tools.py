"""The tools that are killed in the middle: how each is called, and how its effect is counted from outside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from .stage import Stage, call

CONFIG = "config.txt"
OLD, NEW = "port 3000\n", "port 4000\n"


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool and one call of it.

    Attributes:
        mode: the recovery mode that its dispatch declares.
        effects: counts what has happened, from files.
        has_effect: False where it only reads.
    """

    name: str
    mode: str
    call: dict[str, object]
    effects: Callable[[Stage], int]
    has_effect: bool = True


def _lines(stage: Stage) -> int:
    return len(stage.effects())


def _written(stage: Stage) -> int:
    content = (stage.workspace / CONFIG).read_text()
    assert content in {OLD, NEW}, f"half a file can be seen: {content!r}"
    return int(content == NEW)


def _recorded(mode: str) -> Tool:
    recorded = call("record_effect", path="effects.txt", line="paid", contract=mode)
    return Tool("record_effect", mode, recorded, _lines)


PAYMENT: Final = _recorded("never_auto_retry")
OTHERS: Final = (
    Tool("write_file", "reconcile", call("write_file", path=CONFIG, content=NEW), _written),
    Tool("edit_file", "reconcile", call("edit_file", path=CONFIG, old_text="3000", new_text="4000"), _written),
    Tool("run_shell", "reattach", call("run_shell", command="echo paid >> effects.txt"), _lines),
    Tool("read_file", "replay_safe", call("read_file", path=CONFIG), lambda stage: 0, has_effect=False),
    _recorded("idempotent"),
)


def prepare(stage: Stage) -> None:
    """What the tools work on."""
    (stage.workspace / CONFIG).write_text(OLD)
