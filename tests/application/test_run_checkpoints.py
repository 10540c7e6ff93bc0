"""A run is bound to its workspace's content: when it is kept, what a resume compares, and both ways on. SPEC 16."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from safepoint.adapters.memory.model_provider import Planned, calls, says
from safepoint.adapters.memory.tables import Failure
from safepoint.application.accept_drift import Isolated, NothingHasDrifted, Rebaselined
from safepoint.application.agent import Agent, Binding
from safepoint.application.expected_content import expected_of
from safepoint.application.plan_resume import PlanRequest
from safepoint.application.resume_run import Parked
from safepoint.application.run_agent import Screen
from safepoint.application.run_checkpoints import BoundToNothing, CheckpointsUnusable
from safepoint.application.verify_store import VerifyStore
from safepoint.domain.commands import Append, AppendLate
from safepoint.domain.errors import StoreError, WriteRefused
from safepoint.domain.events.model import HostMessage
from safepoint.domain.events.outside import CheckpointAccepted, WorkspaceRebaselined, WorkspaceTransitioned
from safepoint.domain.events.run import RunStatus
from safepoint.domain.events.tool import ToolDispatched, ToolResponded
from safepoint.domain.identifiers import RunId, SessionId
from safepoint.domain.planning.outcome import Continue, Park
from safepoint.domain.reasons import ParkReason, RevalidationCode
from safepoint.ports.checkpoints import Kept, WhyUnsupported
from safepoint.ports.failpoints import Failpoint

from .content import ISOLATED, Bound, Files
from .resuming import END, Killed, codes, killing, requests
from .wiring import SESSION, WORKSPACE, World, check_sound, go

P = ParkReason
WRITE = calls(("write", {"path": "a.txt", "text": "new"}))
READ = calls(("read", {"path": "b.txt"}))
DONE = says("done")


@pytest.fixture
def files() -> Files:
    world = World()
    files = Files(world)
    Bound(files).agent([])  # makes the marker
    return files


@pytest.fixture
def process(files: Files) -> Bound:
    return Bound(files)


def accepted(process: Bound) -> list[CheckpointAccepted]:
    return process.of(process.head(), CheckpointAccepted)


def interrupted(files: Files, *model: Planned, at: str = END) -> Bound:
    """A process after one that was killed where events of a kind would have been written."""
    first = Bound(files)
    first.events_store.fail_at(at, Failure.UNAVAILABLE)
    with pytest.raises(StoreError):
        first.works(*model)
    first.die()
    return Bound(files)


def lose_checkpoints(files: Files) -> None:
    kept = files.checkpoints.kept(WORKSPACE)
    assert isinstance(kept, Kept)
    for one in kept.checkpoints:
        files.checkpoints.remove(WORKSPACE, one.checkpoint.ref)


# When it is kept


def test_a_checkpoint_is_accepted_at_the_start_and_after_a_step_that_wrote(process: Bound) -> None:
    assert process.works(WRITE, DONE).status is RunStatus.COMPLETED
    topics = process.topics(process.head())
    start, after = (n for n, topic in enumerate(topics) if topic == "workspace.checkpoint_accepted")
    assert start < topics.index("model.step_completed")
    assert topics.index("tool.responded") + 1 == after
    first, second = accepted(process)
    assert first.tree_id != second.tree_id
    assert (first.workspace_epoch, second.workspace_epoch) == (0, 0)
    check_sound(process, process.head())


def test_each_is_bound_to_the_boundary_right_before_it(process: Bound) -> None:
    process.works(WRITE, DONE)
    events = process.events(process.head())
    for position, event in enumerate(events):
        if isinstance(event, CheckpointAccepted):
            assert event.high_water == position
    with process.events_store.snapshot() as reader:
        rows = reader.read(f"run:{process.head()}")
    assert all(one.digest in row.state.decode() for one in accepted(process) for row in [rows[one.high_water]])


def test_one_that_is_bound_to_another_boundary_is_found(process: Bound) -> None:
    process.works(WRITE, DONE)
    store = process.world.store
    assert VerifyStore(store.events, store, store.owners, store.projections)().sound
    run_id = process.head()
    process.ownership.own(SESSION)
    row = store.owners.owner(SESSION)
    assert row is not None
    assert row.incarnation_id is not None
    first = accepted(process)[0]
    wrong = {"event_id": "another", "high_water": len(process.events(run_id)), "digest": "0" * 64}
    fact = first.model_copy(update=wrong)
    process.ledger.execute(AppendLate(SESSION, row.incarnation_id, row.epoch, run_id, fact))
    found = VerifyStore(store.events, store, store.owners, store.projections)()
    assert [damage.code for damage in found.damages] == [P.SOURCE_PREFIX_DIGEST_MISMATCH]


def test_what_only_reads_is_not_kept_again(process: Bound) -> None:
    process.works(READ, READ, DONE)
    assert len(accepted(process)) == 1


def test_what_the_user_changed_while_the_model_thought_is_kept_before_the_first_t1(
    process: Bound, files: Files
) -> None:
    process.failpoints.at_hit = lambda point: files.here.update(c=b"mine") if point == Failpoint.BEFORE_T1 else None
    process.works(WRITE, DONE)
    topics = process.topics(process.head())
    assert (
        topics.index("tool.dispatched") - 1
        == [n for n, topic in enumerate(topics) if topic == "workspace.checkpoint_accepted"][1]
    )
    assert len(accepted(process)) == 3


def test_a_write_that_changed_nothing_moves_the_boundary_and_keeps_no_second_copy(process: Bound, files: Files) -> None:
    process.works(calls(("write", {"path": "a.txt", "text": "a"})), DONE)
    first, second = accepted(process)
    assert first.ref == second.ref
    assert second.high_water > first.high_water
    kept = files.checkpoints.kept(WORKSPACE)
    assert isinstance(kept, Kept)
    assert len(kept.checkpoints) == 1


def test_a_folder_that_cannot_be_kept_is_said_before_anything_is_begun(process: Bound, files: Files) -> None:
    files.checkpoints.refuse(WORKSPACE, WhyUnsupported.LFS)
    with pytest.raises(CheckpointsUnusable, match="lfs"):
        process.works(DONE)
    with pytest.raises(IndexError):
        process.head()


def test_a_write_is_refused_where_the_promised_copy_cannot_be_made_any_more(process: Bound, files: Files) -> None:
    process.failpoints.at_hit = lambda point: (
        files.checkpoints.refuse(WORKSPACE, WhyUnsupported.SUBMODULES) if point == Failpoint.BEFORE_T1 else None
    )
    outcome = process.works(calls(("write", {"path": "a.txt", "text": "x"}), ("read", {"path": "b.txt"})), DONE)
    assert outcome.status is RunStatus.COMPLETED
    assert files.written == 0
    assert "submodules" in str(process.response(process.head(), "write").result)
    assert process.response(process.head(), "read").result == "b"
    check_sound(process, process.head())


def test_nothing_is_accepted_while_an_operation_is_open(files: Files) -> None:
    process = interrupted(files, WRITE, DONE, at=ToolResponded.topic)
    run_id = process.head()
    segment = process.segment(run_id)
    assert segment.survey.baseline is not None
    process.ownership.own(SESSION)
    with pytest.raises(WriteRefused, match="nothing is under way"):
        _accept_late(process, run_id)


def _accept_late(process: Bound, run_id: RunId) -> None:
    (first,) = process.of(run_id, CheckpointAccepted)
    row = process.world.store.owners.owner(SESSION)
    assert row is not None
    assert row.incarnation_id is not None
    again = first.model_copy(update={"event_id": "another", "high_water": len(process.events(run_id))})
    process.ledger.execute(Append(SESSION, row.incarnation_id, row.epoch, run_id, (again,)))


# What a resume compares


def test_a_run_whose_files_are_as_it_left_them_is_continued_and_stays_bound(files: Files) -> None:
    process = interrupted(files, WRITE, DONE)
    before = process.head()
    done = process.continues(process.bound([WRITE, DONE], begin=False))
    assert len(process.of(done.run_id, CheckpointAccepted)) == 2
    first = process.of(done.run_id, CheckpointAccepted)[0]
    assert first.ref == process.of(before, CheckpointAccepted)[-1].ref


def test_what_somebody_else_changed_parks_with_the_paths_those_first_that_the_model_had_read(files: Files) -> None:
    process = interrupted(files, READ, WRITE, DONE)
    files.here.update({"a.txt": b"theirs", "b.txt": b"theirs", "0.txt": b"theirs"})
    parked = process.parks(process.bound(begin=False))
    assert parked.codes == (P.WORKSPACE_DRIFT,)
    assert parked.reasons[0].detail["paths"] == ["b.txt", "0.txt", "a.txt"]
    assert parked.reasons[0].detail["count"] == 3


def test_the_runs_own_write_is_no_drift(files: Files) -> None:
    process = interrupted(files, WRITE, DONE)
    assert isinstance(process.plans(process.bound(begin=False)).plan, Continue)


def test_a_write_that_was_not_kept_is_not_covered_and_its_tool_is_named(files: Files) -> None:
    first = Bound(files)
    first.failpoints.at_hit = lambda point: (
        first.events_store.fail_at(CheckpointAccepted.topic, Failure.UNAVAILABLE)
        if point == Failpoint.T2_COMMITTED
        else None
    )
    with pytest.raises(StoreError):
        first.works(WRITE, DONE)
    first.die()
    process = Bound(files)
    parked = process.parks(process.bound(begin=False))
    assert parked.codes[0] is P.CHECKPOINT_DOES_NOT_COVER
    assert parked.reasons[0].detail["tools"] == ["write"]


def test_what_a_later_run_wrote_without_a_checkpoint_of_its_own_is_not_covered(files: Files) -> None:
    bound, unbound = Bound(files), Bound(files)
    bound.works(WRITE, DONE)
    go(partial(unbound.turn, "go", [WRITE, DONE], files.tools, session_id=SessionId("s2")))
    lineage = [bound.segment(bound.head()), unbound.segment(unbound.head(SessionId("s2")))]
    expected = expected_of(lineage)
    assert expected is not None
    assert (expected.baseline, expected.uncovered_by) == (lineage[0].survey.baseline, ["write"])
    assert expected_of(lineage[1:]) is None
    assert expected_of(lineage[:1]) is not None
    assert lineage[1].survey.written == {}


def test_an_artifact_that_is_gone_fails_closed(files: Files) -> None:
    process = interrupted(files, WRITE, DONE)
    for kept in files.checkpoints.kept(WORKSPACE).checkpoints:  # type: ignore[union-attr]
        files.checkpoints.remove(WORKSPACE, kept.checkpoint.ref)
    assert process.parks(process.bound(begin=False)).codes == (P.WORKSPACE_REF_MISSING,)


def test_a_weaker_mode_is_never_taken_silently(files: Files) -> None:
    process = interrupted(files, WRITE, DONE)
    agent = process.agent([DONE], files.tools)
    assert process.parks(agent).codes == (P.MODE_MISMATCH,)
    files.checkpoints.refuse(WORKSPACE, WhyUnsupported.NO_GIT)
    assert process.parks(process.bound(begin=False)).codes == (P.MODE_MISMATCH,)


def test_not_being_able_to_look_is_no_drift(files: Files) -> None:
    process = interrupted(files, WRITE, DONE)
    files.checkpoints.make_unreadable(WORKSPACE)
    assert process.parks(process.bound(begin=False)).codes == (P.SAFETY_OBSERVATION_UNAVAILABLE,)


def test_a_change_between_plan_and_claim_is_found(files: Files) -> None:
    interrupted(files, WRITE, DONE)
    for happens in (lambda: files.here.update(c=b"now"), lambda: files.checkpoints.make_unreadable(WORKSPACE)):
        process = Bound(files, between_looks=happens)
        parked = process.parks(process.bound(begin=False))
        assert parked.changed == (RevalidationCode.WORKSPACE_CHECKPOINT_CHANGED,)
        process.die()
        files.here.pop("c", None)


def test_a_run_that_was_bound_to_nothing_can_be_bound_when_it_is_continued(files: Files) -> None:
    first = Bound(files)
    first.events_store.fail_at(END, Failure.UNAVAILABLE)
    with pytest.raises(StoreError):
        go(partial(first.turn, "go", [WRITE, DONE], files.tools))
    first.die()
    process = Bound(files)
    done = process.continues(process.bound([DONE]))
    assert len(process.of(done.run_id, CheckpointAccepted)) == 1


# The ways on


def drifted(files: Files) -> tuple[Bound, RunId]:
    process = interrupted(files, READ, WRITE, DONE)
    files.here["b.txt"] = b"theirs"
    return process, process.head()


def test_a_list_of_drifted_paths_that_is_cut_says_how_many_are_missing(files: Files) -> None:
    process, _ = drifted(files)
    assert "not_listed" not in process.parks(process.bound(begin=False)).reasons[0].detail
    files.here.update({f"new-{number:03}": b"theirs" for number in range(150)})
    (reason,) = process.parks(process.bound(begin=False)).reasons
    listed = reason.detail["paths"]
    assert isinstance(listed, list)
    assert (reason.detail["count"], reason.detail["not_listed"]) == (151, 151 - len(listed))
    assert len(listed) < 151


def test_the_present_content_is_accepted_and_the_model_is_told_what_to_read_again(files: Files) -> None:
    process, source = drifted(files)
    done = process.accept.rebaseline(SESSION, process.bound(begin=False), PlanRequest(), by="Ada")
    assert done == Rebaselined(("b.txt",), 1, 1)
    (fact,) = process.of(source, WorkspaceRebaselined)
    assert (fact.workspace_epoch, fact.changed_paths) == (1, ("b.txt",))
    resumed = process.continues(process.bound([DONE], begin=False))
    (told,) = process.of(resumed.run_id, HostMessage)
    assert "Ada" in told.text
    assert "b.txt" in told.text
    assert "somebody else" not in told.text  # files are compared, and nobody saw who wrote them
    assert "not known" in told.text
    assert process.of(resumed.run_id, CheckpointAccepted)[0].workspace_epoch == 1
    assert files.here["b.txt"] == b"theirs"


def test_the_model_is_told_how_many_paths_are_not_named_and_no_name_reads_as_two(files: Files) -> None:
    process, source = drifted(files)
    files.here.update({f"{number:04}, {'x' * 200}": b"theirs" for number in range(1_500)})
    done = process.accept.rebaseline(SESSION, process.bound(begin=False), PlanRequest(), by="Ada")
    assert isinstance(done, Rebaselined)
    assert done.total == 1_501
    (fact,) = process.of(source, WorkspaceRebaselined)
    resumed = process.continues(process.bound([DONE], begin=False))
    (told,) = process.of(resumed.run_id, HostMessage)
    named = [path for path in fact.changed_paths if path in told.text]
    assert f'"{named[0]}", "{named[1]}"' in told.text
    assert told.text.endswith(f", and {1_501 - len(named)} more.")
    assert len(named) < len(fact.changed_paths) < 1_000


def test_the_work_goes_on_in_a_folder_of_its_own_and_the_users_is_untouched(files: Files) -> None:
    process, source = drifted(files)
    before = dict(files.here)
    done = process.accept.isolate(SESSION, process.bound(begin=False), PlanRequest(), by="Ada")
    assert isinstance(done, Isolated)
    assert (done.path, done.folder) == (ISOLATED, WORKSPACE)
    (fact,) = process.of(source, WorkspaceTransitioned)
    assert fact.path == ISOLATED
    resumed = process.continues(process.bound([DONE], begin=False, folder=ISOLATED))
    (told,) = process.of(resumed.run_id, HostMessage)
    assert "Ada" in told.text
    assert ISOLATED in told.text
    assert files.here == before
    assert files.checkpoints.folders[ISOLATED] == {"a.txt": b"new", "b.txt": b"b"}
    assert process.parks(process.bound(begin=False)).codes != ()


def test_after_going_into_isolation_the_users_folder_is_another_one(files: Files) -> None:
    process, _ = drifted(files)
    process.accept.isolate(SESSION, process.bound(begin=False), PlanRequest(), by="Ada")
    assert P.WORKSPACE_IDENTITY_MISMATCH in codes(process.plans(process.bound(begin=False)).plan)


def test_where_nothing_has_drifted_there_is_nothing_to_accept(files: Files) -> None:
    process = interrupted(files, WRITE, DONE)
    answer = process.accept.rebaseline(SESSION, process.bound(begin=False), PlanRequest(), by="Ada")
    assert isinstance(answer, NothingHasDrifted)
    assert process.topics(process.head()).count("workspace.rebaselined") == 0


def test_where_nothing_has_drifted_the_work_goes_on_apart_all_the_same(files: Files) -> None:
    process = interrupted(files, WRITE, DONE)
    before = dict(files.here)
    done = process.accept.isolate(SESSION, process.bound(begin=False), PlanRequest(), by="Ada")
    assert isinstance(done, Isolated)
    apart = process.bound([WRITE, DONE], begin=False, folder=ISOLATED)
    again = process.accept.isolate(SESSION, apart, PlanRequest(), by="Ada")
    assert isinstance(again, NothingHasDrifted)  # it has a folder of its own already
    resumed = process.continues(process.bound([DONE], begin=False, folder=ISOLATED))
    assert files.here == before
    check_sound(process, resumed.run_id)


def test_of_a_run_that_is_bound_to_nothing_nobody_says_that_nothing_has_drifted(files: Files) -> None:
    first = Bound(files)
    agent = replace(first.bound([DONE]), checkpoints=None, binding=Binding.NEVER)
    first.events_store.fail_at(END, Failure.UNAVAILABLE)
    with pytest.raises(StoreError):
        go(partial(first.run_turn, SESSION, "go", agent, Screen()))
    first.die()
    process = Bound(files)
    files.here["b.txt"] = b"theirs"
    for decide in (process.accept.rebaseline, process.accept.isolate):
        with pytest.raises(BoundToNothing):
            decide(SESSION, process.bound(begin=False), PlanRequest(), by="Ada")
    with pytest.raises(BoundToNothing):
        process.accept.require_bound(SESSION, process.bound(begin=False), PlanRequest())
    assert ISOLATED not in files.checkpoints.folders
    process.continues(process.bound([DONE], begin=False))


def test_what_else_stands_in_the_way_is_said_and_nothing_is_accepted(files: Files) -> None:
    process = interrupted(files, WRITE, DONE, at=ToolResponded.topic)
    files.here["b.txt"] = b"theirs"
    answer = process.accept.rebaseline(SESSION, process.bound(begin=False), PlanRequest(), by="Ada")
    assert isinstance(answer, Parked)
    assert P.DANGLING_TOOL_STATE in answer.codes
    assert process.of(process.head(), WorkspaceRebaselined) == []


def test_a_folder_that_cannot_be_made_is_said(files: Files) -> None:
    process, source = drifted(files)
    files.checkpoints.make_folder(ISOLATED)
    answer = process.accept.isolate(SESSION, process.bound(begin=False), PlanRequest(), by="Ada")
    assert isinstance(answer, Parked)
    assert answer.codes == (P.CHECKPOINT_RESTORE_FAILED,)
    assert process.of(source, WorkspaceTransitioned) == []


def test_what_is_not_covered_or_gone_can_be_accepted_as_it_is(files: Files) -> None:
    process = interrupted(files, WRITE, DONE)
    for kept in files.checkpoints.kept(WORKSPACE).checkpoints:  # type: ignore[union-attr]
        files.checkpoints.remove(WORKSPACE, kept.checkpoint.ref)
    answer = process.accept.rebaseline(SESSION, process.bound(begin=False), PlanRequest(), by="Ada")
    assert isinstance(answer, Rebaselined)
    resumed = process.continues(process.bound([DONE], begin=False))
    (told,) = process.of(resumed.run_id, HostMessage)
    assert "every file" in told.text


@pytest.mark.parametrize("point", ["workspace.materialized", "workspace.transitioned"])
def test_killed_on_the_way_into_isolation_there_is_a_way_on(files: Files, point: str) -> None:
    process, _ = drifted(files)
    process.failpoints.at_hit = killing(point)  # type: ignore[arg-type]
    agent: Agent = process.bound(begin=False)
    with pytest.raises(Killed):
        process.accept.isolate(SESSION, agent, PlanRequest(), by="Ada")
    process.die()
    again = Bound(files)
    if point == "workspace.materialized":
        files.checkpoints.folders.pop(ISOLATED)
        assert isinstance(again.accept.isolate(SESSION, agent, PlanRequest(), by="Ada"), Isolated)
    else:
        isolated = again.bound(begin=False, folder=ISOLATED)
        assert codes(again.plans(isolated).plan) in ((), (P.WORKSPACE_REF_MISSING,))
        again.accept.rebaseline(SESSION, isolated, PlanRequest(), by="Ada")
    resumed = again.continues(again.bound([DONE], begin=False, folder=ISOLATED))
    check_sound(again, resumed.run_id)


@pytest.mark.parametrize("point", ["checkpoint.captured", "checkpoint.accepted"])
def test_killed_while_it_is_kept_the_run_is_continued_or_says_what_is_not_covered(files: Files, point: str) -> None:
    process = Bound(files)
    process.failpoints.at_hit = killing(point)  # type: ignore[arg-type]
    with pytest.raises(Killed):
        process.works(WRITE, DONE)
    process.die()
    again = Bound(files)
    plan = again.plans(again.bound(begin=False)).plan
    assert isinstance(plan, Park | Continue)
    assert set(codes(plan)) <= {P.CHECKPOINT_DOES_NOT_COVER, P.WORKSPACE_DRIFT}
    assert requests(again.bound()) == 0
    assert len(again.of(again.head(), ToolDispatched)) <= 1
