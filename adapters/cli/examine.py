"""Checks a store and what is around it, and says in plain words what is wrong and what to do. Changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from ...application.inspect_sessions import SessionState
from ...domain.errors import SafepointError
from ...ports.incarnations import Liveness
from ...ports.session_owners import Ownership
from ...ports.store_keeping import StoreCondition, Trust
from ..opened_store import OpenedStore
from . import documents, places
from .command_lines import CommandLines
from .escaping import one_line
from .exit_codes import ExitCode, exit_code_of_trust
from .failures import failure_of
from .host_checks import Check, Level, host_checks
from .output import Output
from .runtimes import no_store, reading

OWNED_MAX = 1_000
SESSIONS_MAX = 1_000
LISTED_MAX = 1_000
_MARKS = {Level.OK: "ok   ", Level.NOTE: "note ", Level.FAULT: "FAULT"}


def examine(out: Output, store: Path) -> int:
    """Examine it; returns the exit status: that of the weightiest fault."""
    commands = CommandLines(store)
    exists = places.is_there(store)
    code, checks = ExitCode.DONE, list[Check]()
    if exists:
        code, found = _store(store, commands)
        checks += found
    else:
        checks.append(Check("store", Level.NOTE, no_store(store)))
    checks += host_checks(store)
    if code is ExitCode.DONE and any(check.level is Level.FAULT for check in checks):
        code = ExitCode.USAGE
    for check in checks:
        out.say(f"{_MARKS[check.level]}  {check.name.replace('_', ' ')}: {one_line(check.said, 1_000)}")
        if check.next_step:
            out.say(f"       {one_line(check.next_step, 2_000)}")
    members = {
        "store": str(store),
        "exists": exists,
        "checks": [
            {"name": check.name, "level": check.level.value, "said": check.said, "next_step": check.next_step}
            for check in checks
        ],
        "exit_code": int(code),
    }
    out.document(documents.DOCTOR, documents.filled(documents.DOCTOR, members))
    return code


def _store(store: Path, commands: CommandLines) -> tuple[ExitCode, list[Check]]:
    """What can be seen inside; a store that cannot be opened is said to be so, by the same words as everywhere."""
    checks: list[Check] = []
    try:
        with reading(store) as runtime:
            condition: StoreCondition = runtime.parts.store().condition()
            checks.append(_trust(condition, commands))
            checks += _owners(runtime, commands)
            checks += _sessions(runtime, commands)
            checks += _resume(runtime)
    except SafepointError as error:
        failure = failure_of(error)
        next_step = commands.in_text(failure.next_step, failure.session_id)
        checks.append(Check("store", Level.FAULT, f"{failure.message} [{failure.code}]", next_step))
        return failure.exit_code, checks
    return exit_code_of_trust(condition.trust), checks


def _trust(condition: StoreCondition, commands: CommandLines) -> Check:
    if condition.trust is Trust.OK:
        said = f"It opens, its version is this program's, and it vouches for all of its {condition.events} events."
        return Check("store", Level.OK, f"{said} `{commands.about('verify')}` reads each of them.")
    said = f"It cannot vouch for what it does not hold: {condition.detail} [{condition.trust}]"
    level = Level.NOTE if condition.trust is Trust.COPIED else Level.FAULT
    return Check("store", level, said, f"If it is the one to go on with: {commands.about('adopt', '--note', 'WHY')}")


def _owners(runtime: OpenedStore, commands: CommandLines) -> Iterator[Check]:
    """Who owns sessions, and whether they live. Nothing is owned for looking."""
    owned: Sequence[Ownership] = runtime.parts.store().owned_sessions(limit=OWNED_MAX)
    ownership = runtime.parts.ownership()
    lives = {one.incarnation_id: one for one in owned if one.incarnation_id is not None}
    seen = Counter(ownership.liveness_of(incarnation_id) for incarnation_id in lives)
    if unseen := seen[Liveness.COULD_NOT_LOOK]:
        said = f"Whether {unseen} of {len(lives)} owners live could not be seen (another host, or no lock file)."
        hint = f"Make sure there that they have ended; then `{commands.about('takeover', 'SESSION', '--fence-only')}`."
        yield Check("owners", Level.NOTE, said, hint)
    elif dead := seen[Liveness.DEAD]:
        said = (
            f"{dead} of {len(lives)} owners are dead; the next command on each of their sessions closes what they left."
        )
        yield Check("owners", Level.NOTE, said)
    else:
        said = "No process owns a session now." if not lives else f"Those that own sessions live: {len(lives)}."
        yield Check("owners", Level.OK, said)


def _sessions(runtime: OpenedStore, commands: CommandLines) -> Iterator[Check]:
    """What waits for a person."""
    inspect, views = runtime.parts.inspect_sessions(), runtime.parts.store().views
    states = Counter(one.state for one in islice(inspect.every(), SESSIONS_MAX))
    looked = sum(states.values())
    if unreadable := states[SessionState.UNREADABLE]:
        said = f"The record of {unreadable} of the {looked} sessions used last is damaged."
        yield Check("sessions", Level.FAULT, said, commands.about("verify"))
    interrupted = states[SessionState.INTERRUPTED] + states[SessionState.OWNER_NOT_SEEN]
    unsettled = len(views.unsettled(limit=LISTED_MAX))
    asked = len(inspect.waiting(limit=LISTED_MAX))
    if not interrupted and not unsettled and not asked:
        yield Check("waiting", Level.OK, f"Nothing in the {looked} sessions used last waits for a person.")
        return
    said = f"Interrupted sessions: {interrupted}; operations without a certain outcome: {unsettled}; questions: {asked}"
    yield Check("waiting", Level.NOTE, f"{said}. They wait for a person.", commands.about("status"))


def _resume(runtime: OpenedStore) -> Iterator[Check]:
    if not runtime.parts.settings().resume_enabled():
        yield Check(
            "resume", Level.NOTE, "Resuming is switched off by SAFEPOINT_RESUME=0; nothing was deleted by that."
        )
