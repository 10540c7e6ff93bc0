"""Situations for the planner: one run or a chain of continuations that are sound unless a test says otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from safepoint.domain.boundary import boundary_digest
from safepoint.domain.events.run import TOOL_BOUNDARY_PROTOCOL, ExecutionProfile, RunClaimed, Trigger
from safepoint.domain.identifiers import ClaimId, InvocationId, RunId, SessionId, TurnId
from safepoint.domain.planning.facts import Candidate, FreshIds, PlanFacts, SegmentFacts
from safepoint.domain.planning.observations import WorkspaceFound
from safepoint.domain.planning.outcome import Continue, Park
from safepoint.domain.planning.planner import plan
from safepoint.domain.replay.context import ContextHistory
from safepoint.domain.replay.history import replay
from safepoint.domain.replay.origin import origin_of

from ..replay.story import Story, call, profile

FRESH = FreshIds(ClaimId("claim-new"), RunId("new"), TurnId("turn-new"), InvocationId("inv-new"))
WORKSPACE = WorkspaceFound("workspace:v1:w", "/w")


def interrupted() -> Story:
    """A run with one finished call that died before the next step."""
    return Story("r1").user("U").step(call("A")).run_tool("A").end()


def segment_of(story: Story, *, foreign: bool = False) -> SegmentFacts:
    """A run as a reader finds it: up to its claim, and the claim beside it."""
    last, prefix = story.events[-1], story.before_claim()
    claimed = last if isinstance(last, RunClaimed) else None
    return SegmentFacts.of(prefix.ref(), prefix.events, prefix.resolution(foreign=foreign), foreign, claimed)


def continued(
    lineage: list[Story],
    name: str,
    *,
    earlier: ContextHistory | None = None,
    made_with: ExecutionProfile | None = None,
    trigger: Trigger = Trigger.PERSON,
    repaired: bool = False,
) -> Story:
    """Claim the last run of a lineage and begin the run that continues it; the lineage grows by it."""
    refs = [segment_of(story).ref for story in lineage]
    shown = [*(earlier.segments if earlier else ()), *(story.before_claim().resumed() for story in lineage)]
    digest = replay(shown, origin_of(made_with or profile())).digest
    lineage[-1].claim(refs, name, boundary_digest(refs), digest, made_with=made_with, trigger=trigger)
    target = Story(
        name,
        source=refs[-1],
        boundary_digest=boundary_digest(refs),
        replay_digest=digest,
        made_with=made_with,
        repaired=repaired,
    )
    lineage.append(target)
    return target


def chain(length: int) -> list[Story]:
    """Runs that continue one another, each with one finished call and some text that was cut off."""
    lineage = [interrupted()]
    for number in range(2, length + 1):
        continued(lineage, f"r{number}").step(call(f"c{number}")).run_tool(f"c{number}").end()
    return lineage


def facts_of(*stories: Story, foreign: bool = False, **changed: Any) -> PlanFacts:
    """What the application would gather about a lineage, oldest first."""
    segments: Sequence[SegmentFacts] = [segment_of(story, foreign=foreign) for story in stories]
    source = segments[-1]
    ended = [event.status for event in source.survey.terminals]
    facts = PlanFacts(
        session_id=SessionId("s1"),
        fresh=FRESH,
        candidate=Candidate(source.ref.run_id, ended[0] if ended else None, source.ref.run_id),
        lineage=tuple(segments),
        workspace=WORKSPACE,
        profile=profile(tools=()),
        tools=profile().tools,
        protocol=TOOL_BOUNDARY_PROTOCOL,
        cwd="/w",
    )
    return replace(facts, **changed)


def continues(facts: PlanFacts) -> Continue:
    """The plan, which must be to continue."""
    made = plan(facts)
    assert isinstance(made, Continue), made
    return made


def parks(facts: PlanFacts) -> Park:
    """The plan, which must be to park."""
    made = plan(facts)
    assert isinstance(made, Park), made
    return made
