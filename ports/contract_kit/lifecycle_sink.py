"""The contract of `LifecycleSink`."""

from __future__ import annotations

import pytest

from ...domain.identifiers import ClaimId, OperationId, RunId, SessionId
from ..lifecycle_sink import LifecycleEvent, LifecycleKind, LifecycleSink


class LifecycleSinkContract:
    """Subclass it, override the fixture, and pytest checks an implementation of the port."""

    @pytest.fixture
    def sink(self) -> LifecycleSink:
        """The implementation."""
        pytest.fail("override the fixture `sink`")

    @pytest.mark.parametrize("kind", LifecycleKind)
    def test_every_kind_is_taken_with_little_and_with_all(self, sink: LifecycleSink, kind: LifecycleKind) -> None:
        sink.record(LifecycleEvent(kind=kind, session_id=SessionId("s")))
        everything = LifecycleEvent(
            kind=kind,
            session_id=SessionId("s"),
            run_id=RunId("r"),
            operation_id=OperationId("o"),
            claim_id=ClaimId("c"),
            codes=("workspace_drift", "session_busy"),
            error_class="StoreFull",
        )
        sink.record(everything)
