"""The members of the JSON objects of `judge`, `export` and `import`: stable, listed in `docs/interchange.md`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ...application.judge_history import Judgement
from ...application.judged_lineage import JudgedRun
from ...domain.explanations import explain
from ...domain.planning.outcome import Reason
from ...domain.reasons import LedgerIssue
from ...domain.recovery.verdict import Verdict
from ...domain.replay.items import Item, fields_of
from ...ports.history_format import Finding, Place
from .documents import of_verdict

Json = dict[str, Any]

JUDGE: Final = "safepoint.cli.judge.v1"
EXPORT: Final = "safepoint.cli.export.v1"
IMPORT: Final = "safepoint.cli.import.v1"

MEMBERS: Final[Mapping[str, tuple[str, ...]]] = {
    JUDGE: (
        *("file", "format", "session_id", "lines", "redacted", "foreign", "decision", "reasons", "notes", "findings"),
        *("counts", "runs", "operations", "issues", "has_corruption", "requires_reconciliation", "replay", "exit_code"),
    ),
    EXPORT: ("session_id", "file", "redacted", "foreign", "streams", "events", "exit_code"),
    IMPORT: (
        *("file", "format", "session_id", "imported", "already_there", "run_ids", "events", "refused", "detail"),
        *("findings", "issues", "commands", "exit_code"),
    ),
}
"""Schema -> its members beside `schema`, in their order."""


def of_judgement(judgement: Judgement, *, full: bool) -> Json:
    """What is said of a file, but for its name and the exit status."""
    history = judgement.history
    return {
        "format": history.format,
        "session_id": history.session_id,
        "lines": history.lines,
        "redacted": history.redacted,
        "foreign": history.foreign,
        "decision": "park" if judgement.reasons else "continue",
        "reasons": [_of_reason(reason) for reason in judgement.reasons],
        "notes": [{"code": note.code.value, "detail": dict(note.detail)} for note in judgement.notes],
        "findings": of_findings(history.findings),
        "counts": counts(judgement),
        "runs": [_of_run(run) for run in judgement.runs],
        "operations": of_operations(judgement),
        "issues": list(of_issues(judgement)),
        "has_corruption": judgement.has_corruption,
        "requires_reconciliation": judgement.requires_reconciliation,
        "replay": _of_replay(judgement, full=full),
    }


def of_operations(judgement: Judgement) -> list[Json]:
    """How each call stands."""
    return [_of_verdict(verdict, run) for run in judgement.runs for verdict in run.resolution.verdicts]


def counts(judgement: Judgement) -> Json:
    """How many calls and responses there are, and how the calls stand."""
    verdicts = [verdict for run in judgement.runs for verdict in run.resolution.verdicts]
    calls = sum(verdict.call_event_id is not None for verdict in verdicts)
    return {
        "calls": calls,
        "responses": sum(verdict.response_event_id is not None for verdict in verdicts),
        "unanswered": sum(
            verdict.call_event_id is not None and verdict.response_event_id is None for verdict in verdicts
        ),
        "verdicts": dict(sorted(Counter(verdict.status.value for verdict in verdicts).items())),
        "unreadable": len(judgement.history.unreadable),
    }


def of_findings(findings: Iterable[Finding]) -> list[Json]:
    """What was found while the file was read."""
    return [
        {
            "code": finding.code.value,
            "unreadable": finding.unreadable,
            **_of_place(finding.place),
            "detail": finding.detail,
            "times": finding.times,
        }
        for finding in findings
    ]


def of_issues(judgement: Judgement) -> Iterator[Json]:
    """Where facts contradict one another."""
    for run in judgement.runs:
        again = {event_id: iter(places) for event_id, places in run.read.repetitions.items()}
        for issue in run.resolution.issues:
            place = run.read.places.get(issue.event_id)
            if issue.code is LedgerIssue.DUPLICATE_EVENT_ID and issue.event_id in again:
                place = next(again[issue.event_id], place)
            yield {
                "code": issue.code.value,
                "run_id": run.read.identity.run_id,
                "event_id": issue.event_id,
                "call_id": issue.call_id,
                "operation_id": issue.operation_id,
                **_of_place(place),
            }


def _of_reason(reason: Reason) -> Json:
    explanation = explain(reason.code)
    return {
        "code": reason.code.value,
        "sentence": explanation.sentence,
        "expected": explanation.expected,
        "detail": dict(reason.detail),
    }


def _of_run(run: JudgedRun) -> Json:
    sealed = run.read.sealed
    return {
        "run_id": run.read.identity.run_id,
        "turn_id": run.read.identity.turn_id,
        "status": None if run.status is None else run.status.value,
        "failure_class": None if run.ended is None else run.ended.failure_class,
        "events": len(sealed),
        "digest": sealed[-1].digest if sealed else None,
    }


def _of_verdict(verdict: Verdict, run: JudgedRun) -> Json:
    places = run.read.places
    return {
        **of_verdict(verdict, run.read.identity.run_id),
        "settlement_origin": None if verdict.origin is None else verdict.origin.value,
        "call_event_id": verdict.call_event_id,
        "dispatch_event_id": verdict.dispatch_event_id,
        "response_event_id": verdict.response_event_id,
        "recovery_event_ids": [*verdict.recovery_event_ids],
        **_of_place(places.get(verdict.call_event_id or verdict.response_event_id or "")),
        "response_line": _of_place(places.get(verdict.response_event_id or ""))["line"],
    }


def _of_replay(judgement: Judgement, *, full: bool) -> Json:
    replay = judgement.replay
    illegal = replay.illegal
    named = _named_facts(judgement)

    def of_event(event_id: str) -> Json:
        return named.get(event_id) or {"event_id": event_id, **_of_place(None)}

    def of_item(item: Item) -> Json:
        said: Json = {"kind": item.kind, **of_event(item.event_id)}
        if item.kind in {"call", "result"}:
            fields = fields_of(item)
            said |= {"call_id": fields["call_id"], "tool": fields["tool_name"]}
        return {**said, "content": fields_of(item)} if full else said

    return {
        "kind": "replayable" if replay.blocked is None else "blocked",
        "reason": None if replay.blocked is None else str(replay.blocked),
        "blocking": [*map(of_event, replay.blocking)],
        "items": [*map(of_item, replay.items)],
        "trimmed": [*map(of_event, replay.trimmed)],
        "left_out": [*map(of_event, replay.left_out)],
        "digest": replay.digest,
        "legal": replay.blocked is None and illegal is None,
        "illegal": None if illegal is None else illegal.code.value,
    }


def _named_facts(judgement: Judgement) -> dict[str, Json]:
    """Every fact of the file, by its event's id: by the id that the file itself has for it where it has one."""
    named: dict[str, Json] = {}
    for run in judgement.runs:
        places = run.read.places
        for event_id, place in places.items():
            if event_id not in named:
                shown = place.source_id if place.source_id in places else event_id
                named[event_id] = {"event_id": shown, **_of_place(place)}
    return named


def _of_place(place: Place | None) -> Json:
    if place is None:
        return {"line": None, "offset": None, "path": None, "source_id": None}
    return {"line": place.line, "offset": place.offset, "path": place.path or None, "source_id": place.source_id}
