"""Lists what goes with a session, and has it forgotten on a person's word."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

from ...application.forget_session import ForgetSession, SessionsForgotten, ToForget
from ...domain.identifiers import SessionId
from . import documents
from .command_lines import CommandLines
from .escaping import one_line
from .exit_codes import ExitCode
from .output import Output
from .parking import say_ways
from .persons import person, require_person
from .runtimes import reading, require_store, writing
from .session_names import require_whole
from .usage import required_text
from .ways_on import WayOn, as_documents

SHOWN_MAX = 50


def forget_content(out: Output, store: Path, session_id: SessionId, by: str | None, *, sure: bool) -> int:
    """List, and forget where that was asked for; returns the exit status."""
    name = required_text("--by", person() if by is None else by)
    require_store(store)
    done: SessionsForgotten | None = None
    with writing(store) if sure else reading(store) as runtime:
        require_whole(runtime)
        if sure:
            require_person(runtime)
        use_case: ForgetSession = runtime.parts.forget_session()
        planned = use_case.look(session_id)
        if sure:
            done = use_case(session_id, by=name)
    ways = (
        [] if sure else [WayOn(CommandLines(store).about("forget", session_id, "--yes"), "do it; there is no way back")]
    )
    _say(out, planned, done)
    say_ways(out, ways)
    members = {
        "session_id": session_id,
        "forgotten": done is not None,
        "sessions": list(planned.sessions),
        "runs": len(planned.runs),
        "checkpoints": [{"ref": ref, "folder": folder} for ref, folder in planned.checkpoints],
        "folders": list(planned.folders),
        "not_looked": [{"folder": place, "why": why} for place, why in planned.not_looked],
        "events": 0 if done is None else done.forgotten.events,
        "log_emptied": None if done is None else done.forgotten.log_emptied,
        "left": [] if done is None else [{"what": what, "why": why} for what, why in done.left],
        "by": name,
        "commands": as_documents(ways),
        "exit_code": int(ExitCode.DONE),
    }
    out.document(documents.FORGET, documents.filled(documents.FORGET, members))
    return ExitCode.DONE


def _say(out: Output, planned: ToForget, done: SessionsForgotten | None) -> None:
    if done is None:
        out.say(f"This would go for good, with the content of {len(planned.runs)} runs:")
        for session in planned.sessions[:SHOWN_MAX]:
            out.say(f"  session {one_line(session)}")
        for ref, _ in planned.checkpoints[:SHOWN_MAX]:
            out.say(f"  checkpoint {one_line(ref)}")
        for folder in planned.folders[:SHOWN_MAX]:
            out.say(f"  folder {one_line(folder)}, with all that stands there")
        for place, why in planned.not_looked[:SHOWN_MAX]:
            out.say(f"Checkpoints of {one_line(place)} cannot be reached, and stay: {one_line(why)}")
        return
    out.say(f"Forgotten: {done.forgotten.events} events of {len(planned.sessions)} sessions.")
    out.say(f"Removed: {done.checkpoints} checkpoints and {done.folders} folders.")
    holding = sorted({folder for _, folder in planned.checkpoints if Path(folder).is_dir()})
    if holding:
        out.say("What the checkpoints held stays, unnamed, in these repositories until Git collects it:")
        for folder in holding[:SHOWN_MAX]:
            out.say(f"  {one_line(folder)} (at once: {one_line(f'git -C {quote(folder)} gc --prune=now')})")
    for what, why in done.left[:SHOWN_MAX]:
        out.say(f"Left: {one_line(what)} ({one_line(why)})")
    if not done.forgotten.log_emptied:
        out.say("Another program is reading the store: its log may hold the content until all have closed it.")
    out.say("Backups and exports that were made before still hold it.")
