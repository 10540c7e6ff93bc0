"""What counts as a match with recorded evidence: kind and bytes, and nothing else. SPEC section 10, F8; ADR 0052."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safepoint.domain import canonical
from safepoint.domain.events.tool import Observation
from safepoint.domain.file_evidence import (
    ABSENT,
    Encoding,
    FileChange,
    FileEvidence,
    FileKind,
    FileState,
    LineEnds,
    digest_of,
    judge,
    read_evidence,
)

NO_FOLDER, LINK, OTHER = (FileState(kind=kind) for kind in (FileKind.NO_FOLDER, FileKind.LINK, FileKind.OTHER))
EXPECTED, ALREADY = Observation.MATCHES_EXPECTED_STATE, Observation.ALREADY_SATISFIED
PRIOR, DIVERGED = Observation.MATCHES_PRIOR_STATE, Observation.DIVERGED


def holding(content: str, **facts: object) -> FileState:
    data = content.encode()
    return FileState.model_validate(
        {"kind": "regular", "sha256": canonical.sha256_hex(data), "size_bytes": len(data), "mode": 0o644, **facts}
    )


OLD, NEW, THEIRS = holding("old"), holding("new"), holding("theirs")


def evidence(*changes: tuple[FileState, FileState]) -> FileEvidence:
    files = tuple(FileChange(path=f"f{n}", before=before, after=after) for n, (before, after) in enumerate(changes))
    return FileEvidence(workspace="workspace:v1:1", transform="edit", transform_version=1, files=files, result={"a": 1})


@pytest.mark.parametrize(
    ("before", "after", "seen", "expected"),
    [
        (OLD, NEW, NEW, EXPECTED),
        (OLD, NEW, OLD, PRIOR),
        (OLD, OLD, OLD, ALREADY),
        (OLD, NEW, holding("new", mode=0o600, encoding=Encoding.OTHER, line_ends=LineEnds.CR), EXPECTED),
        (OLD, NEW, NEW.model_copy(update={"sha256": THEIRS.sha256}), DIVERGED),
        (OLD, NEW, NEW.model_copy(update={"size_bytes": 4}), DIVERGED),
        (OLD, NEW, NEW.model_copy(update={"sha256": None}), DIVERGED),
        *((OLD, NEW, seen, DIVERGED) for seen in (THEIRS, ABSENT, NO_FOLDER, LINK, OTHER)),
        *((ABSENT, NEW, seen, PRIOR) for seen in (ABSENT, NO_FOLDER)),
        *((ABSENT, NEW, seen, DIVERGED) for seen in (THEIRS, LINK, OTHER)),
        (OLD, ABSENT, ABSENT, EXPECTED),
        (OLD, ABSENT, OLD, PRIOR),
        *((OLD, ABSENT, seen, DIVERGED) for seen in (NO_FOLDER, THEIRS, LINK, OTHER)),
    ],
)
def test_one_file_is_judged_by_kind_and_bytes(
    before: FileState, after: FileState, seen: FileState, expected: Observation
) -> None:
    assert judge(evidence((before, after)), [seen]) is expected


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        (ABSENT, OLD, EXPECTED),
        (OLD, ABSENT, PRIOR),
        (OLD, OLD, DIVERGED),
        (ABSENT, ABSENT, DIVERGED),
        (ABSENT, THEIRS, DIVERGED),
        (NO_FOLDER, OLD, DIVERGED),
        (OLD, NO_FOLDER, PRIOR),
    ],
)
def test_a_move_is_judged_by_both_of_its_names(source: FileState, target: FileState, expected: Observation) -> None:
    assert judge(evidence((OLD, ABSENT), (ABSENT, OLD)), [source, target]) is expected


def test_every_file_of_the_evidence_must_have_been_looked_at() -> None:
    with pytest.raises(ValueError, match="shorter"):
        judge(evidence((OLD, ABSENT), (ABSENT, OLD)), [ABSENT])


def test_what_is_recorded_is_read_again_and_nothing_else_is() -> None:
    made = evidence((OLD, NEW))
    recorded = made.recorded()
    assert isinstance(recorded, dict)
    assert read_evidence(canonical.decode_canonical(canonical.encode(recorded))) == made
    assert read_evidence({**recorded, "format": "safepoint.file-evidence.v2"}) is None
    assert read_evidence({name: value for name, value in recorded.items() if name != "workspace"}) is None
    assert read_evidence({**recorded, "transform_version": "1"}) is None, "what would have to be coerced"


STATES = st.sampled_from([ABSENT, NO_FOLDER, LINK, OTHER, OLD, NEW, THEIRS])


@given(first=STATES, second=STATES)
def test_what_was_seen_has_one_name(first: FileState, second: FileState) -> None:
    about = evidence((OLD, NEW))
    assert (digest_of(about, [first]) == digest_of(about, [second])) is (first == second)
