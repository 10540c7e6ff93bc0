"""What a scanner has learned so far, and how two scanners share a past. Rules about facts stand in `scanner`."""

from __future__ import annotations

from typing import Self

from ..identifiers import ExecutionIdentity
from ..persistent_map import Map, PersistentMap, TransientMap
from ..reasons import LedgerIssue, ParkReason
from .operation_record import CallKey, Issue, OperationRecord

FIRST_PREVIOUS_DIGEST = "0" * 64


class ScanState:
    """Operations, issues and the place in the ledger.

    A transient state changes in place and is for reading a whole ledger. A persistent one shares its past with its
    forks, so a writer keeps the one from before a commit at no cost. Both run the same code.

    Attributes:
        issues: in order of appearance.
        identity: the execution identity of the first fact.
        protocol: the tool-boundary protocol that the first fact declared, None when it declared none.
        length: how many facts were fed; `high_water` and `digest` are those of the last.
        ended_at, claimed_at: sequence of the terminal fact and of the seal, 0 while there is none.
        absence_unproven: facts may be missing here, so a missing dispatch proves nothing.
    """

    def __init__(
        self,
        calls: Map[CallKey, OperationRecord],
        unanswered: Map[CallKey, None],
        operations: Map[str, CallKey],
        seen: Map[str, int],
        spines: Map[str, ExecutionIdentity],
    ) -> None:
        self._calls = calls
        self._unanswered = unanswered
        self._operations = operations
        self._seen = seen
        self._spines = spines
        # Whoever made a record may change it in place; after a fork nobody did, so both sides copy before they write.
        self._owner = object()
        self.identity: ExecutionIdentity | None = None
        self.digest: str | None = FIRST_PREVIOUS_DIGEST
        self.issues: list[Issue] = []
        self._issues_of = self._owner  # who may add to them in place, likewise
        self.protocol: str | None = None
        self.length = 0
        self.high_water = 0
        self.ended_at = 0
        self.claimed_at = 0
        self.absence_unproven = False

    @classmethod
    def transient(cls) -> Self:
        """For one pass over a whole ledger."""
        calls: TransientMap[CallKey, OperationRecord] = TransientMap()
        unanswered: TransientMap[CallKey, None] = TransientMap()
        operations: TransientMap[str, CallKey] = TransientMap()
        seen: TransientMap[str, int] = TransientMap()
        spines: TransientMap[str, ExecutionIdentity] = TransientMap()
        return cls(calls, unanswered, operations, seen, spines)

    @classmethod
    def persistent(cls) -> Self:
        """For a writer: its forks cost nothing that grows with the ledger."""
        calls: PersistentMap[CallKey, OperationRecord] = PersistentMap()
        unanswered: PersistentMap[CallKey, None] = PersistentMap()
        operations: PersistentMap[str, CallKey] = PersistentMap()
        seen: PersistentMap[str, int] = PersistentMap()
        spines: PersistentMap[str, ExecutionIdentity] = PersistentMap()
        return cls(calls, unanswered, operations, seen, spines)

    def fork(self) -> Self:
        """A persistent one that goes on from here; nothing that either is fed reaches the other.

        O(1) from a persistent one, O(n) from a transient one.
        """
        twin = object.__new__(self.__class__)
        twin.__dict__ = self.__dict__.copy()  # this is a part of every T1 and T2
        if not isinstance(self._seen, PersistentMap):  # as all of a writer's are
            twin._calls, twin._unanswered = self._calls.fork(), self._unanswered.fork()
            twin._operations, twin._seen, twin._spines = self._operations.fork(), self._seen.fork(), self._spines.fork()
        twin._owner = self._owner = object()
        return twin

    def last(self) -> Self:
        """This one, as a persistent one: nothing is fed to it any more but through forks."""
        self._calls, self._unanswered, self._operations = (
            self._calls.last(),
            self._unanswered.last(),
            self._operations.last(),
        )
        self._seen, self._spines = self._seen.last(), self._spines.last()
        return self

    @property
    def has_corruption(self) -> bool:
        """Whether any issue was found."""
        return bool(self.issues)

    @property
    def invocation_count(self) -> int:
        """How many invocations the ledger holds; a sound run of ours has one."""
        return len(self._spines)

    def sequence_of(self, event_id: str) -> int | None:
        """Where an event stands, None when it is not here."""
        return self._seen.get(event_id)

    def call(self, call_id: str) -> OperationRecord | None:
        """The record of a call of the run's own invocation."""
        return self._calls.get(call_id)

    def operation(self, operation_id: str) -> OperationRecord | None:
        """The record that a dispatch bound to this operation."""
        key = self._operations.get(operation_id)
        return None if key is None else self._calls.get(key)

    def operations(self) -> list[OperationRecord]:
        """All records in order of first appearance."""
        return self._in_order(self._calls)

    def unanswered(self) -> list[OperationRecord]:
        """The records without a response, in order; costs what is unanswered, not what was ever called."""
        return self._in_order(self._unanswered)

    def _in_order(self, keys: Map[CallKey, OperationRecord] | Map[CallKey, None]) -> list[OperationRecord]:
        records = [record for key in keys if (record := self._calls.get(key)) is not None]
        records.sort(key=lambda record: record.index)
        return records

    def _key(self, identity: ExecutionIdentity, call_id: str) -> CallKey:
        """Call ids are unique within one invocation; the run's own needs no pair, which is most of the time."""
        home = self.identity
        if home is None or identity is home or identity.invocation_id == home.invocation_id:
            return call_id
        return (identity.invocation_id, call_id)

    def _new_record(self, key: CallKey, call_id: str, tool_name: str) -> OperationRecord:
        record = OperationRecord(key, len(self._calls), self._owner, call_id, tool_name)
        self._calls = self._calls.set(key, record)
        return record

    def _own(self, record: OperationRecord) -> OperationRecord:
        """The record itself if this scanner made it, else a copy that takes its place here."""
        if record.owner is not self._owner:
            record = record.copy(self._owner)
            self._calls = self._calls.set(record.key, record)
        return record

    def _report(
        self,
        code: LedgerIssue,
        event_id: str,
        record: OperationRecord | None = None,
        operation_id: str | None = None,
        call_id: str | None = None,
    ) -> None:
        """Note an issue; the ids are given where the offending fact names others than its record, or has none."""
        if record is not None:
            if code not in record.codes:
                record.codes += (code,)
            call_id = record.call_id
            operation_id = operation_id or record.operation_id
        self._note(Issue(code, event_id, self.high_water, operation_id, call_id))

    def _report_damage(self, code: LedgerIssue | ParkReason, event_id: str, *, facts_missing: bool = False) -> None:
        self._note(Issue(code, event_id, self.high_water))
        self.absence_unproven = self.absence_unproven or facts_missing

    def _note(self, issue: Issue) -> None:
        if self._issues_of is not self._owner:
            self.issues, self._issues_of = self.issues.copy(), self._owner
        self.issues.append(issue)
