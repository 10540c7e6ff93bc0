"""Many sessions that a process left open when it went, in one store: it is dead, and repaired nothing."""

from __future__ import annotations

from pathlib import Path

from safepoint.adapters.opened_store import OpenedStore
from safepoint.adapters.settings import Settings
from safepoint.application.ledger import Ledger
from safepoint.domain.events.run import PrefixRef
from safepoint.domain.events.session import RunKind
from safepoint.domain.identifiers import SessionId

from ...domain.facts import Facts

RESTARTED = "app_restarted"
ABANDONED = "continuation_abandoned_before_provider_dispatch"


def leave_open(store: Path, sessions: int) -> dict[str, str]:
    """Sessions of four kinds in turn; the failure with which repair must end each run that is open, by run id."""
    expected: dict[str, str] = {}
    with OpenedStore(Settings(store)) as runtime:
        ownership, ledger = runtime.parts.ownership(), runtime.parts.ledger()
        parent = Facts()
        for number in range(sessions):
            owned = ownership.own(SessionId(f"s{number:03}"))
            r = Facts(f"r{number:03}", session=owned.session_id, incarnation=owned.incarnation_id, epoch=owned.epoch)
            match ("plain", "dispatched", "child", "claimed")[number % 4]:
                case "claimed":
                    expected[claimed(ledger, r).run_id] = ABANDONED
                case "child":
                    opened = r.opened(
                        parent_session_id=parent.session_id,
                        parent_run_id=parent.run_id,
                        parent_operation_id=parent.operation("a"),
                    )
                    ledger.execute(r.open_run(opened=opened, admitted=r.admitted(RunKind.CHILD)))
                    expected[r.run_id] = RESTARTED
                case kind:
                    ledger.execute(r.open_run())
                    ledger.execute(r.record(r.step("a", "b")))
                    if kind == "dispatched":
                        ledger.execute(r.prepare(r.dispatch("a")))
                        parent = r
                    expected[r.run_id] = RESTARTED
            ownership.keep(owned)
    return expected


def claimed(ledger: Ledger, r: Facts) -> Facts:
    """A run that ended and was claimed; the facts of the target, which has none yet."""
    ledger.execute(r.open_run())
    last = ledger.execute(r.end()).events[-1]
    boundary = PrefixRef(**r.identity._asdict(), high_water=last.sequence, digest=last.digest)
    target = Facts(f"t-{r.run_id}", session=r.session_id, incarnation=r.incarnation_id, epoch=r.epoch)
    ledger.execute(r.claim(target, [boundary]))
    return target
