"""Imports a file into the store, and says what became of it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from ...application.import_session import Imported
from ...application.importable import ImportRefusal, ImportRefused, require_importable
from ...application.judge_history import FormatUnknown, HistoryReader, Judgement, judge
from ...domain.identifiers import SessionId
from ..interchange.formats import history_formats
from . import judgement_documents as documents
from .command_lines import CommandLines
from .escaping import one_line
from .exit_codes import ExitCode
from .history_input import bytes_of, unknown_format
from .judge_file import say_findings, say_issues
from .output import Output
from .places import is_there
from .runtimes import writing
from .ways_on import WayOn, as_documents

_ANOTHER_SESSION = frozenset({ImportRefusal.DIFFERS, ImportRefusal.ID_TAKEN})
_CORRUPT = frozenset({ImportRefusal.UNREADABLE, ImportRefusal.CORRUPT})


def import_file(out: Output, store: Path, file: str, format_name: str, session_id: SessionId | None) -> int:
    """Import it; returns the exit status."""
    data = bytes_of(file)
    commands = CommandLines(store)
    try:
        if not is_there(store):  # what is refused makes no store
            require_importable(judge(HistoryReader(history_formats())(data, format_name, session_id)), session_id)
        with writing(store) as runtime:
            imported: Imported = runtime.parts.import_session()(data, format_name, session_id)
    except FormatUnknown as error:
        raise unknown_format(str(error)) from error
    except ImportRefused as refusal:
        return _refused(out, file, refusal)
    way = WayOn(commands.about("show", imported.session_id), "look at it")
    say_findings(out, imported.judgement)
    if imported.already_there:
        out.say(f"Session {one_line(imported.session_id)} holds all of it already; nothing was changed.")
    else:
        said = f"{imported.events} events, {len(imported.runs)} runs"
        out.say(f"Imported session {one_line(imported.session_id)}: {said}. They are foreign: absence proves nothing.")
    out.say(f"  {way.command}")
    members = {
        **_of(imported.judgement, file),
        "imported": not imported.already_there,
        "already_there": imported.already_there,
        "run_ids": [*imported.runs],
        "events": imported.events,
        "commands": as_documents([way]),
        "exit_code": int(ExitCode.DONE),
    }
    _document(out, members)
    return ExitCode.DONE


def _refused(out: Output, file: str, refusal: ImportRefused) -> int:
    code = ExitCode.CORRUPTION if refusal.code in _CORRUPT else ExitCode.USAGE
    judgement = refusal.judgement
    way = WayOn(shlex.join(("safepoint", "judge", file, "--format", judgement.history.format)), "see all of it")
    out.tell(f"safepoint: Nothing was imported: {one_line(refusal.detail, 600)} [{refusal.code}]")
    if refusal.code in _ANOTHER_SESSION and judgement.history.session is None:
        out.tell("  It can become another session: name one with --session.")
    out.tell(f"  {way.command}")
    say_findings(out, judgement)
    say_issues(out, judgement)
    members = {
        **_of(judgement, file),
        "imported": False,
        "already_there": False,
        "refused": refusal.code.value,
        "detail": refusal.detail,
        "commands": as_documents([way]),
        "exit_code": int(code),
    }
    _document(out, members)
    return code


def _of(judgement: Judgement, file: str) -> dict[str, Any]:
    return {
        "file": file,
        "format": judgement.history.format,
        "session_id": judgement.history.session_id,
        "findings": documents.of_findings(judgement.history.findings),
        "issues": list(documents.of_issues(judgement)),
    }


def _document(out: Output, members: dict[str, Any]) -> None:
    missing: dict[str, Any] = {"run_ids": [], "events": 0}
    known = {**dict.fromkeys(documents.MEMBERS[documents.IMPORT]), **missing, **members}
    out.document(documents.IMPORT, {name: known[name] for name in documents.MEMBERS[documents.IMPORT]})
