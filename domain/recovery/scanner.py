"""The one reader of a run's tool facts: an incremental reducer that writer, rebuild and resolver share. SPEC section 9.

It never raises on bad data: what does not fit becomes an `Issue`. Each fact costs O(1). The code is plain and the
common cases come first, because 100,000 facts pass here when a run is verified.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from ..events.run import TOOL_BOUNDARY_PROTOCOL
from ..events.tool import Statement
from ..identifiers import ExecutionIdentity
from ..reasons import LedgerIssue, ParkReason
from .facts import (
    Attested,
    Called,
    Claimed,
    Conflicted,
    Decided,
    Dispatched,
    Ended,
    Fact,
    Opened,
    Ordinary,
    Reconciled,
    RecoveryFact,
    RedeliveryStarted,
    Responded,
)
from .scan_state import ScanState

_MARKED = frozenset({Ordinary, Opened, Ended, Conflicted})


class Scanner(ScanState):
    """Facts of one ledger, fed in order, reduced to operations and issues."""

    def feed(
        self, fact: Fact, sequence: int | None = None, previous_digest: str | None = None, digest: str | None = None
    ) -> None:
        """Take in the next fact.

        Args:
            fact: in ledger order.
            sequence: its stored sequence, from 1; without one it stands right after the last.
            previous_digest: the digest that it names as its predecessor's; compared when both are known.
            digest: its own digest, computed from its stored bytes by the reader.
        """
        self.length += 1
        expected = self.high_water + 1
        self.high_water = at = expected if sequence is None else sequence
        event_id, identity = fact[0], fact[1]  # every fact begins with them, and names of tuples are slow
        if at != expected:
            self._report_damage(LedgerIssue.SEQUENCE_GAP, event_id, facts_missing=True)
        if previous_digest is not None and self.digest is not None and previous_digest != self.digest:
            self._report_damage(LedgerIssue.CHAIN_BROKEN, event_id, facts_missing=True)
        self.digest = digest

        kind = type(fact)
        if kind is Ordinary or kind in _MARKED:
            marker: str | None = fact.marker  # type: ignore[union-attr]  # every kind in _MARKED has one
            if marker is not None:
                self._take_marker(marker, event_id)
        seen = self._seen
        if event_id in seen:
            self._report(LedgerIssue.DUPLICATE_EVENT_ID, event_id)
            return
        seen[event_id] = at
        if identity is not self.identity and identity != self.identity:
            self._check_spine(identity, event_id)
        if self.ended_at:
            self._check_after_end(fact)
        if kind is not Ordinary:
            self._TAKE[kind](self, fact, at)

    def _take_marker(self, marker: str, event_id: str) -> None:
        """Only the first fact may declare a protocol, and only one that this version knows."""
        if self.length == 1 and marker == TOOL_BOUNDARY_PROTOCOL:
            self.protocol = marker
        else:
            self._report_damage(ParkReason.PROTOCOL_MARKER_INVALID, event_id)

    def _check_spine(self, identity: ExecutionIdentity, event_id: str) -> None:
        """One invocation belongs to exactly one session, run and turn. SPEC section 4."""
        if self.identity is None:
            self.identity = identity
        known = self._spines.get(identity.invocation_id)
        if known is None:
            self._spines[identity.invocation_id] = identity
        elif known != identity:
            self._report(LedgerIssue.INVOCATION_IDENTITY_CONFLICT, event_id)

    def _check_after_end(self, fact: Fact) -> None:
        """What may follow the terminal fact: SPEC section 7, ending. After a claim, nothing."""
        if self.claimed_at:
            self._report(LedgerIssue.EVENT_AFTER_CLAIM, fact.event_id)
            return
        match fact:
            case Ordinary(late=True) | Claimed() | RedeliveryStarted() | Reconciled() | Decided() | Attested():
                return
            case Responded() if self._is_settling(fact):
                return
            case _:
                self._report(LedgerIssue.EVENT_AFTER_TERMINAL, fact.event_id)

    def _is_settling(self, fact: Responded) -> bool:
        """Whether the response is the outcome of a bundle or of an attestation that came right before it."""
        record = self._calls.get(self._key(fact.identity, fact.call_id))
        if record is None or record.recovery is None:
            return False
        last = record.recovery[-1][1]
        return isinstance(last, Reconciled) or (isinstance(last, Attested) and last.statement != Statement.OVER)

    # ---- one method a lane ------------------------------------------------------------------------------------------

    def _take_opened(self, fact: Opened, _at: int) -> None:
        if self.length > 1:
            self._report(LedgerIssue.EVENT_ORDER_CONFLICT, fact.event_id)

    def _take_ended(self, _fact: Ended, at: int) -> None:
        self.ended_at = self.ended_at or at

    def _take_claimed(self, fact: Claimed, at: int) -> None:
        if not self.ended_at:
            self._report(LedgerIssue.EVENT_ORDER_CONFLICT, fact.event_id)
            self.ended_at = at
        self.claimed_at = self.claimed_at or at

    def _take_conflicted(self, fact: Conflicted, _at: int) -> None:
        self._report(LedgerIssue.SEMANTIC_LANE_CONFLICT, fact.event_id)

    def _take_called(self, fact: Called, at: int) -> None:
        key = self._key(fact.identity, fact.call_id)
        record = self._calls.get(key)
        if record is None:
            record = self._new_record(key, fact.call_id, fact.tool_name)
            record.call, record.call_at = fact, at
            self._unanswered[key] = None
            return
        record = self._own(record)
        if record.call is not None:
            self._report(LedgerIssue.DUPLICATE_CALL, fact.event_id, record)
            return
        record.call, record.call_at = fact, at
        if record.tool_name != fact.tool_name:
            self._report(LedgerIssue.IDENTITY_CONFLICT, fact.event_id, record)

    def _take_dispatched(self, fact: Dispatched, at: int) -> None:
        event_id, identity, operation_id, call_id, tool_name, args_hash, _, flaw = fact
        key = self._key(identity, call_id)
        record = self._calls.get(key)
        if record is None:
            record = self._new_record(key, call_id, tool_name)
            record.operation_id, record.dispatch, record.dispatch_at = operation_id, fact, at
            self._unanswered[key] = None
            self._report(LedgerIssue.EVENT_ORDER_CONFLICT, event_id, record)
        else:
            record = self._own(record)
            if record.dispatch is not None:
                self._report(LedgerIssue.DUPLICATE_DISPATCH, event_id, record, operation_id)
                return
        holder = self.operation(operation_id)
        if holder is not None:
            self._report(LedgerIssue.DUPLICATE_OPERATION, event_id, record, operation_id)
            holder = self._own(holder)
            if LedgerIssue.DUPLICATE_OPERATION not in holder.codes:
                holder.codes += (LedgerIssue.DUPLICATE_OPERATION,)
            return
        record.operation_id, record.dispatch, record.dispatch_at = operation_id, fact, at
        self._operations[operation_id] = key
        call, response = record.call, record.response
        if record.tool_name != tool_name or flaw is not None or (call is not None and call.identity != identity):
            self._report(LedgerIssue.IDENTITY_CONFLICT, event_id, record)
        if call is not None and call.args_hash != args_hash:
            self._report(LedgerIssue.CANONICAL_ARGS_HASH_CONFLICT, event_id, record)
        if response is not None:
            self._report(LedgerIssue.EVENT_ORDER_CONFLICT, event_id, record)
            if response.operation_id != operation_id or response.flaw or response.identity != identity:
                self._report(LedgerIssue.IDENTITY_CONFLICT, response.event_id, record)

    def _take_responded(self, fact: Responded, at: int) -> None:
        event_id, identity, call_id, tool_name, operation_id, _, _, flaw = fact
        key = self._key(identity, call_id)
        record = self._calls.get(key)
        if record is None:
            record = self._new_record(key, call_id, tool_name)
            record.response, record.response_at = fact, at
            self._report(LedgerIssue.ORPHAN_RESPONSE, event_id, record)
            return
        record = self._own(record)
        if record.response is not None:
            self._report(LedgerIssue.DUPLICATE_RESPONSE, event_id, record)
            return
        record.response, record.response_at = fact, at
        self._unanswered.pop(key, None)
        call = record.call
        if (
            call is None
            or call.identity != identity
            or record.tool_name != tool_name
            or (record.operation_id is not None and (record.operation_id != operation_id or flaw is not None))
        ):
            self._report(LedgerIssue.IDENTITY_CONFLICT, event_id, record)

    def _take_recovery(self, fact: RecoveryFact, at: int) -> None:
        record = self.operation(fact.operation_id)
        if record is None:
            self._report(LedgerIssue.EVENT_ORDER_CONFLICT, fact.event_id, None, fact.operation_id, fact.call_id)
            return
        record = self._own(record)
        if record.recovery is None:
            record.recovery = []
        record.recovery.append((at, fact))

    _TAKE: ClassVar[Mapping[type, Callable[[Scanner, Any, int], None]]] = {
        Opened: _take_opened,
        Ended: _take_ended,
        Claimed: _take_claimed,
        Conflicted: _take_conflicted,
        Called: _take_called,
        Dispatched: _take_dispatched,
        Responded: _take_responded,
        RedeliveryStarted: _take_recovery,
        Reconciled: _take_recovery,
        Decided: _take_recovery,
        Attested: _take_recovery,
    }
