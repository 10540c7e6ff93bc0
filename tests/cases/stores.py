"""The ledger over every store, driven by commands: for reports of what may be written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from safepoint.adapters.memory.event_store import MemoryStore
from safepoint.adapters.sqlite.store import SqliteStore
from safepoint.application.ledger import Ledger
from safepoint.application.lineage import read_segment
from safepoint.application.states import events_after
from safepoint.domain.commands import AnyCommand
from safepoint.domain.errors import WriteRefused
from safepoint.domain.events.event import Event
from safepoint.domain.identifiers import run_stream
from safepoint.domain.planning.facts import SegmentFacts
from safepoint.domain.reasons import WriteRefusal
from safepoint.domain.sealing import FIRST_PREVIOUS_DIGEST
from safepoint.ports.incarnations import Incarnation

from ..domain.facts import Facts


class Writing:
    """One process that writes one store.

    Args:
        reopen: makes the store as another process has it.
    """

    def __init__(self, store: MemoryStore | SqliteStore, reopen: Callable[[], MemoryStore | SqliteStore]) -> None:
        self.store = store
        self.ledger = Ledger(store.events, store.owners)
        self._reopen = reopen

    def another(self) -> Writing:
        """Another process that writes the same store."""
        return Writing(self._reopen(), self._reopen)

    def own(self, facts: Facts) -> Facts:
        """Take the session of these facts, whoever had it; their epoch is the new one from now on."""
        place = {"host": "here", "boot_id": "boot", "pid_namespace": "namespace"}
        life = Incarnation(incarnation_id=facts.incarnation_id, pid=1, process_start_time=1, **place)
        self.store.owners.register(life)
        seen = self.store.owners.owner(facts.session_id)
        taken = self.store.owners.take(facts.session_id, facts.incarnation_id, seen)
        assert taken is not None
        facts.epoch = taken.epoch
        return facts

    def do(self, *commands: AnyCommand) -> None:
        """Write commands, one after the other."""
        for command in commands:
            self.ledger.execute(command)

    def refuses(self, command: AnyCommand) -> WriteRefusal:
        """Try to write a command that must be refused, and say with which code."""
        with pytest.raises(WriteRefused) as refused:
            self.ledger.execute(command)
        assert refused.value.detail
        return refused.value.code

    def events(self, facts: Facts) -> list[Event]:
        """The facts of a run, verified."""
        stream = run_stream(facts.run_id)
        with self.store.events.snapshot() as reader:
            return [sealed.event for sealed in events_after(reader, stream, 0, FIRST_PREVIOUS_DIGEST)]

    def segment(self, facts: Facts) -> SegmentFacts:
        """A run with its verdicts."""
        with self.store.events.snapshot() as reader:
            segment = read_segment(reader, facts.run_id)
        assert segment is not None
        return segment

    def verdict(self, facts: Facts, call_id: str) -> Any:
        """What the resolver says of a call."""
        (found,) = [one for one in self.segment(facts).resolution.verdicts if one.call_id == call_id]
        return found

    def unsettled(self, facts: Facts) -> list[str]:
        """The operations that the list of unsettled ones shows."""
        return [row.operation_id for row in self.store.views.unsettled(facts.session_id)]
