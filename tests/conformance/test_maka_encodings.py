"""The importer reproduces Maka's encodings byte for byte, case by case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from safepoint.adapters.interchange import maka_digests, maka_envelope, maka_json
from safepoint.adapters.interchange.maka_envelope import MakaFormatError
from safepoint.adapters.interchange.maka_json import MakaJsonError

Case = dict[str, Any]
Cases = Mapping[str, Sequence[Case]]

IDENTITY_KEYS = ("sessionId", "invocationId", "runId", "turnId")


def canonical_json(case: Case) -> Any:
    try:
        text = maka_json.canonical(maka_json.parse(case["jsonText"]))
    except MakaJsonError:
        return "refused"
    return {"canonical": text, "sha256": maka_json.sha256_hex(text)}


def args_hash(case: Case) -> Any:
    try:
        return {"hash": maka_json.args_hash(case["toolName"], maka_json.parse(case["argsText"]))}
    except MakaJsonError:
        return "refused"


def canonical_event(case: Case) -> Any:
    try:
        maka_envelope.decode(case["event"])
    except MakaFormatError:
        return {"decodes": False}
    try:
        text = maka_envelope.canonical_text(case["event"])
    except MakaFormatError:
        return {"decodes": True}
    return {"decodes": True, "json": text, "sha256": maka_json.sha256_hex(text)}


def prefix(case: Case) -> Any:
    try:
        segment = maka_digests.segment_of(case["identity"], [(row["eventSeq"], row["event"]) for row in case["rows"]])
    except MakaFormatError:
        return "refused"
    return {"prefixDigest": segment.prefix_digest, "segment": segment.to_json()}


def lineage(case: Case) -> Any:
    segments = [maka_digests.segment_of(each["identity"], enumerate(each["events"], 1)) for each in case["segments"]]
    said: Case = {
        "prefixDigests": [segment.prefix_digest for segment in segments],
        "manifestDigestUnchecked": maka_digests.manifest_digest(segments, checked=False),
    }
    try:
        return said | {"manifestDigest": maka_digests.manifest_digest(segments)}
    except MakaFormatError:
        return said | {"cursorError": True}


GROUPS = {
    "canonical_json": canonical_json,
    "args_hash": args_hash,
    "canonical_event": canonical_event,
    "prefix": prefix,
    "lineage": lineage,
}
COMPARED = {
    "prefix": ("prefixDigest", "segment"),
    "lineage": ("prefixDigests", "manifestDigest", "manifestDigestUnchecked", "cursorError"),
}


def recorded(case: Case) -> Any:
    """What Maka said; of an error only that there was one."""
    expect = case["expect"]
    if set(expect) == {"error"}:
        return "refused"
    compared = COMPARED.get(case["group"], tuple(key for key in expect if key != "error"))
    said = {key: expect[key] for key in compared if key in expect}
    return said | {"cursorError": True} if "cursorError" in said else said


@pytest.mark.parametrize("group", GROUPS)
def test_an_encoding_agrees_case_by_case(cases: Cases, group: str) -> None:
    assert cases[group], "the group has cases"
    disagreeing = [case["id"] for case in cases[group] if GROUPS[group](case) != recorded(case)]
    assert disagreeing == []


def test_a_ledger_decodes_where_the_original_decodes_it(ledgers: Sequence[Case]) -> None:
    disagreeing = []
    for case in ledgers:
        refused = []
        for index, envelope in enumerate(case["events"]):
            try:
                maka_envelope.decode(envelope)
            except MakaFormatError:
                refused.append(index)
        if refused != case["expect"]["decodeErrors"]:
            disagreeing.append(case["id"])
    assert disagreeing == []


def test_the_bytes_of_a_ledger_agree(ledgers: Sequence[Case]) -> None:
    disagreeing = []
    for case in ledgers:
        texts: list[str | None] = []
        for envelope in case["events"]:
            try:
                texts.append(maka_envelope.canonical_text(envelope))
            except MakaFormatError:
                texts.append(None)
        recorded_texts = case["expect"]["canonical"].get("json", texts)  # the larger ledgers have the digest only
        together = maka_json.sha256_hex("\n".join(filter(None, texts)))
        if texts != recorded_texts or together != case["expect"]["canonical"]["sha256"]:
            disagreeing.append(case["id"])
    assert disagreeing == []


def test_the_prefix_and_boundary_of_a_ledger_have_the_digests_of_the_original(ledgers: Sequence[Case]) -> None:
    disagreeing = []
    for case in ledgers:
        expect, events = case["expect"], case["events"]
        identity = {key: events[0][key] for key in IDENTITY_KEYS}
        try:
            segment = maka_digests.segment_of(identity, enumerate(events, 1))
        except MakaFormatError:
            agrees = "error" in expect["prefix"] and "manifestDigest" not in expect
        else:
            position = {**segment.to_json()["position"], "prefixDigest": segment.prefix_digest}  # type: ignore[index,call-overload,dict-item]
            agrees = (position, maka_digests.manifest_digest([segment])) == (
                expect["prefix"],
                expect.get("manifestDigest"),
            )
        if not agrees:
            disagreeing.append(case["id"])
    assert disagreeing == []
