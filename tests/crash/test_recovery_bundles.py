"""Recovery bundles, killed at every instant of their transaction, and decided by two processes. SPEC section 10."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from safepoint.adapters.cli.failures import failure_of
from safepoint.adapters.process.incarnations import FileLockIncarnations
from safepoint.adapters.sqlite.store import open_reader, open_store
from safepoint.adapters.system.clock import SystemClock
from safepoint.adapters.system.ids import Uuid7Ids
from safepoint.application.ledger import Ledger
from safepoint.application.ownership import Owned
from safepoint.application.spines import Spines
from safepoint.domain.errors import SafepointError
from safepoint.domain.identifiers import SessionId

from .harness.deciding import ATTESTED, bundle_of
from .harness.program import KILLED, Hooks
from .harness.stage import SESSION, Stage, step
from .harness.tools import PAYMENT
from .harness.trial import check_record, kill, verdicts

DECIDING = Path(__file__).parent / "harness" / "deciding.py"
INDETERMINATE = ["indeterminate / dispatch_without_response"]
VERDICT = {
    "completed": ["completed / recovery_bundle_completed"],
    "parked": ["parked / contract_forbids_recovery"],
}
both = pytest.mark.parametrize("disposition", VERDICT)


@pytest.fixture
def unknown(stage: Stage) -> Stage:
    """A session whose run ended with one operation of which nothing is known."""
    stage.play([step("I pay.", PAYMENT.call), step("Done.")])
    kill(stage, "run", "pay", at="P4")
    stage.do("resume").expect(3)
    return stage


def command(stage: Stage, disposition: str) -> tuple[str, ...]:
    return (str(DECIDING), str(stage.store), SESSION, disposition)


def hits_of(stage: Stage, disposition: str, kill_at: str) -> list[str]:
    """The instants of a decision that is killed."""
    trace = stage.folder / f"trace-{kill_at}"
    died = stage.program.run_python(*command(stage, disposition), hooks=Hooks(kill=kill_at, trace=trace))
    assert died.exit_code == KILLED, died
    return trace.read_text().split()


def views_are_what_the_events_make(stage: Stage) -> bool:
    with closing(open_reader(stage.store)) as store:
        return list(store.projections.differences()) == []


@both
def test_a_bundle_killed_between_its_statements_was_not_written_and_right_after_its_commit_it_was(
    unknown: Stage, disposition: str
) -> None:
    before = unknown.record
    hits = hits_of(unknown, disposition, "P10")
    begin = len(hits) - 1 - hits[::-1].index("store.begin")
    instants = range(begin + 1, len(hits) + 1)
    assert len(instants) >= 4, hits
    for nth in instants:
        assert hits_of(unknown, disposition, f"random:{nth}")[-1] == hits[nth - 1]
        assert unknown.record == before
        assert verdicts(unknown) == INDETERMINATE
        assert views_are_what_the_events_make(unknown)
    assert hits_of(unknown, disposition, f"random:{len(hits) + 2}")[-1] == "store.after_commit"
    assert unknown.record != before
    assert verdicts(unknown) == VERDICT[disposition]
    assert views_are_what_the_events_make(unknown)
    assert len(unknown.effects()) == 1
    check_record(unknown, before)


def test_an_attestation_killed_at_any_instant_was_made_with_its_answer_or_not_at_all(unknown: Stage) -> None:
    before = unknown.record
    for nth in range(1, 100):
        hits = hits_of(unknown, ATTESTED, f"random:{nth}")
        if unknown.record != before:
            break
        assert verdicts(unknown) == INDETERMINATE
    assert hits[-1] == "store.after_commit"
    assert hits.count("store.before_commit") > 1  # it was owned before it was attested
    assert verdicts(unknown) == ["completed / attested_completed"]
    decided = unknown.record
    attested, answered = (decided.of_session(SESSION, f"tool.{topic}.v1") for topic in ("attested", "responded"))
    assert (len(attested), len(answered)) == (1, 1)
    assert views_are_what_the_events_make(unknown)
    assert len(unknown.effects()) == 1
    check_record(unknown, before)


@pytest.mark.parametrize(("first", "second"), [("completed", "parked"), ("parked", "completed")])
def test_of_two_processes_that_decide_one_wins_and_the_other_is_told(unknown: Stage, first: str, second: str) -> None:
    """The second one stands right before its transaction when the first takes the session over and decides."""
    before = unknown.record
    hits = hits_of(unknown, second, "P10")
    begin = len(hits) - hits[::-1].index("store.begin")
    late = unknown.program._start((), command(unknown, second), Hooks(stop=f"random:{begin}"))
    late.stopped()

    busy = unknown.program.run_python(*command(unknown, first))
    assert (busy.exit_code, busy.out.strip()) == (5, "session_busy")

    held = FileLockIncarnations(Path(f"{unknown.store}.locks")).enter()
    with closing(open_store(unknown.store)) as store:
        store.owners.register(held.incarnation)
        session_id, mine = SessionId(SESSION), held.incarnation.incarnation_id
        taken = store.owners.take(session_id, mine, store.owners.owner(session_id))
        assert taken is not None
        owned = Owned(session_id, mine, taken.epoch)
        ledger, spines = Ledger(store.events, store.owners), Spines(SystemClock(), Uuid7Ids())
        stale = bundle_of(ledger, spines, owned, second)
        ledger.execute(bundle_of(ledger, spines, owned, first))
        decided = unknown.record

        late.go_on()
        told = late.ended()
        assert (told.exit_code, told.out.strip()) == (5, "owner_fenced")

        with pytest.raises(SafepointError) as refused:
            ledger.execute(stale)
        assert failure_of(refused.value).code in {"transition_shape_conflict", "bundle_invalid"}
        assert unknown.record == decided
        store.owners.release(session_id, mine, taken.epoch)
    held.leave(keep_lock_file=False)
    assert len(decided.of_session(SESSION, "tool.recovery_decided.v1")) == 1
    assert verdicts(unknown) == VERDICT[first]
    assert views_are_what_the_events_make(unknown)
    check_record(unknown, before)
