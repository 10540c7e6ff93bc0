"""Takes a session from its owner, and says what became of the owner and of its run."""

from __future__ import annotations

from pathlib import Path

from ...application.repair_session import RepairKind
from ...application.take_over import Ending, TakenOver, TookOver
from ...domain.events.run import RunStatus
from ...domain.identifiers import SessionId
from ...ports.incarnations import Incarnation
from . import documents
from .command_lines import CommandLines
from .ending import say_repaired
from .escaping import one_line
from .exit_codes import ExitCode
from .output import Output
from .parking import say_ways
from .persons import require_person
from .runtimes import require_store, writing
from .session_names import known
from .ways_on import WayOn, as_documents

OTHERS_SHOWN_MAX = 10


def take_session_over(out: Output, store: Path, session_id: SessionId, *, fence_only: bool) -> int:
    """Take it over; returns the exit status."""
    require_store(store)
    with writing(store) as runtime:
        require_person(runtime)
        known(runtime, session_id)
        taken: TakenOver = runtime.parts.take_over()(session_id, fence_only=fence_only, ending=_ending(out))
        state = known(runtime, session_id).state
    damaged = taken.repaired.kind is RepairKind.QUARANTINED
    code = ExitCode.CORRUPTION if damaged else ExitCode.DONE
    commands = CommandLines(store)
    ways = [WayOn(commands.about("show", session_id), "see what happened")]
    if damaged:
        ways.append(WayOn(commands.about("abandon", session_id, "--note", "WHY"), "give its damaged run up"))
    elif state.may_be_resumed:
        ways.append(WayOn(commands.about("plan", session_id), "see whether it can be continued"))
    out.say(_said(taken))
    if damaged:
        out.say(f"Its newest run is damaged and was left as it is: {one_line(taken.repaired.detail, 500)}")
    elif taken.repaired.kind is RepairKind.NOTHING_OPEN and taken.repaired.status is RunStatus.CANCELLED:
        out.say("Its run had ended as cancelled.")
    say_repaired(out, taken.repaired)
    say_ways(out, ways)
    owner = taken.owner
    members = {
        "session_id": session_id,
        "result": taken.how.value,
        "owner_pid": None if owner is None else owner.pid,
        "owner_host": None if owner is None else owner.host,
        "also_interrupted": list(taken.others),
        "repaired": documents.of_repaired(taken.repaired),
        "commands": as_documents(ways),
        "exit_code": int(code),
    }
    out.document(documents.TAKEOVER, documents.filled(documents.TAKEOVER, members))
    return code


def _ending(out: Output) -> Ending:
    def told(owner: Incarnation, others: tuple[SessionId, ...], seconds: float) -> None:
        out.tell(f"Ending process {owner.pid}, which owns the session; waiting up to {seconds:g} seconds.")
        if others:
            shown = ", ".join(one_line(one) for one in others[:OTHERS_SHOWN_MAX])
            more = f" and {len(others) - OTHERS_SHOWN_MAX} more" if len(others) > OTHERS_SHOWN_MAX else ""
            out.tell(f"It works on other sessions too, which are interrupted with it: {shown}{more}.")

    return told


def _said(taken: TakenOver) -> str:
    who = "Its owner" if taken.owner is None else f"Process {taken.owner.pid}"
    match taken.how:
        case TookOver.UNOWNED:
            return "Nobody owned the session."
        case TookOver.AFTER_DEATH:
            return f"{who}, which owned the session, is dead."
        case TookOver.ENDED:
            return f"{who}, which owned the session, was ended."
        case TookOver.FORCED:
            return (
                f"{who} is fenced: it can write nothing more in this session. It was left alone, and what it started "
                "may still be running: until it has ended, nothing goes past its open operations."
            )
