"""The contract of `Reconciler`: it never makes an effect happen, never guesses, and gives the same answer twice."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

import pytest

from ...domain.events.event import Json
from ...domain.events.tool import Effect, Observation, RecordedContract, RecoveryMode
from ...domain.identifiers import parse_id
from ...domain.recovery.bundle_rules import COMPLETED_BY, FILE_OBSERVATIONS, PARKED_BY
from ..reconciler import AskedOperation, NotSeenNow, Observed, Reconciler
from .recorded_runs import DIGEST, RecordedSession

WAITING = frozenset({Observation.HANDLE_RUNNING})
"""What settles nothing yet: the operation stays as it is."""
STRANGE: tuple[Json, ...] = (None, {}, [], "evidence", 7, {"version": 10**9}, [{"path": None}])
"""Evidence that no reconciler has recorded."""


class Subject(Protocol):
    """One call, and the part of the world that it is about, in the hands of the test.

    At first the call was dispatched, and its effect has not happened. The mode of its contract is `reconcile` or
    `reattach`.
    """

    @abstractmethod
    def asked(self) -> AskedOperation:
        """The call as its run recorded it; the same each time."""

    @abstractmethod
    def happen(self) -> None:
        """Let the effect happen, exactly as the call would have made it; nobody recorded its outcome."""

    @abstractmethod
    def meddle(self) -> None:
        """Let somebody else change what is looked at, to what the call neither found nor makes."""

    @abstractmethod
    def hide(self) -> None:
        """Make it impossible to read what would be looked at."""

    @abstractmethod
    def world(self) -> object:
        """All that an observer could change, as a value that can be compared; how often the effect happened is in it.

        What the dead call left beside its effect, such as temporary files, is not.
        """


def asked_operation(
    contract_id: str,
    *,
    evidence: Json,
    arguments: Json = None,
    mode: RecoveryMode = RecoveryMode.RECONCILE,
    workspace: Path = Path("/workspace"),
    workspace_identity: str | None = None,
) -> AskedOperation:
    """A call as its run recorded it at T1; equal for equal arguments.

    Args:
        contract_id: one that the reconciler knows.
        evidence: what the tool's `evidence` computed before T1.
        arguments: of the call.
        mode: `reconcile` or `reattach`.
        workspace: absolute, every link resolved.
        workspace_identity: as it was observed there.
    """
    run = RecordedSession()
    contract = RecordedContract(mode=mode, contract_id=contract_id, version=1, digest=DIGEST)
    dispatch = run.dispatched("call").model_copy(update={"contract": contract, "evidence": evidence})
    return AskedOperation(run.called("call", args=arguments), dispatch, workspace, workspace_identity)


Change = Callable[[Subject], None]
AtOnce = Callable[[Sequence[Callable[[], Observed | None]]], list[Observed | None]]


def nothing(subject: Subject) -> None:
    """The effect has not happened."""


def happened(subject: Subject) -> None:
    """The effect has happened."""
    subject.happen()


def meddled(subject: Subject) -> None:
    """Somebody else was there, and the effect has not happened."""
    subject.meddle()


def overwritten(subject: Subject) -> None:
    """The effect has happened, and somebody else was there afterwards."""
    subject.happen()
    subject.meddle()


def hidden(subject: Subject) -> None:
    """The effect has happened, and nobody can read what came of it."""
    subject.happen()
    subject.hide()


def unread(subject: Subject) -> None:
    """The effect has not happened, and nobody can read that."""
    subject.hide()


ALL: tuple[Change, ...] = (nothing, happened, meddled, overwritten, hidden, unread)
each_world = pytest.mark.parametrize("change", ALL, ids=[one.__name__ for one in ALL])


def completes(asked: AskedOperation, observed: Observed) -> bool:
    """Whether an observation settles the operation with an outcome."""
    return observed.observation in COMPLETED_BY[asked.contract.mode]


def says_it_happened(asked: AskedOperation, observed: Observed) -> bool:
    """Whether that outcome is one of an effect: a job that was never started has a known outcome, too."""
    return completes(asked, observed) and observed.result is not None and observed.result.effect is not Effect.NONE


def says_that_nothing_happened(asked: AskedOperation, observed: Observed) -> bool:
    """Whether it denies the effect: by an outcome without one, or by saying that all is as the call found it."""
    denied = observed.result is not None and observed.result.effect is Effect.NONE
    return (completes(asked, observed) and denied) or observed.observation is Observation.MATCHES_PRIOR_STATE


def seen_by(reconciler: Reconciler, asked: AskedOperation) -> Observed | None:
    """What it observes, None where it says that it cannot now; anything else that it raises fails the test."""
    try:
        return reconciler.observe(asked)
    except NotSeenNow:
        return None


class ReconcilerContract:
    """Subclass it, override the fixtures, and pytest checks an implementation of the port.

    Attributes:
        meddling_shows: False where nobody else can change what is looked at, such as the status of a process.
    """

    meddling_shows = True

    @pytest.fixture
    def reconciler(self) -> Reconciler:
        """The implementation."""
        pytest.fail("override the fixture `reconciler`")

    @pytest.fixture
    def subject(self) -> Subject:
        """A fresh call that the implementation knows."""
        pytest.fail("override the fixture `subject`")

    @pytest.fixture
    def at_once(self) -> AtOnce:
        """Looks several times, at once where the test has threads to do it."""
        return lambda looks: [look() for look in looks]

    def test_its_name_and_version_can_be_recorded(self, reconciler: Reconciler) -> None:
        assert parse_id(reconciler.reconciler_id, "reconciler id") == reconciler.reconciler_id
        assert reconciler.version >= 1
        assert sorted(reconciler.contract_ids) == sorted(reconciler.contract_ids)
        assert len(set(reconciler.contract_ids)) == len(reconciler.contract_ids)

    def test_the_call_is_one_that_can_be_looked_up(self, subject: Subject) -> None:
        asked = subject.asked()
        assert asked == subject.asked()
        assert asked.contract.mode in {RecoveryMode.RECONCILE, RecoveryMode.REATTACH}

    @each_world
    def test_what_it_answers_settles_something_or_says_that_it_waits(
        self, reconciler: Reconciler, subject: Subject, change: Change
    ) -> None:
        change(subject)
        asked = subject.asked()
        observed = seen_by(reconciler, asked)
        if observed is None:
            assert change in {hidden, unread}, "it could be looked at"
            return
        parks = observed.observation in PARKED_BY[asked.contract.mode]
        assert completes(asked, observed) or parks or observed.observation in WAITING, observed
        assert observed.observation is not Observation.LATE_OUTCOME  # that is for the owner that lives
        assert (observed.result is not None) == completes(asked, observed), observed
        if observed.observation in FILE_OBSERVATIONS and observed.result is not None:
            assert not observed.result.is_error

    @each_world
    def test_looking_changes_nothing(self, reconciler: Reconciler, subject: Subject, change: Change) -> None:
        change(subject)
        before = subject.world()
        seen_by(reconciler, subject.asked())
        assert subject.world() == before

    @each_world
    def test_the_same_world_gives_the_same_answer(
        self, reconciler: Reconciler, subject: Subject, change: Change, at_once: AtOnce
    ) -> None:
        change(subject)
        first = seen_by(reconciler, subject.asked())
        assert seen_by(reconciler, subject.asked()) == first
        assert at_once([partial(seen_by, reconciler, subject.asked())] * 4) == [first] * 4

    def test_what_has_happened_is_seen_and_answered(self, reconciler: Reconciler, subject: Subject) -> None:
        subject.happen()
        asked = subject.asked()
        observed = reconciler.observe(asked)
        assert says_it_happened(asked, observed), observed
        assert observed.result is not None
        assert observed.evidence_digest is not None

    def test_what_has_not_happened_is_never_said_to_have(self, reconciler: Reconciler, subject: Subject) -> None:
        asked = subject.asked()
        observed = reconciler.observe(asked)
        assert not says_it_happened(asked, observed), observed

    def test_what_somebody_else_did_is_never_taken_for_it(self, reconciler: Reconciler, subject: Subject) -> None:
        subject.meddle()
        asked = subject.asked()
        observed = reconciler.observe(asked)
        assert not says_it_happened(asked, observed), observed

    def test_what_was_overwritten_afterwards_is_not_taken_for_what_it_was(
        self, reconciler: Reconciler, subject: Subject
    ) -> None:
        subject.happen()
        subject.meddle()
        asked = subject.asked()
        observed = reconciler.observe(asked)
        assert says_it_happened(asked, observed) is not self.meddling_shows, observed
        assert not says_that_nothing_happened(asked, observed), observed

    @pytest.mark.parametrize("change", [hidden, unread], ids=["hidden", "unread"])
    def test_what_cannot_be_read_is_not_guessed(self, reconciler: Reconciler, subject: Subject, change: Change) -> None:
        """Could not look is neither "it happened" nor "it did not" (F1), whichever of them is true."""
        change(subject)
        asked = subject.asked()
        observed = seen_by(reconciler, asked)
        assert observed is None or not completes(asked, observed), observed
        assert observed is None or not says_that_nothing_happened(asked, observed), observed

    def test_what_has_happened_is_never_denied(self, reconciler: Reconciler, subject: Subject) -> None:
        subject.happen()
        asked = subject.asked()
        assert not says_that_nothing_happened(asked, reconciler.observe(asked))

    @pytest.mark.parametrize("evidence", STRANGE, ids=repr)
    @pytest.mark.parametrize("change", [nothing, happened], ids=["nothing", "happened"])
    def test_evidence_that_it_does_not_understand_proves_nothing(
        self, reconciler: Reconciler, subject: Subject, change: Change, evidence: Json
    ) -> None:
        change(subject)
        asked = subject.asked()
        if asked.evidence is None:
            return  # its handle is the operation itself
        dispatch = asked.dispatch.model_copy(update={"evidence": evidence})
        strange = replace(asked, dispatch=dispatch)
        observed = seen_by(reconciler, strange)
        assert observed is None or not completes(strange, observed), observed
        assert observed is None or not says_that_nothing_happened(strange, observed), observed

    @each_world
    def test_tidying_touches_no_effect_and_may_be_done_again(
        self, reconciler: Reconciler, subject: Subject, change: Change
    ) -> None:
        change(subject)
        before, first = subject.world(), seen_by(reconciler, subject.asked())
        for _ in range(2):
            reconciler.tidy(subject.asked())
            assert subject.world() == before
        assert seen_by(reconciler, subject.asked()) == first
