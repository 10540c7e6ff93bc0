"""Verifies a whole store and names every damaged stream."""

from __future__ import annotations

from pathlib import Path

from ...application.verify_store import Verification
from ...application.verify_stream import StreamDamage
from ...domain.identifiers import run_of, session_of
from ...ports.store_keeping import Trust
from . import documents
from .command_lines import CommandLines
from .escaping import one_line
from .exit_codes import ExitCode
from .output import Output
from .progress import telling, telling_parts
from .runtimes import reading


def verify_whole(out: Output, store: Path) -> int:
    """Verify it; returns the exit status."""
    with reading(store) as runtime:
        found: Verification = runtime.parts.verify_store()(
            telling(out, lambda streams, events: f"{events} events in {streams} streams …"),
            telling_parts(out, lambda part: f"Looking at the {part} …"),
        )
    code = ExitCode.DONE if found.sound else ExitCode.CORRUPTION
    if found.sound and found.condition.trust is Trust.COPIED:
        code = ExitCode.PARKED
    _say(out, store, found)
    condition = found.condition
    members = {
        "store": str(store),
        "sound": found.sound,
        "condition": {
            "trust": condition.trust.value,
            "detail": condition.detail,
            "generation": condition.generation,
            "events": condition.events,
            "anchored_events": condition.anchored_events,
        },
        "streams": found.streams,
        "events": found.events,
        "damaged_streams": found.damaged_streams,
        "damages": [damage_document(damage) for damage in found.damages],
        "owner_faults": found.owner_faults,
        "owners": [{"session_id": one.session_id, "fault": one.fault.value} for one in found.owners],
        "projection_differences": found.projection_differences,
        "projections": [{"table": one.table, "key": list(one.key), "kind": one.kind} for one in found.projections],
        "faults": found.faults,
        "unread": found.unread,
        "exit_code": int(code),
    }
    out.document(documents.VERIFY, documents.filled(documents.VERIFY, members))
    return code


def _say(out: Output, store: Path, found: Verification) -> None:
    out.say(f"{store}: {found.events} events in {found.streams} streams read.")
    if found.condition.trust is not Trust.OK:
        out.say(f"It cannot vouch for what it does not hold: {one_line(found.condition.detail, 400)}")
    for damage in found.damages:
        out.say(damage_line(damage))
    for owner in found.owners:
        out.say(f"Owner of session {one_line(owner.session_id)}: {owner.fault.replace('_', ' ')}.")
    for view in found.projections[:20]:
        row = f", row {one_line(view.key)}" if view.key else ""
        why = "" if view.key else " (gone, damaged, or not what this program makes)"
        out.say(f"View {view.table}{row}: {view.kind}{why}. Views are made from events; no event is lost.")
    if found.projections:
        out.say(CommandLines(store).in_text("`safepoint rebuild` makes the views again.", None))
    for fault in found.faults:
        out.say(f"Not as it was written: {one_line(fault, 400)}")
    if found.unread is not None:
        out.say(f"Not everything could be read: {one_line(found.unread, 400)}")
    if found.sound:
        out.say("Sound: every chain verifies, and the views are what the events make.")


def damage_line(damage: StreamDamage) -> str:
    """Damage as people read it."""
    where = "" if damage.sequence is None else f", event {damage.sequence}"
    kind = "" if damage.topic is None else f" ({one_line(damage.topic)})"
    stream = one_line(damage.stream) or "a stream without a name"
    return f"Damaged: {stream}{where}{kind} [{damage.code}]: {one_line(damage.detail, 400)}"


def damage_document(damage: StreamDamage) -> documents.Json:
    """Damage as programs read it."""
    return {
        "stream": damage.stream,
        "session_id": session_of(damage.stream),
        "run_id": run_of(damage.stream),
        "sequence": damage.sequence,
        "type": damage.topic,
        "code": str(damage.code),
        "detail": damage.detail,
    }
