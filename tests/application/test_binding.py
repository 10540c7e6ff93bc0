"""A turn of which nothing was said is bound to its workspace's content where that is possible. SPEC 16, ADR 0081."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from safepoint.adapters.memory.model_provider import Planned
from safepoint.adapters.memory.tables import Failure
from safepoint.application.agent import Agent, Binding
from safepoint.application.capture_content import UNASKED
from safepoint.application.run_agent import Screen
from safepoint.domain.errors import StoreError
from safepoint.domain.events.outside import CheckpointAccepted
from safepoint.domain.events.run import RunStatus
from safepoint.domain.reasons import ParkReason as P
from safepoint.ports.checkpoints import Kept, Unsupported, WhyUnsupported
from safepoint.ports.workspace import CouldNotLook

from .content import Bound, Files
from .resuming import END
from .test_run_checkpoints import DONE, WRITE, interrupted
from .wiring import SESSION, WORKSPACE, World, go


@pytest.fixture
def files() -> Files:
    files = Files(World())
    Bound(files).agent([])  # makes the marker
    return files


@pytest.fixture
def process(files: Files) -> Bound:
    return Bound(files)


def where_possible(process: Bound, *model: Planned) -> Agent:
    return replace(process.bound(model), binding=Binding.WHERE_POSSIBLE)


def turn(process: Bound, *model: Planned) -> list[Unsupported | CouldNotLook]:
    """Run a turn that is bound where that is possible; returns what a person is told where it is not."""
    told: list[Unsupported | CouldNotLook] = []
    screen = Screen(not_bound=told.append)
    outcome = go(partial(process.run_turn, SESSION, "go", where_possible(process, *model), screen)).outcome
    assert outcome.status is RunStatus.COMPLETED
    return told


def test_a_turn_is_bound_where_that_is_possible(process: Bound) -> None:
    assert turn(process, WRITE, DONE) == []
    assert process.of(process.head(), CheckpointAccepted) != []


def test_where_it_is_not_possible_the_turn_runs_unbound_and_the_reason_is_told(process: Bound, files: Files) -> None:
    files.checkpoints.refuse(WORKSPACE, WhyUnsupported.LFS)
    (why,) = turn(process, WRITE, DONE)
    assert isinstance(why, Unsupported)
    assert why.why is WhyUnsupported.LFS
    assert files.written == 1
    assert process.of(process.head(), CheckpointAccepted) == []


def test_what_cannot_be_looked_at_is_told_and_not_believed_to_be_kept(process: Bound, files: Files) -> None:
    files.checkpoints.make_unreadable(WORKSPACE)
    (why,) = turn(process, DONE)
    assert isinstance(why, CouldNotLook)


def test_what_is_large_is_not_copied_unasked(process: Bound, files: Files) -> None:
    files.here["data"] = bytes(UNASKED.new_bytes + 1)
    (why,) = turn(process, DONE)
    assert isinstance(why, Unsupported)
    assert why.why is WhyUnsupported.CONTENT_TOO_LARGE
    assert files.checkpoints.kept(WORKSPACE) == Kept(())
    assert process.works(DONE).status is RunStatus.COMPLETED
    assert files.checkpoints.kept(WORKSPACE) != Kept(())


def test_a_continuation_of_an_unbound_run_stays_unbound_and_the_next_turn_is_bound(files: Files) -> None:
    first = Bound(files)
    first.events_store.fail_at(END, Failure.UNAVAILABLE)
    with pytest.raises(StoreError):
        go(partial(first.run_turn, SESSION, "go", first.bound([DONE], begin=False), Screen()))
    first.die()
    process = Bound(files)
    done = process.continues(where_possible(process, DONE))
    assert process.of(done.run_id, CheckpointAccepted) == []
    assert turn(process, DONE) == []
    assert process.of(process.head(), CheckpointAccepted) != []


def test_a_bound_lineage_is_never_weakened_where_nothing_is_insisted_on(files: Files) -> None:
    process = interrupted(files, WRITE, DONE)
    files.checkpoints.refuse(WORKSPACE, WhyUnsupported.NO_GIT)
    assert process.parks(where_possible(process, DONE)).codes == (P.MODE_MISMATCH,)
