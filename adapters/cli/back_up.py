"""Backs a store up and restores it, and says what the copy is worth."""

from __future__ import annotations

from pathlib import Path

from ...application.back_up_store import BackedUp
from ...domain.errors import StoreUnusable
from ...ports.store_backup import Restored
from . import documents, places
from .command_lines import CommandLines
from .escaping import one_line
from .exit_codes import ExitCode
from .output import Output
from .runtimes import require_store, unopened
from .usage import UsageError
from .verify_whole import damage_document, damage_line
from .ways_on import WayOn, as_documents

_FOREIGN = "What is in it is true; what is absent from it proves nothing, because the store may have gone on."


def back_up(out: Output, store: Path, file: Path) -> int:
    """Write the backup; returns the exit status."""
    require_store(store)
    _require_folder(file)
    made: BackedUp = unopened(store).back_up_store()(file)
    code = ExitCode.DONE if made.sound else ExitCode.CORRUPTION
    copy, found = made.copy, made.found
    out.say(f"{file}: {copy.events} events in {copy.size_bytes} bytes, read again and compared. It has no anchor.")
    out.say(_FOREIGN)
    if not made.sound:
        out.say(f"It is as damaged as {store}: {one_line(copy.fault or found.unread or 'see below')}")
    for damage in found.damages:
        out.say(damage_line(damage))
    members = {
        "store": str(store),
        "file": str(file),
        **copy._asdict(),
        "sound": made.sound,
        "damaged_streams": found.damaged_streams,
        "damages": [damage_document(damage) for damage in found.damages],
        "exit_code": int(code),
    }
    out.document(documents.BACKUP, documents.filled(documents.BACKUP, members))
    return code


def restore(out: Output, store: Path, file: Path) -> int:
    """Put the backup in place; returns the exit status."""
    if not file.exists():
        raise UsageError(f"There is no backup at {file}.", "Name a file that is there.", code="store_missing")
    places.prepare_folder(store)
    _require_folder(store)
    try:
        restored: Restored = unopened(store).restore_store()(file)
    except StoreUnusable as error:
        raise UsageError(error.detail, "Name another backup.", code="store_unusable") from error
    adopt = WayOn(CommandLines(store).about("adopt", "--note", "WHY"), "go on with it")
    out.say(f"{store} now holds the {restored.copy.events} events of {file}.")
    if restored.previous is not None:
        out.say(f"What was there is now {restored.previous}, with its journal and anchor.")
    out.say(f"It can be read. {_FOREIGN}")
    out.say(f"It is written again when you say that it is the one to go on with:\n  {adopt.command}")
    members = {
        "store": str(store),
        "file": str(file),
        "store_id": restored.copy.store_id,
        "events": restored.copy.events,
        "digest": restored.copy.digest,
        "previous": None if restored.previous is None else str(restored.previous),
        "commands": as_documents([adopt]),
        "exit_code": int(ExitCode.DONE),
    }
    out.document(documents.RESTORE, members)
    return ExitCode.DONE


def _require_folder(file: Path) -> None:
    if not file.parent.is_dir():
        raise UsageError(f"The folder {file.parent} does not exist.", "Make it, or name another file.")
