"""Verifying, resolving, replaying and planning a run of 100,000 events. SPEC section 21, row 5."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from safepoint.adapters.memory.tool_catalog import MemoryCatalog, MemoryTool
from safepoint.adapters.models.script import Script, ScriptedStep
from safepoint.adapters.models.scripted import ScriptedModel
from safepoint.adapters.opened_store import OpenedStore
from safepoint.adapters.permission.deny import DenyGate
from safepoint.adapters.settings import Settings
from safepoint.application.agent import Agent
from safepoint.application.plan_resume import PlanRequest
from safepoint.domain.identifiers import RunId, SessionId, run_stream
from safepoint.domain.planning.outcome import Continue
from safepoint.ports.tool_catalog import SyncCall
from safepoint.ports.workspace import WorkspaceSeen

from .bars import PLAN_OF_LONG_RUN
from .baselines import decode_validate_hash
from .facts import TOOL, Home
from .material import Place
from .measuring import Measured, Taken, cpu_ratio, median_wall, microseconds, taken_by, wall_ratios
from .stored import states_of, validator
from .workplace import Workplace


def plan_of_a_long_run(work: Workplace) -> Iterator[Measured]:
    """Row 5: a plan, which verifies, resolves and replays, against decoding, validating and hashing the same bytes."""
    store = work.fresh("plan.sqlite")
    with OpenedStore(Settings(store)) as runtime:
        agent = _agent(runtime, work.fresh("workspace"))
        session_id, run_id = _interrupted(store, agent, work.sizes.read_run)
        plan = runtime.parts.plan_resume()
        with runtime.parts.store().events.snapshot() as reader:
            states = list(states_of(reader, run_stream(run_id)))
        validate = validator()
        work.settle()
        ours: list[Taken] = []
        baseline: list[Taken] = []
        for _ in range(work.sizes.reading_rounds):
            ours.append(taken_by(lambda: _continued(plan(session_id, agent, PlanRequest()).plan)))
            baseline.append(taken_by(lambda: decode_validate_hash(states, validate)))
    figures = {
        "plan": f"{microseconds(median_wall(ours) / len(states))} an event",
        "baseline": f"{microseconds(median_wall(baseline) / len(states))} an event",
        "ratio of CPU": cpu_ratio(ours, baseline),
    }
    yield Measured(PLAN_OF_LONG_RUN, wall_ratios(ours, baseline), figures=figures)


def _agent(runtime: OpenedStore, workspace: Path) -> Agent:
    workspace.mkdir()
    seen = runtime.parts.workspaces().ensure(str(workspace))
    assert isinstance(seen, WorkspaceSeen), seen
    parameters = {"path": str, "content": str, "part": int}
    catalog = MemoryCatalog([MemoryTool(name=TOOL, implementation=SyncCall(_write_file), parameters=parameters)])
    model = ScriptedModel(Script(steps=(ScriptedStep(text="Done."),)))
    return Agent(model, catalog, DenyGate(), "system prompt", Path(seen.canonical_path), seen.identity)


def _interrupted(store: Path, agent: Agent, events: int) -> tuple[SessionId, RunId]:
    """A run that repair has ended, ready to be continued."""
    with Place(store) as place:
        home = Home(str(agent.workspace), agent.workspace_identity, agent.profile())
        guard, identity = place.kept_run(events, home)
        place.keep(guard, [place.facts.ended(guard, identity, interrupted=True)])
        place.store.owners.release(*guard)
    return identity.session_id, identity.run_id


def _write_file(arguments: object, context: object) -> str:
    return "ok"


def _continued(plan: object) -> None:
    assert isinstance(plan, Continue), plan
