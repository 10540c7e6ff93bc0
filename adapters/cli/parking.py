"""A parked run, for a person: the reason in one plain sentence, what is known of each operation, and the ways on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from shlex import quote

from ...application.inspect_runs import OperationSeen
from ...domain.events.event import Json
from ...domain.events.tool import Effect, Statement
from ...domain.explanations import explain
from ...domain.planning.gates_of_source import BUDGET_SPENT
from ...domain.planning.outcome import Note, Reason
from ...domain.reasons import ParkReason, VerdictReason
from ...domain.recovery.verdict import VerdictStatus
from ...ports.supervised import Overness
from .command_lines import CommandLines
from .escaping import one_line
from .output import Output
from .ways_on import Parking, WayOn, ways_on

_OVER = {
    Overness.OVER: "nothing of it runs any more",
    Overness.RUNNING: "it may still be running",
    Overness.COULD_NOT_LOOK: "whether it still runs could not be seen",
}
_ABOUT_OPERATIONS = frozenset(
    {
        ParkReason.DANGLING_TOOL_STATE,
        ParkReason.TOOL_RECOVERY_PARKED,
        ParkReason.EFFECT_MAY_BE_RUNNING,
    }
)


def say_parked(out: Output, parking: Parking, commands: CommandLines) -> None:
    """Print everything; the first line says why."""
    busy = [reason for reason in parking.reasons if reason.code is ParkReason.SESSION_BUSY]
    for reason in _once(busy or parking.reasons):
        explanation = explain(reason.code)
        out.say(f"Parked: {_of_budget(reason) or explanation.sentence} [{reason.code}]")
        listed_below = reason.code in _ABOUT_OPERATIONS and parking.operations
        if not listed_below and (shown := _detail(reason.detail)):
            out.say(f"  {shown}")
    listed = [] if busy else [seen for seen in parking.operations if _is_worth_telling(seen)]
    if listed:
        out.say("What is known of each operation:")
    for seen in listed:
        out.say(f"  {operation_line(seen)}")
    say_ways(out, ways_on(parking, commands))


def say_how_it_is_known(out: Output, operations: Iterable[OperationSeen]) -> None:
    """Name each operation whose outcome is a person's word, or was found by looking again."""
    known = [seen for seen in operations if _is_known_otherwise(seen)]
    if known:
        out.say("What is known by other means than its own answer:")
    for seen in known:
        out.say(f"  {operation_line(seen)}")


def _is_known_otherwise(seen: OperationSeen) -> bool:
    return seen.attested is not None or seen.verdict.reason is VerdictReason.RECOVERY_BUNDLE_COMPLETED


def _is_worth_telling(seen: OperationSeen) -> bool:
    if _is_known_otherwise(seen):
        return True
    return seen.unsettled or seen.verdict.status is VerdictStatus.DEFINITELY_NOT_DISPATCHED


def operation_line(seen: OperationSeen) -> str:
    """One operation on one line: tool, call, verdict, reason, and whether it is over."""
    verdict = seen.verdict
    name = f"{one_line(verdict.tool_name, 60)} (call {one_line(verdict.call_id, 60)}"
    name += f", operation {one_line(verdict.operation_id, 60)})" if verdict.operation_id else ")"
    said = f"{name}: {_standing(seen)} {_attested(seen)}"
    processes = ", ".join(f"{one_line(process.name, 40)} (pid {process.pid})" for process in seen.over.processes)
    return f"{said}{_OVER[seen.over.overness].capitalize()}{f': {processes}' if processes else ''}."


def _standing(seen: OperationSeen) -> str:
    """How an operation stands; an answer that does not say what happened is not called completed."""
    verdict = seen.verdict
    if verdict.status is VerdictStatus.COMPLETED and verdict.effect is Effect.UNKNOWN:
        known = "is" if seen.attested is None else "was"
        return f"answered, but whether its effect happened {known} not known."
    return f"{verdict.status}, {verdict.reason}: {explain(verdict.reason).sentence}"


def _attested(seen: OperationSeen) -> str:
    """What a person said of it, as that person's word."""
    said = ""
    for attestation in (seen.declared_over, seen.attested):
        if attestation is not None:
            words = (
                "Declared over" if attestation is seen.declared_over else f"Attested as {_WORDS[attestation.statement]}"
            )
            said += f"{words} by {one_line(attestation.by, 60)}: {one_line(attestation.note, 200)}. "
    return said


_WORDS = {Statement.COMPLETED: "completed", Statement.NOT_EXECUTED: "not executed", Statement.OVER: "over"}


def say_ways(out: Output, ways: Iterable[WayOn]) -> None:
    """Print commands, each with what it is for."""
    listed = list(ways)
    if listed:
        out.say("What you can do:")
    for way in listed:
        out.say(f"  {one_line(way.command, 2_000)}")
        out.say(f"      {one_line(way.what_for)}")


def say_notes(out: Output, notes: Iterable[Note]) -> None:
    """Print the diagnostics of a plan."""
    for note in notes:
        out.say(f"Note: {note.code.replace('_', ' ')}. {_detail(note.detail)}".rstrip())


def _of_budget(reason: Reason) -> str | None:
    """What is said where only a budget is used up: nothing was interrupted, and yet it can go on."""
    if reason.detail.get("why") != BUDGET_SPENT:
        return None
    have = "an unknown number" if reason.detail["have"] is None else reason.detail["have"]
    return f"The turn has used {have} of the {reason.detail['limit']} {reason.detail['what']} that it may use."


def _once(reasons: Iterable[Reason]) -> Iterable[Reason]:
    """One reason for each code: the operations are listed on their own."""
    return {reason.code: reason for reason in reversed(list(reasons))}.values().__reversed__()


def _detail(detail: Mapping[str, Json]) -> str:
    shown = {name: value for name, value in detail.items() if value not in (None, [], {}, "")}
    return one_line(", ".join(f"{name}: {_value(value)}" for name, value in shown.items()), 600)


def _value(value: Json) -> str:
    if isinstance(value, list):
        return " ".join(quote(item) if isinstance(item, str) else _value(item) for item in value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_value(inner)}" for name, inner in value.items()) + "}"
    return str(value)
