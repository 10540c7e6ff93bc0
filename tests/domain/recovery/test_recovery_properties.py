"""What holds for every ledger, sound or not. SPEC rules R3, R9 and R11, and section 9."""

from __future__ import annotations

from enum import StrEnum

from hypothesis import assume, given
from hypothesis import strategies as st

from safepoint.domain.events.run import TOOL_BOUNDARY_PROTOCOL
from safepoint.domain.events.tool import Disposition, Effect, Observation, RecoveryMode, Statement
from safepoint.domain.reasons import RecoveryReason
from safepoint.domain.recovery.bundle import broken_attestation, broken_bundle
from safepoint.domain.recovery.facts import (
    Attested,
    Called,
    Claimed,
    Conflicted,
    Decided,
    Dispatched,
    Ended,
    Fact,
    Flaw,
    Opened,
    Ordinary,
    Reconciled,
    RedeliveryStarted,
    Responded,
)
from safepoint.domain.recovery.resolver import resolve
from safepoint.domain.recovery.scanner import Scanner
from safepoint.domain.recovery.verdict import Resolution, VerdictStatus

from .ledger import (
    ME,
    OTHER_INVOCATION,
    OTHER_TURN,
    attested,
    called,
    completed,
    dispatched,
    ended,
    opened,
    parked,
    parked_bundle,
    reconciled,
    redelivered,
    responded,
    scan,
)
from .ledger import (
    verdict as verdict_on,
)

# Few values of each kind, so that facts meet; and some that no reader knows.
EVENT_IDS = st.sampled_from([f"e{number}" for number in range(12)])
IDENTITIES = st.sampled_from([ME] * 8 + [OTHER_TURN, OTHER_INVOCATION])
CALLS = st.sampled_from(["c1", "c2"])
OPERATIONS = st.sampled_from(["o1", "o2"])
TOOLS = st.sampled_from(["Write"] * 4 + ["Edit"])
HASHES = st.sampled_from(["h"] * 4 + ["x"])
MARKERS = st.sampled_from([None, None, TOOL_BOUNDARY_PROTOCOL, "t0_future"])
FLAWS = st.sampled_from([None] * 6 + list(Flaw))


def word(*kinds: type[StrEnum]) -> st.SearchStrategy[str]:
    return st.sampled_from([str(value) for kind in kinds for value in kind] + ["?"])


FACTS: st.SearchStrategy[Fact] = st.one_of(
    st.builds(Ordinary, EVENT_IDS, IDENTITIES, st.booleans(), MARKERS),
    st.builds(Opened, EVENT_IDS, IDENTITIES, MARKERS),
    st.builds(Ended, EVENT_IDS, IDENTITIES),
    st.builds(Claimed, EVENT_IDS, IDENTITIES),
    st.builds(Conflicted, EVENT_IDS, IDENTITIES, MARKERS),
    st.builds(Called, EVENT_IDS, IDENTITIES, CALLS, TOOLS, HASHES | st.none()),
    st.builds(Dispatched, EVENT_IDS, IDENTITIES, OPERATIONS, CALLS, TOOLS, HASHES, word(RecoveryMode), FLAWS),
    st.builds(
        Responded, EVENT_IDS, IDENTITIES, CALLS, TOOLS, OPERATIONS | st.none(), st.booleans(), word(Effect), FLAWS
    ),
    st.builds(RedeliveryStarted, EVENT_IDS, IDENTITIES, OPERATIONS),
    st.builds(Reconciled, EVENT_IDS, IDENTITIES, OPERATIONS, word(Observation), CALLS | st.none(), FLAWS),
    st.builds(
        Decided,
        EVENT_IDS,
        IDENTITIES,
        OPERATIONS,
        word(Disposition),
        word(RecoveryReason),
        st.lists(EVENT_IDS, max_size=4).map(tuple),
        EVENT_IDS | st.none(),
        CALLS | st.none(),
        FLAWS,
    ),
    st.builds(Attested, EVENT_IDS, IDENTITIES, OPERATIONS, word(Statement), EVENT_IDS | st.none()),
)
# Ledgers of facts that meet by chance, most of them after a sound beginning, so that deep states are reached too.
BEGINNINGS: list[list[Fact]] = [
    [],
    [opened()],
    [opened(), called("b1", "c1")],
    [opened(), called("b1", "c1"), dispatched("b2", "c1", "o1")],
    [opened(), called("b1", "c1"), dispatched("b2", "c1", "o1", mode="idempotent"), ended()],
    [opened(), called("b1", "c1"), called("b3", "c2"), dispatched("b2", "c1", "o1"), ended()],
    [opened(), called("b1", "c1"), dispatched("b2", "c1", "o1"), responded("b3", "c1", "o1"), ended()],
]
LEDGERS = st.builds(list.__add__, st.sampled_from(BEGINNINGS), st.lists(FACTS, max_size=10))


def judged(scanner: Scanner) -> tuple[Resolution, Resolution, list[str]]:
    """Everything that a reader can learn from a scanner."""
    unanswered = [record.call_id for record in scanner.unanswered()]
    return resolve(scanner, foreign=False), resolve(scanner, foreign=True), unanswered


@given(LEDGERS)
def test_no_ledger_makes_the_scanner_or_the_resolver_raise(facts: list[Fact]) -> None:
    assert judged(scan(*facts))


@given(LEDGERS, LEDGERS)
def test_no_candidates_make_the_rules_of_bundles_raise(existing: list[Fact], candidates: list[Fact]) -> None:
    broken_bundle(scan(*existing), candidates)
    broken_attestation(scan(*existing), candidates)


@given(LEDGERS)
def test_reading_at_once_and_writing_commit_by_commit_see_the_same(facts: list[Fact]) -> None:
    writer = Scanner()
    for fact in facts:
        seen = writer.copy()  # records that somebody looks at are changed no more
        before = judged(seen)
        writer.feed(fact)
        assert judged(seen) == before
    assert judged(writer) == judged(scan(*facts))


@given(LEDGERS, LEDGERS)
def test_a_commit_that_is_rolled_back_leaves_no_trace(facts: list[Fact], rolled_back: list[Fact]) -> None:
    scanner = scan(*facts)
    before = judged(scanner)
    fork = scanner.fork()
    for fact in rolled_back:
        fork.feed(fact)
    assert judged(scanner) == before
    assert judged(fork) == judged(scan(*facts, *rolled_back))
    for fact in rolled_back:  # and what it is fed afterwards it judges as if the fork had never been
        scanner.feed(fact)
    assert judged(scanner) == judged(scan(*facts, *rolled_back))


@given(LEDGERS)
def test_only_a_call_that_nothing_else_names_was_definitely_not_dispatched(facts: list[Fact]) -> None:
    for verdict in resolve(scan(*facts), foreign=False).verdicts:
        if verdict.status is VerdictStatus.DEFINITELY_NOT_DISPATCHED:
            assert isinstance(facts[0], Ordinary | Opened | Ended | Conflicted)
            assert facts[0].marker == TOOL_BOUNDARY_PROTOCOL
            first_of_its_id = {fact.event_id: fact for fact in reversed(facts)}.values()
            naming = [
                fact
                for fact in first_of_its_id
                if isinstance(fact, Dispatched | Responded) and fact.call_id == verdict.call_id
            ]
            (call,) = [fact for fact in first_of_its_id if fact.event_id == verdict.call_event_id]
            assert call.identity.invocation_id not in {fact.identity.invocation_id for fact in naming}


@given(LEDGERS)
def test_nothing_is_definitely_not_dispatched_in_a_foreign_ledger(facts: list[Fact]) -> None:
    statuses = {verdict.status for verdict in resolve(scan(*facts), foreign=True).verdicts}
    assert VerdictStatus.DEFINITELY_NOT_DISPATCHED not in statuses


@given(LEDGERS)
def test_a_completed_operation_has_a_call_and_a_response_of_its_own(facts: list[Fact]) -> None:
    for verdict in resolve(scan(*facts), foreign=False).verdicts:
        if verdict.status is VerdictStatus.COMPLETED:
            assert verdict.call_event_id is not None
            assert verdict.response_event_id is not None
            assert verdict.origin is not None
        if verdict.status is VerdictStatus.CORRUPTION:
            assert verdict.origin is None


OBSERVED = st.builds(reconciled, st.sampled_from(Observation))
ANSWERED = st.builds(responded, is_error=st.booleans(), effect=st.sampled_from(Effect))
DECIDED = st.builds(completed, outcome=st.just("response") | st.none(), reason=st.sampled_from(["", *RecoveryReason]))
DECIDED |= st.builds(parked, st.sampled_from(RecoveryReason))
STATED = st.builds(attested, st.sampled_from(Statement))
CANDIDATES: st.SearchStrategy[tuple[Fact, ...]] = st.one_of(
    st.tuples(OBSERVED, DECIDED), st.tuples(OBSERVED, ANSWERED, DECIDED), st.tuples(STATED), st.tuples(STATED, ANSWERED)
)


@given(st.sampled_from(RecoveryMode), st.sampled_from([(), (redelivered(),), parked_bundle()]), CANDIDATES)
def test_what_the_writer_may_write_reads_back_sound(
    mode: RecoveryMode, since: tuple[Fact, ...], candidates: tuple[Fact, ...]
) -> None:
    ledger = (opened(), called(), dispatched(mode=mode), ended(), *since)
    assume(verdict_on(*ledger).status is not VerdictStatus.CORRUPTION)
    if broken_bundle(scan(*ledger), candidates) is None or broken_attestation(scan(*ledger), candidates) is None:
        assert scan(*ledger, *candidates).issues == []
        assert verdict_on(*ledger, *candidates).status is not VerdictStatus.CORRUPTION
