"""The first commit of a continuation, by admission or by repair: exactly what its claim froze. SPEC section 14."""

from __future__ import annotations

from typing import Any

import pytest

from safepoint.domain.continuation.decisions import repair, start
from safepoint.domain.continuation.state import Progress, continuation_of
from safepoint.domain.events.event import Event
from safepoint.domain.events.model import HostMessage
from safepoint.domain.events.run import ExecutionProfile, RunClaimed, RunEnded, RunStatus, StartKind
from safepoint.domain.events.session import RunAbandoned
from safepoint.domain.run.state import Run

from ..facts import DIGEST, Facts, accepted, prefix, refused, run_of, session_of, topics


class Claimed:
    """An interrupted run that was claimed, with an inbox; its target has no event."""

    def __init__(self) -> None:
        self.r, self.target = Facts("r1"), Facts("r2")
        source: list[Event] = [self.r.opened(), self.r.user(), *self.r.step("a"), self.r.ended()]
        command = self.r.claim(self.target, [prefix(self.r, source)])
        self.claimed: RunClaimed = command.claimed
        self.source = [*source, command.claimed]
        grant = self.r.grant(self.r.requested("a"))
        self.session: list[Event] = [self.r.admitted(), command.admitted, self.r.notice(), grant]
        self.history: list[Event] = []

    def decide(self, *, repairing: bool = False, **fields: Any) -> Any:
        states = session_of(self.session), run_of(self.source), run_of(self.history)
        if repairing:
            return repair(*states, self.target.repair(self.claimed, **fields))
        return start(*states, self.target.start(self.claimed, **fields))


def test_a_start_takes_the_inbox_over_and_tells_the_model() -> None:
    given = Claimed()
    assert topics(given.decide()) == [
        "session.notices_taken.v1",
        "session.grants_taken.v1",
        "continuation.started.v1",
        "message.host.v1",
    ]


def test_the_messages_of_a_start_stand_before_those_of_the_inbox() -> None:
    given = Claimed()
    told = given.target.fact(HostMessage, sentence_id="drift_accepted", text="changed")
    command = given.target.start(given.claimed)
    command = type(command)(*given.target.guard, command.run_id, command.source_run_id, command.started, (told,))
    decision = start(session_of(given.session), run_of(given.source), Run(), command)
    messages = [event.text for event in accepted(decision) if isinstance(event, HostMessage)]
    assert messages == ["changed", "Note from the host: look again"]


@pytest.mark.parametrize("status", [RunStatus.FAILED, RunStatus.CANCELLED])
def test_a_repair_starts_and_ends_in_one_commit_and_leaves_the_inbox_alone(status: RunStatus) -> None:
    given = Claimed()
    assert topics(given.decide(repairing=True, status=status)) == ["continuation.started.v1", "run.ended.v1"]


def test_a_repair_never_ends_completed() -> None:
    assert refused(Claimed().decide(repairing=True, status=RunStatus.COMPLETED)) == "transition_shape_conflict"


@pytest.mark.parametrize("repairing", [False, True])
@pytest.mark.parametrize("begun", ["started", "ended", "repaired", "opened as an ordinary run"])
def test_a_target_begins_once(repairing: bool, begun: str) -> None:
    given = Claimed()
    kind = StartKind.CLAIM_REPAIR if begun == "repaired" else StartKind.RUNTIME_ADMISSION
    if begun == "opened as an ordinary run":
        given.history += [given.target.opened()]
    else:
        given.history += [given.target.started(given.claimed, kind)]
    if begun in {"ended", "repaired"}:
        given.history += [given.target.ended()]
    assert refused(given.decide(repairing=repairing)) == "run_sealed"


def test_a_source_that_is_not_claimed_has_no_continuation() -> None:
    given = Claimed()
    given.source.pop()
    for repairing in (False, True):
        assert refused(given.decide(repairing=repairing)) == "transition_shape_conflict"


def test_a_target_that_is_not_the_head_is_not_begun() -> None:
    given = Claimed()
    given.session += [Facts("r9").admitted()]
    for repairing in (False, True):
        assert refused(given.decide(repairing=repairing)) == "transition_shape_conflict"
    given.session = []
    assert refused(given.decide()) == "transition_shape_conflict"


OTHER = ExecutionProfile(provider="p", model="m2", system_prompt_digest=DIGEST, permission_policy="ask")
MISMATCHES: dict[str, dict[str, Any]] = {
    "claim": {"claim_id": "claim-x"},
    "turn": {"turn_id": "t9"},
    "invocation": {"invocation_id": "i9"},
    "folder": {"cwd": "/elsewhere"},
    "workspace": {"workspace_identity": "workspace:v1:x"},
    "profile": {"profile": OTHER},
    "protocol": {"protocol": None},
    "boundary": {"boundary_digest": "f" * 64},
    "replay": {"replay_digest": "f" * 64},
    "projection": {"projection_version": 2},
}


@pytest.mark.parametrize("fields", MISMATCHES.values(), ids=MISMATCHES)
@pytest.mark.parametrize("repairing", [False, True])
def test_a_start_is_exactly_what_the_claim_froze(repairing: bool, fields: dict[str, Any]) -> None:
    assert refused(Claimed().decide(repairing=repairing, **fields)) == "transition_shape_conflict"


def test_a_start_comes_from_the_claimed_boundary_and_no_other() -> None:
    given = Claimed()
    other = given.claimed.segments[-1].model_copy(update={"high_water": 2})
    assert refused(given.decide(source=other)) == "transition_shape_conflict"


@pytest.mark.parametrize(("repairing", "kind"), [(False, StartKind.CLAIM_REPAIR), (True, StartKind.RUNTIME_ADMISSION)])
def test_admission_and_repair_are_kept_apart_by_the_command(repairing: bool, kind: StartKind) -> None:
    assert refused(Claimed().decide(repairing=repairing, kind=kind)) == "transition_shape_conflict"


def test_a_continuation_is_claimed_then_started_then_ended() -> None:
    given = Claimed()
    target: list[Event] = [given.target.started(given.claimed), given.target.ended()]
    source = run_of(given.source)
    assert [continuation_of(source, run_of(target[:length])).progress for length in range(3)] == [
        Progress.CLAIMED,
        Progress.STARTED,
        Progress.ENDED,
    ]
    assert continuation_of(run_of(given.source[:-1]), Run()).progress is Progress.UNCLAIMED
    ordinary = continuation_of(run_of(given.source[:-1]), run_of([given.r.opened(), given.r.ended()]))
    assert (ordinary.started, ordinary.ended) == (None, None)


def test_giving_up_a_run_does_not_begin_its_target() -> None:
    given = Claimed()
    given.session += [given.r.fact(RunAbandoned, run_id="r1", by="Ada", note="", last_good_sequence=1)]
    assert topics(given.decide())[-2] == "continuation.started.v1"


def test_a_repair_is_about_one_run() -> None:
    given = Claimed()
    command = given.target.repair(given.claimed)
    other = command.ended.model_copy(update={"run_id": "r9"})
    assert isinstance(other, RunEnded)
    changed = type(command)(*given.target.guard, command.run_id, command.source_run_id, command.started, other)
    assert refused(repair(session_of(given.session), run_of(given.source), Run(), changed))
