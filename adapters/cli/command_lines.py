"""Command lines that a person can copy: exact, with the store, script and workspace that they need."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ...domain.next_steps import with_names
from ...domain.planning.facts import Drift
from . import places

_LIMIT: Final = "--max-"


@dataclass(frozen=True, slots=True)
class CommandLines:
    """Writes commands about one store.

    Attributes:
        script: repeated where a model is asked, because no record names it.
        workspace: repeated there where it was given, because the record names another.
        model: options that name the model, repeated there too.
        permissions: options of a policy, repeated there too.
        resuming_with: options of a resume as they were given, each with its value; repeated where one is offered.
        accepted: the drift that was accepted; what must still be accepted is joined with it.
        recorded_model: options that name the model of the record, for a new turn, which takes nothing from it.
        missing: the option, with its value, that must be added where a model is asked, as no record tells it.
    """

    store: Path
    script: Path | None = None
    workspace: Path | None = None
    model: tuple[str, ...] = ()
    permissions: tuple[str, ...] = ()
    resuming_with: tuple[tuple[str, ...], ...] = ()
    accepted: tuple[str, ...] = ()
    recorded_model: tuple[str, ...] = ()
    missing: str = ""

    def about(self, verb: str, *arguments: str) -> str:
        """A command that asks no model."""
        return self._line(verb, *arguments)

    def asking(self, verb: str, *arguments: str) -> str:
        """A command that asks the model, with the options that say which one, where, and what it may do."""
        script = () if self.script is None else ("--script", str(places.absolute(self.script)))
        given = self.workspace is not None and "--workspace" not in arguments
        workspace = ("--workspace", str(places.absolute(self.workspace))) if given and self.workspace else ()
        model = (*self.model, *(self.recorded_model if verb == "run" else ()))
        return self._line(verb, *arguments, *self.permissions, *workspace, *model, *script)

    def resuming(self, session_id: str, *arguments: str, accepting: Iterable[str] = ()) -> str:
        """A resume with all that was given, but for what the arguments give otherwise.

        Args:
            accepting: drift to be accepted beside what was.
        """
        limited = any(one.startswith(_LIMIT) for one in arguments)  # limits stand and fall together
        others = (one for one in self.resuming_with if one[0] not in arguments)
        given = (part for one in others if not (limited and one[0].startswith(_LIMIT)) for part in one)
        drift = ",".join(dict.fromkeys((*self.accepted, *accepting)))
        return self.asking("resume", session_id, *arguments, *given, *(("--accept-drift", drift) if drift else ()))

    def to_ask(self, what_for: str) -> str:
        """What a command is for that asks the model, and what must be added to it first."""
        return f"{what_for}; add {self.missing}, which no record names" if self.missing else what_for

    @property
    def what_is_missing(self) -> str:
        """What no record tells, in a word; empty where nothing must be added."""
        return self.missing.partition(" ")[0].lstrip("-")

    def with_recorded_permissions(self) -> CommandLines:
        """The same without the policy that was given, which is then the run's."""
        accepted = tuple(drift for drift in self.accepted if drift != Drift.PERMISSION_POLICY)
        return replace(self, permissions=(), accepted=accepted)

    def permitting(self, *permissions: str) -> CommandLines:
        """The same with another policy than that which was given, which is accepted in place of the run's."""
        accepted = dict.fromkeys((*self.accepted, Drift.PERMISSION_POLICY.value))
        return replace(self, permissions=permissions, accepted=tuple(accepted))

    def once_started(self) -> CommandLines:
        """The same when a run has begun: it records what was accepted, so that is the record now."""
        return replace(self, resuming_with=(), accepted=())

    def in_text(self, text: str, session_id: str | None) -> str:
        """Put the session, and where it is needed the store, into the commands that a sentence of the table names."""
        return with_names(text, session_id, None if places.is_usual(self.store) else str(self.store))

    def _line(self, verb: str, *arguments: str) -> str:
        store = () if places.is_usual(self.store) else ("--store", str(self.store))
        return shlex.join(("safepoint", verb, *arguments, *store))
