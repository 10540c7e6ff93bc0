"""Chains of continuations: every edge verified, every ancestor projected once. SPEC sections 6, 12 and 14."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any

import pytest

from safepoint.domain.boundary import SEGMENTS_MAX
from safepoint.domain.events.run import Context, RunStatus, Trigger
from safepoint.domain.identifiers import RunId
from safepoint.domain.planning import planner, view
from safepoint.domain.planning.facts import SegmentFacts, Unreadable
from safepoint.domain.planning.outcome import NoteCode
from safepoint.domain.reasons import ParkReason
from safepoint.domain.replay.blocks import SegmentBlocks
from safepoint.domain.replay.context import project_context
from safepoint.domain.replay.history import History
from safepoint.domain.replay.versions import PROJECTIONS, Projection

from ..replay.story import Story, call, profile, say, shape
from .situation import chain, continued, continues, facts_of, interrupted, parks, segment_of

P = ParkReason


def test_a_chain_of_generations_is_one_history_in_which_every_call_stands_once() -> None:
    lineage = [Story("r1").user("U").step(call("A")).run_tool("A").step(say("lost")).end()]
    continued(lineage, "r2").host("accepted").step(say("lost too")).end()
    continued(lineage, "r3").step(call("B")).run_tool("B").end()
    made = continues(facts_of(*lineage))
    assert shape(made.replay.items) == ["user U", "call A", "result A", "host accepted", "call B", "result B"]
    assert [segment.run_id for segment in made.segments] == ["r1", "r2", "r3"]


def test_the_turns_before_are_part_of_what_every_edge_is_verified_with() -> None:
    first_turn = Story("t1").user("first").step(say("answer")).end(RunStatus.COMPLETED)
    earlier = project_context([[first_turn.part_of_turn()]])
    root = Story("r1", context=Context(previous=first_turn.ref())).user("U").step(call("A")).run_tool("A").end()
    lineage = [root]
    continued(lineage, "r2", earlier=earlier).step(call("B")).run_tool("B").end()
    made = continues(facts_of(*lineage, earlier=earlier))
    assert shape(made.replay.items)[:3] == ["user first", "text answer", "user U"]
    assert parks(facts_of(*lineage)).codes == (P.RUNTIME_LINEAGE_REPLAY_MISMATCH,)


def test_a_repaired_claim_contributes_nothing_and_its_target_is_the_candidate() -> None:
    lineage = [interrupted()]
    continued(lineage, "r2", repaired=True).end(failure_class="continuation_abandoned_before_provider_dispatch")
    made = continues(facts_of(*lineage))
    assert shape(made.replay.items) == ["user U", "call A", "result A"]
    assert len(made.segments) == 2


@pytest.mark.parametrize("repaired", [False, True])
def test_auto_resume_never_continues_what_auto_resume_started(repaired: bool) -> None:
    lineage = [interrupted()]
    continued(lineage, "r2", trigger=Trigger.AUTO, repaired=repaired).end()
    assert parks(facts_of(*lineage, trigger=Trigger.AUTO)).codes == (P.AUTO_RESUME_SPENT,)
    continues(facts_of(*lineage))


def test_auto_resume_may_continue_what_a_person_started() -> None:
    continues(facts_of(*chain(2), trigger=Trigger.AUTO))


def test_at_most_64_segments_that_show_something() -> None:
    lineage = chain(SEGMENTS_MAX)
    continues(facts_of(*lineage))
    continued(lineage, "repaired", repaired=True).end()
    continues(facts_of(*lineage))
    continued(lineage, "one-too-many").step(call("Z")).run_tool("Z").end()
    assert parks(facts_of(*lineage)).codes == (P.RUNTIME_LINEAGE_DEPTH_EXCEEDED,)


def test_every_ancestor_is_projected_once_however_long_the_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    projected: list[SegmentBlocks] = []
    real = PROJECTIONS[1]

    def counting(blocks: Any, resolution: Any, **how: Any) -> Any:
        projected.append(blocks)
        return real.project(blocks, resolution, **how)

    monkeypatch.setitem(PROJECTIONS, 1, Projection(1, counting, real.begin))
    facts = facts_of(*chain(30))
    continues(facts)
    assert projected == [segment.blocks for segment in facts.segments]


def test_each_edge_is_verified_for_the_provider_that_it_was_made_for() -> None:
    lineage = [Story("r1").user("U").step(say("x", {"id": 1}), call("A")).run_tool("A").end()]
    other = profile(model="m2")
    continued(lineage, "r2", made_with=other).step(say("y", {"id": 2}), call("B")).run_tool("B").end()
    continued(lineage, "r3").step(call("C")).run_tool("C").end()
    made = continues(facts_of(*lineage))
    assert [item.provider_options for item in made.replay.items if item.kind == "text"] == [{"id": 1}, None]


def changed_claim(**changes: Any) -> Callable[[list[SegmentFacts]], None]:
    def change(segments: list[SegmentFacts]) -> None:
        claimed = segments[0].claimed
        assert claimed is not None
        segments[0] = replace(segments[0], claimed=claimed.model_copy(update=changes))

    return change


def changed_start(**changes: Any) -> Callable[[list[SegmentFacts]], None]:
    def change(segments: list[SegmentFacts]) -> None:
        survey = copy(segments[1].survey)
        assert survey.opening is not None
        survey.opening = survey.opening.model_copy(update=changes)
        segments[1] = replace(segments[1], survey=survey)

    return change


def no_claim(segments: list[SegmentFacts]) -> None:
    segments[0] = replace(segments[0], claimed=None)


def other_events(segments: list[SegmentFacts]) -> None:
    """The ancestor was changed, and so has another digest."""
    story = Story("r1").user("another").step(call("A")).run_tool("A").end()
    segments[0] = replace(segment_of(story), claimed=segments[0].claimed)


def no_root(segments: list[SegmentFacts]) -> None:
    del segments[0]


STRANGER = Story("other").user().end().ref()


@pytest.mark.parametrize(
    ("change", "codes"),
    [
        (no_claim, [P.RUNTIME_LINEAGE_CLAIM_MISMATCH]),
        (changed_claim(segments=(STRANGER,)), [P.RUNTIME_LINEAGE_CLAIM_MISMATCH]),
        (
            changed_claim(boundary_digest="e" * 64),
            [P.RUNTIME_LINEAGE_CLAIM_MISMATCH, P.RUNTIME_LINEAGE_START_MISMATCH],
        ),
        (changed_claim(claim_id="another"), [P.RUNTIME_LINEAGE_START_MISMATCH]),
        (
            changed_claim(replay_digest="e" * 64),
            [P.RUNTIME_LINEAGE_START_MISMATCH, P.RUNTIME_LINEAGE_REPLAY_MISMATCH],
        ),
        (
            changed_claim(projection_version=99),
            [P.RUNTIME_LINEAGE_START_MISMATCH, P.PROVIDER_REPLAY_UNSUPPORTED],
        ),
        (changed_start(source=STRANGER), [P.RUNTIME_LINEAGE_START_MISMATCH]),
        (changed_start(cwd="/elsewhere"), [P.RUNTIME_LINEAGE_START_MISMATCH]),
        (
            other_events,
            [
                P.SOURCE_PREFIX_DIGEST_MISMATCH,
                P.RUNTIME_LINEAGE_CLAIM_MISMATCH,
                P.RUNTIME_LINEAGE_REPLAY_MISMATCH,
            ],
        ),
        (no_root, [P.RUNTIME_LINEAGE_MISSING]),
    ],
)
def test_an_edge_that_does_not_hold_parks_with_its_code(
    change: Callable[[list[SegmentFacts]], None], codes: list[ParkReason]
) -> None:
    facts = facts_of(*chain(2))
    segments = list(facts.segments)
    change(segments)
    found = parks(replace(facts, lineage=tuple(segments)))
    assert [code for code in found.codes if code is not P.PROVIDER_RESUME_HEAD_UNSUPPORTED] == codes


def test_a_claim_that_names_another_target_parks() -> None:
    lineage = chain(2)
    facts = facts_of(*lineage)
    claimed = facts.segments[0].claimed
    assert claimed is not None
    other = claimed.target.model_copy(update={"run_id": "elsewhere"})
    changed = replace(facts.segments[0], claimed=claimed.model_copy(update={"target": other}))
    assert P.RUNTIME_LINEAGE_CLAIM_MISMATCH in parks(replace(facts, lineage=(changed, facts.segments[1]))).codes


@pytest.mark.parametrize("code", [P.RUNTIME_LINEAGE_MISSING, P.RUNTIME_LINEAGE_CYCLE, P.RUNTIME_LEDGER_UNREADABLE])
def test_an_ancestor_that_cannot_be_read_parks_with_its_code_alone(code: ParkReason) -> None:
    facts = facts_of(*chain(3))
    broken = (Unreadable(code, RunId("r1")), *facts.lineage[1:])
    assert parks(replace(facts, lineage=broken)).codes == (code,)


def test_a_run_that_stands_twice_in_its_lineage_is_a_cycle() -> None:
    facts = facts_of(*chain(2))
    assert P.RUNTIME_LINEAGE_CYCLE in parks(replace(facts, lineage=(facts.lineage[0], *facts.lineage))).codes


def test_an_unsettled_operation_of_an_ancestor_parks() -> None:
    facts = facts_of(*chain(2))
    story = Story("r1").user("U").step(call("A")).dispatch("A").end()
    changed = replace(segment_of(story), claimed=facts.segments[0].claimed)
    assert P.DANGLING_TOOL_STATE in parks(replace(facts, lineage=(changed, facts.segments[1]))).codes


def test_an_edge_of_an_older_projection_version_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    second = Projection(2, PROJECTIONS[1].project, lambda target: History(target, 2))
    monkeypatch.setitem(PROJECTIONS, 2, second)
    monkeypatch.setattr(planner, "NEWEST", second)
    monkeypatch.setattr(view, "NEWEST", second)
    made = continues(facts_of(*chain(2)))
    assert made.replay.version == 2
    assert [(note.code, dict(note.detail)) for note in made.notes] == [
        (NoteCode.OLDER_PROJECTION, {"run": "r1", "version": 1})
    ]
