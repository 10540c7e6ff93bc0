"""What holds for the history of any run that can happen, cut at any instant."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from safepoint.domain.events.tool import ToolCalled, ToolResponded
from safepoint.domain.replay.blocks import SegmentBlocks
from safepoint.domain.replay.context import project_context
from safepoint.domain.replay.history import replay
from safepoint.domain.replay.items import Item
from safepoint.domain.replay.legality import check_provider_legality
from safepoint.domain.replay.origin import Origin
from safepoint.domain.replay.segment import Segment, project_segment
from safepoint.domain.sealing import FIRST_PREVIOUS_DIGEST
from safepoint.domain.unsealing import unseal

from .story import Story, call, say, shape, think

TARGETS = st.sampled_from([None, Origin("anthropic", "m1", "team"), Origin("openai", "other", None)])


@dataclass(frozen=True)
class Step:
    """A step to be told: its parts, how its calls end and in which order, whether a message arrives meanwhile."""

    parts: tuple[str, ...]
    ends: tuple[str, ...]
    interrupted_by_message: bool
    backwards: bool


STEPS = st.builds(
    Step,
    st.lists(st.sampled_from(["think", "say", "empty", "call"]), min_size=1, max_size=5).map(tuple),
    st.lists(st.sampled_from(["outcome", "refused"]), min_size=5, max_size=5).map(tuple),
    st.booleans(),
    st.booleans(),
)
RUNS = st.lists(STEPS, max_size=5)


def tell(steps: list[Step], name: str = "r1", after: Story | None = None) -> Story:
    """A run in which every call is answered before the next step; whatever is cut off it can happen in a crash."""
    run = Story(name) if after is None else Story(name, source=after.ref())
    run.user("U") if after is None else run.host("go on")
    for number, step in enumerate(steps):
        parts, call_ids = [], []
        for place, kind in enumerate(step.parts):
            if kind == "call":
                call_ids.append(f"c{number}-{place}")
                parts.append(call(call_ids[-1], {"n": place}, provider_options={"id": place}))
            else:
                parts.append(think("t", "sig") if kind == "think" else say("" if kind == "empty" else "text"))
        run.step(*parts)
        run.dispatch(*(c for c, end in zip(call_ids, step.ends, strict=False) if end == "outcome"))
        for place, (call_id, end) in list(enumerate(zip(call_ids, step.ends, strict=False)))[
            :: -1 if step.backwards else 1
        ]:
            run.outcome(call_id) if end == "outcome" else run.refuse(call_id)
            if step.interrupted_by_message and place == 0:
                run.user("V", steering=True)
    return run


@st.composite
def crashed_runs(draw: st.DrawFn) -> Story:
    """A run that was cut after any of its events, the first two excepted: they are one commit."""
    run = tell(draw(RUNS))
    del run.events[draw(st.integers(2, len(run.events))) :]
    return run


def legal_or_empty(items: tuple[Item, ...]) -> bool:
    return not items or check_provider_legality(items) is None


@given(crashed_runs(), TARGETS)
def test_a_resume_is_offered_a_legal_history_that_ends_where_a_model_may_go_on_or_none(
    run: Story, target: Origin | None
) -> None:
    segment = run.resumed()
    items = replay([segment], target).items
    assert legal_or_empty(items)
    assert segment.blocked is not None or items[-1].kind in {"user", "host", "result"}


@given(crashed_runs(), TARGETS)
def test_a_context_is_legal_whatever_happened_and_shows_every_answered_call_once(
    run: Story, target: Origin | None
) -> None:
    context = project_context([[run.part_of_turn()]])
    items = replay(context.segments, target).items
    assert context.blocked == ()
    assert check_provider_legality(items) is None
    answered = [event.call_id for event in run.events if type(event) is ToolResponded]
    unknown = [shown.operation_id.removeprefix("op-r1-") for shown in context.unsettled]
    assert sorted(item.call_id for item in items if item.kind == "call") == sorted(answered + unknown)


@given(crashed_runs())
def test_no_result_is_ever_shown_without_its_call_nor_a_call_without_its_result(run: Story) -> None:
    for resumed in (True, False):
        segment = project_segment(run.events, run.resolution(), resumed=resumed)
        calls = [item.call_id for item in segment.items if item.kind == "call"]
        results = [item.call_id for item in segment.items if item.kind == "result"]
        assert sorted(calls) == sorted(results)


@given(crashed_runs())
def test_trimming_what_is_trimmed_changes_nothing(run: Story) -> None:
    segment = run.resumed()
    gone = {*segment.trimmed, *segment.left_out}
    kept = [event for event in run.events if event.event_id not in gone]
    if segment.blocked is None:
        calls = {event.call_id for event in kept if type(event) is ToolCalled}
        kept = [event for event in kept if getattr(event, "call_id", None) in {None, *calls}]
        run.events = kept
        again = run.resumed()
        assert shape(again.items) == shape(segment.items)
        assert again.trimmed == ()


@given(crashed_runs())
def test_every_visible_fact_is_shown_trimmed_left_out_or_empty(run: Story) -> None:
    segment = run.resumed()
    if segment.blocked is None:
        accounted = {item.event_id for item in segment.items} | set(segment.trimmed) | set(segment.left_out)
        missing = [event for event in run.events if event.model_visible and event.event_id not in accounted]
        assert all(getattr(event, "text", None) == "" for event in missing)


@given(RUNS, RUNS, RUNS, TARGETS)
def test_later_segments_never_change_what_earlier_ones_show(
    first: list[Step], second: list[Step], third: list[Step], target: Origin | None
) -> None:
    one = tell(first, "r1").end()
    two = tell(second, "r2", one).end()
    three = tell(third, "r3", two).end()
    segments = [run.resumed() for run in (one, two, three)]
    whole = replay(segments, target).items
    for count in range(4):
        part = replay(segments[:count], target).items
        assert whole[: len(part)] == part
    assert check_provider_legality(whole) is None


@given(crashed_runs())
def test_the_digest_is_the_same_from_stored_bytes(run: Story) -> None:
    before = run.resumed()
    previous, events = FIRST_PREVIOUS_DIGEST, []
    for sealed in run.sealed():
        read = unseal(sealed.record, sealed.sequence, previous)
        previous = read.digest
        events.append(read.event)
    after: Segment = project_segment(events, run.resolution(), resumed=True)  # type: ignore[arg-type]
    assert after == before
    assert replay([after], None).digest == replay([before], None).digest


@given(crashed_runs())
def test_a_live_run_is_shown_the_same_history_however_its_facts_arrive(run: Story) -> None:
    growing = SegmentBlocks()
    for event in run.events:
        growing.feed(event)
        growing.items()
    assert growing.items() == SegmentBlocks(run.events).items()
