"""Stops the open run of a session, wherever its owner lives."""

from __future__ import annotations

from pathlib import Path

from ...application.cancel_run import Cancelled, CancelResult
from ...domain.identifiers import SessionId
from . import documents, places
from .announcing import announcing
from .exit_codes import ExitCode
from .output import Output
from .persons import person
from .runtimes import no_store, writing
from .session_names import known
from .usage import UsageError

_SAID = {
    Cancelled.STOPPING: "Stopping: run {run} ends when its live tools are done, within their bound.",
    Cancelled.CLOSED: "Run {run} was left behind by a dead process; it is ended as cancelled.",
    Cancelled.NOTHING_OPEN: "No run is open in this session; nothing to stop.",
}


def cancel_session(out: Output, store: Path, session_id: SessionId) -> int:
    """Stop it; returns the exit status."""
    if not places.is_there(store):
        raise UsageError(no_store(store), "Check --store.", code="store_missing")
    with writing(store) as runtime:
        known(runtime, session_id)
        result: CancelResult = runtime.parts.cancel_run()(session_id, person(), announcing(out))
    out.say(_SAID[result.cancelled].format(run=result.run_id))
    members = {"session_id": session_id, "run_id": result.run_id, "result": result.cancelled.value}
    out.document(documents.CANCEL, documents.filled(documents.CANCEL, members))
    return ExitCode.DONE
