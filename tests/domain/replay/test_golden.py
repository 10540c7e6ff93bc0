"""Histories and sentences of released projection versions, word for word and byte for byte. SPEC R17 and section 12.

A golden file of a released version is never rewritten: whoever must change one adds a version.
"""

from __future__ import annotations

import json
from pathlib import Path
from string import Formatter

import pytest

from safepoint.domain.events.model import Attachment
from safepoint.domain.events.run import RunStatus
from safepoint.domain.events.tool import Statement
from safepoint.domain.replay.context import project_context
from safepoint.domain.replay.history import Replay, replay
from safepoint.domain.replay.items import fields_of
from safepoint.domain.replay.origin import Origin
from safepoint.domain.sentences import SENTENCES, SentenceId, UnknownSentence, render

from .story import Story, call, say, think

GOLDEN = Path(__file__).parent / "golden"


def released_history() -> Replay:
    """An earlier turn with an unknown call, then a lineage of two runs: every kind of item."""
    attachment = Attachment(name="a.txt", media_type="text/plain", digest="a" * 64)
    earlier = Story("r1").user("first", attachments=(attachment,)).step(say("on it"), call("A", {"x": 1.5}))
    earlier.dispatch("A").end(RunStatus.CANCELLED)
    first = Story("r2").user("second").step(think("why", "c2ln", {"k": [1]}), call("A"), call("B", {"é": "\u2028"}))
    first.dispatch("A", "B").outcome("B", result={"ok": True}).user("hurry", steering=True).end()
    first.attest("A", Statement.COMPLETED, "paid")
    second = Story("r3", source=first.ref()).host("changed", "drift_accepted")
    second.step({**call("A", tool="read_file"), "args": None, "args_text": "{bad"}).refuse("A").step(say("cut"))
    context = project_context([[earlier.part_of_turn()]])
    return replay([*context.segments, first.resumed(), second.end().resumed()], Origin("anthropic", "m1", "team"))


def test_the_history_of_version_1_is_what_it_was_when_it_was_released() -> None:
    golden = json.loads((GOLDEN / "history_v1.json").read_text())
    history = released_history()
    assert [fields_of(item) for item in history.items] == golden["items"]
    assert history.digest == golden["digest"]


@pytest.mark.parametrize("version", SENTENCES)
def test_the_sentences_of_a_version_are_what_they_were_when_it_was_released(version: int) -> None:
    golden = json.loads((GOLDEN / f"sentences_v{version}.json").read_text())
    assert {str(name): text for name, text in SENTENCES[version].items()} == golden


def test_every_sentence_id_has_its_sentence() -> None:
    assert set(SENTENCES[1]) == set(SentenceId)


def parameters_of(sentence_id: str) -> frozenset[str]:
    """The parameters that a sentence needs."""
    return frozenset(name for _, name, _, _ in Formatter().parse(SENTENCES[1][sentence_id]) if name)


@pytest.mark.parametrize("sentence_id", SentenceId)
def test_every_sentence_can_be_said_and_holds_its_parameters(sentence_id: SentenceId) -> None:
    said = render(sentence_id, {name: f"<{name}>" for name in parameters_of(sentence_id)})
    assert all(f"<{name}>" in said for name in parameters_of(sentence_id))
    assert "{" not in said


def test_values_are_never_taken_for_places() -> None:
    assert render(SentenceId.UNKNOWN_TOOL, {"tool": "{by} {0}"}) == "Not executed: there is no tool named {by} {0}."


def test_long_lists_are_told_by_number() -> None:
    said = render(SentenceId.WORKSPACE_REBASELINED, {"by": "Ada", "paths": [f"f{n}" for n in range(60)]})
    assert said.endswith("f48, f49 and 10 more.")


@pytest.mark.parametrize(
    ("sentence_id", "parameters", "version", "missing"),
    [("no_such", {}, 1, "no_such"), (SentenceId.UNKNOWN_TOOL, {}, 1, "tool"), (SentenceId.FINALIZED, {}, 9, "9")],
)
def test_a_sentence_that_cannot_be_said_is_an_error_that_names_what_is_missing(
    sentence_id: str, parameters: dict[str, str], version: int, missing: str
) -> None:
    with pytest.raises(UnknownSentence) as raised:
        render(sentence_id, dict(parameters), version=version)
    assert raised.value.missing == missing
