"""Gate 4: every operation of the lineage is settled and over, every question decided, all attached work settled.

Operations of earlier turns are not asked about: what the source recorded of them was shown to the model.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..reasons import ParkReason
from ..recovery.verdict import Verdict, VerdictStatus
from .facts import SegmentFacts
from .gates_of_source import WHOLE_RUN_ISSUES
from .outcome import Detail, Note, NoteCode, Reason
from .view import View

_UNSETTLED = {
    VerdictStatus.CORRUPTION: ParkReason.TOOL_RECOVERY_CORRUPTION,
    VerdictStatus.INDETERMINATE: ParkReason.DANGLING_TOOL_STATE,
    VerdictStatus.PARKED: ParkReason.TOOL_RECOVERY_PARKED,
}


def operations_settled(view: View) -> Iterator[Reason]:
    """The resolver calls every operation completed or never dispatched."""
    completed = VerdictStatus.COMPLETED
    for segment in view.lineage:
        for verdict in segment.resolution.verdicts:
            if verdict.status is completed:
                continue
            code = _UNSETTLED.get(verdict.status)
            if code is None:
                view.notes.append(Note(NoteCode.OPERATION_NOT_DISPATCHED, _about(segment, verdict)))
            else:
                yield Reason(code, _about(segment, verdict))
        yield from _other_issues(segment)


def _about(segment: SegmentFacts, verdict: Verdict) -> Detail:
    return {
        "run": segment.ref.run_id,
        "call": verdict.call_id,
        "tool": verdict.tool_name,
        "operation": verdict.operation_id,
        "verdict": verdict.status,
        "reason": verdict.reason,
        "mode": verdict.mode,
    }


def _other_issues(segment: SegmentFacts) -> Iterator[Reason]:
    if not segment.resolution.issues:
        return
    corrupt = {v.call_id for v in segment.resolution.verdicts if v.status is VerdictStatus.CORRUPTION}
    for issue in segment.resolution.issues:
        if issue.code not in WHOLE_RUN_ISSUES and issue.call_id not in corrupt:
            about = {"run": segment.ref.run_id, "reason": issue.code, "event": issue.event_id}
            yield Reason(
                ParkReason.TOOL_RECOVERY_CORRUPTION, {**about, "sequence": issue.sequence, "call": issue.call_id}
            )


def operations_over(view: View) -> Iterator[Reason]:
    """Nothing that an operation started can still run."""
    if not view.facts.not_over:
        return
    tools = {v.operation_id: v.tool_name for segment in view.lineage for v in segment.resolution.verdicts}
    for state in view.facts.not_over:
        yield Reason(
            ParkReason.EFFECT_MAY_BE_RUNNING,
            {
                "operation": state.operation_id,
                "tool": tools.get(state.operation_id),
                "could_not_look": state.could_not_look,
                "pids": [process.pid for process in state.processes],
                "processes": [process.name for process in state.processes],
            },
        )


def permissions_decided(view: View) -> Iterator[Reason]:
    """No question of the source waits for a person, or a person drops them; ancestors passed this when claimed."""
    seen = view.source_survey
    for asked in () if seen is None else seen.open_permissions.values():
        about = {"request": asked.request_id, "call": asked.call_id, "tool": asked.tool_name}
        if view.facts.drop_permissions:
            view.notes.append(Note(NoteCode.PERMISSIONS_DROPPED, about))
        else:
            yield Reason(ParkReason.PENDING_PERMISSION, about)


def background_settled(view: View) -> Iterator[Reason]:
    """No attached background work is left."""
    for segment, seen in zip(view.lineage, view.surveys, strict=True):
        for job in seen.open_jobs.values():
            about = {"run": segment.ref.run_id, "handle": job.handle_id, "kind": job.kind}
            yield Reason(ParkReason.BACKGROUND_OPERATION_PENDING, {**about, "operation": job.operation_id})
