"""A claim seals exactly the boundary that was planned, and admits its target. SPEC sections 7 and 14, R12."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from safepoint.domain.boundary import boundary_digest
from safepoint.domain.commands import ClaimContinuation
from safepoint.domain.continuation.decisions import AncestorHead, claim
from safepoint.domain.decision import Decision
from safepoint.domain.events.event import Event
from safepoint.domain.events.run import PrefixRef, RunClaimed, RunStatus
from safepoint.domain.events.session import RunAbandoned, RunKind
from safepoint.domain.events.tool import Observation
from safepoint.domain.identifiers import ClaimId

from ..facts import DIGEST, Facts, prefix, refused, run_of, session_of, topics


class Source:
    """An interrupted run, ready to be continued."""

    def __init__(self, *more: Event, status: RunStatus = RunStatus.FAILED) -> None:
        self.r, self.target = Facts("r1"), Facts("r2")
        self.history: list[Event] = [self.r.opened(), self.r.user(), *more, self.r.ended(status)]
        self.session: list[Event] = [self.r.session_opened(), self.r.admitted()]
        self.ancestors: tuple[AncestorHead, ...] = ()
        self.older: tuple[PrefixRef, ...] = ()

    @property
    def boundary(self) -> PrefixRef:
        return prefix(self.r, self.history)

    def command(self, **fields: Any) -> ClaimContinuation:
        return self.r.claim(self.target, [*self.older, self.boundary], **fields)

    def decide(self, command: ClaimContinuation, *, foreign: bool = False) -> Decision:
        run, digest = run_of(self.history), self.boundary.digest
        return claim(session_of(self.session), run, digest, self.ancestors, command, foreign=foreign)


@pytest.mark.parametrize("status", [RunStatus.FAILED, RunStatus.CANCELLED])
def test_an_interrupted_head_is_claimed_and_its_target_admitted(status: RunStatus) -> None:
    source = Source(status=status)
    assert topics(source.decide(source.command())) == ["run.claimed.v1", "session.run_admitted.v1"]


def test_what_completed_has_nothing_to_continue() -> None:
    source = Source(status=RunStatus.COMPLETED)
    assert refused(source.decide(source.command())) == "transition_shape_conflict"


def test_what_is_still_open_is_not_continued() -> None:
    source = Source()
    source.history.pop()
    assert refused(source.decide(source.command())) == "transition_shape_conflict"


def test_r3_039_a_claim_of_a_boundary_that_is_claimed_loses_and_writes_nothing() -> None:
    source = Source()
    command = source.command()
    late = Source().r.claim(Facts("r3"), [source.boundary])
    source.history += [command.claimed]
    source.session += [command.admitted]
    assert refused(source.decide(late)) == "run_claimed"


@pytest.mark.parametrize("after", ["a new turn", "given up", "never admitted"])
def test_only_the_head_is_continued(after: str) -> None:
    source = Source()
    match after:
        case "a new turn":
            source.session += [Facts("r9").admitted()]
        case "given up":
            fact = source.r.fact(RunAbandoned, run_id="r1", by="Ada", note="", last_good_sequence=1)
            source.session += [fact]
        case _:
            source.session = [source.r.session_opened()]
    assert refused(source.decide(source.command())) == "transition_shape_conflict"


MOVED: dict[str, Callable[[Source], PrefixRef]] = {
    "another run": lambda s: s.boundary.model_copy(update={"run_id": "r0"}),
    "another turn": lambda s: s.boundary.model_copy(update={"turn_id": "t0"}),
    "another invocation": lambda s: s.boundary.model_copy(update={"invocation_id": "i0"}),
    "another session": lambda s: s.boundary.model_copy(update={"session_id": "s0"}),
    "a shorter prefix": lambda s: prefix(s.r, s.history[:-1]),
    "a longer prefix": lambda s: prefix(s.r, [*s.history, s.r.decided("x")]),
    "another digest": lambda s: s.boundary.model_copy(update={"digest": "f" * 64}),
}


@pytest.mark.parametrize("moved", MOVED.values(), ids=MOVED)
def test_the_boundary_is_exactly_the_head_of_the_source(moved: Callable[[Source], PrefixRef]) -> None:
    source = Source()
    command = source.r.claim(source.target, [moved(source)])
    assert refused(source.decide(command)) == "transition_shape_conflict"


def test_the_boundary_digest_is_of_the_segments() -> None:
    source = Source()
    assert refused(source.decide(source.command(boundary_digest=DIGEST))) == "transition_shape_conflict"


ADMISSIONS: dict[str, dict[str, Any]] = {
    "another run": {"run_id": "r9"},
    "another turn": {"turn_id": "t9"},
    "another invocation": {"invocation_id": "i9"},
    "an ordinary turn": {"kind": RunKind.TURN},
    "no claim": {"claim_id": None},
    "another claim": {"claim_id": ClaimId("claim-9")},
}


@pytest.mark.parametrize("fields", ADMISSIONS.values(), ids=ADMISSIONS)
def test_the_admission_reserves_the_targets_ids(fields: dict[str, Any]) -> None:
    source = Source()
    command = source.command()
    admitted = command.admitted.model_copy(update=fields)
    changed = ClaimContinuation(*source.r.guard, source.r.run_id, command.claimed, admitted)
    assert refused(source.decide(changed)) == "transition_shape_conflict"


# ---- operations ------------------------------------------------------------------------------------------------------


def with_call(state: str) -> Source:
    source = Source()
    r = source.r
    before: list[Event] = [*r.step("a")]
    dispatch = r.dispatch("a")
    match state:
        case "not dispatched":
            pass
        case "refused":
            before += [r.refusal("a")]
        case "answered":
            before += [dispatch, r.outcome("a")]
        case _:
            before += [dispatch]
    source.history = [*source.history[:-1], *before, source.history[-1]]
    sequence = run_of(source.history).sequence
    match state:
        case "parked":
            bundle = r.recovery(
                dispatch, sequence, observation=Observation.UNREADABLE, reason="contract_forbids_recovery"
            )
            source.history += [bundle.reconciled, bundle.decided]
        case "recovered":
            bundle = r.recovery(dispatch, sequence, outcome=r.outcome("a"))
            assert bundle.outcome is not None
            source.history += [bundle.reconciled, bundle.outcome, bundle.decided]
        case "recovered by a broken bundle":
            bundle = r.recovery(dispatch, sequence, outcome=r.outcome("a"), observation=Observation.DIVERGED)
            assert bundle.outcome is not None
            source.history += [bundle.reconciled, bundle.outcome, bundle.decided]
        case _:
            pass
    return source


@pytest.mark.parametrize("state", ["dispatched", "parked", "recovered by a broken bundle"])
def test_an_operation_that_is_not_settled_keeps_its_run_from_being_continued(state: str) -> None:
    source = with_call(state)
    decision = source.decide(source.command())
    assert refused(decision) == "operation_open"
    assert "call a" in decision.detail  # type: ignore[union-attr]


@pytest.mark.parametrize("state", ["refused", "answered", "recovered", "not dispatched"])
def test_one_that_is_settled_or_proven_never_dispatched_does_not(state: str) -> None:
    source = with_call(state)
    assert topics(source.decide(source.command())) == ["run.claimed.v1", "session.run_admitted.v1"]


def test_in_a_foreign_run_a_missing_dispatch_proves_nothing() -> None:
    source = with_call("not dispatched")
    assert refused(source.decide(source.command(), foreign=True)) == "operation_open"


# ---- lineage ---------------------------------------------------------------------------------------------------------


def chain(length: int) -> Source:
    """A run that was continued again and again; the last one is ready to be continued."""
    source = Source()
    for number in range(3, length + 2):
        command = source.command()
        digest = source.boundary.digest
        ancestor = AncestorHead(source.r.run_id, digest, command.claimed)
        following = Source()
        following.r, following.target = source.target, Facts(f"r{number}")
        started = following.r.started(command.claimed)
        following.history = [started, following.r.ended()]
        following.session = [*source.session, command.admitted]
        following.older = (*source.older, source.boundary)
        following.ancestors = (*source.ancestors, ancestor)
        source = following
    return source


@pytest.mark.parametrize("length", [2, 3, 5])
def test_a_continuation_is_continued_with_its_whole_lineage(length: int) -> None:
    source = chain(length)
    assert len(source.older) == length - 1
    assert topics(source.decide(source.command())) == ["run.claimed.v1", "session.run_admitted.v1"]


def test_no_ancestor_can_be_left_out() -> None:
    source = chain(3)
    for kept in (source.older[1:], source.older[:1], (), source.older[::-1]):
        by_run = {head.run_id: head for head in source.ancestors}
        source_of = Source()
        source_of.__dict__.update(source.__dict__)
        source_of.older, source_of.ancestors = kept, tuple(by_run[segment.run_id] for segment in kept)
        assert refused(source_of.decide(source_of.command())) == "transition_shape_conflict"


def test_an_ordinary_run_has_no_ancestors() -> None:
    source, other = Source(), chain(2)
    source.older, source.ancestors = other.older, other.ancestors
    assert refused(source.decide(source.command())) == "transition_shape_conflict"


ANCESTORS: dict[str, Callable[[AncestorHead], AncestorHead | None]] = {
    "is missing": lambda _: None,
    "has another event at its boundary": lambda a: AncestorHead(a.run_id, "f" * 64, a.claimed),
    "has no event at its boundary": lambda a: AncestorHead(a.run_id, None, a.claimed),
    "is another run": lambda a: AncestorHead(Facts("x").run_id, a.digest, a.claimed),
    "was not claimed": lambda a: AncestorHead(a.run_id, a.digest, None),
    "was claimed by another run": lambda a: AncestorHead(a.run_id, a.digest, claimed_by(a, Facts("x"))),
    "was claimed with another past": lambda a: AncestorHead(a.run_id, a.digest, with_past(a)),
}


def claimed_by(ancestor: AncestorHead, target: Facts) -> RunClaimed:
    assert ancestor.claimed is not None
    return ancestor.claimed.model_copy(update={"target": target.target()})


def with_past(ancestor: AncestorHead) -> RunClaimed:
    assert ancestor.claimed is not None
    other = ancestor.claimed.segments[-1].model_copy(update={"turn_id": "other"})
    return ancestor.claimed.model_copy(update={"segments": (*ancestor.claimed.segments[:-1], other)})


@pytest.mark.parametrize("position", [0, 1])
@pytest.mark.parametrize("change", ANCESTORS.values(), ids=ANCESTORS)
def test_every_ancestor_still_is_what_its_descendant_was_made_from(
    change: Callable[[AncestorHead], AncestorHead | None], position: int
) -> None:
    source = chain(3)
    changed = change(source.ancestors[position])
    heads = [*source.ancestors]
    heads[position : position + 1] = [] if changed is None else [changed]
    source.ancestors = tuple(heads)
    assert refused(source.decide(source.command())) == "transition_shape_conflict"


def test_the_boundary_digest_names_the_whole_lineage() -> None:
    source = chain(3)
    command = source.command()
    assert command.claimed.boundary_digest == boundary_digest([*source.older, source.boundary])


def test_a_claim_is_said_before_anything_else() -> None:
    source = with_call("dispatched")
    command = source.command(boundary_digest=DIGEST)
    source.history += [source.command().claimed]
    source.session = []
    assert refused(source.decide(command)) == "run_claimed"
