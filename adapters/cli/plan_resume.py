"""Shows what a resume would do now; changes nothing."""

from __future__ import annotations

from pathlib import Path

from ...application.plan_resume import Planned, PlanRequest
from ...domain.identifiers import SessionId
from ...domain.planning.outcome import Continue, Park
from ..models.named import NamedModel
from ..opened_store import OpenedStore
from . import documents, places
from .agents import AgentOptions, agent_for_resume, parts_for_turn
from .command_lines import CommandLines
from .content import NOTHING_SAID, ContentOptions, keeping
from .escaping import one_line
from .exit_codes import ExitCode, exit_code_of_park
from .nothing_to_resume import say_nothing
from .output import Output
from .parking import say_how_it_is_known, say_notes, say_parked
from .resumable import commands_for, parking_of, source_of
from .runtimes import no_store, reading
from .session_names import to_resume
from .ways_on import WayOn, as_documents, ways_on


def plan_resume(
    out: Output,
    named: SessionId | None,
    options: AgentOptions,
    request: PlanRequest,
    store: Path,
    content: ContentOptions = NOTHING_SAID,
) -> int:
    """Plan and show; returns the exit status."""
    if options.script is not None:
        parts_for_turn(options)
    if not places.is_there(store):
        return say_nothing(out, documents.PLAN, no_store(store))
    with reading(store) as runtime:
        summary = to_resume(runtime, named)
        if summary is None:
            return say_nothing(out, documents.PLAN, f"Nothing in {store} waits to be continued.")
        source = source_of(runtime, summary)
        workspaces = runtime.parts.workspaces()
        looking = agent_for_resume(options, source.profile, source.cwd, workspaces, for_looking=True)
        agent = keeping(looking, runtime, content)
        planned: Planned = runtime.parts.plan_resume()(summary.session_id, agent, request)
        assumed = isinstance(agent.provider, NamedModel)
        commands = commands_for(store, options, request, source.profile)
        return _report(out, runtime, summary.session_id, planned, commands, assumed=assumed)


def _report(
    out: Output, runtime: OpenedStore, session_id: SessionId, planned: Planned, commands: CommandLines, *, assumed: bool
) -> int:
    plan = planned.plan
    reasons = plan.reasons if isinstance(plan, Park) else ()
    parking = parking_of(runtime, session_id, reasons)
    code = exit_code_of_park(reason.code for reason in reasons) if reasons else ExitCode.DONE
    resume = WayOn(commands.resuming(session_id), commands.to_ask("continue it"))
    ways = ways_on(parking, commands) if reasons else (resume,)
    if isinstance(plan, Continue):
        say_continue(out, plan, resume.command)
        say_how_it_is_known(out, parking.operations)
    else:
        say_parked(out, parking, commands)
    if planned.repair_pending:
        out.say("The interrupted run is closed first; this plan is made on what that would write.")
    if assumed:
        out.say("The provider is taken as the run recorded it; resuming needs it in fact.")
    if commands.missing:
        what = commands.what_is_missing
        out.say(f"No record names its {what}: add {commands.missing} to a command that asks it.")
    say_notes(out, plan.notes)
    members = {
        "session_id": session_id,
        "run_id": parking.run_id,
        "decision": "continue" if isinstance(plan, Continue) else "park",
        "reasons": documents.of_reasons(reasons, commands, session_id),
        "notes": documents.of_notes(plan.notes),
        "operations": [documents.of_operation(seen, parking.run_id or "") for seen in parking.operations],
        "repair_pending": planned.repair_pending,
        "provider_assumed": assumed,
        "commands": as_documents(ways),
        "exit_code": int(code),
    }
    if isinstance(plan, Continue):
        members |= {
            "high_water": plan.source.high_water,
            "digest": plan.source.digest,
            "boundary_digest": plan.boundary_digest,
            "replay_digest": plan.replay.digest,
        }
    out.document(documents.PLAN, documents.filled(documents.PLAN, members))
    return code


def say_continue(out: Output, plan: Continue, resume: str) -> None:
    """Tell a person that it may be continued, and from where."""
    source = plan.source
    out.say(f"May be continued: run {one_line(source.run_id)} at event {source.high_water}.")
    out.say(f"  boundary {plan.boundary_digest[:16]}, history of {len(plan.replay.items)} items")
    out.say("Continue it with:")
    out.say(f"  {resume}")
