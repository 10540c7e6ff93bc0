"""The planner: all gates in their one order, then a plan with everything frozen that they saw. SPEC section 13."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias, TypeVar

from ..boundary import boundary_digest
from ..events.event import Json
from ..events.run import ExecutionProfile, TargetHeader
from ..replay.context import Told
from ..replay.versions import NEWEST
from ..sentences import SentenceId, render
from . import gates_of_effects, gates_of_history, gates_of_source, gates_of_world
from .catalog import catalog_digest
from .facts import PlanFacts
from .observations import WorkspaceFound
from .outcome import Continue, Note, NoteCode, Park, Plan, Reason, SafetySnapshot
from .view import View, view_of

T = TypeVar("T")
Gate: TypeAlias = Callable[[View], Iterator[Reason]]

ORDINARY_FINISHES = frozenset(
    {"stop", "end_turn", "stop_sequence", "completed", "tool_calls", "tool_use", "function_call"}
)
"""Words of providers for a step that ended because the model had said what it wanted to say."""

GATES: tuple[Gate, ...] = (
    # 1 something to resume
    gates_of_source.feature_enabled,
    gates_of_source.candidate_exists,
    gates_of_source.one_automatic_try,
    gates_of_source.budget_left,
    gates_of_source.session_free,
    # 2 it can be read and believed
    gates_of_source.lineage_readable,
    gates_of_source.tail_vouched_for,
    gates_of_source.high_water_expected,
    gates_of_source.ledgers_sound,
    gates_of_source.lineage_verifies,
    # 3 nobody continues it already
    gates_of_source.not_continued_yet,
    # 4 nothing is undecided
    gates_of_effects.operations_settled,
    gates_of_effects.operations_over,
    gates_of_effects.permissions_decided,
    gates_of_effects.background_settled,
    # 5 the same workspace
    gates_of_world.workspace_is_the_same,
    gates_of_world.checkpoint_matches,
    # 6 the same tools and profile
    gates_of_world.tools_are_the_same,
    gates_of_world.profile_is_the_same,
    # 7 a history that a provider takes
    gates_of_history.history_can_be_made,
    gates_of_history.history_is_accepted,
    gates_of_history.history_fits,
    # 8 fresh ids
    gates_of_history.ids_are_fresh,
)
"""Every gate, in the order in which reasons are reported."""


def plan(facts: PlanFacts) -> Plan:
    """Decide whether a run may be continued, from facts alone; every failing gate is reported.

    A plan is no lease: it is made again and compared right before it is executed (`revalidation`).
    """
    view = view_of(facts)
    reasons = [reason for gate in GATES for reason in gate(view)]
    notes = (*view.notes, *_notes_of_history(view))
    return Park(tuple(reasons), notes) if reasons else _continue(view, notes)


def _continue(view: View, notes: tuple[Note, ...]) -> Continue:
    facts = view.facts
    profile = _known(facts.profile).model_copy(update={"tools": _known(facts.tools)})
    segments = tuple(segment.ref for segment in view.lineage)
    identity = _identity(view)
    return Continue(
        segments=segments,
        boundary_digest=boundary_digest(segments),
        replay=_known(view.replay()),
        claim_id=facts.fresh.claim_id,
        target=TargetHeader(
            run_id=facts.fresh.run_id,
            turn_id=facts.fresh.turn_id,
            invocation_id=facts.fresh.invocation_id,
            cwd=facts.cwd,
            workspace_identity=identity,
            profile=profile,
            protocol=facts.protocol,
        ),
        trigger=facts.trigger,
        accepted_drift=tuple(sorted(view.drift)),
        told=_told(view),
        safety=_safety(view, profile, identity),
        notes=notes,
        budgets=view.budgets(),
        used=view.used(),
        checkpoint=facts.checkpoint,
    )


def _known(value: T | None) -> T:
    if value is None:
        raise TypeError("a gate let something unknown pass")
    return value


def _identity(view: View) -> str | None:
    """The workspace that was seen; None where the source worked in none, and there is none now."""
    now = view.facts.workspace
    if isinstance(now, WorkspaceFound):
        return now.identity
    if _known(view.source_survey).workspace_identity is not None:
        raise TypeError("a gate let an unknown workspace pass")
    return None


def _safety(view: View, profile: ExecutionProfile, identity: str | None) -> SafetySnapshot:
    (terminal,) = _known(view.source_survey).terminals
    checkpoint = view.facts.checkpoint
    return SafetySnapshot(
        terminal_event_id=terminal.event_id,
        terminal_status=terminal.status,
        workspace_identity=identity,
        checkpoint_ref=None if checkpoint is None else checkpoint.ref,
        catalog_digest=catalog_digest(profile.tools),
        profile=profile,
    )


def _told(view: View) -> tuple[Told, ...]:
    """What the model must be told in the continuation's first commit: accepted drift, dropped questions."""
    said: list[tuple[SentenceId, dict[str, Json]]] = []
    if view.drift:
        said.append((SentenceId.DRIFT_ACCEPTED, {"changes": [view.drift[drift] for drift in sorted(view.drift)]}))
    if view.facts.drop_permissions:
        asked = _known(view.source_survey).open_permissions.values()
        said += ((SentenceId.PERMISSION_DROPPED, {"tool": question.tool_name}) for question in asked)
    return tuple(Told(sentence_id, values, render(sentence_id, values)) for sentence_id, values in said)


def _notes_of_history(view: View) -> Iterator[Note]:
    for drift in sorted(view.drift):
        yield Note(NoteCode.DRIFT_ACCEPTED, {"what": drift, "change": view.drift[drift]})
    for facts, projected in zip(view.lineage, view.projected, strict=True):
        if projected.trimmed or projected.left_out:
            events: list[Json] = [*projected.trimmed]
            thinking: list[Json] = [*projected.left_out]
            yield Note(NoteCode.HISTORY_TRIMMED, {"run": facts.ref.run_id, "events": events, "thinking": thinking})
    for segment in view.lineage[:-1]:
        if segment.claimed is not None and segment.claimed.projection_version < NEWEST.version:
            version = segment.claimed.projection_version
            yield Note(NoteCode.OLDER_PROJECTION, {"run": segment.ref.run_id, "version": version})
    last_step = None if view.source_survey is None else view.source_survey.last_step
    if last_step is not None and last_step.finish_reason not in ORDINARY_FINISHES:
        about = {"run": last_step.run_id, "step": last_step.step_id, "finish_reason": last_step.finish_reason}
        yield Note(NoteCode.LAST_STEP_CUT_SHORT, about)
    replay = view.replay()
    if replay is not None and replay.blobs_left_out:
        yield Note(NoteCode.BLOBS_LEFT_OUT, {"segments": [*replay.blobs_left_out]})
    if replay is not None and replay.renamed:
        yield Note(NoteCode.CALL_IDS_RENAMED, {"ids": [[*pair] for pair in replay.renamed]})
