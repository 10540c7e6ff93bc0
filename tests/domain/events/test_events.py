"""What every event is held to: its spine, times and texts, and that it cannot be changed. SPEC sections 4 and 5."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from safepoint.domain.events.catalogue import (
    AFTER_TERMINAL,
    EVENTS,
    UPCASTS,
    MalformedEvent,
    UnknownEventType,
    event_from,
)
from safepoint.domain.events.event import RunEvent, SessionEvent, after, seconds_between
from safepoint.domain.events.model import UserMessage
from safepoint.domain.events.run import RunEnded
from safepoint.domain.events.tool import ToolCalled

from ..facts import AT, Facts


@pytest.mark.parametrize("topic", sorted(EVENTS))
def test_an_event_belongs_to_the_stream_of_its_run_or_session(topic: str) -> None:
    cls = EVENTS[topic]
    assert issubclass(cls, RunEvent) != issubclass(cls, SessionEvent)
    assert issubclass(cls, SessionEvent) == topic.startswith("session.")
    assert cls.model_config["frozen"]
    assert cls.model_config["extra"] == "forbid"


def test_streams_and_identity_come_from_the_spine() -> None:
    r = Facts("r", session="s")
    assert r.user().stream == "run:r"
    assert r.user().identity == ("s", "r", "turn-r", "inv-r")
    assert r.session_opened().stream == "session:s"


def test_an_event_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Facts().user().text = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    "at",
    [
        "2026-11-29T12:00:00Z",
        "2026-11-29T12:00:00.000Z",
        "2026-11-29T12:00:00.000000",
        "2026-11-29T12:00:00.000000+00:00",
        "2026-11-29 12:00:00.000000Z",
        "2026-11-29T12:00:00.000000Z\n",
        1764417600,
    ],
)
def test_a_time_has_one_form(at: Any) -> None:
    with pytest.raises(ValidationError):
        Facts().fact(UserMessage, text="", occurred_at=at)


@pytest.mark.parametrize("name", ["", "a" * 201, "rm\n", "rm\x00", "\x7f"])
def test_r3_024_a_tool_name_is_bounded_and_has_no_control_characters(name: str) -> None:
    with pytest.raises(ValidationError):
        Facts().fact(ToolCalled, step_id="s", call_id="c", tool_name=name, args={})


@pytest.mark.parametrize(
    "fields",
    [
        {"args": {1, 2}},
        {"args": {"a": object()}},
        {"args": {1: "a"}},
        {"args": b"{}"},
        {"args": {}, "args_text": "{}"},
        {"arguments": {}},
    ],
    ids=["a set", "an object", "a key that is no text", "bytes", "both forms", "an unknown field"],
)
def test_what_is_not_json_or_not_known_is_refused_and_never_coerced(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Facts().fact(ToolCalled, step_id="s", call_id="c", tool_name="t", **fields)


@pytest.mark.parametrize("epoch", [0, -1])
def test_an_epoch_begins_at_one(epoch: int) -> None:
    with pytest.raises(ValidationError):
        Facts().fact(RunEnded, status="failed", incarnation_id="i", epoch=epoch)


def test_times_are_compared_as_text_and_reckoned_in_whole_seconds() -> None:
    assert after(AT, 0) == AT
    assert after(AT, 61) == "2026-11-29T12:01:01.000000Z" > AT
    assert after("2026-11-29T12:00:00.999999Z", 86_400) == "2026-11-30T12:00:00.999999Z"
    assert after("9999-12-31T00:00:00.000000Z", 10**6) == "9999-12-31T23:59:59.999999Z"
    assert after(AT, 10**18) == "9999-12-31T23:59:59.999999Z"
    assert seconds_between(AT, after(AT, 7)) == 7
    assert seconds_between("2026-11-29T12:00:00.500000Z", "2026-11-29T12:00:02.400000Z") == 1
    assert seconds_between(after(AT, 7), AT) == -7


def test_an_older_version_is_brought_up_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def from_v0(fields: dict[str, Any]) -> dict[str, Any]:
        return {
            **{name: value for name, value in fields.items() if name != "who"},
            "by": fields["who"],
            "type": "run.cancel_requested.v1",
        }

    monkeypatch.setitem(UPCASTS, "run.cancel_requested.v0", from_v0)
    fields = Facts().cancelled("Ada").model_dump(mode="json")
    fields["who"] = fields.pop("by")
    assert event_from(fields, "run.cancel_requested.v0") == Facts().cancelled("Ada")


def test_an_unknown_type_and_a_wrong_shape_are_different_errors_and_name_no_content() -> None:
    with pytest.raises(UnknownEventType, match=r"run\.ended\.v9"):
        event_from({}, "run.ended.v9")
    with pytest.raises(MalformedEvent) as caught:
        event_from({"text": "a secret"}, "message.user.v1")
    assert "a secret" not in str(caught.value)
    assert caught.value.topic == "message.user.v1"


def test_only_what_section_7_lists_may_follow_a_terminal_event() -> None:
    assert sorted(AFTER_TERMINAL) == sorted(
        [
            "background.settled.v1",
            "permission.decided.v1",
            "run.claimed.v1",
            "tool.attested.v1",
            "tool.reconciled.v1",
            "tool.recovery_decided.v1",
            "tool.redelivery_started.v1",
            "tool.responded.v1",
            "workspace.checkpoint_accepted.v1",
            "workspace.rebaselined.v1",
            "workspace.renewed.v1",
            "workspace.transitioned.v1",
        ]
    )
    assert set(AFTER_TERMINAL) <= set(EVENTS)
