"""The stories that are killed at random instants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from . import sleeper
from .stage import Stage, call, step


@dataclass(frozen=True, slots=True)
class Scenario:
    """One story: one step with calls, then the last words.

    Attributes:
        calls: what the model asks for at once; each appends to the effects file of the same place in `files`.
        leaves: the tool leaves a process behind, and that does the effect when it is let go.
    """

    name: str
    calls: tuple[dict[str, object], ...]
    files: tuple[str, ...]
    leaves: bool = False

    def prepare(self, stage: Stage) -> None:
        """Write the script."""
        stage.play([step("I do it.", *self.calls), step("Done.")])

    def effects(self, stage: Stage) -> list[int]:
        """How often each call's effect has happened."""
        return [len(stage.effects(file)) for file in self.files]


def _shell(command: str) -> tuple[dict[str, object], ...]:
    return (call("run_shell", command=command),)


def _payments(*files: str) -> tuple[dict[str, object], ...]:
    return tuple(call("record_effect", path=file, line="paid") for file in files)


ONE_CALL: Final = Scenario("one call", _payments("effects.txt"), ("effects.txt",))
TWO_CALLS: Final = Scenario("two parallel calls", _payments("first.txt", "second.txt"), ("first.txt", "second.txt"))
LEFT_BEHIND: Final = Scenario("a grandchild is left behind", _shell(sleeper.START), (sleeper.EFFECTS,), leaves=True)
WAITED_FOR: Final = Scenario(
    "a grandchild is waited for", _shell(f"{sleeper.START}; wait"), (sleeper.EFFECTS,), leaves=True
)
