"""Says that a living owner is asked, before it is waited for: it may be stopped or busy, and then nothing is seen."""

from __future__ import annotations

from ...application.commands_from_elsewhere import Announce
from ...ports.incarnations import Incarnation
from .output import Output


def announcing(out: Output) -> Announce:
    """Tell a person, not a program, who is asked and how long that may take."""

    def told(owner: Incarnation, seconds: float) -> None:
        out.tell(f"Asking process {owner.pid}, which owns the session; waiting up to {seconds:g} seconds.")

    return told
