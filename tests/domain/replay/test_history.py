"""Segments become one history: concatenated, for one provider, with every call id used once. SPEC section 12."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from safepoint.domain.canonical import digest, encode
from safepoint.domain.replay.blocks import SegmentBlocks
from safepoint.domain.replay.digest import REPLAY_DOMAIN, ReplayHasher, replay_digest
from safepoint.domain.replay.history import History, replay
from safepoint.domain.replay.items import fields_of
from safepoint.domain.replay.legality import check_provider_legality
from safepoint.domain.replay.origin import Origin
from safepoint.domain.replay.versions import NEWEST, PROJECTIONS

from .story import Story, call, profile, say, shape, think

SAME = Origin("anthropic", "m1", "team")
OTHERS = [Origin("openai", "m1", "team"), Origin("anthropic", "m2", "team"), Origin("anthropic", "m1", None)]


def chain() -> tuple[Story, Story]:
    first = Story("r1").user("U").step(call("A")).run_tool("A").step(say("cut short")).end()
    second = Story("r2", source=first.ref()).step(say("on"), call("B")).run_tool("B").step(say("late")).end()
    return first, second


def test_what_an_ancestor_trimmed_never_comes_back() -> None:
    first, second = chain()
    history = replay([first.resumed(), second.resumed()], SAME)
    assert shape(history.items) == ["user U", "call A", "result A", "text on", "call B", "result B"]
    assert check_provider_legality(history.items) is None


def test_the_digest_is_of_the_canonical_form_of_all_items() -> None:
    first, second = chain()
    history = replay([first.resumed(), second.resumed()], SAME)
    whole = {"items": [fields_of(item) for item in history.items], "projection_version": 1}
    assert history.digest == digest(REPLAY_DOMAIN, encode(whole)) == replay_digest(history.items)


@pytest.mark.parametrize(
    "value", [1.0, 1e21, -0.0, 1e-7, 10**16, {"\U0001d4b3": 1, "\ufb01": 2}, [1.5, {"a": [2.0]}], "\ud7ff"]
)
@pytest.mark.parametrize("place", ["args", "provider_options"])
def test_a_value_that_is_awkward_to_spell_is_digested_in_its_canonical_form(place: str, value: Any) -> None:
    call_item: Any = Story().user("U").step(call("A")).run_tool("A").end().resumed().items[1]
    items = [call_item._replace(**{place: value})]
    whole = {"items": [fields_of(item) for item in items], "projection_version": 1}
    assert replay_digest(items) == digest(REPLAY_DOMAIN, encode(whole))


def test_a_growing_history_has_at_each_edge_the_digest_that_it_had_alone() -> None:
    first, second = chain()
    growing = History(SAME)
    digests = []
    for segment in (first.resumed(), second.resumed()):
        growing.add(segment)
        digests.append(growing.digest)
    assert digests == [replay([first.resumed()], SAME).digest, replay([first.resumed(), second.resumed()], SAME).digest]


def test_how_items_are_handed_to_the_hasher_does_not_change_the_digest() -> None:
    run = Story().user("U")
    for number in range(300):
        run.step(call(f"c{number}", {"n": number})).run_tool(f"c{number}")
    items = run.end().resumed().items
    one_by_one = ReplayHasher(1)
    for item in items:
        one_by_one.add([item])
    assert one_by_one.hexdigest() == replay_digest(items)


def test_every_field_of_an_item_and_the_version_are_in_the_digest() -> None:
    item: Any = Story().user("U").step(think("t", "s"), call("A")).run_tool("A").end().resumed().items[1]
    changed = [item._replace(**{name: "other"}) for name in item._fields]
    digests = {replay_digest([one]) for one in (item, *changed)} | {replay_digest([item], 2), replay_digest([])}
    assert len(digests) == len(changed) + 3


def test_repeated_call_ids_are_made_distinct_in_call_and_result() -> None:
    first = Story("r1").user("U").step(call("A"), call("A_2")).run_tool("A", "A_2").end()
    second = Story("r2", source=first.ref()).step(call("A")).run_tool("A").end()
    third = Story("r3", source=second.ref()).step(call("A"), call("A_3")).run_tool("A", "A_3").end()
    history = replay([first.resumed(), second.resumed(), third.resumed()], SAME)
    calls = [item.call_id for item in history.items if item.kind == "call"]
    assert calls == ["A", "A_2", "A_3", "A_4", "A_3_2"]
    assert calls == [item.call_id for item in history.items if item.kind == "result"]
    assert check_provider_legality(history.items) is None
    assert history.renamed == (("A", "A_3"), ("A", "A_4"), ("A_3", "A_3_2"))


def test_distinct_call_ids_stay_short_enough_for_providers() -> None:
    long = "x" * 100
    first = Story("r1").user("U").step(call(long)).run_tool(long).end()
    second = Story("r2", source=first.ref()).step(call(long)).run_tool(long).end()
    items = replay([first.resumed(), second.resumed()], SAME).items
    assert [len(item.call_id) for item in items if item.kind == "call"] == [100, 42]


def test_a_run_that_goes_on_follows_its_history_without_changing_it() -> None:
    first, _ = chain()
    history = History(SAME)
    history.add(first.resumed())
    before = history.replay()
    live = Story("r2", source=first.ref()).step(call("A")).run_tool("A").resumed().items
    shown = history.followed_by(live)
    assert shape(shown) == ["user U", "call A", "result A", "call A_2", "result A_2"]
    assert history.followed_by(live) == shown
    assert history.replay() == before


@pytest.mark.parametrize("other", OTHERS, ids=lambda origin: "/".join(map(str, origin)))
def test_r3_020_opaque_blobs_go_only_to_the_same_provider_model_and_account(other: Origin) -> None:
    run = Story().user("U").step(
        think("signed", "sig"), think("plain"), say("", {"sig": 1}), say("text", {"id": 2}),
        call("A", provider_options={"id": 3}),
    ).run_tool("A").end()  # fmt: skip
    segment = run.resumed()
    kept, dropped = replay([segment], SAME), replay([segment], other)
    assert kept.items == segment.items
    assert kept.blobs_left_out == ()
    assert shape(dropped.items) == ["user U", "thinking plain", "text text", "call A", "result A"]
    assert all(getattr(item, "provider_options", None) is None for item in dropped.items)
    assert dropped.blobs_left_out == (0,)
    assert kept.digest != dropped.digest


def test_r3_021_thinking_is_byte_equal_or_absent_after_the_model_was_changed() -> None:
    stored = '  T \\u00e9 é\r\n{"b":1, "a":2}'
    run = Story().user("U").step(think(stored, "S=="), call("A")).run_tool("A").end()

    def hashes(target: Origin) -> list[str]:
        thoughts = (item for item in replay([run.resumed()], target).items if item.kind == "thinking")
        return [hashlib.sha256(item.text.encode()).hexdigest() for item in thoughts]

    assert hashes(SAME) == [hashlib.sha256(stored.encode()).hexdigest()]
    assert hashes(OTHERS[1]) == []


def test_each_segment_is_judged_by_the_provider_that_made_it() -> None:
    first = Story("r1").user("U").step(think("a", "s"), call("A")).run_tool("A").end()
    second = Story("r2", source=first.ref(), made_with=profile(model="m2")).step(think("b", "s"), call("B"))
    segments = [first.resumed(), second.run_tool("B").end().resumed()]
    assert "thinking b" not in shape(replay(segments, SAME).items)
    assert "thinking a" not in shape(replay(segments, SAME._replace(model="m2")).items)


def test_the_spelling_of_arguments_is_for_their_provider_alone() -> None:
    run = Story().user("U").step(call("A", {"x": 1}, provider_text='{ "x":1.0 }')).run_tool("A").end()
    texts = [replay([run.resumed()], target).items[1].provider_text for target in (SAME, OTHERS[0])]  # type: ignore[union-attr]
    assert texts == ['{ "x":1.0 }', None]


def test_the_newest_version_is_one_of_those_that_stay_executable() -> None:
    first, second = chain()
    segments = [NEWEST.project(SegmentBlocks(run.events), run.resolution(), resumed=True) for run in (first, second)]
    history = NEWEST.begin(SAME)
    for segment in segments:
        history.add(segment)
    assert history.replay() == replay(segments, SAME)
    assert PROJECTIONS[NEWEST.version] is NEWEST


@pytest.mark.parametrize("calls", [99, 100, 128, 150, 1000])
def test_r3_044_a_step_with_many_calls_is_whole_and_in_order(calls: int) -> None:
    ids = [f"c{number}" for number in range(calls)]
    run = Story().user("U").step(*(call(call_id) for call_id in ids)).dispatch(*ids).outcome(*reversed(ids)).end()
    items = replay([run.resumed()], SAME).items
    assert [item.call_id for item in items if item.kind == "call"] == ids
    assert [item.call_id for item in items if item.kind == "result"] == ids
    assert check_provider_legality(items) is None
