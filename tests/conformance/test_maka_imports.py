"""What is imported of the recorded ledgers says the same as the ledgers themselves; absence then proves nothing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from safepoint.adapters.interchange import maka_facts
from safepoint.adapters.interchange.maka_ledger import MakaLedger
from safepoint.adapters.memory.event_store import MemoryStore
from safepoint.adapters.memory.incarnations import MemoryHost, MemoryIncarnations
from safepoint.application.import_session import ImportSession
from safepoint.application.importable import ImportRefusal, ImportRefused
from safepoint.application.judge_history import HistoryReader
from safepoint.application.lineage import read_segment
from safepoint.application.ownership import SessionOwnership
from safepoint.domain.recovery.resolver import resolve
from safepoint.domain.recovery.verdict import VerdictStatus

Case = dict[str, Any]


def said(verdicts: Sequence[Any]) -> list[tuple[Any, ...]]:
    return [(one.call_id, one.operation_id, one.status, one.reason, one.origin, one.is_error) for one in verdicts]


def expected(case: Case) -> list[tuple[Any, ...]]:
    """The ledger's own verdicts, taken for foreign."""
    return said(resolve(maka_facts.scan(case["events"]), foreign=True).verdicts)


def test_an_imported_ledger_is_judged_as_before(ledgers: Sequence[Case]) -> None:
    met: Counter[str] = Counter()
    for case in ledgers:
        # What was recorded as 1e400 is no number that Python would write again.
        data = "\n".join(json.dumps(envelope).replace("Infinity", "1e400") for envelope in case["events"]).encode()
        store = MemoryStore()
        ownership = SessionOwnership(store.owners, MemoryIncarnations(MemoryHost()), lambda session_id: None)
        import_ = ImportSession(store.events, store.events, ownership, HistoryReader({"maka": MakaLedger()}))
        try:
            imported = import_(data, "maka")
        except ImportRefused as refusal:
            assert store.condition().events == 0, case["id"]
            met[refusal.code] += 1
            continue
        with store.events.snapshot() as reader:
            segments = [read_segment(reader, run_id) for run_id in imported.runs]
        verdicts = [verdict for segment in segments if segment is not None for verdict in segment.resolution.verdicts]
        assert sorted(said(verdicts), key=str) == sorted(expected(case), key=str), case["id"]
        assert VerdictStatus.DEFINITELY_NOT_DISPATCHED not in {verdict.status for verdict in verdicts}
        met["imported"] += 1
    assert met["imported"] > 500
    assert set(met) == {"imported", *(ImportRefusal.UNREADABLE, ImportRefusal.CORRUPT, ImportRefusal.NOT_EXPRESSIBLE)}
