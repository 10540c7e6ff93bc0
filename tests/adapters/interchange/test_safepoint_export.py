"""Our own export: lossless, verified at every byte, and never imported once it was redacted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from safepoint.domain import canonical
from safepoint.domain.identifiers import run_stream, session_stream
from safepoint.ports.history_format import FindingCode

from .exported import SECRET, export_of, exported, store_with_session
from .reading import READ, codes, exit_status, findings, issues, judged, replayed, verdicts

DONE = ("completed", "matching_response")


def edited(data: bytes, line: int, **changes: Any) -> bytes:
    """The export with members of one line's event changed; the digests are left alone."""
    listed = data.split(b"\n")
    value = json.loads(listed[line - 1])
    value["event"] |= changes
    listed[line - 1] = canonical.encode(value)
    return b"\n".join(listed)


def test_every_event_is_read_back_byte_for_byte() -> None:
    store, recorded = store_with_session()
    history = READ(export_of(store, recorded), "auto")
    assert (history.format, history.session_id, history.findings) == ("safepoint", recorded.session_id, ())
    sealed = [*(history.session or ()), *(one for run in history.runs for one in run.sealed)]
    with store.events.snapshot() as reader:
        streams = [session_stream(recorded.session_id), *(run_stream(recorded.run_id(name)) for name in "ab")]
        stored = [row for stream in streams for row in reader.read(stream)]
    assert [one.record for one in sealed] == stored


def test_the_same_session_gives_the_same_bytes() -> None:
    assert exported() == exported()


def test_heads_and_claims_stand_in_the_export() -> None:
    first, *_, last = (json.loads(line) for line in exported().splitlines())
    assert [(head["stream"], head["events"]) for head in first["heads"]] == [
        ("session:session-one", 4),
        ("run:run-one-a", 4),
        ("run:run-one-b", 7),
    ]
    assert [claim["target_run_id"] for claim in last["claims"]] == ["run-one-b-target"]


def test_every_line_is_canonical() -> None:
    for line in exported().splitlines():
        assert canonical.decode_canonical(line)


def test_an_interrupted_run_could_be_continued_and_one_that_is_claimed_is_the_claims() -> None:
    free = judged(exported(claimed=False))
    assert (verdicts(free), codes(free), exit_status(free)) == ([("x", *DONE)], set(), 0)
    assert replayed(free) == ["user", "call:x", "result:x"]
    taken = judged(exported())
    assert codes(taken) == {"source_superseded", "continuation_claim_repair_required"}
    assert exit_status(taken) == 3


def test_no_byte_can_change_unseen() -> None:
    data = exported()
    unseen = []
    for place in range(0, len(data), 7):
        touched = bytearray(data)
        touched[place] ^= 1
        history = READ(bytes(touched), "safepoint")
        if not history.unreadable:
            unseen.append(place)
    assert unseen == []


@pytest.mark.parametrize("kept", [0.2, 0.5, 0.9])
def test_an_export_that_was_cut_is_told(kept: float) -> None:
    data = exported()
    judgement = judged(data[: int(len(data) * kept)], "safepoint")
    assert judgement.history.unreadable
    assert exit_status(judgement) in {2, 4}


@pytest.mark.parametrize("line", range(1, 18))
def test_a_line_that_is_missing_is_told(line: int) -> None:
    listed = exported().splitlines(keepends=True)
    assert len(listed) == 17
    judgement = judged(b"".join(listed[: line - 1] + listed[line:]), "safepoint")
    assert judgement.history.unreadable
    assert codes(judgement) & {"runtime_ledger_unreadable", "source_run_unreadable"}


def test_lines_in_another_order_are_told() -> None:
    listed = exported().splitlines(keepends=True)
    listed[7], listed[8] = listed[8], listed[7]
    assert judged(b"".join(listed)).history.unreadable


def test_something_behind_the_end_is_told() -> None:
    assert findings(judged(exported() + b'{"type":"more"}\n')) == [("digest_mismatch", 18)]


def test_an_event_of_an_unknown_kind_is_named() -> None:
    """Field report r3-095: a typed error that names the kind."""
    judgement = judged(edited(exported(), 8, type="zz"))
    first = judgement.history.unreadable[0]
    assert (first.code, first.place.line) == (FindingCode.UNKNOWN_TYPE, 8)
    assert "'zz'" in first.detail


def test_an_event_that_is_not_of_its_kinds_shape_is_named() -> None:
    judgement = judged(edited(exported(), 6, cwd=7))
    first = judgement.history.unreadable[0]
    assert (first.code, first.place.line) == (FindingCode.UNKNOWN_SHAPE, 6)


def test_what_an_event_says_cannot_be_changed() -> None:
    judgement = judged(edited(exported(), 8, text="something else"))
    assert ("digest_mismatch", 8) in findings(judgement)
    assert (exit_status(judgement), judgement.replay.blocked) == (4, "source_run_unreadable")


def test_a_redacted_export_has_no_secret_and_is_judged_alike() -> None:
    """Field report r3-144: the default is no redaction, because an export is a backup."""
    plain, redacted = exported(claimed=False), exported(claimed=False, redacted=True)
    assert SECRET.encode() in plain
    assert SECRET.encode() not in redacted
    before, after = judged(plain), judged(redacted)
    assert (verdicts(after), codes(after), issues(after)) == (verdicts(before), codes(before), [])
    assert replayed(after) == replayed(before)
    assert after.history.redacted
    assert after.replay.digest is None, "it would be that of another history"


def test_a_redacted_export_keeps_the_original_digests() -> None:
    plain, redacted = (json.loads(data.splitlines()[0])["heads"] for data in (exported(), exported(redacted=True)))
    assert plain == redacted
    digests = [
        [json.loads(line).get("digest") for line in data.splitlines()[1:-1]]
        for data in (exported(), exported(redacted=True))
    ]
    assert digests[0] == digests[1]


def test_a_redacted_export_still_cannot_lose_an_event() -> None:
    listed = exported(redacted=True).splitlines(keepends=True)
    assert judged(b"".join(listed[:9] + listed[10:])).history.unreadable


def forged(data: bytes, line: int, **changes: Any) -> bytes:
    """The export with members of one line changed, or None ones taken away, and its end made to fit."""
    *listed, end = [json.loads(one) for one in data.splitlines()]
    listed[line - 1] = {name: value for name, value in (listed[line - 1] | changes).items() if value is not None}
    body = b"".join(canonical.encode(one) + b"\n" for one in listed)
    return body + canonical.encode(end | {"digest": canonical.sha256_hex(body)}) + b"\n"


def test_a_forged_export_that_changes_nothing_is_taken() -> None:
    assert findings(judged(forged(exported(), 1))) == []
    assert findings(judged(forged(exported(redacted=True), 1))) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"heads": None},
        {"heads": []},
        {"heads": [{"stream": "x"}]},
        {"redacted": "no"},
        {"redacted": None},
        {"foreign": False},
        {"more": 1},
        {"session_id": "another"},
    ],
)
def test_a_header_is_exactly_what_an_export_writes(changes: dict[str, Any]) -> None:
    judgement = judged(forged(exported(), 1, **changes))
    assert findings(judgement)[0] == ("unknown_shape", 1)
    assert exit_status(judgement) in {2, 4}


def test_a_stream_whose_end_the_header_does_not_name_is_not_whole() -> None:
    data = exported()
    heads = json.loads(data.splitlines()[0])["heads"]
    assert ("events_missing", len(data.splitlines())) in findings(judged(forged(data, 1, heads=heads[:-1])))


@pytest.mark.parametrize("more", [{"more": 1}, {"args_hash": "0" * 64}])
def test_a_member_that_no_export_has_is_told(more: dict[str, Any]) -> None:
    judgement = judged(forged(exported(), 3, **more))
    assert findings(judgement) == [("unknown_shape", 3)]
    assert exit_status(judgement) == 4


@pytest.mark.parametrize("format_name", ["auto", "safepoint"])
def test_an_export_of_another_version_is_named(format_name: str) -> None:
    data = exported().replace(b"safepoint.export.v1", b"safepoint.export.v2").replace(b"end.v1", b"end.v2")
    judgement = judged(data, format_name)
    [told] = judgement.history.findings
    assert (told.code, told.place.line) == ("unknown_type", 1)
    assert "'safepoint.export.v2', where 'safepoint.export.v1' is read here" in told.detail
    assert exit_status(judgement) == 2
