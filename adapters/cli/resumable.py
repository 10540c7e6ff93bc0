"""What the run to continue recorded, and whether it could be continued now: shared by run, plan and resume."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ...application.agent import Agent
from ...application.inspect_runs import RunSeen
from ...application.inspect_sessions import SessionSummary
from ...application.plan_resume import PlanRequest
from ...domain.events.run import NOT_RECORDED, Budgets, ExecutionProfile
from ...domain.identifiers import RunId, SessionId
from ...domain.planning.facts import Drift
from ...domain.planning.outcome import Park, Reason
from ..models.by_name import ENDPOINTS, SCRIPTED
from ..opened_store import OpenedStore
from .agents import AgentOptions, agent_for_resume
from .command_lines import CommandLines
from .content import NOTHING_SAID, keeping
from .places import is_folder
from .usage import UsageError
from .ways_on import Parking

SOURCES_MAX = 64


@dataclass(frozen=True, slots=True)
class Source:
    """The run that would be continued, or whose continuation was claimed and never started."""

    run_id: RunId | None
    seen: RunSeen | None

    @property
    def profile(self) -> ExecutionProfile | None:
        """What it was executed with."""
        return None if self.seen is None else self.seen.profile

    @property
    def cwd(self) -> str | None:
        """The folder that it worked in, or is to go on in."""
        return None if self.seen is None else self.seen.cwd


def source_of(runtime: OpenedStore, summary: SessionSummary) -> Source:
    """Find the newest run that was started, from the session's head back over claims that never were.

    The head is that of the events: a row beside them may be stale, and is then mended, not believed (r3-030).
    """
    run_id = runtime.parts.inspect_sessions().head_of(summary.session_id) or summary.head_run_id
    if run_id is None:
        return Source(None, None)
    inspect, views = runtime.parts.inspect_runs(), runtime.parts.store().views
    for _ in range(SOURCES_MAX):
        seen = inspect(run_id)
        claim = views.continuation_to(run_id) if seen is None or seen.high_water == 0 else None
        if claim is None or claim.source_run_id is None:
            return Source(run_id, seen)
        run_id = claim.source_run_id
    return Source(run_id, None)


def request_of(
    accept_drift: Iterable[str] | None,
    expect_high_water: int | None,
    *,
    drop_permissions: bool,
    adopt: bool = False,
    budgets: Budgets | None = None,
) -> PlanRequest:
    """What the options ask of a plan.

    Args:
        accept_drift: each as it was given, one name or several with commas between.

    Raises:
        UsageError: something is to be accepted that cannot drift.
    """
    names = [name.strip() for given in accept_drift or () for name in given.split(",") if name.strip()]
    if unknown := sorted(set(names) - set(Drift)):
        raise UsageError(f"{', '.join(unknown)} is nothing to accept.", f"Choose from: {', '.join(Drift)}.")
    return PlanRequest(
        expected_high_water=expect_high_water,
        accepted_drift=frozenset(map(Drift, names)),
        drop_permissions=drop_permissions,
        budgets=budgets,
        adopt=adopt,
    )


def commands_of(runtime: OpenedStore, store: Path, session_id: SessionId) -> CommandLines:
    """Commands about a session where nothing was said of who works in it: the model is that of its record."""
    summary = runtime.parts.inspect_sessions().one(session_id)
    profile = None if summary is None else source_of(runtime, summary).profile
    return commands_for(store, AgentOptions(), recorded=profile)


def commands_for(
    store: Path,
    options: AgentOptions,
    request: PlanRequest | None = None,
    recorded: ExecutionProfile | None = None,
) -> CommandLines:
    """Commands that repeat what was given, where it is needed again; a workspace that is not there is none.

    Args:
        recorded: what the run to continue was executed with.
    """
    workspace = options.workspace if options.workspace and is_folder(options.workspace) else None
    named = (("--provider", options.provider), ("--model", options.model), ("--window", options.window))
    model = tuple(part for option, value in named if value is not None for part in (option, str(value)))
    policy = options.policy.arguments
    request = request or PlanRequest()
    accepted = tuple(drift.value for drift in Drift if drift in request.accepted_drift)
    commands = CommandLines(store, options.script, workspace, model, policy, tuple(_given(request)), accepted)
    if recorded is None or options.script is not None:
        return commands
    provider = options.provider or recorded.provider
    if provider in ENDPOINTS and provider == recorded.provider and options.model is None:
        asked = () if options.provider is not None else ("--provider", provider)
        if recorded.model == NOT_RECORDED:
            return replace(commands, recorded_model=asked, missing="--model NAME")
        return replace(commands, recorded_model=(*asked, "--model", recorded.model))
    return replace(commands, missing="--script FILE" if provider == SCRIPTED else "")


def _given(request: PlanRequest) -> Iterator[tuple[str, ...]]:
    """Options of a resume; what it was to find in the session is none, as that is what was looked at."""
    if request.drop_permissions:
        yield ("--drop-permissions",)
    if request.adopt:
        yield ("--adopt",)
    if request.budgets is not None:
        limits = (("steps", request.budgets.steps_max), ("tokens", request.budgets.tokens_max))
        for what, limit in (*limits, ("seconds", request.budgets.seconds_max)):
            if limit is not None:
                yield (f"--max-{what}", str(limit))


def budgets_of(steps: int | None, tokens: int | None, seconds: int | None) -> Budgets | None:
    """What the options say of what the turn may use; None where they say nothing."""
    if steps is tokens is seconds is None:
        return None
    return Budgets(steps_max=steps, tokens_max=tokens, seconds_max=seconds)


def parking_of(runtime: OpenedStore, session_id: SessionId, reasons: tuple[Reason, ...]) -> Parking:
    """What is known of a parked session now."""
    summary = runtime.parts.inspect_sessions().one(session_id)
    source = Source(None, None) if summary is None else source_of(runtime, summary)
    operations = () if source.seen is None else source.seen.operations
    trust = runtime.parts.store().condition().trust
    return Parking(session_id, source.run_id, reasons, operations, source.cwd, trust)


def could_continue(runtime: OpenedStore, session_id: SessionId, options: AgentOptions) -> tuple[Reason, ...] | None:
    """Why a run that has just ended could not be continued; None when it could, and a command may say so (r3-168)."""
    summary = runtime.parts.inspect_sessions().one(session_id)
    if summary is None:
        return ()
    source = source_of(runtime, summary)
    agent: Agent = agent_for_resume(options, source.profile, source.cwd, runtime.parts.workspaces())
    agent = keeping(agent, runtime, NOTHING_SAID)
    planned = runtime.parts.plan_resume()(session_id, agent, PlanRequest())
    return planned.plan.reasons if isinstance(planned.plan, Park) else None
