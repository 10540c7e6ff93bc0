"""Which open or interrupted sessions a deploy with another tool catalog would strand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from ...application.check_deploy import CatalogMalformed, DeployChecked, Stranded, exported, imported
from ...domain.events.run import ToolProfile
from ...domain.planning.catalog import SHOWN_DIGEST_CHARS, catalog_digest
from ..tools.builtin import builtin_tools
from ..tools.catalog import FunctionCatalog
from . import documents, places
from .command_lines import CommandLines
from .escaping import one_line
from .exit_codes import ExitCode
from .http_origins import http_origins
from .output import Output
from .progress import telling
from .runtimes import no_store, reading
from .usage import UsageError

BUILTIN: Final = "builtin"
CATALOG_BYTES_MAX: Final = 16 * 1024 * 1024
SHOWN_MAX: Final = 100


def catalog_of(given: str) -> tuple[ToolProfile, ...]:
    """The tools of a catalog file, or of this program.

    Raises:
        UsageError: it cannot be used.
    """
    if given == BUILTIN:
        return imported(json.dumps(exported(_builtin())))
    try:
        with Path(given).open("rb") as file:
            content = file.read(CATALOG_BYTES_MAX + 1)
    except OSError as error:
        hint = f"Give a file that --export-catalog or your program has written, or {BUILTIN!r}."
        raise UsageError(
            f"The catalog {given} cannot be read: {error.strerror}.", hint, code="catalog_unusable"
        ) from error
    if len(content) > CATALOG_BYTES_MAX:
        raise UsageError(f"The catalog {given} has more than {CATALOG_BYTES_MAX} bytes.", code="catalog_unusable")
    try:
        return imported(content)
    except CatalogMalformed as error:
        raise UsageError(f"The file {given} cannot be used: {error}.", code="catalog_unusable") from error


def write_catalog(out: Output, file: Path) -> int:
    """Write the catalog of this program's own tools into a new file."""
    document = exported(_builtin())
    try:
        with places.absolute(file).open("x", encoding="utf-8") as written:
            json.dump(document, written, indent=1)
            written.write("\n")
    except FileExistsError:
        message = f"The file {file} is there; it was left as it is."
        raise UsageError(message, "Name another file.", code="file_exists") from None
    except OSError as error:
        raise UsageError(f"The file {file} cannot be written: {error.strerror}.") from error
    tools = document["tools"]
    out.say(f"Wrote {len(tools) if isinstance(tools, list) else 0} tools into {file}.")
    members = {"exit_code": int(ExitCode.DONE)}
    out.document(documents.DOCTOR, documents.filled(documents.DOCTOR, members))
    return ExitCode.DONE


def examine_deploy(out: Output, store: Path, tools: tuple[ToolProfile, ...]) -> int:
    """Judge every open or interrupted session; returns the exit status."""
    digest = catalog_digest(tools)
    if not places.is_there(store):
        out.say(no_store(store))
        checked = DeployChecked(0, (), ())
    else:
        with reading(store) as runtime:
            told = telling(out, lambda judged, stranded: f"{judged} sessions judged, {stranded} would be stranded …")
            checked = runtime.parts.check_deploy()(tools, told)
    code = ExitCode.PARKED if checked.stranded else ExitCode.CORRUPTION if checked.unread else ExitCode.DONE
    _say(out, checked, CommandLines(store), digest)
    members = {
        "store": str(store),
        "exists": places.is_there(store),
        "catalog": digest,
        "judged": checked.judged,
        "stranded": [_document(one) for one in checked.stranded],
        "not_judged": list(checked.unread),
        "exit_code": int(code),
    }
    out.document(documents.DOCTOR, documents.filled(documents.DOCTOR, members))
    return code


def _say(out: Output, checked: DeployChecked, commands: CommandLines, digest: str) -> None:
    out.say(f"Catalog {digest[:SHOWN_DIGEST_CHARS]}: {checked.judged} sessions are open or could be resumed.")
    for one in checked.stranded[:SHOWN_MAX]:
        parts = [f"{one_line(name, 60)} is gone" for name in one.missing]
        parts += [f"{one_line(name, 60)} has changed" for name in one.changed]
        out.say(
            f"Would be stranded: {one_line(one.session_id, 200)} ({one.state.replace('_', ' ')}): {', '.join(parts)}"
        )
        plan = commands.about("plan", one.session_id)
        out.say(f"  {one_line(plan, 2_000)}")
    if len(checked.stranded) > SHOWN_MAX:
        out.say(f"… and {len(checked.stranded) - SHOWN_MAX} more.")
    for session_id in checked.unread[:SHOWN_MAX]:
        out.say(f"Could not be judged: {one_line(session_id, 200)}")
    if checked.stranded:
        out.say("Let them end or resume them before the deploy, or resume them after it with --accept-drift tools.")
    elif not checked.unread:
        out.say("None of them would be stranded.")


def _document(one: Stranded) -> documents.Json:
    return {
        "session_id": one.session_id,
        "run_id": one.run_id,
        "state": one.state.value,
        "missing": list(one.missing),
        "changed": list(one.changed),
    }


def _builtin() -> FunctionCatalog:
    return FunctionCatalog(builtin_tools(scripted=True, origins=http_origins()))
