"""Boundaries are named by digest, and say what keeps them from being one lineage. SPEC section 6."""

from __future__ import annotations

import pytest

from safepoint.domain.boundary import BOUNDARY_DOMAIN, SEGMENTS_MAX, boundary_digest, boundary_violations
from safepoint.domain.canonical import digest, encode
from safepoint.domain.events.run import PrefixRef
from safepoint.domain.reasons import ParkReason


def ref(number: int, **changed: object) -> PrefixRef:
    fields = {
        "session_id": "s",
        "run_id": f"r{number}",
        "turn_id": f"t{number}",
        "invocation_id": f"i{number}",
        "high_water": 3,
        "digest": f"{number:064x}",
    }
    return PrefixRef.model_validate({**fields, **changed})


def test_the_digest_is_over_the_canonical_manifest_in_its_own_domain() -> None:
    segments = [ref(1), ref(2)]
    manifest = encode({"segments": [segment.model_dump(mode="json") for segment in segments]})
    assert boundary_digest(segments) == digest(BOUNDARY_DOMAIN, manifest)
    assert boundary_digest(segments) == "3d26c7ba4004ceeabc683614eaf38d714bde3c499daa48df32018974282aea5e"


def test_another_order_another_high_water_or_another_digest_is_another_boundary() -> None:
    manifests = [
        [ref(1), ref(2)],
        [ref(2), ref(1)],
        [ref(1)],
        [ref(1), ref(2, high_water=4)],
        [ref(1), ref(2, digest="f" * 64)],
    ]
    assert len({boundary_digest(manifest) for manifest in manifests}) == len(manifests)


def test_a_sound_lineage_has_no_violation() -> None:
    assert boundary_violations([ref(1), ref(2), ref(3)]) == ()


@pytest.mark.parametrize("field", ["run_id", "invocation_id", "turn_id"])
def test_no_run_invocation_or_turn_stands_in_it_twice(field: str) -> None:
    again = ref(3, **{field: getattr(ref(1), field)})
    (violation,) = boundary_violations([ref(1), ref(2), again])
    assert (violation.code, violation.position, violation.run_id) == (
        ParkReason.RUNTIME_LINEAGE_CYCLE,
        2,
        again.run_id,
    )


def test_all_segments_belong_to_one_session() -> None:
    (violation,) = boundary_violations([ref(1), ref(2, session_id="other")])
    assert (violation.code, violation.position) == (ParkReason.RUNTIME_IDENTITY_MISMATCH, 1)


def test_an_empty_list_is_no_boundary() -> None:
    assert [violation.code for violation in boundary_violations([])] == [ParkReason.RUNTIME_LINEAGE_MISSING]


def test_at_most_64_segments_and_those_that_show_nothing_do_not_count() -> None:
    segments = [ref(number) for number in range(SEGMENTS_MAX + 1)]
    assert boundary_violations(segments[:-1]) == ()
    assert [v.code for v in boundary_violations(segments)] == [ParkReason.RUNTIME_LINEAGE_DEPTH_EXCEEDED]
    assert boundary_violations(segments, [number > 0 for number in range(len(segments))]) == ()


def test_every_violation_is_reported_at_once() -> None:
    codes = [v.code for v in boundary_violations([ref(1), ref(1, session_id="other")])]
    assert codes == [ParkReason.RUNTIME_IDENTITY_MISMATCH, *[ParkReason.RUNTIME_LINEAGE_CYCLE] * 3]
