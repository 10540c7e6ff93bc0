"""Adopts a store on a person's word, and says what that means."""

from __future__ import annotations

from pathlib import Path

from ...application.adopt_store import Adopted
from . import documents
from .escaping import one_line
from .exit_codes import ExitCode
from .output import Output
from .persons import person, require_person
from .runtimes import require_store, writing
from .usage import required_text


def adopt_whole(out: Output, store: Path, by: str | None, note: str) -> int:
    """Adopt it; returns the exit status."""
    name, why = required_text("--by", person() if by is None else by), required_text("--note", note)
    require_store(store)
    with writing(store) as runtime:
        require_person(runtime)
        adopted: Adopted = runtime.parts.adopt_store()(by=name, note=why)
    before, after = adopted.before, adopted.after
    out.say(f"{store} is adopted by {one_line(name)}: generation {after.generation}. Until now: {before.detail}.")
    out.say("What is in it is true. What is absent from it proves nothing: a call without a recorded start may have")
    out.say("happened, and runs of before stay foreign for good. New runs are not affected.")
    members = {
        "store": str(store),
        "was": before.trust.value,
        "detail": before.detail,
        "generation": after.generation,
        "by": name,
        "note": why,
        "at": adopted.at,
        "exit_code": int(ExitCode.DONE),
    }
    out.document(documents.ADOPT, members)
    return ExitCode.DONE
