"""Shows a session, its runs, and one run's operations and facts, within bounds (F13)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...application.inspect_runs import RunSeen
from ...application.timeline import TimelineFact
from ...domain.identifiers import RunId, SessionId
from ...ports.views import RunRow
from . import documents
from .command_lines import CommandLines
from .escaping import lines, one_line
from .exit_codes import ExitCode
from .output import Output
from .parking import operation_line
from .runtimes import reading
from .session_names import known
from .usage import UsageError
from .ways_on import answers, looking_again

RUNS_MAX = 50


def show_session(
    out: Output, store: Path, session_id: SessionId, run: str | None, facts_max: int, *, full: bool
) -> int:
    """Show it; returns the exit status: corruption where the shown run is damaged."""
    with reading(store) as runtime:
        inspect = runtime.parts.inspect_sessions()
        summary = known(runtime, session_id)
        runs = inspect.runs(session_id, limit=RUNS_MAX)
        run_id = summary.head_run_id if run is None else RunId(run)
        seen = None if run_id is None else runtime.parts.inspect_runs()(run_id, facts_max=facts_max, full=full)
        if run is not None and (seen is None or seen.row.session_id != session_id):
            raise UsageError(
                f"There is no run {run} in session {session_id}.",
                "Its runs are listed without --run.",
                code="unknown_run",
            )
    head = documents.of_session(summary)
    out.say(f"Session {one_line(session_id)}: {head['state']}{_code(head)}")
    if summary.damage is not None and summary.damage.of_view:
        out.say(f"  {CommandLines(store).about('rebuild')}")
    _say_runs(out, runs)
    if seen is not None:
        _say_run(out, seen, CommandLines(store))
    members = {
        "store": str(store),
        "session": head,
        "runs": [documents.of_run(row) for row in runs],
        "run": None if seen is None else documents.of_seen_run(seen),
    }
    out.document(documents.SHOW, documents.filled(documents.SHOW, members))
    damaged = summary.damage is not None or (seen is not None and seen.damage is not None)
    return ExitCode.CORRUPTION if damaged else ExitCode.DONE


def _code(head: documents.Json) -> str:
    return f" [{head['code']}] {one_line(head['detail'], 400)}" if head["code"] else ""


def _say_runs(out: Output, runs: Sequence[RunRow]) -> None:
    cells = ((row.run_id, row.kind, _status(row), row.failure_class, row.admitted_at) for row in runs)
    out.table(("RUN", "KIND", "STATUS", "WHY", "ADMITTED"), cells)


def _status(row: RunRow) -> str:
    """How a run stands; what a claim admitted has no event until it starts."""
    return row.status or ("open" if row.opened_at is not None or row.claim_id is None else "not started")


def _say_unstarted(out: Output, seen: RunSeen) -> None:
    """What a claim admitted and nobody started: there is nothing else to show."""
    out.say(f"Run {one_line(seen.row.run_id)}: claimed to continue the run before it, and never started.")
    out.say("  Nothing was done and no model was asked. The next command that writes ends it, and it can be continued.")


def _say_run(out: Output, seen: RunSeen, commands: CommandLines) -> None:
    row = seen.row
    out.say()
    if seen.high_water == 0 and seen.damage is None and row.claim_id is not None:
        _say_unstarted(out, seen)
        return
    out.say(f"Run {one_line(row.run_id)}: {row.status or 'open'}, {seen.high_water} events, digest {seen.digest[:16]}")
    policy = "" if seen.profile is None else seen.profile.permission_policy
    said = f"{one_line(row.provider)}/{one_line(row.model)}, permissions: {one_line(policy)}, in {one_line(row.cwd)}"
    out.say(f"  {said}")
    kept = f"kept by {one_line(seen.checkpoints)}" if seen.checkpoints else "not kept, and not compared at a resume"
    out.say(f"  Content of the folder: {kept}")
    if seen.foreign:
        out.say("  Foreign: what is missing here may have happened nonetheless.")
    for permission in seen.open_permissions:
        asked = permission.requested
        out.say(f"  Waits for permission: {one_line(asked.tool_name, 60)} (request {one_line(asked.request_id, 200)})")
        for way in answers(commands, asked.request_id, asked.tool_name):
            out.say(f"    {one_line(way.command, 2_000)}")
    for operation in seen.operations:
        out.say(f"  {operation_line(operation)}")
    for way in looking_again(seen.operations, seen.row.session_id or "", commands):
        out.say(f"    {one_line(way.command, 2_000)}")
    if seen.facts_left_out and seen.facts:
        out.say(f"  … {seen.facts_left_out} earlier facts (--limit shows more)")
    for fact in seen.facts:
        _say_fact(out, fact)
    if seen.damage is not None:
        out.say(f"  Damaged from here on [{seen.damage.code}]: {one_line(seen.damage.detail, 400)}")


def _say_fact(out: Output, fact: TimelineFact) -> None:
    facts = ", ".join(f"{name}={_short(value)}" for name, value in fact.facts.items())
    sizes = ", ".join(f"{name} of {size} characters" for name, size in fact.sizes.items())
    said = "; ".join(part for part in (facts, sizes) if part)
    out.say(f"{fact.sequence:>5}  {fact.occurred_at}  {fact.topic}  {one_line(said, 400)}".rstrip())
    for name, preview in fact.content.items():
        left = f" … (of {preview.chars} characters)" if preview.cut else ""
        shown = lines(preview.text).replace("\n", "\n           ")
        out.say(f"         {name}: {shown}{left}")


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) != 64 or not text.isalnum() else f"{text[:12]}…"  # a digest
