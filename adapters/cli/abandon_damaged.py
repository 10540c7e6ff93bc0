"""Gives up a session's damaged run on a person's word, and says what that means."""

from __future__ import annotations

from pathlib import Path

from ...application.give_up_run import GivenUp
from ...domain.identifiers import SessionId
from . import documents
from .escaping import one_line
from .exit_codes import ExitCode
from .output import Output
from .parking import say_ways
from .persons import person, require_person
from .resumable import commands_of
from .runtimes import require_store, writing
from .session_names import known
from .usage import required_text
from .ways_on import MESSAGE, WayOn, as_documents, settling

SHOWN_MAX = 20


def abandon_damaged(out: Output, store: Path, session_id: SessionId, by: str | None, note: str) -> int:
    """Give it up; returns the exit status."""
    name, why = required_text("--by", person() if by is None else by), required_text("--note", note)
    require_store(store)
    with writing(store) as runtime:
        require_person(runtime)
        known(runtime, session_id)
        given_up: GivenUp = runtime.parts.give_up_run()(session_id, by=name, note=why)
        commands = commands_of(runtime, store, session_id)
    run = f"Run {one_line(given_up.run_id)}"
    if given_up.before:
        out.say(f"{run} was given up before.")
    else:
        readable = f"can be read up to event {given_up.last_good_sequence}"
        out.say(f"{run} is given up by {one_line(name)}; it {readable}: {one_line(given_up.damage, 400)}")
    out.say("It stays as it is and is never continued. The next turn is made without it, and its model is told.")
    ways = [WayOn(commands.asking("run", MESSAGE, "--session", session_id), commands.to_ask("start the next turn"))]
    if given_up.watched:
        out.say(
            f"What became of {len(given_up.watched)} of its operations is not known; a repeat needs your permission."
        )
    for operation_id in given_up.watched[:SHOWN_MAX]:
        ways += settling(commands, operation_id, "it")
    say_ways(out, ways)
    members = {
        "session_id": session_id,
        "run_id": given_up.run_id,
        "result": "before" if given_up.before else "abandoned",
        "last_good_sequence": given_up.last_good_sequence,
        "damage": given_up.damage,
        "watched": list(given_up.watched),
        "by": name,
        "note": why,
        "commands": as_documents(ways),
        "exit_code": int(ExitCode.DONE),
    }
    out.document(documents.ABANDON, documents.filled(documents.ABANDON, members))
    return ExitCode.DONE
