"""Exports a session to a file or to standard output; a file is whole or not there."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from ...application.export_session import ExportBegin, ExportedEvent, ExportPart, SessionMissing
from ...domain.identifiers import SessionId
from ..interchange.export_lines import lines_of_export
from . import judgement_documents as documents
from .escaping import one_line
from .exit_codes import ExitCode
from .output import Output
from .runtimes import reading
from .usage import UsageError


def export_file(out: Output, store: Path, session_id: SessionId, to: Path | None, *, redact: bool) -> int:
    """Export it; returns the exit status."""
    to_standard_output = to is None or str(to) == "-"
    if out.as_json and to_standard_output:
        raise UsageError("With --json the export needs a file of its own.", "Name one with --out.")
    if to is not None and not to_standard_output and (to.exists() or to.is_symlink()):
        raise UsageError(f"{to} is there already; it was left as it is.", "Name another file.", code="file_exists")
    counted = _Counted()
    with reading(store) as runtime:
        parts = counted.of(runtime.parts.export_session()(session_id, redacted=redact))
        try:
            if to is None or to_standard_output:
                _write(parts, sys.stdout.buffer)
            else:
                _write_whole(parts, to)
        except SessionMissing as error:
            hint = "`safepoint list` shows the sessions of this store; --store names another."
            raise UsageError(
                f"There is no session {session_id} in this store.", hint, code="unknown_session"
            ) from error
    if counted.foreign:
        out.tell("This store cannot vouch that no fact of these runs is missing; the export says so, and is judged so.")
    if not to_standard_output:
        out.say(f"Exported {counted.events} events of {counted.streams} streams to {one_line(to)}.")
    members = {
        "session_id": session_id,
        "file": None if to is None else str(to),
        "redacted": redact,
        "foreign": counted.foreign,
        "streams": counted.streams,
        "events": counted.events,
        "exit_code": int(ExitCode.DONE),
    }
    out.document(documents.EXPORT, members)
    return ExitCode.DONE


class _Counted:
    """Counts what passes."""

    def __init__(self) -> None:
        self.foreign = False
        self.streams = 0
        self.events = 0

    def of(self, parts: Iterable[ExportPart]) -> Iterator[ExportPart]:
        for part in parts:
            if isinstance(part, ExportBegin):
                self.foreign = part.foreign
                self.streams = len(part.heads)
            elif isinstance(part, ExportedEvent):
                self.events += 1
            yield part


def _write(parts: Iterable[ExportPart], to: BinaryIO) -> None:
    to.writelines(lines_of_export(parts))
    to.flush()


def _write_whole(parts: Iterable[ExportPart], to: Path) -> None:
    """Write beside the file, for this user alone, and put it into place when it is whole."""
    beside = to.with_name(f".{to.name}.{os.getpid()}.part")
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as stream:
            _write(parts, stream)
        beside.replace(to)
    except OSError as error:
        hint = "Name another file with --out."
        raise UsageError(f"{to} cannot be written: {error.strerror or error}.", hint, code="file_unwritable") from error
    finally:
        beside.unlink(missing_ok=True)
