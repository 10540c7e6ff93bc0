"""The members of the JSON objects: stable, listed in `docs/cli.md`, checked by a test. Members are only ever added."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ...application.inspect_runs import Attestation, OperationSeen, RunSeen
from ...application.inspect_sessions import SessionSummary
from ...application.repair_session import Repaired, RepairKind
from ...application.timeline import Preview, TimelineFact
from ...domain.explanations import explain
from ...domain.planning.outcome import Note, Reason
from ...domain.recovery.verdict import Verdict
from ...ports.views import PermissionRow, RunRow
from .command_lines import CommandLines

Json = dict[str, Any]

RUN: Final = "safepoint.cli.run.v1"
LIST: Final = "safepoint.cli.list.v1"
STATUS: Final = "safepoint.cli.status.v1"
SHOW: Final = "safepoint.cli.show.v1"
PLAN: Final = "safepoint.cli.plan.v1"
RESUME: Final = "safepoint.cli.resume.v1"
CANCEL: Final = "safepoint.cli.cancel.v1"
DECIDE: Final = "safepoint.cli.decide.v1"
RECONCILE: Final = "safepoint.cli.reconcile.v1"
SETTLE: Final = "safepoint.cli.settle.v1"
ABANDON: Final = "safepoint.cli.abandon.v1"
TAKEOVER: Final = "safepoint.cli.takeover.v1"
WORKSPACE: Final = "safepoint.cli.workspace.v1"
CHECKPOINT: Final = "safepoint.cli.checkpoint.v1"
GC: Final = "safepoint.cli.gc.v1"
FORGET: Final = "safepoint.cli.forget.v1"
DOCTOR: Final = "safepoint.cli.doctor.v1"
VERIFY: Final = "safepoint.cli.verify.v1"
REBUILD: Final = "safepoint.cli.rebuild.v1"
ADOPT: Final = "safepoint.cli.adopt.v1"
BACKUP: Final = "safepoint.cli.backup.v1"
RESTORE: Final = "safepoint.cli.restore.v1"
ERROR: Final = "safepoint.cli.error.v1"

_RUN_END: Final = ("status", "failure_class", "detail", "text", "resumable", "reasons", "commands", "exit_code")

MEMBERS: Final[Mapping[str, tuple[str, ...]]] = {
    RUN: ("session_id", "run_id", "repaired", *_RUN_END),
    LIST: ("store", "exists", "sessions", "after", "condition", "permissions"),
    STATUS: (
        *("store", "exists", "condition", "sessions", "operations", "unsettled", "permissions", "watched"),
        "commands",
    ),
    SHOW: ("store", "session", "runs", "run"),
    PLAN: (
        *("session_id", "run_id", "decision", "high_water", "digest", "boundary_digest", "replay_digest", "reasons"),
        *("notes", "operations", "repair_pending", "provider_assumed", "commands", "exit_code"),
    ),
    RESUME: (
        *("session_id", "source_run_id", "run_id", "claim_id", "decision", "repaired", "reconciled", "changed"),
        *("notes", "drift", "operations", *_RUN_END),
    ),
    CANCEL: ("session_id", "run_id", "result"),
    DECIDE: ("request_id", "session_id", "run_id", "tool", "result", "approved", "by", "exit_code"),
    RECONCILE: ("session_id", "repaired", "operations", "settled", "commands", "exit_code"),
    SETTLE: (
        *("operation_id", "session_id", "run_id", "tool", "statement", "by", "note", "recorded", "told_later"),
        *("commands", "exit_code"),
    ),
    ABANDON: (
        *("session_id", "run_id", "result", "last_good_sequence", "damage", "watched", "by", "note", "commands"),
        "exit_code",
    ),
    TAKEOVER: (
        *("session_id", "result", "owner_pid", "owner_host", "also_interrupted", "repaired", "commands", "exit_code"),
    ),
    CHECKPOINT: (
        *("action", "workspace", "checkpoints", "differences", "differences_total", "same_policy", "target"),
        *("commands", "exit_code"),
    ),
    WORKSPACE: ("action", "folder", "identity", "before", "elsewhere", "runs", "by", "commands", "exit_code"),
    GC: (
        *("deleted", "checkpoints", "folders", "accepted", "of_other_stores", "not_looked", "unread", "removed"),
        *("left", "exit_code"),
    ),
    FORGET: (
        *("session_id", "forgotten", "sessions", "runs", "checkpoints", "folders", "not_looked", "events"),
        *("log_emptied", "left", "by", "commands", "exit_code"),
    ),
    DOCTOR: ("store", "exists", "checks", "catalog", "judged", "stranded", "not_judged", "exit_code"),
    VERIFY: (
        *("store", "sound", "condition", "streams", "events", "damaged_streams", "damages", "owner_faults", "owners"),
        *("projection_differences", "projections", "faults", "unread", "exit_code"),
    ),
    REBUILD: ("store", "events", "rows", "unreadable", "exit_code"),
    ADOPT: ("store", "was", "detail", "generation", "by", "note", "at", "exit_code"),
    BACKUP: (
        *(
            "store",
            "file",
            "store_id",
            "events",
            "digest",
            "size_bytes",
            "sound",
            "fault",
            "damaged_streams",
            "damages",
        ),
        "exit_code",
    ),
    RESTORE: ("store", "file", "store_id", "events", "digest", "previous", "commands", "exit_code"),
    ERROR: ("code", "message", "next_step", "exit_code"),
}
"""Schema -> its members beside `schema`, in their order."""


_LISTS: Final = frozenset(
    {
        "reasons",
        "changed",
        "reconciled",
        "notes",
        "operations",
        "commands",
        "sessions",
        "runs",
        "permissions",
        "watched",
        "also_interrupted",
        "checks",
        "stranded",
        "not_judged",
        "elsewhere",
    }
)
_FLAGS: Final = frozenset({"resumable", "repair_pending", "provider_assumed", "exists", "sound"})


def filled(schema: str, known: Mapping[str, Any]) -> Json:
    """All members of a schema in their order: lists and flags that are not given are empty and false, all else null."""
    if unknown := known.keys() - set(MEMBERS[schema]):
        raise KeyError(f"{schema} has no member {sorted(unknown)}")
    return {
        name: known.get(name, [] if name in _LISTS else False if name in _FLAGS else None) for name in MEMBERS[schema]
    }


def of_session(summary: SessionSummary) -> Json:
    """A session in a list."""
    row = summary.row
    damage = summary.damage
    return {
        "session_id": row.session_id,
        "state": summary.state.value,
        "head_run_id": row.head_run_id,
        "head_kind": row.head_kind,
        "last_used_at": row.head_admitted_at,
        "ended_at": row.head_ended_at,
        "failure_class": row.head_failure_class,
        "unsettled": row.unsettled,
        "owner_pid": None if summary.owner is None else summary.owner.pid,
        "code": None if damage is None else str(damage.code),
        "detail": None if damage is None else damage.detail,
    }


def of_run(row: RunRow) -> Json:
    """A run in a list."""
    return {
        "run_id": row.run_id,
        "kind": row.kind,
        "status": row.status,
        "failure_class": row.failure_class,
        "recovered": bool(row.recovered),
        "admitted_at": row.admitted_at,
        "ended_at": row.ended_at,
        "continued_by": row.claimed_by_run_id,
    }


def of_permission(row: PermissionRow) -> Json:
    """A question that waits for a person; no arguments (R15)."""
    return {
        "request_id": row.request_id,
        "session_id": row.session_id,
        "run_id": row.run_id,
        "tool": row.tool_name,
        "reason": row.reason,
    }


def of_operation(seen: OperationSeen, run_id: str) -> Json:
    """One tool call with its verdict; no arguments, no result (R15)."""
    return {
        **of_verdict(seen.verdict, run_id),
        "settled": not seen.unsettled,
        "over": seen.over.overness.value,
        "processes": [{"pid": process.pid, "name": process.name} for process in seen.over.processes],
        "attested": _of_attestation(seen.attested),
        "declared_over": _of_attestation(seen.declared_over),
    }


def of_verdict(verdict: Verdict, run_id: str) -> Json:
    """What is known of one tool call, by its run's record alone."""
    return {
        "run_id": run_id,
        "call_id": verdict.call_id,
        "operation_id": verdict.operation_id,
        "tool": verdict.tool_name,
        "mode": verdict.mode,
        "verdict": verdict.status.value,
        "reason": verdict.reason.value,
        "sentence": explain(verdict.reason).sentence,
        "effect": verdict.effect.value,
        "is_error": verdict.is_error,
    }


def _of_attestation(said: Attestation | None) -> Json | None:
    """What a person said of an operation."""
    if said is None:
        return None
    return {"statement": said.statement.value, "by": said.by, "note": said.note, "at": said.occurred_at}


def of_reasons(reasons: Iterable[Reason], commands: CommandLines, session_id: str) -> list[Json]:
    """Every failing gate."""
    return [_of_reason(reason, commands, session_id) for reason in reasons]


def _of_reason(reason: Reason, commands: CommandLines, session_id: str) -> Json:
    explanation = explain(reason.code)
    return {
        "code": reason.code.value,
        "sentence": explanation.sentence,
        "next_step": commands.in_text(explanation.next_step, session_id),
        "expected": explanation.expected,
        "detail": dict(reason.detail),
    }


def of_notes(notes: Iterable[Note]) -> list[Json]:
    """The diagnostics of a plan."""
    return [{"code": note.code.value, "detail": dict(note.detail)} for note in notes]


def of_repaired(repaired: Repaired | None) -> Json | None:
    """What repair did, None when there was nothing to do."""
    if repaired is None or repaired.kind is RepairKind.NOTHING_OPEN:
        return None
    status = None if repaired.status is None else repaired.status.value
    return {"kind": repaired.kind.value, "run_id": repaired.run_id, "status": status}


def of_seen_run(seen: RunSeen) -> Json:
    """A run with its operations and facts."""
    row, profile, damage = seen.row, seen.profile, seen.damage
    return {
        **of_run(row),
        "turn_id": row.turn_id,
        "opened_at": row.opened_at,
        "cwd": row.cwd,
        "workspace_identity": row.workspace_identity,
        "checkpoints": seen.checkpoints,
        "provider": row.provider,
        "model": row.model,
        "permission_policy": None if profile is None else profile.permission_policy,
        "protocol": row.protocol,
        "cancel_requested_by": row.cancel_requested_by,
        "foreign": seen.foreign,
        "high_water": seen.high_water,
        "digest": seen.digest,
        "operations": [of_operation(one, row.run_id) for one in seen.operations],
        "open_permissions": [
            {"request_id": one.requested.request_id, "tool": one.requested.tool_name, "reason": one.requested.reason}
            for one in seen.open_permissions
        ],
        "jobs_running": seen.jobs_running,
        "issues": [{"code": issue.code.value, "sequence": issue.sequence} for issue in seen.resolution.issues],
        "facts": [of_fact(fact) for fact in seen.facts],
        "facts_left_out": seen.facts_left_out,
        "damage": None if damage is None else {"code": str(damage.code), "detail": damage.detail},
    }


def of_fact(fact: TimelineFact) -> Json:
    """One event of a timeline."""
    return {
        "sequence": fact.sequence,
        "at": fact.occurred_at,
        "type": fact.topic,
        "event_id": fact.event_id,
        "facts": dict(fact.facts),
        "content": {name: _of_preview(preview) for name, preview in fact.content.items()},
        "sizes": dict(fact.sizes),
    }


def _of_preview(preview: Preview) -> Json:
    return {"text": preview.text, "chars": preview.chars}
