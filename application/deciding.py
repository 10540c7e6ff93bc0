"""Which aggregate decides which command, and on which states. SPEC section 7, the table of commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias, assert_never

from ..domain import commands as c
from ..domain.continuation import decisions as continuation
from ..domain.continuation.decisions import AncestorHead
from ..domain.decision import Decision, Refusal, misfit
from ..domain.events.catalogue import RUN_EVENTS
from ..domain.events.event import Event
from ..domain.events.run import ContinuationStarted, RunClaimed, RunEnded, RunOpened
from ..domain.events.tool import ToolDispatched, ToolRedeliveryStarted
from ..domain.identifiers import RunId
from ..domain.operation import decisions as operation
from ..domain.run import decisions as run
from ..domain.run.ending import end_run
from ..domain.run.state import Run
from ..domain.session.abandoning import abandon
from ..domain.session.attesting import attest
from ..domain.session.state import Session

_WITH_EPOCH = frozenset({RunOpened, ContinuationStarted, RunEnded, RunClaimed})
_NOTHING = Run()
_OWNED = _WITH_EPOCH | {ToolDispatched, ToolRedeliveryStarted}


class World(NamedTuple):
    """The states that one command is decided on.

    Attributes:
        head: the session's head run, where a new run is to follow it.
        run: the run that the command names; of one in which nothing more is written, what can be read of it.
        run_digest, head_digest: of the newest events of `run` and `head`.
        source: the claimed run of a continuation.
        ancestors: what stands at the boundaries of a claim's older segments.
        foreign: the store cannot vouch that the facts of `run` are complete.
        damage: what is wrong behind what can be read of `run`.
        suspected: `run` with what was dispatched behind the damage, where that decides.
    """

    session: Session
    run: Run
    run_digest: str
    source: Run
    head: Run | None = None
    head_digest: str = ""
    ancestors: tuple[AncestorHead, ...] = ()
    foreign: bool = False
    damage: str | None = None
    suspected: Run = _NOTHING


OfItsRun: TypeAlias = c.CommitOutcome | c.RecordStep | c.Append | c.RefuseCall
OF_ITS_RUN: Mapping[type[OfItsRun], Callable[[Run, Any], Decision]] = {
    c.CommitOutcome: operation.commit_outcome,
    c.RecordStep: run.record_step,
    c.Append: run.append,
    c.RefuseCall: run.refuse_call,
}
"""How commands are decided that are decided on their run alone."""


def decide(world: World, command: c.AnyCommand) -> Decision:
    """Let the aggregate that the command concerns decide it."""
    match command:
        case c.CommitOutcome() | c.RecordStep() | c.Append() | c.RefuseCall():
            return OF_ITS_RUN[type(command)](world.run, command)
        case c.PrepareTool():
            return operation.prepare(world.session, world.run, command)
        case c.OpenRun():
            return run.open_run(world.session, world.head, world.head_digest, world.run, command)
        case c.EndRun():
            return end_run(world.session, world.run, command, foreign=world.foreign)
        case c.AppendLate():
            return run.append_late(world.run, command)
        case c.StartRedelivery():
            return operation.start_redelivery(world.run, command)
        case c.CommitRecovery():
            return operation.commit_recovery(world.session, world.run, command)
        case c.CommitAttestation():
            return operation.commit_attestation(world.session, world.run, command)
        case c.AttestInSession():
            return attest(world.session, world.suspected, command)
        case c.ClaimContinuation():
            return continuation.claim(
                world.session, world.run, world.run_digest, world.ancestors, command, foreign=world.foreign
            )
        case c.StartContinuation():
            return continuation.start(world.session, world.source, world.run, command)
        case c.RepairContinuation():
            return continuation.repair(world.session, world.source, world.run, command)
        case c.AbandonRun():
            return abandon(world.session, world.run, world.suspected, world.damage, command)
        case _:
            assert_never(command)


def source_of(command: c.AnyCommand) -> RunId | None:
    """The claimed run that a continuation's first commit is decided on."""
    if isinstance(command, c.StartContinuation | c.RepairContinuation):
        return command.source_run_id
    return None


def carried(command: c.AnyCommand) -> tuple[Event, ...]:
    """The candidates that a command brought, without those that its decision derives: what an exact retry repeats."""
    match command:
        case c.PrepareTool():
            return (command.dispatch,)
        case c.CommitOutcome():
            return (command.response,) if command.left_running is None else (command.response, command.left_running)
        case c.OpenRun():
            return _present(command.admitted, command.opened, command.message, command.budget, *command.host_messages)
        case c.Append() | c.RecordStep():
            return command.facts
        case c.RefuseCall():
            return (command.response,)
        case c.EndRun():
            return (command.ended,)
        case c.AppendLate():
            return _present(command.fact, command.grant, command.notice)
        case c.StartRedelivery():
            return (command.started,)
        case c.CommitRecovery():
            return _present(command.reconciled, command.outcome, command.decided, command.notice)
        case c.CommitAttestation():
            return _present(command.attested, command.response, command.notice)
        case c.AttestInSession():
            return _present(command.attested, command.notice)
        case c.ClaimContinuation():
            return (command.claimed, command.admitted)
        case c.StartContinuation():
            return _present(command.started, command.budget, *command.host_messages)
        case c.RepairContinuation():
            return (command.started, command.ended)
        case c.AbandonRun():
            return (command.abandoned,)
        case _:
            assert_never(command)


def _present(*events: Event | None) -> tuple[Event, ...]:
    return tuple(event for event in events if event is not None)


def fits(command: c.AnyCommand) -> Refusal | None:
    """Refuse a command whose candidates do not belong to the session, run and owner that it names: a producer's bug."""
    run_id, session_id, events = command.run_id, command.session_id, carried(command)
    for event in events:
        kind, fields = type(event), event.__dict__
        if fields["session_id"] != session_id or (kind in RUN_EVENTS and fields["run_id"] != run_id):
            return misfit(f"event {event.event_id} belongs to another run or session")
        if kind in _OWNED and fields["incarnation_id"] != command.incarnation_id:
            return misfit(f"event {event.event_id} names another owner")
        if kind in _WITH_EPOCH and fields["epoch"] != command.epoch:
            return misfit(f"event {event.event_id} names another epoch")
    return None
