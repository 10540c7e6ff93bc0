"""A session is forgotten: what goes with it, what refuses, and that a second try finishes. SPEC section 16."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from safepoint.adapters.memory.model_provider import calls, says
from safepoint.adapters.memory.tables import Failure
from safepoint.adapters.workspace.isolated_folders import FoldersInPlace
from safepoint.application.accept_drift import Isolated
from safepoint.application.forget_session import (
    CONTENT_REMOVED,
    FolderInUse,
    ForgetSession,
    SessionUnknown,
    StillRunning,
)
from safepoint.application.forgotten_sessions import SessionForgotten
from safepoint.application.inspect_sessions import InspectSessions
from safepoint.application.ownership import SessionBusy
from safepoint.application.plan_resume import PlanRequest
from safepoint.application.run_agent import Screen
from safepoint.application.verify_store import VerifyStore
from safepoint.domain.errors import StoreError
from safepoint.domain.events.tool import ToolResponded
from safepoint.domain.identifiers import SessionId
from safepoint.ports.checkpoints import Kept

from .content import Bound, Files
from .resuming import END, Killed
from .wiring import SESSION, WORKSPACE, World, go

OTHER = SessionId("s2")
WRITE = calls(("write", {"path": "a.txt", "text": "new"}))
DONE = says("done")


class Bindings:
    """Two sessions whose runs are bound to content; the first is the one to forget."""

    def __init__(self, folder: Path) -> None:
        self.world = World()
        self.files = Files(self.world)
        self.isolated = FoldersInPlace(folder / "isolated", lambda: self.world.ids.fresh(str))
        first = Bound(self.files)
        first.works(WRITE, DONE)
        go(partial(first.run_turn, OTHER, "go", first.bound([WRITE, DONE]), Screen()))
        first.die()

    def forget(self, at_failpoint: Callable[[str], None] = lambda point: None) -> ForgetSession:
        process = self.process = Bound(self.files, at_failpoint=at_failpoint)
        return ForgetSession(
            process.events_store,
            self.world.store,
            self.world.store.views,
            process.ownership,
            process.repair,
            process.over,
            self.files.checkpoints,
            self.isolated,
            self.world.store.forgetting,
            process.spines._clock,
            process.failpoints,
            process.tidy,
        )

    def refs(self) -> set[str]:
        kept = self.files.checkpoints.kept(WORKSPACE)
        assert isinstance(kept, Kept)
        return {one.checkpoint.ref for one in kept.checkpoints}

    def sound(self) -> bool:
        store = self.world.store
        return VerifyStore(store.events, store, store.owners, store.projections)().sound


@pytest.fixture
def kept(tmp_path: Path) -> Bindings:
    return Bindings(tmp_path)


def test_looking_says_what_would_go_and_changes_nothing(kept: Bindings) -> None:
    refs = kept.refs()
    planned = kept.forget().look(SESSION)
    assert planned.sessions == (SESSION,)
    assert len(planned.runs) == 1
    assert {ref for ref, _ in planned.checkpoints} < refs
    assert (kept.refs(), kept.forget().look(SESSION)) == (refs, planned)


def test_content_and_checkpoints_go_and_the_other_session_keeps_its_own(kept: Bindings) -> None:
    planned, before = kept.forget().look(SESSION), kept.refs()
    done = kept.forget()(SESSION, by="Ada")
    assert done.forgotten.events > 0
    assert (done.checkpoints, done.left) == (len(planned.checkpoints), ())
    assert kept.refs() == before - {ref for ref, _ in planned.checkpoints}
    assert kept.forget().look(OTHER).checkpoints != ()
    assert kept.sound()


def test_what_is_forgotten_is_known_as_that_and_as_nothing_else(kept: Bindings) -> None:
    kept.forget()(SESSION, by="Ada")
    process = Bound(kept.files)
    inspect = InspectSessions(process.events_store, kept.world.store.views, process.ownership)
    for look in (kept.forget().look, inspect.one):
        with pytest.raises(SessionForgotten, match="Ada"):
            look(SESSION)
    assert [row.session_id for row in kept.world.store.views.sessions()] == [OTHER]


def test_nothing_can_be_begun_or_continued_in_it(kept: Bindings) -> None:
    kept.forget()(SESSION, by="Ada")
    process = Bound(kept.files)
    with pytest.raises(Exception, match="forgotten by Ada"):
        process.works(DONE)
    parked = process.parks(process.bound(begin=False))
    assert "forgotten by Ada" in str(parked.reasons[0].detail)
    assert kept.sound()


def test_a_session_that_somebody_works_in_is_not_forgotten(kept: Bindings) -> None:
    Bound(kept.files).ownership.own(SESSION)
    refs = kept.refs()
    with pytest.raises(SessionBusy):
        kept.forget()(SESSION, by="Ada")
    assert kept.refs() == refs


def test_a_session_whose_work_may_still_run_is_not_forgotten(kept: Bindings) -> None:
    process = Bound(kept.files)
    process.events_store.fail_at(ToolResponded.topic, Failure.UNAVAILABLE)
    with pytest.raises(StoreError):
        process.works(WRITE, DONE)
    fencing = Bound(kept.files)
    owned = fencing.ownership.own(SESSION, fencing=process.ownership.incarnation.incarnation_id)
    fencing.repair(owned)
    fencing.ownership.release(owned)
    refs = kept.refs()
    with pytest.raises(StillRunning):
        kept.forget()(SESSION, by="Ada")
    assert kept.refs() == refs
    process.die()
    kept.forget()(SESSION, by="Ada")
    assert kept.sound()


def test_an_open_run_of_a_dead_process_is_no_hindrance(kept: Bindings) -> None:
    process = Bound(kept.files)
    process.events_store.fail_at(END, Failure.UNAVAILABLE)
    with pytest.raises(StoreError):
        process.works(DONE)
    process.die()
    kept.forget()(SESSION, by="Ada")
    assert kept.sound()


def isolated(kept: Bindings) -> str:
    """The run of the session goes on in a folder of its own, which is really there; answers where."""
    process = Bound(kept.files)
    process.events_store.fail_at(END, Failure.UNAVAILABLE)
    with pytest.raises(StoreError):
        process.works(WRITE, DONE)
    process.die()
    kept.files.here["b.txt"] = b"theirs"
    again = Bound(kept.files)
    path = kept.isolated.new()
    Path(path).mkdir()
    again.accept._new_folder = lambda: path
    kept.world.workspaces.make_folder(path)
    done = again.accept.isolate(SESSION, again.bound(begin=False), PlanRequest(), by="Ada")
    assert isinstance(done, Isolated)
    again.die()
    return path


def test_the_isolated_folder_of_its_run_goes_too(kept: Bindings) -> None:
    path = isolated(kept)
    assert kept.forget().look(SESSION).folders == (path,)
    assert kept.forget()(SESSION, by="Ada").folders == 1
    assert not Path(path).exists()


def test_a_folder_that_another_session_works_in_keeps_all_of_it(kept: Bindings) -> None:
    path = isolated(kept)
    other = Bound(kept.files)
    agent = other.bound([DONE], folder=path)
    go(partial(other.run_turn, SessionId("s3"), "go", agent, Screen()))
    other.die()
    refs = kept.refs()
    with pytest.raises(FolderInUse, match="another session"):
        kept.forget()(SESSION, by="Ada")
    assert (kept.refs(), Path(path).exists()) == (refs, True)
    assert kept.forget()(SessionId("s3"), by="Ada").folders == 0
    assert Path(path).exists()
    kept.forget()(SESSION, by="Ada")
    assert not Path(path).exists()


def test_there_must_be_such_a_session(kept: Bindings) -> None:
    with pytest.raises(SessionUnknown):
        kept.forget()(SessionId("nobody"), by="Ada")


def test_what_cannot_be_reached_outside_the_store_is_said_and_the_content_goes(kept: Bindings) -> None:
    kept.files.checkpoints.make_unreadable(WORKSPACE)
    done = kept.forget()(SESSION, by="Ada")
    assert [what for what, _ in done.left] == [WORKSPACE]
    assert done.forgotten.events > 0


@pytest.mark.parametrize("seed", range(20))
def test_killed_at_any_instant_a_second_try_finishes(kept: Bindings, seed: int) -> None:
    chance = random.Random(seed)
    if seed % 2:
        point = CONTENT_REMOVED

        def die(hit: str) -> None:
            if hit == point:
                raise Killed(hit)

        with pytest.raises(Killed):
            kept.forget(die)(SESSION, by="Ada")
    else:
        forget = kept.forget()
        removed = chance.randrange(2)
        remove, count = kept.files.checkpoints.remove, 0

        def dying(folder: str, ref: str) -> object:
            nonlocal count
            count += 1
            if count > removed:
                raise Killed(ref)
            return remove(folder, ref)

        kept.files.checkpoints.remove = dying  # type: ignore[method-assign, assignment]
        with pytest.raises(Killed):
            forget(SESSION, by="Ada")
        kept.files.checkpoints.remove = remove  # type: ignore[method-assign]
    kept.process.die()
    done = kept.forget()(SESSION, by="Ada")
    assert done.left == ()
    assert kept.sound()
    assert all(ref in {one for one, _ in kept.forget().look(OTHER).checkpoints} for ref in kept.refs())
