"""The checks of SPEC sections 7, 14 and 15, and how each is taken out of the running application.

Where a check stands before another one that refuses the same, `behind` names the others: taken out alone it changes
nothing, and with them it does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pytest

from safepoint.adapters.memory.session_owners import MemorySessionOwners
from safepoint.adapters.memory.tables import MemoryTables
from safepoint.application import commit_round, heads, resume_run, tool_boundary
from safepoint.application.ledger import Ledger
from safepoint.application.over import OverJudge
from safepoint.application.ownership import SessionOwnership
from safepoint.application.run_recorder import RunRecorder
from safepoint.application.start_proof import StartAttempt, StartProof
from safepoint.domain.continuation import decisions as continuation
from safepoint.domain.errors import WriteRefused
from safepoint.domain.events.tool import Life
from safepoint.domain.identifiers import IncarnationId
from safepoint.domain.operation import decisions as operation
from safepoint.domain.operation.state import Operation, operation_by_id, operation_of_call
from safepoint.domain.planning import planner
from safepoint.domain.planning.gates_of_effects import operations_over
from safepoint.domain.reasons import VerdictReason
from safepoint.domain.recovery import resolver
from safepoint.domain.recovery.event_facts import event_facts
from safepoint.domain.recovery.verdict import VerdictStatus
from safepoint.domain.run import decisions as run
from safepoint.domain.run import ending, seals
from safepoint.domain.session import decisions as session
from safepoint.ports.event_store import OwnerGuard
from safepoint.ports.incarnations import Liveness
from safepoint.ports.supervised import Overness

from .scenarios import BACK, CHILD, FENCED, KILLED, NEW_TURN, OUTLIVES, RESUMES, STOPPED, UNSETTLED, WORKS_ON
from .world import SESSION

Patch: TypeAlias = pytest.MonkeyPatch
Removal: TypeAlias = Callable[[Patch], None]


@dataclass(frozen=True)
class Check:
    """One check.

    Attributes:
        section: of the specification.
        scenario: that needs it.
        breaks: the rule that is broken without it.
        behind: what refuses the same, and is taken out as well; none where the check stands alone.
    """

    name: str
    section: int
    remove: Removal
    scenario: str
    breaks: str
    behind: tuple[str, ...] = ()


def nothing(*_: object, **__: object) -> None:
    """Refuse nothing."""


def everywhere(patch: Patch, original: object, other: object) -> None:
    """Put something in the place of a function, by whatever name a module knows it."""
    for name, module in list(sys.modules.items()):
        if name.startswith("safepoint.") and module is not None:
            for attribute, value in list(vars(module).items()):
                if value is original:
                    patch.setattr(module, attribute, other)


# ---- section 15: who owns ------------------------------------------------------------------------------------------


def epoch(patch: Patch) -> None:
    why_not = MemoryTables.why_not

    def without(tables: MemoryTables, commit: Any) -> Any:
        owner = tables.owners[commit.guard.session_id]
        return why_not(tables, commit._replace(guard=OwnerGuard(*owner)))  # type: ignore[arg-type]

    patch.setattr(MemoryTables, "why_not", without)


def compare_and_set(patch: Patch) -> None:
    take = MemorySessionOwners.take
    patch.setattr(MemorySessionOwners, "take", lambda owners, at, me, seen: take(owners, at, me, owners.owner(at)))


def liveness(patch: Patch) -> None:
    patch.setattr(SessionOwnership, "_require_dead", nothing)


def one_at_a_time(patch: Patch) -> None:
    class Empty(set):  # type: ignore[type-arg]
        def __contains__(self, one: object) -> bool:
            return False

    made = SessionOwnership.__init__

    def init(ownership: SessionOwnership, *args: Any, **named: Any) -> None:
        made(ownership, *args, **named)
        ownership._in_use = Empty()

    patch.setattr(SessionOwnership, "__init__", init)


def forgetting(patch: Patch) -> None:
    patch.setattr(Ledger, "forget", nothing)


def over_before_settling(patch: Patch) -> None:
    patch.setattr(OverJudge, "not_over_in", lambda judge, run: ())


def life_of_a_task(patch: Patch) -> None:
    _life(patch, Life.TASK)


def life_of_a_child(patch: Patch) -> None:
    _life(patch, Life.SUPERVISED)


def death_of_whom(patch: Patch) -> None:
    liveness_of = SessionOwnership.liveness_of

    def of_anybody(ownership: SessionOwnership, incarnation_id: IncarnationId) -> Liveness:
        """Whoever took the session after a death takes all earlier owners for dead."""
        row = ownership._owners.owner(SESSION)
        if row is not None and row.incarnation_id is not None and ownership.is_mine(row.incarnation_id):
            return Liveness.DEAD
        return liveness_of(ownership, incarnation_id)

    patch.setattr(SessionOwnership, "liveness_of", of_anybody)


def _life(patch: Patch, ended: Life) -> None:
    life_of = OverJudge._life_of
    patch.setattr(OverJudge, "_life_of", lambda judge, one: Overness.OVER if one.life is ended else life_of(judge, one))


# ---- section 7: the ledger and the store ---------------------------------------------------------------------------


def versions(patch: Patch) -> None:
    patch.setattr(MemoryTables, "_version_conflict", nothing)


def seal_in_the_store(patch: Patch) -> None:
    patch.setattr(MemoryTables, "_sealed", nothing)


def sealed_run(patch: Patch) -> None:
    everywhere(patch, seals.sealed, nothing)


def run_has_ended(patch: Patch) -> None:
    everywhere(patch, seals.not_ended, nothing)


def stopped_run(patch: Patch) -> None:
    prepare = operation.prepare
    patch.setattr(operation, "prepare", lambda s, r, command: prepare(s, replace(r, cancel_requested=None), command))


def undispatched_call(patch: Patch) -> None:
    known = operation_of_call

    def as_called(r: Any, call_id: str) -> Operation | None:
        found = known(r, call_id)
        return None if found is None else _without_facts(found, dispatched=False)

    patch.setattr(operation, "operation_of_call", as_called)


def open_operation(patch: Patch) -> None:
    known = operation_by_id

    def as_dispatched(r: Any, operation_id: str) -> Operation | None:
        found = known(r, operation_id)
        return None if found is None else _without_facts(found, dispatched=True)

    patch.setattr(operation, "operation_by_id", as_dispatched)


def _without_facts(found: Operation, *, dispatched: bool) -> Operation:
    record = copy(found.record)
    record.response = None
    if not dispatched:
        record.dispatch = None
    return found._replace(record=record)


def sound_ledger(patch: Patch) -> None:
    patch.setattr(heads, "_sound_fact", lambda run, event: event_facts(event, run.tools.identity))
    patch.setattr(heads, "_stays_sound", nothing)


def completed_means_answered(patch: Patch) -> None:
    patch.setattr(ending, "_unfinished", nothing)


def calls_are_closed(patch: Patch) -> None:
    patch.setattr(ending, "_closings", lambda *_: ())


def session_is_not_open(patch: Patch) -> None:
    everywhere(patch, session.has_ended, lambda *_: True)


def history_is_whole(patch: Patch) -> None:
    patch.setattr(run, "_outdated", nothing)


def exact_retry(patch: Patch) -> None:
    patch.setattr(commit_round, "earlier_result", nothing)


def t1_first(patch: Patch) -> None:
    granted = tool_boundary.ToolBoundary._granted

    async def anyway(boundary: Any, call: Any, ready: Any) -> bool:
        with suppress(WriteRefused):
            await granted(boundary, call, ready)
        return True

    patch.setattr(tool_boundary.ToolBoundary, "_granted", anyway)


def t2_first(patch: Patch) -> None:
    outcome = RunRecorder.outcome

    async def anyway(recorder: Any, response: Any, left: Any = None) -> Any:
        try:
            return await outcome(recorder, response, left)
        except WriteRefused:
            recorder._events.append(response)

    patch.setattr(RunRecorder, "outcome", anyway)


# ---- section 14: claims and starts ---------------------------------------------------------------------------------


def unclaimed_source(patch: Patch) -> None:
    patch.setattr(continuation, "claimed_before", nothing)


def head_of_session(patch: Patch) -> None:
    claim = continuation.claim

    def without(s: Any, *states: Any, foreign: bool) -> Any:
        command = states[-1]
        head = None if s.head is None else s.head.model_copy(update={"run_id": command.run_id})
        return claim(replace(s, head=head), *states, foreign=foreign)

    patch.setattr(continuation, "claim", without)


def boundary_unmoved(patch: Patch) -> None:
    claim = continuation.claim

    def without(s: Any, source: Any, digest: str, ancestors: Any, command: Any, *, foreign: bool) -> Any:
        planned = command.claimed.segments[-1]
        source = replace(source, sequence=planned.high_water)
        return claim(s, source, planned.digest, ancestors, command, foreign=foreign)

    patch.setattr(continuation, "claim", without)


def unknown_is_unknown(patch: Patch) -> None:
    verdict = resolver._verdict

    def never_dispatched(record: Any, status: Any, reason: Any, *args: Any, **more: Any) -> Any:
        if reason is VerdictReason.DISPATCH_WITHOUT_RESPONSE:
            status, reason = VerdictStatus.DEFINITELY_NOT_DISPATCHED, VerdictReason.NEW_PROTOCOL_BEFORE_DISPATCH
        return verdict(record, status, reason, *args, **more)

    patch.setattr(resolver, "_verdict", never_dispatched)


def settled_at_the_claim(patch: Patch) -> None:
    patch.setattr(
        continuation, "resolve", lambda *args, **named: resolver.resolve(*args, **named)._replace(verdicts=())
    )


def over_in_the_plan(patch: Patch) -> None:
    gates = tuple((lambda view: iter(())) if one is operations_over else one for one in planner.GATES)
    patch.setattr(planner, "GATES", gates)


def empty_target(patch: Patch) -> None:
    patch.setattr(continuation, "_startable", nothing)


def revalidation(patch: Patch) -> None:
    patch.setattr(resume_run, "compare", lambda plan, again: ())


def one_use(patch: Patch) -> None:
    patch.setattr(StartProof, "use", lambda proof: proof.run_id)


def proof_given_once(patch: Patch) -> None:
    patch.setattr(StartAttempt, "_given", property(lambda attempt: False, nothing), raising=False)


def proof_of_first_commit(patch: Patch) -> None:
    patch.setattr(StartAttempt, "_in_doubt", property(lambda attempt: True, nothing), raising=False)


SOUND = "a fact makes no ledger unsound"

CHECKS = (
    # 15
    Check("a commit carries the epoch that owns", 15, epoch, FENCED, "15"),
    Check("the control row is compared when it is set", 15, compare_and_set, RESUMES, "15"),
    Check("a session is taken from the dead alone", 15, liveness, NEW_TURN, "15"),
    Check("one use case at a time has a session", 15, one_at_a_time, "one process is asked twice at once", "11"),
    Check("what is not over is not settled", 15, over_before_settling, WORKS_ON, "R9"),
    Check("a task is over when its incarnation is dead", 15, life_of_a_task, WORKS_ON, "R9"),
    Check("a death proves the end of its own incarnation alone", 15, death_of_whom, OUTLIVES, "R9"),
    Check("a child is over when its own lock is free", 15, life_of_a_child, CHILD, "R9"),
    Check("what is not over is not continued past", 15, over_in_the_plan, FENCED, "R9", ("unknown is unknown",)),
    Check("a taken session is read anew", 15, forgetting, BACK, "chain", ("a version is taken once",)),
    # 7
    Check("unknown is unknown", 9, unknown_is_unknown, UNSETTLED, "R9"),
    Check("a version is taken once", 7, versions, BACK, "chain", ("a taken session is read anew",)),
    Check("a sealed run takes no more", 7, sealed_run, STOPPED, "R10", ("the store seals a stream", SOUND)),
    Check("the store seals a stream", 7, seal_in_the_store, STOPPED, "R10", ("a sealed run takes no more", SOUND)),
    Check("a stopped run dispatches nothing", 7, stopped_run, STOPPED, "7"),
    Check(
        "a call is dispatched once",
        7,
        undispatched_call,
        "by hand: one call, dispatched twice",
        "R9",
        (SOUND,),
    ),
    Check(
        "an operation is answered once",
        7,
        open_operation,
        "by hand: one operation, answered twice",
        "R9",
        (SOUND,),
    ),
    Check(
        "completed means that nothing is open",
        7,
        completed_means_answered,
        "by hand: a run is ended while it dispatches",
        "7",
    ),
    Check("an end answers what was not dispatched", 7, calls_are_closed, KILLED, "7"),
    Check("a turn needs a session that is not open", 7, session_is_not_open, "by hand: two new turns", "R10"),
    Check("a turn is given all that is known", 7, history_is_whole, "by hand: a new turn and a settlement", "12"),
    Check("settling comes after the end", 7, run_has_ended, "by hand: a settlement and repair", "7"),
    Check("a retry gives the first result", 7, exact_retry, "a commit of a turn in doubt", "told"),
    Check("T1 comes before the effect", 7, t1_first, FENCED, "R6"),
    Check("T2 comes before the model", 7, t2_first, FENCED, "R7"),
    # 14
    Check(
        "a boundary is claimed once",
        14,
        unclaimed_source,
        "by hand: two claims of one boundary",
        "R12",
        (
            "a claim is of the session's head",
            "a claim is of the boundary that was planned",
            "the store seals a stream",
            SOUND,
        ),
    ),
    Check("a claim is of the session's head", 14, head_of_session, "by hand: a claim and a new turn", "R12"),
    Check(
        "a claim is of the boundary that was planned", 14, boundary_unmoved, "by hand: a claim and a late fact", "R14"
    ),
    Check(
        "the plan is made again before the claim",
        14,
        revalidation,
        "the workspace is exchanged while a run is resumed",
        "R14",
    ),
    Check(
        "a target is begun once",
        14,
        empty_target,
        "by hand: two repairs of a claim",
        "R10",
        ("the store seals a stream", SOUND),
    ),
    Check("a start is used once", 14, one_use, "by hand: two drivers of one start", "R12"),
    Check(
        "an attempt gives its proof once",
        14,
        proof_given_once,
        "by hand: one attempt, made twice",
        "R12",
        ("an attempt in doubt alone asks again",),
    ),
    Check(
        "an attempt in doubt alone asks again",
        14,
        proof_of_first_commit,
        "by hand: two attempts with one command",
        "R12",
    ),
)

BACKSTOPS = {SOUND: sound_ledger}
REMOVALS: dict[str, Removal] = {check.name: check.remove for check in CHECKS} | BACKSTOPS
"""By name; the backstops are no checks of these sections, and only stand behind them."""
