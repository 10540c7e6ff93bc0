"""Two folders with one marker: runs are parked until a person says which one is the workspace. SPEC section 16."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from safepoint.adapters.memory.model_provider import says
from safepoint.adapters.memory.tables import Failure
from safepoint.application.agent import Agent
from safepoint.application.copied_folders import CopiedFolders, WorkspaceCopied
from safepoint.application.ownership import SessionBusy
from safepoint.application.settle_workspace import SettleWorkspace, WorkspaceUnusable
from safepoint.domain.errors import StoreError
from safepoint.domain.events.model import HostMessage
from safepoint.domain.events.outside import WorkspaceRenewed, WorkspaceTransitioned
from safepoint.domain.planning.outcome import Continue
from safepoint.domain.reasons import ParkReason

from .counted_tools import Counted
from .resuming import ACT, Resuming, codes, failed
from .wiring import SESSION, WORKSPACE, World, go

COPY = "/copy"


def settling(process: Resuming) -> SettleWorkspace:
    return SettleWorkspace(
        process.events_store,
        process.world.store.views,
        process.ledger,
        process.ownership,
        process.repair,
        process.world.workspaces,
        process.spines,
    )


@pytest.fixture
def act() -> Counted:
    return Counted()


@pytest.fixture
def copied(act: Counted) -> Resuming:
    """A run was interrupted in a folder that is copied since."""
    world = World()
    failed(world, [act.function])
    world.workspaces.copy_folder(WORKSPACE, COPY)
    return Resuming(world)


def agent_in(process: Resuming, act: Counted, folder: str) -> Agent:
    seen = process.world.workspaces.observe(folder)
    agent = process.agent([says("done")], [act.function])
    return replace(agent, workspace=Path(folder), workspace_identity=getattr(seen, "identity", None))


def test_a_copy_is_reported_and_parks_what_was_interrupted_in_the_other_place(copied: Resuming, act: Counted) -> None:
    settle = settling(copied)
    assert settle.look(COPY).elsewhere == (WORKSPACE,)
    assert settle.look(WORKSPACE).elsewhere == ()  # this store knows of no other place yet
    parked = copied.plans(agent_in(copied, act, COPY)).plan
    assert codes(parked) == (ParkReason.WORKSPACE_COPY_AMBIGUOUS,)
    assert isinstance(copied.plans(agent_in(copied, act, WORKSPACE)).plan, Continue)


def test_an_adopted_folder_is_the_workspace_from_then_on(copied: Resuming, act: Counted) -> None:
    before = copied.head()
    settled = settling(copied).adopt(COPY, by="Ada")
    assert [run.run_id for run in settled.runs] == [before]
    (fact,) = copied.of(before, WorkspaceTransitioned)
    assert (fact.path, fact.from_identity, fact.checkpoint_ref) == (COPY, fact.to_identity, "")
    assert codes(copied.plans(agent_in(copied, act, WORKSPACE)).plan) == (ParkReason.WORKSPACE_COPY_AMBIGUOUS,)
    done = copied.continues(agent_in(copied, act, COPY))
    (told,) = copied.of(done.run_id, HostMessage)
    assert COPY in told.text
    assert "Ada" in told.text
    assert copied.projections_agree()


def test_a_run_that_began_in_the_other_folder_afterwards_is_not_continued_in_the_adopted_one(act: Counted) -> None:
    world = World()
    world.workspaces.ensure(WORKSPACE)
    world.workspaces.copy_folder(WORKSPACE, COPY)
    settling(Resuming(world)).adopt(COPY, by="Ada")
    failed(world, [act.function])
    process = Resuming(world)
    assert codes(process.plans(agent_in(process, act, COPY)).plan) == (ParkReason.WORKSPACE_COPY_AMBIGUOUS,)
    process.continues(agent_in(process, act, WORKSPACE))


def test_adopting_twice_writes_once(copied: Resuming) -> None:
    settling(copied).adopt(COPY, by="Ada")
    assert settling(copied).adopt(COPY, by="Ada").runs == ()
    assert settling(copied).look(COPY).seen.adopted
    assert len(copied.of(copied.head(), WorkspaceTransitioned)) == 1


def test_of_two_words_on_one_workspace_the_last_one_counts(act: Counted) -> None:
    world = World()
    process = Resuming(world)
    go(partial(process.turn, "go", [ACT, says("done")], [act.function]))
    world.workspaces.copy_folder(WORKSPACE, COPY)
    settling(process).adopt(WORKSPACE, by="Ada")
    settling(process).adopt(COPY, by="Ada")
    CopiedFolders(world.workspaces, world.store.views.folders_of).require_one(COPY)
    assert not settling(process).look(WORKSPACE).seen.adopted


def test_nobody_is_believed_where_two_folders_say_that_they_are_the_workspace(act: Counted) -> None:
    world = World()
    process = Resuming(world)
    go(partial(process.turn, "go", [ACT, says("done")], [act.function]))
    world.workspaces.copy_folder(WORKSPACE, COPY)
    for folder in (WORKSPACE, COPY):  # as where the one could not be written when the other was chosen
        world.workspaces.adopt(folder)
    copied = CopiedFolders(world.workspaces, world.store.views.folders_of)
    with pytest.raises(WorkspaceCopied):
        copied.require_one(COPY)
    settling(process).adopt(COPY, by="Ada")
    copied.require_one(COPY)


def test_a_renewed_copy_is_another_workspace_and_the_run_stays_in_its_own(copied: Resuming, act: Counted) -> None:
    settled = settling(copied).renew(COPY, by="Ada")
    assert settled.runs == ()
    assert settled.seen.identity != settled.before
    assert settling(copied).look(COPY).elsewhere == ()
    assert codes(copied.plans(agent_in(copied, act, COPY)).plan) == (ParkReason.WORKSPACE_IDENTITY_MISMATCH,)
    copied.continues(agent_in(copied, act, WORKSPACE))


def test_a_run_that_was_interrupted_in_the_renewed_folder_goes_with_it(copied: Resuming, act: Counted) -> None:
    run_id = copied.head()
    settled = settling(copied).renew(WORKSPACE, by="Ada")
    assert [run.run_id for run in settled.runs] == [run_id]
    (fact,) = copied.of(run_id, WorkspaceRenewed)
    assert (fact.from_identity, fact.to_identity) == (settled.before, settled.seen.identity)
    assert codes(copied.plans(agent_in(copied, act, COPY)).plan) == (ParkReason.WORKSPACE_IDENTITY_MISMATCH,)
    copied.continues(agent_in(copied, act, WORKSPACE))


def test_a_renewal_that_was_killed_before_its_fact_is_finished_and_not_begun_again(
    copied: Resuming, act: Counted
) -> None:
    run_id = copied.head()
    copied.events_store.fail_at(WorkspaceRenewed.topic, Failure.UNAVAILABLE)
    with pytest.raises(StoreError):
        settling(copied).renew(WORKSPACE, by="Ada")
    copied.die()
    other = Resuming(copied.world)
    assert codes(other.plans(agent_in(other, act, WORKSPACE)).plan) == (ParkReason.WORKSPACE_IDENTITY_MISMATCH,)
    there = other.world.workspaces.observe(WORKSPACE)
    settled = settling(other).renew(WORKSPACE, by="Ada")
    assert settled.seen == there
    (fact,) = other.of(run_id, WorkspaceRenewed)
    assert fact.from_identity == settled.before
    other.continues(agent_in(other, act, WORKSPACE))


def test_nothing_is_settled_while_a_process_works_there(copied: Resuming) -> None:
    before = copied.world.workspaces.observe(WORKSPACE)
    copied.ownership.own(SESSION)
    other = Resuming(copied.world)
    for settle in (settling(other).renew, settling(other).adopt):
        folder = WORKSPACE if settle.__name__ == "renew" else COPY
        with pytest.raises(SessionBusy):
            settle(folder, by="Ada")
    assert copied.world.workspaces.observe(WORKSPACE) == before


def test_a_folder_without_a_marker_cannot_be_settled(copied: Resuming) -> None:
    copied.world.workspaces.make_folder("/bare")
    for look in (settling(copied).look, partial(settling(copied).adopt, by="Ada")):
        with pytest.raises(WorkspaceUnusable):
            look("/bare")


def test_what_is_finished_is_not_moved(act: Counted) -> None:
    world = World()
    process = Resuming(world)
    go(partial(process.turn, "go", [ACT, says("done")], [act.function]))
    world.workspaces.copy_folder(WORKSPACE, COPY)
    assert settling(process).adopt(COPY, by="Ada").runs == ()
