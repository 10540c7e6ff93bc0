"""Resumes a session from the command line, or says why it is parked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from ...application.agent import Agent
from ...application.live_runs import LiveRun
from ...application.plan_resume import PlanRequest
from ...application.reconcile_operations import Hands
from ...application.reconcile_session import ReconcileSession
from ...application.resume_run import Continued, Parked
from ...application.run_agent import Screen
from ...domain.explanations import explain
from ...domain.identifiers import SessionId
from ...domain.planning.outcome import Park
from ...ports.provider_failures import ProviderUnusable
from ..opened_store import OpenedStore
from . import documents, places
from .agents import AgentOptions, agent_for_resume, parts_for_turn
from .command_lines import CommandLines
from .content import NOTHING_SAID, ContentOptions, keeping, settle_drift
from .driving import Driving
from .ending import Ending, say_repaired
from .exit_codes import ExitCode, exit_code_of_park
from .nothing_to_resume import say_nothing
from .output import Output
from .parking import say_notes, say_parked
from .policies import described
from .reconciled import of_reconciled, say_reconciled
from .resumable import Source, commands_for, parking_of, source_of
from .runtimes import no_store, writing
from .session_names import to_resume
from .usage import UsageError
from .ways_on import as_documents, ways_on


def resume_session(
    out: Output,
    named: SessionId | None,
    options: AgentOptions,
    request: PlanRequest,
    store: Path,
    content: ContentOptions = NOTHING_SAID,
    *,
    reconcile: bool = False,
) -> int:
    """Plan, and continue or park; returns the exit status.

    Args:
        reconcile: whether what has no outcome is looked at again first.
    """
    if options.script is not None:
        parts_for_turn(options)  # a script with errors is said before anything is opened
    if not places.is_there(store):
        return say_nothing(out, documents.RESUME, no_store(store))
    with writing(store) as runtime:
        summary = to_resume(runtime, named)
        if summary is None:
            return say_nothing(out, documents.RESUME, f"Nothing in {store} waits to be continued.")
        source = source_of(runtime, summary)
        commands = commands_for(store, options, request, source.profile)
        workspaces = runtime.parts.workspaces()
        try:
            agent = keeping(agent_for_resume(options, source.profile, source.cwd, workspaces), runtime, content)
        except (UsageError, ProviderUnusable):
            parked = _parked_anyway(runtime, summary.session_id, source, options, request, content)
            if parked is None:
                raise
            return _parked(out, runtime, parked, commands)
        if reconcile and content.decides:  # what has no outcome would keep it from being carried out
            runtime.parts.accept_drift().require_bound(summary.session_id, agent, request)
            _look_again(out, runtime, summary.session_id, agent)
        decided = settle_drift(out, runtime, summary.session_id, agent, request, content)
        if decided.parked is not None:
            return _parked(out, runtime, decided.parked, commands)
        if decided.folder is not None:
            agent = keeping(
                agent_for_resume(replace(options, workspace=decided.folder), source.profile, None, workspaces),
                runtime,
                content,
            )
        use_case = runtime.parts.resume_run()
        recorded = None if source.profile is None else source.profile.permission_policy
        driving = Driving(runtime, described(agent.gate, options.policy, recorded), options.policy.hearing)

        async def work(screen: Screen, started: Callable[[LiveRun], None]) -> Parked | Continued:
            result: Parked | Continued = await use_case(
                summary.session_id, agent, screen, started, request, reconcile=reconcile
            )
            return result

        with driving.explaining(summary.session_id, commands):
            result = anyio.run(driving.through, agent, work)
        say_repaired(out, result.repaired)
        say_reconciled(out.tell, result.reconciled)
        if isinstance(result, Parked):
            return _parked(out, runtime, result, commands, decided.members)
        return _continued(out, runtime, result, driving, commands, decided.members)


def _look_again(out: Output, runtime: OpenedStore, session_id: SessionId, agent: Agent) -> None:
    hands = Hands(agent.catalog, agent.workspace)
    look: ReconcileSession = runtime.parts.reconcile_session()
    found = anyio.run(partial(look, session_id, hands))
    if found is not None:
        say_reconciled(out.tell, found.operations)


def _parked_anyway(
    runtime: OpenedStore,
    session_id: SessionId,
    source: Source,
    options: AgentOptions,
    request: PlanRequest,
    content: ContentOptions,
) -> Parked | None:
    """The park that no provider would change, so that it is said although the provider cannot be had; None without."""
    try:
        agent = agent_for_resume(options, source.profile, source.cwd, runtime.parts.workspaces(), for_looking=True)
    except (UsageError, ProviderUnusable):
        return None
    plan = runtime.parts.plan_resume()(session_id, keeping(agent, runtime, content), request).plan
    return Parked(session_id, plan.reasons, plan.notes) if isinstance(plan, Park) else None


def _parked(
    out: Output,
    runtime: OpenedStore,
    parked: Parked,
    commands: CommandLines,
    drift: Mapping[str, Any] | None = None,
) -> int:
    parking = parking_of(runtime, parked.session_id, parked.reasons)
    code = exit_code_of_park(parked.codes) if parked.reasons else ExitCode.BUSY
    for changed in parked.changed:
        out.say(f"Not continued: {explain(changed).sentence} [{changed}]")
    say_parked(out, parking, commands)
    say_notes(out, parked.notes)
    members = {
        "session_id": parked.session_id,
        "source_run_id": parking.run_id,
        "decision": "parked",
        "repaired": documents.of_repaired(parked.repaired),
        "reconciled": of_reconciled(parked.reconciled),
        "reasons": documents.of_reasons(parked.reasons, commands, parked.session_id),
        "changed": [one.value for one in parked.changed],
        "notes": documents.of_notes(parked.notes),
        "drift": drift,
        "operations": [documents.of_operation(seen, parking.run_id or "") for seen in parking.operations],
        "commands": as_documents(ways_on(parking, commands)),
        "exit_code": int(code),
    }
    out.document(documents.RESUME, documents.filled(documents.RESUME, members))
    return code


def _continued(
    out: Output,
    runtime: OpenedStore,
    done: Continued,
    driving: Driving,
    commands: CommandLines,
    drift: Mapping[str, Any] | None,
) -> int:
    ending = Ending(runtime, done.session_id, done.outcome, driving, commands)
    ending.say(out)
    members = {
        "session_id": done.session_id,
        "source_run_id": done.source_run_id,
        "run_id": done.run_id,
        "claim_id": done.claim_id,
        "decision": "continued",
        "repaired": documents.of_repaired(done.repaired),
        "reconciled": of_reconciled(done.reconciled),
        "notes": documents.of_notes(done.notes),
        "drift": drift,
        **ending.members(),
    }
    out.document(documents.RESUME, documents.filled(documents.RESUME, members))
    return ending.exit_code
