"""Every reconciler of ours keeps the contract, and the contract catches those that do not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from safepoint.adapters.memory.event_store import MemoryStore
from safepoint.adapters.memory.supervisor import MemorySupervisor
from safepoint.adapters.tools.builtin.file_reconciler import FileReconciler
from safepoint.application.recorded_handles import RecordedHandles
from safepoint.domain import canonical
from safepoint.domain.events.event import Json
from safepoint.domain.events.tool import (
    Effect,
    Life,
    Observation,
    RecordedContract,
    RecoveryMode,
)
from safepoint.domain.identifiers import OperationId
from safepoint.domain.tool_results import PreparedResult
from safepoint.ports.contract_kit import reconciler as kit
from safepoint.ports.contract_kit.reconciler import AtOnce, ReconcilerContract, Subject
from safepoint.ports.reconciler import AskedOperation, Observed, Reconciler
from safepoint.ports.supervised import OperationStatus, Progress
from safepoint.ports.tool_catalog import Workspace

from ..adapters.tools.file_matrix import STORIES, THEIRS, Story
from ..adapters.tools.test_file_reconciler import IDENTITY, bound
from ..adapters.tools.test_file_reconciler import asked as asked_of_file

OPERATION = OperationId("operation-1")


def in_threads(looks: Sequence[Callable[[], Observed | None]]) -> list[Observed | None]:
    with ThreadPoolExecutor(len(looks)) as pool:
        return [running.result() for running in [pool.submit(look) for look in looks]]


# Files


class FileSubject(Subject):
    """A file tool, and the file that it is about."""

    def __init__(self, story: Story, workspace: Path) -> None:
        self._story, self._workspace = story, workspace
        self._path = workspace / str(story.arguments["path"])
        self._path.parent.mkdir(parents=True)
        (workspace / "lib").mkdir()
        if story.prior is not None:
            self._path.write_bytes(story.prior)
        call = bound(story.tool, {**story.arguments})
        evidence = call.evidence(Workspace(workspace, IDENTITY))
        self._asked = asked_of_file(call, {**story.arguments}, evidence, workspace, IDENTITY)

    def asked(self) -> AskedOperation:
        return self._asked

    def happen(self) -> None:
        if self._story.moved_to is not None:
            self._path.rename(self._workspace / self._story.moved_to)
        elif self._story.expected is None:
            self._path.unlink()
        else:
            self._path.write_bytes(self._story.expected)

    def meddle(self) -> None:
        moved = self._workspace / str(self._story.moved_to or "")
        (moved if moved.is_file() else self._path).write_bytes(THEIRS)

    def hide(self) -> None:
        """Put a link in the way, which is never followed."""
        aside = self._path.parent.rename(self._workspace / "aside")
        self._path.parent.symlink_to(aside)

    def world(self) -> object:
        found = sorted(path for path in self._workspace.rglob("*") if path.is_file())
        return [(str(path), path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino) for path in found]


class TestFiles(ReconcilerContract):
    @pytest.fixture(
        params=[one for one in STORIES if one.prior != one.expected or one.moved_to], ids=lambda one: one.name
    )
    def story(self, request: pytest.FixtureRequest) -> Story:
        story: Story = request.param
        return story

    @pytest.fixture
    def at_once(self) -> AtOnce:
        return in_threads

    @pytest.fixture
    def reconciler(self) -> Reconciler:
        return FileReconciler()

    @pytest.fixture
    def subject(self, story: Story, tmp_path: Path) -> Subject:
        return FileSubject(story, tmp_path.resolve())


# Supervised operations


class JobSubject(Subject):
    """A supervised operation, and what its supervisor wrote down."""

    def __init__(self, supervisor: MemorySupervisor) -> None:
        self._supervisor = supervisor
        supervisor.prepare(OPERATION)
        self._write(OperationStatus(OPERATION, Progress.NEVER_STARTED))

    def _write(self, status: OperationStatus | None) -> None:
        self._supervisor.operations()[OPERATION].status = status

    def asked(self) -> AskedOperation:
        return asked_of(RecoveryMode.REATTACH, None, Life.SUPERVISED)

    def happen(self) -> None:
        self._write(OperationStatus(OPERATION, Progress.EXITED, 1, 1, "digest", exit_code=0))

    def meddle(self) -> None:
        """Nobody else writes there."""

    def hide(self) -> None:
        self._write(None)

    def world(self) -> object:
        return self._supervisor.status(OPERATION)


def asked_of(mode: RecoveryMode, evidence: Json, life: Life = Life.TASK) -> AskedOperation:
    file = asked_of_file(bound("delete_file", {"path": "a"}), {"path": "a"}, None, Path("/nowhere"), IDENTITY)
    contract = RecordedContract(mode=mode, contract_id="test", version=1, digest="ab" * 32)
    update = {"contract": contract, "evidence": evidence, "life": life}
    return replace(file, dispatch=file.dispatch.model_copy(update=update))


class TestJobs(ReconcilerContract):
    meddling_shows = False

    @pytest.fixture
    def supervisor(self) -> MemorySupervisor:
        return MemorySupervisor()

    @pytest.fixture
    def reconciler(self, supervisor: MemorySupervisor) -> Reconciler:
        return RecordedHandles(supervisor, MemoryStore().events)

    @pytest.fixture
    def at_once(self) -> AtOnce:
        return in_threads

    @pytest.fixture
    def subject(self, supervisor: MemorySupervisor) -> Subject:
        return JobSubject(supervisor)


# One that is right, and what is wrong with others


class Ledgered(Subject):
    """A row somewhere, which one call writes once; reading it may fail."""

    def __init__(self) -> None:
        self.rows: list[str] = []
        self.readable = True

    def asked(self) -> AskedOperation:
        return asked_of(RecoveryMode.RECONCILE, {"row": "paid"})

    def happen(self) -> None:
        self.rows.append("paid")

    def meddle(self) -> None:
        self.rows[:] = ["refunded"]

    def hide(self) -> None:
        self.readable = False

    def world(self) -> object:
        return list(self.rows)


class Right(Reconciler):
    """Reads the row and compares."""

    reconciler_id = "test.right"
    version = 1

    def __init__(self, subject: Ledgered) -> None:
        self.subject = subject

    @property
    def contract_ids(self) -> Collection[str]:
        return ("test",)

    def observe(self, asked: AskedOperation) -> Observed:
        evidence, rows = asked.evidence, self.subject.rows
        if not self.subject.readable or not isinstance(evidence, dict) or "row" not in evidence:
            return Observed(Observation.UNREADABLE)
        digest = canonical.sha256_hex(canonical.encode(list(rows)))
        if rows == [evidence["row"]]:
            done = PreparedResult("paid", is_error=False, effect=Effect.DONE)
            return Observed(Observation.MATCHES_EXPECTED_STATE, done, digest)
        return Observed(Observation.DIVERGED if rows else Observation.MATCHES_PRIOR_STATE, None, digest)

    def tidy(self, asked: AskedOperation) -> None:
        """Nothing."""


class TestRight(ReconcilerContract):
    @pytest.fixture
    def subject(self) -> Ledgered:
        return Ledgered()

    @pytest.fixture
    def reconciler(self, subject: Ledgered) -> Reconciler:
        return Right(subject)


class Redoing(Right):
    """Makes the effect happen where it does not find it."""

    def observe(self, asked: AskedOperation) -> Observed:
        if not self.subject.rows:
            self.subject.rows.append("paid")
        return super().observe(asked)


class Guessing(Right):
    """Takes what it cannot read for done."""

    def observe(self, asked: AskedOperation) -> Observed:
        seen = super().observe(asked)
        done = PreparedResult("surely", is_error=False, effect=Effect.DONE)
        unread = seen.observation is Observation.UNREADABLE
        return Observed(Observation.MATCHES_EXPECTED_STATE, done, "ab" * 32) if unread else seen


class Moody(Right):
    """Says something else the second time."""

    asked_before = False

    def observe(self, asked: AskedOperation) -> Observed:
        before, self.asked_before = self.asked_before, True
        return Observed(Observation.UNREADABLE) if before else super().observe(asked)


class Raising(Right):
    """Raises where it cannot read."""

    def observe(self, asked: AskedOperation) -> Observed:
        if not self.subject.readable:
            raise OSError("cannot read")
        return super().observe(asked)


class Speechless(Right):
    """Has no answer for what it found done."""

    def observe(self, asked: AskedOperation) -> Observed:
        return replace(super().observe(asked), result=None)


class Existing(Right):
    """Takes any row for the row."""

    def observe(self, asked: AskedOperation) -> Observed:
        done = PreparedResult("paid", is_error=False, effect=Effect.DONE)
        seen = super().observe(asked)
        anything = self.subject.readable and self.subject.rows
        return Observed(Observation.ALREADY_SATISFIED, done, "ab" * 32) if anything else seen


class Sweeping(Right):
    """Removes the effect with what it tidies."""

    def tidy(self, asked: AskedOperation) -> None:
        self.subject.rows.clear()


class Late(Right):
    """Speaks for an owner that lives."""

    def observe(self, asked: AskedOperation) -> Observed:
        return Observed(Observation.LATE_OUTCOME, PreparedResult("paid", is_error=False, effect=Effect.DONE))


class Handled(Ledgered):
    """The same row, promised to be found by its handle: then there are outcomes without an effect."""

    def asked(self) -> AskedOperation:
        return asked_of(RecoveryMode.REATTACH, {"row": "paid"})


NEVER_MADE = PreparedResult("it was never made", is_error=True, effect=Effect.NONE)


class Finding(Right):
    """Finds the row, or finds that it was never written; what it cannot read it does not know."""

    def observe(self, asked: AskedOperation) -> Observed:
        seen = super().observe(asked)
        match seen.observation:
            case Observation.MATCHES_EXPECTED_STATE:
                return replace(seen, observation=Observation.HANDLE_SETTLED)
            case Observation.MATCHES_PRIOR_STATE:
                return replace(seen, observation=Observation.HANDLE_SETTLED, result=NEVER_MADE)
            case _:
                return Observed(Observation.HANDLE_UNKNOWN)


class TestFinding(ReconcilerContract):
    @pytest.fixture
    def subject(self) -> Handled:
        return Handled()

    @pytest.fixture
    def reconciler(self, subject: Handled) -> Reconciler:
        return Finding(subject)


class Denying(Finding):
    """Takes what it does not know for something that never happened."""

    def observe(self, asked: AskedOperation) -> Observed:
        seen = super().observe(asked)
        unknown = seen.observation is Observation.HANDLE_UNKNOWN
        return Observed(Observation.HANDLE_SETTLED, NEVER_MADE, "00" * 32) if unknown else seen


class DenyingAll(Finding):
    """Has only one answer."""

    def observe(self, asked: AskedOperation) -> Observed:
        return Observed(Observation.HANDLE_SETTLED, NEVER_MADE, "00" * 32)


class Unchanged(Right):
    """Takes what it cannot read for what was there before."""

    def observe(self, asked: AskedOperation) -> Observed:
        seen = super().observe(asked)
        unread = seen.observation is Observation.UNREADABLE
        return Observed(Observation.MATCHES_PRIOR_STATE) if unread else seen


CONTRACT = ReconcilerContract()
Check = Callable[[Reconciler, Subject], None]
WRONG: list[tuple[type[Right], Check]] = [
    (Redoing, lambda r, s: CONTRACT.test_looking_changes_nothing(r, s, kit.nothing)),
    (Redoing, CONTRACT.test_what_has_not_happened_is_never_said_to_have),
    (Guessing, lambda r, s: CONTRACT.test_what_cannot_be_read_is_not_guessed(r, s, kit.hidden)),
    (Guessing, lambda r, s: CONTRACT.test_what_cannot_be_read_is_not_guessed(r, s, kit.unread)),
    (Unchanged, lambda r, s: CONTRACT.test_what_cannot_be_read_is_not_guessed(r, s, kit.hidden)),
    (Guessing, lambda r, s: CONTRACT.test_evidence_that_it_does_not_understand_proves_nothing(r, s, kit.nothing, {})),
    (Moody, lambda r, s: CONTRACT.test_the_same_world_gives_the_same_answer(r, s, kit.happened, in_threads)),
    (Speechless, CONTRACT.test_what_has_happened_is_seen_and_answered),
    (Existing, CONTRACT.test_what_somebody_else_did_is_never_taken_for_it),
    (Existing, CONTRACT.test_what_was_overwritten_afterwards_is_not_taken_for_what_it_was),
    (Sweeping, lambda r, s: CONTRACT.test_tidying_touches_no_effect_and_may_be_done_again(r, s, kit.happened)),
    (Late, lambda r, s: CONTRACT.test_what_it_answers_settles_something_or_says_that_it_waits(r, s, kit.happened)),
]


WRONG_WITH_HANDLES: list[tuple[type[Finding], Check]] = [
    (Denying, lambda r, s: CONTRACT.test_what_cannot_be_read_is_not_guessed(r, s, kit.hidden)),
    (Denying, lambda r, s: CONTRACT.test_what_cannot_be_read_is_not_guessed(r, s, kit.unread)),
    (Denying, CONTRACT.test_what_was_overwritten_afterwards_is_not_taken_for_what_it_was),
    (Denying, lambda r, s: CONTRACT.test_evidence_that_it_does_not_understand_proves_nothing(r, s, kit.happened, {})),
    (DenyingAll, CONTRACT.test_what_has_happened_is_never_denied),
]


@pytest.mark.parametrize(
    ("wrong", "check"), WRONG_WITH_HANDLES, ids=[f"{one.__name__}-{i}" for i, (one, _) in enumerate(WRONG_WITH_HANDLES)]
)
def test_the_contract_catches_a_reconciler_that_denies_what_it_does_not_know(
    wrong: type[Finding], check: Check
) -> None:
    right, subject = Handled(), Handled()
    check(Finding(right), right)
    with pytest.raises(AssertionError):
        check(wrong(subject), subject)


@pytest.mark.parametrize(("wrong", "check"), WRONG, ids=[f"{wrong.__name__}-{i}" for i, (wrong, _) in enumerate(WRONG)])
def test_the_contract_catches_a_reconciler_that_is_wrong(wrong: type[Right], check: Check) -> None:
    right, subject = Ledgered(), Ledgered()
    check(Right(right), right)
    with pytest.raises(AssertionError):
        check(wrong(subject), subject)


def test_the_contract_catches_a_reconciler_that_raises() -> None:
    subject = Ledgered()
    with pytest.raises(OSError, match="cannot read"):
        CONTRACT.test_what_cannot_be_read_is_not_guessed(Raising(subject), subject, kit.hidden)
