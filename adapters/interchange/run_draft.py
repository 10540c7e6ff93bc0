"""One run while it is read: facts for the scanner, events for a store, and where each stands in the file."""

from __future__ import annotations

from collections import Counter
from typing import Any

from pydantic import ValidationError

from ...domain.events.event import RunEvent, Timestamp
from ...domain.events.run import RunStatus
from ...domain.identifiers import EventId, ExecutionIdentity, InvocationId, RunId, SessionId, TurnId, derive_id
from ...domain.reasons import FailureClass
from ...domain.recovery.event_facts import event_facts
from ...domain.recovery.facts import Fact, Ordinary
from ...ports.history_format import FindingCode, Place, ReadRun
from .imported_run import ending, opening, sealed_run, spine
from .lines import Reading
from .pairing import Pairing
from .parts import Setting
from .values import UNKNOWN_TIME


class RunDraft:
    """Collects the events of one run; ids and order are those of the file, so a second reading gives the same.

    Args:
        session_id: the session that it belongs to.
        ordinal: its place among the session's runs, from 1.
        reading: is told of what cannot be held.
        answers_left: see `Pairing`.
    """

    def __init__(self, session_id: SessionId, ordinal: int, reading: Reading, answers_left: Counter[str]) -> None:
        run, turn, invocation = (derive_id(session_id, kind, str(ordinal)) for kind in ("run", "turn", "invocation"))
        self.identity = ExecutionIdentity(session_id, RunId(run), TurnId(turn), InvocationId(invocation))
        self.pairing = Pairing(run, answers_left)
        self.model: str | None = None
        self.at: Timestamp | None = None
        self.last_place = Place(1, 0)
        self._reading = reading
        self._facts: list[Fact] = []
        self._events: list[RunEvent] = []
        self._places: dict[str, Place] = {}
        self._made = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing was taken in yet."""
        return not self._facts

    def next_id(self, place: Place) -> EventId:
        """The id of the next fact, which stands at a place."""
        self._made += 1
        event_id = EventId(derive_id(self.identity.run_id, "event", str(self._made)))
        self._places[event_id] = self.last_place = place
        return event_id

    def add(self, kind: type[RunEvent], place: Place, **fields: Any) -> RunEvent | None:
        """Make an event and take it in; None where it cannot be, which is told."""
        event_id = self.next_id(place)
        try:
            event = kind(**spine(self.identity, event_id, self.at or UNKNOWN_TIME), **fields)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            self._reading.tell(FindingCode.NOT_EXPRESSIBLE, place, f"{kind.topic}: {where}: {first['msg']}")
            return None
        self._facts.append(event_facts(event))
        self._events.append(event)
        return event

    def add_fact(self, fact: Fact) -> None:
        """Take in what no event of ours can hold."""
        self._facts.append(fact)

    def add_repeated_id(self, place: Place, record_id: str) -> None:
        """Take in that an id stands for two different records."""
        event_id = derive_id(self.identity.run_id, "record", record_id)
        self._places[event_id] = self.last_place = place
        fact = Ordinary(event_id, self.identity)
        self._facts += [fact] if fact in self._facts else [fact, fact]

    def closed(
        self, setting: Setting, previous: ReadRun | None, status: RunStatus, failure: FailureClass | None
    ) -> ReadRun:
        """The run with its opening and terminal events.

        Args:
            setting: what the file says of the execution.
            previous: the run before it in the session, whose history it was given.
            status: how it ended.
            failure: why, where it failed.
        """
        at = self.at or UNKNOWN_TIME
        first = self._events[0].occurred_at if self._events else at
        opened = opening(self.identity, first, setting, self.model, previous)
        ended = ending(self.identity, at, status, failure)
        events = [opened, *self._events, ended]
        facts = [event_facts(opened), *self._facts, event_facts(ended)]
        return ReadRun(self.identity, tuple(facts), sealed_run(events, self._places, self._reading), self._places)
