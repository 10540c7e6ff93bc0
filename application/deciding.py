"""Which aggregate decides which command, and which streams it reads. SPEC section 7, the table of commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from ..domain import commands as c
from ..domain.continuation import decisions as continuation
from ..domain.continuation.decisions import AncestorHead
from ..domain.decision import Decision, Refusal
from ..domain.events.event import Event, RunEvent
from ..domain.identifiers import RunId, run_stream, session_stream
from ..domain.operation import decisions as operation
from ..domain.reasons import WriteRefusal
from ..domain.run import decisions as run
from ..domain.run.state import Run
from ..domain.session.state import Session


@dataclass(frozen=True, slots=True)
class World:
    """The states that one command is decided on.

    `head` is the session's head run; `run` the run that the command names; `source` the claimed run of a continuation.
    """

    session: Session
    head: Run | None
    run: Run
    run_digest: str
    source: Run
    ancestors: tuple[AncestorHead, ...] = ()


def decide(command: c.AnyCommand, world: World) -> Decision:
    """Let the aggregate that the command concerns decide it."""
    match command:
        case c.OpenRun():
            return run.open_run(world.session, world.head, world.run, command)
        case c.Append():
            return run.append(world.run, command)
        case c.RefuseCall():
            return run.refuse_call(world.run, command)
        case c.RecordStep():
            return run.record_step(world.run, command)
        case c.PrepareTool():
            return operation.prepare(world.session, world.run, command)
        case c.CommitOutcome():
            return operation.commit_outcome(world.run, command)
        case c.EndRun():
            return run.end_run(world.session, world.run, command)
        case c.AppendLate():
            return run.append_late(world.run, command)
        case c.StartRedelivery():
            return operation.start_redelivery(world.run, command)
        case c.CommitRecovery():
            return operation.commit_recovery(world.run, command)
        case c.CommitAttestation():
            return operation.commit_attestation(world.run, command)
        case c.ClaimContinuation():
            return continuation.claim(world.session, world.run, world.run_digest, world.ancestors, command)
        case c.StartContinuation():
            return continuation.start(world.session, world.source, world.run, command)
        case c.RepairContinuation():
            return continuation.repair(world.session, world.source, world.run, command)
        case c.AbandonRun():
            return (command.abandoned,)
        case _:
            assert_never(command)


def run_of(command: c.AnyCommand) -> RunId:
    """The run that a command writes to."""
    return command.opened.run_id if isinstance(command, c.OpenRun) else command.run_id


def source_of(command: c.AnyCommand) -> RunId | None:
    """The claimed run that a continuation's first commit is decided on."""
    if isinstance(command, c.StartContinuation | c.RepairContinuation):
        return command.source_run_id
    return None


def streams_of(command: c.AnyCommand) -> frozenset[str]:
    """The streams whose states decide a command."""
    named = {session_stream(command.session_id), run_stream(run_of(command))}
    if source := source_of(command):
        named.add(run_stream(source))
    return frozenset(named)


def carried(command: c.AnyCommand) -> tuple[Event, ...]:
    """The candidates that a command brought, without those that its decision derives: what an exact retry repeats."""
    match command:
        case c.OpenRun():
            return (command.admitted, command.opened, command.message, *command.host_messages)
        case c.Append() | c.RecordStep():
            return command.facts
        case c.RefuseCall():
            return (command.response,)
        case c.PrepareTool():
            return (command.dispatch,)
        case c.CommitOutcome():
            return _present(command.response, command.left_running)
        case c.EndRun():
            return (command.ended,)
        case c.AppendLate():
            return _present(command.fact, command.grant, command.notice)
        case c.StartRedelivery():
            return (command.started,)
        case c.CommitRecovery():
            return _present(command.reconciled, command.outcome, command.decided, command.cleared, command.notice)
        case c.CommitAttestation():
            return _present(command.attested, command.response, command.cleared, command.notice)
        case c.ClaimContinuation():
            return (command.claimed, command.admitted)
        case c.StartContinuation():
            return (command.started, *command.host_messages)
        case c.RepairContinuation():
            return (command.started, command.ended)
        case c.AbandonRun():
            return (command.abandoned,)
        case _:
            assert_never(command)


def _present(*events: Event | None) -> tuple[Event, ...]:
    return tuple(event for event in events if event is not None)


def fits(command: c.AnyCommand) -> Refusal | None:
    """Refuse a command whose candidates do not belong to the session and run that it names: a producer's bug."""
    run_id = run_of(command)
    for event in carried(command):
        foreign_run = isinstance(event, RunEvent) and event.run_id != run_id
        if event.session_id != command.session_id or foreign_run:
            return Refusal(
                WriteRefusal.TRANSITION_SHAPE_CONFLICT, f"event {event.event_id} belongs to another run or session"
            )
    return None
