"""What a scanner has learned so far, and how two scanners share a past. Rules about facts stand in `scanner`."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, MutableMapping
from typing import Any, Self

from ..identifiers import ExecutionIdentity
from ..reasons import LedgerIssue, ParkReason
from .operation_record import CallKey, Issue, OperationRecord

FIRST_PREVIOUS_DIGEST = "0" * 64


class ScanState:
    """Operations, issues and the place in the ledger.

    It changes in place. Whoever wants to know what some facts would make of it feeds them to a fork. Whoever lends it
    to others goes on with a copy, so what they look at stays as it is (ADR 0086).

    Attributes:
        issues: in order of appearance.
        identity: the execution identity of the first fact.
        protocol: the tool-boundary protocol that the first fact declared, None when it declared none.
        length: how many facts were fed; `high_water` and `digest` are those of the last.
        ended_at, claimed_at: sequence of the terminal fact and of the seal, 0 while there is none.
        absence_unproven: facts may be missing here, so a missing dispatch proves nothing.
    """

    def __init__(self) -> None:
        self._calls: MutableMapping[CallKey, OperationRecord] = {}
        self._unanswered: dict[CallKey, None] = {}
        self._operations: MutableMapping[str, CallKey] = {}
        self._seen: MutableMapping[str, int] = {}
        self._spines: dict[str, ExecutionIdentity] = {}
        self._records = 0
        # Whoever made a record may change it in place; after a copy nobody did, so both sides copy before they write.
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

    def copy(self) -> Self:
        """One with the same past; nothing that either is fed reaches the other. Costs what it holds."""
        return self._twin({name: {**vars(self)[name]} for name in _MAPS})

    def fork(self) -> Self:
        """One that goes on from here at no cost that grows with the ledger, and is of no use once this one goes on."""
        return self._twin({name: above(vars(self)[name]) for name in _MAPS})

    def _twin(self, maps: dict[str, Any]) -> Self:
        twin = object.__new__(self.__class__)
        members, owner = vars(self), object()
        members["_owner"] = owner
        vars(twin).update(members, **maps, _unanswered=self._unanswered.copy(), _spines=self._spines.copy())
        return twin

    @property
    def has_corruption(self) -> bool:
        """Whether any issue was found."""
        return bool(self.issues)

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

    def _in_order(self, keys: Iterable[CallKey]) -> list[OperationRecord]:
        return sorted(map(self._calls.__getitem__, keys), key=lambda record: record.index)

    def _key(self, identity: ExecutionIdentity, call_id: str) -> CallKey:
        """Call ids are unique within one invocation; the run's own needs no pair, which is most of the time."""
        home = self.identity
        if home is None or identity is home or identity.invocation_id == home.invocation_id:
            return call_id
        return (identity.invocation_id, call_id)

    def _new_record(self, key: CallKey, call_id: str, tool_name: str) -> OperationRecord:
        record = self._calls[key] = OperationRecord(key, self._records, self._owner, call_id, tool_name)
        self._records += 1
        return record

    def _own(self, record: OperationRecord) -> OperationRecord:
        """The record itself if this scanner made it, else a copy that takes its place here."""
        if record.owner is not self._owner:
            record = self._calls[record.key] = record.copy(self._owner)
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


_MAPS = ("_calls", "_operations", "_seen")
"""What grows with the ledger; what of it waits is small, and there is one spine."""


def above(held: MutableMapping[Any, Any]) -> MutableMapping[Any, Any]:
    """A map that shows another, and keeps what is put into it to itself."""
    return ChainMap({}, held)
