"""A defect, of ours or of what an embedder brings, is raised, and the run still has its terminal event. SPEC F2."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from safepoint.adapters.memory.model_provider import PlannedModel, calls, says
from safepoint.adapters.memory.tool_catalog import MemoryCatalog
from safepoint.domain.events.event import Json
from safepoint.domain.events.run import RunEnded, RunError, RunStatus
from safepoint.domain.reasons import FailureClass
from safepoint.ports.tool_catalog import Binding, ToolSpec

from .wiring import Process, check_sound, go


class BrokenCatalog(MemoryCatalog):
    """Raises where it must answer."""

    def bind(self, name: str, arguments: Json) -> Binding:
        raise KeyError("sk-secret")

    def tools(self) -> Sequence[ToolSpec]:
        return []


def test_a_defect_ends_the_run_is_raised_and_leaves_nothing_of_its_message_in_the_record() -> None:
    process = Process()
    model = PlannedModel([calls(("act", {})), says("never")])
    with pytest.raises(KeyError):
        go(lambda: process.turn("go", model, BrokenCatalog([])))
    run_id = process.head()
    (ended,) = process.of(run_id, RunEnded)
    assert (ended.status, ended.failure_class) == (RunStatus.FAILED, FailureClass.APP_RESTARTED)
    (error,) = process.of(run_id, RunError)
    assert error.error_class == "KeyError"
    assert b"sk-secret" not in b"".join(process.stored_bytes(run_id))
    check_sound(process, run_id)
    assert process.owner() is None
    assert go(lambda: process.turn("again", [says("ok")])).outcome.status is RunStatus.COMPLETED
