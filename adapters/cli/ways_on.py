"""The exact commands that are open to a person when a run is parked, most fitting first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...application.agent_loop import STEPS_MAX
from ...application.inspect_runs import OperationSeen
from ...application.ownership import OWNER_PROCESS
from ...domain.events.tool import RecoveryMode
from ...domain.permission_policy import Otherwise, PermissionPolicy, narrows
from ...domain.planning.facts import Drift
from ...domain.planning.gates_of_source import BUDGET_SPENT
from ...domain.planning.outcome import Reason
from ...domain.reasons import ParkReason
from ...domain.recovery.verdict import VerdictStatus
from ...domain.replay.segment import UNSETTLED
from ...ports.store_keeping import Trust
from ...ports.supervised import Overness, ProcessInfo
from .command_lines import CommandLines
from .exit_codes import ExitCode, exit_code_of_park

MESSAGE = "YOUR MESSAGE"
WHY = "HOW YOU KNOW"
RESULT = "RESULT"
FOLDER = "FOLDER"
SETTLED_MAX = 5
_UNREADABLE = frozenset({ParkReason.SOURCE_RUN_UNREADABLE, ParkReason.RUNTIME_LEDGER_UNREADABLE})
_UNCERTAIN = frozenset({ParkReason.DANGLING_TOOL_STATE, ParkReason.TOOL_RECOVERY_PARKED})
_WORKSPACE = frozenset(
    {
        ParkReason.WORKSPACE_IDENTITY_MISSING,
        ParkReason.WORKSPACE_IDENTITY_MISMATCH,
        ParkReason.WORKSPACE_COPY_AMBIGUOUS,
        ParkReason.SAFETY_OBSERVATION_UNAVAILABLE,
    }
)
_ACCEPTABLE = frozenset(
    {
        ParkReason.WORKSPACE_DRIFT,
        ParkReason.WORKSPACE_REF_MISSING,
        ParkReason.CHECKPOINT_DOES_NOT_COVER,
        ParkReason.CHECKPOINT_RESTORE_FAILED,
    }
)
_AGAIN = frozenset({ParkReason.CONTINUATION_CLAIM_REPAIR_REQUIRED, ParkReason.CONTINUATION_IDENTITY_REUSED})


_RUN_AGAIN = frozenset({RecoveryMode.REPLAY_SAFE, RecoveryMode.IDEMPOTENT})
_PROMISING = frozenset(
    {RecoveryMode.REPLAY_SAFE, RecoveryMode.IDEMPOTENT, RecoveryMode.RECONCILE, RecoveryMode.REATTACH}
)


class WayOn(NamedTuple):
    """A command, and what it is for."""

    command: str
    what_for: str


@dataclass(frozen=True, slots=True)
class Parking:
    """What is known where a run is parked.

    Attributes:
        cwd: the folder that the run worked in, where it is known.
        trust: whether its store may be written; else it is adopted before anything.
    """

    session_id: str
    run_id: str | None
    reasons: Sequence[Reason]
    operations: Sequence[OperationSeen]
    cwd: str | None = None
    trust: Trust = Trust.OK

    @property
    def codes(self) -> frozenset[ParkReason]:
        """Every code."""
        return frozenset(reason.code for reason in self.reasons)


def ways_on(parking: Parking, commands: CommandLines) -> tuple[WayOn, ...]:
    """Name what can be done; each command once."""
    return tuple({way.command: way for way in _ways(parking, commands)}.values())


def as_documents(ways: Iterable[WayOn]) -> list[dict[str, str]]:
    """For JSON."""
    return [{"command": way.command, "what_for": way.what_for} for way in ways]


def _ways(parking: Parking, commands: CommandLines) -> Iterator[WayOn]:
    session, codes = parking.session_id, parking.codes
    if parking.trust is not Trust.OK:
        yield adopting(parking.trust, commands)
        yield WayOn(commands.about("show", session), "see what happened")
        return
    if ParkReason.SESSION_BUSY in codes:
        yield WayOn(commands.about("status", "--session", session), "see who works on it")
        yield WayOn(commands.about("cancel", session), "stop what is running")
        yield WayOn(commands.about("takeover", session), "end the process that works on it, where it does not answer")
        return
    if spent := next((one.detail for one in parking.reasons if one.detail.get("why") == BUDGET_SPENT), None):
        told = f"continue with more {spent['what']}; what was used before counts"
        yield _resume(session, commands, told, *_larger_budget(spent))
        yield WayOn(commands.about("show", session), "see what was done")
        yield _new_turn(session, commands, "start a new turn, with limits of its own")
        return
    if ParkReason.RESUME_CANDIDATE_MISSING in codes:
        yield WayOn(commands.about("list"), "see all sessions")
        yield _new_turn(session, commands, "start a new turn")
        return
    if exit_code_of_park(codes) is ExitCode.CORRUPTION:
        yield WayOn(commands.about("verify"), "find the damaged place")
        if codes & _UNREADABLE:
            yield WayOn(
                commands.about("abandon", session, "--note", WHY), "give the damaged run up, and go on without it"
            )
    policies = _policies(parking.reasons, commands)
    again = policies[0].commands
    if parking.run_id is not None:
        yield WayOn(commands.about("show", session, "--run", parking.run_id), "see what happened")
    if ParkReason.RESUME_FEATURE_DISABLED in codes:
        way = _resume(session, commands, "continue with resuming switched on")
        yield way._replace(command=f"SAFEPOINT_RESUME=1 {way.command}")
    if ParkReason.CONTINUATION_AUTHORITY_UNAVAILABLE in codes:
        fence = commands.about("takeover", session, "--fence-only")
        yield WayOn(fence, "once you have made sure that its owner has ended: take its right to write")
    yield from _ending(parking.operations)
    yield from _reconciling(parking, again)
    yield from _settling(parking.operations, commands)
    yield from _answers(parking.reasons, commands)
    if ParkReason.PENDING_PERMISSION in codes:
        yield _resume(session, again, "continue without the calls that wait for permission", "--drop-permissions")
    yield from _of_copies(parking.reasons, commands)
    yield from _of_content(codes, session, again)
    if codes & _WORKSPACE and parking.cwd and not _is_here(parking):
        yield _resume(session, again, "continue in the folder that the run worked in", "--workspace", parking.cwd)
    elif any(one.code is ParkReason.WORKSPACE_IDENTITY_MISSING and "paths" in one.detail for one in parking.reasons):
        yield _resume(session, again, "name the folder in which it is to go on", "--workspace", FOLDER)
    yield from _consenting(parking, policies)
    if codes & _AGAIN:
        yield _resume(session, again, "try again")
    if ParkReason.MODE_MISMATCH in codes:
        yield _resume(session, again, "try again when the folder can be kept as when the run began")
    running = any(seen.over.overness is Overness.RUNNING for seen in parking.operations)
    if (running and ParkReason.EFFECT_MAY_BE_RUNNING in codes) or ParkReason.BACKGROUND_OPERATION_PENDING in codes:
        yield _resume(session, again, "try again when it has ended")
    if ParkReason.HISTORY_TOO_LARGE in codes:
        told = "start a new turn with the newest turns that fit; the model is told what is missing"
        yield _new_turn(session, commands, told, "--context-turns", "fit")
    if not codes <= {ParkReason.RESUME_FEATURE_DISABLED}:
        uncertain = bool(codes & _UNCERTAIN)
        told = "go on without it: the model is told that its outcome is unknown" if uncertain else "start a new turn"
        yield _new_turn(session, commands, told)


def _of_copies(reasons: Sequence[Reason], commands: CommandLines) -> Iterator[WayOn]:
    for reason in reasons:
        paths = reason.detail.get("paths")
        if reason.code is ParkReason.WORKSPACE_COPY_AMBIGUOUS and isinstance(paths, list) and paths:
            yield from choosing(commands, [str(path) for path in paths])


def _is_here(parking: Parking) -> bool:
    """Whether the folder that was looked at is the one that the run worked in: naming that one helps nobody."""
    details = [reason.detail for reason in parking.reasons if reason.code in _WORKSPACE]
    looked_at = [*(paths[-1:] for one in details if isinstance(paths := one.get("paths"), list))]
    return [parking.cwd] in looked_at or any(one.get("found_path") == parking.cwd for one in details)


def choosing(commands: CommandLines, folders: Sequence[str]) -> Iterator[WayOn]:
    """A person's word on folders of which one is a copy; the last is the one at hand."""
    *others, folder = folders
    yield WayOn(commands.about("workspace", "adopt", folder), "say that this folder is the workspace")
    yield WayOn(commands.about("workspace", "renew", folder), "say that this folder is another workspace")
    for other in others:
        yield WayOn(commands.about("workspace", "renew", other), "say that that one is another workspace")


def _of_content(codes: frozenset[ParkReason], session: str, commands: CommandLines) -> Iterator[WayOn]:
    """Offered where nothing else parks: only then is either of them carried out."""
    if codes == {ParkReason.WORKSPACE_DRIFT}:
        apart = "go on in a new folder made from the checkpoint; yours is not touched"
        yield _resume(session, commands, apart, "--isolated")
    if codes and codes <= _ACCEPTABLE:
        yield _resume(session, commands, "accept the files as they are; the model is told which", "--rebaseline")


def _larger_budget(spent: Mapping[str, Any]) -> Iterator[str]:
    """Options that leave room for as much again of what is used up, and all else as it was.

    What cannot be counted cannot be bounded: steps are bounded in its place.
    """
    limits = dict(spent["limits"])
    if spent["have"] is None:
        del limits[spent["what"]]
        limits.setdefault("steps", STEPS_MAX)
    else:
        limits[spent["what"]] += max(spent["have"], spent["limit"])
    for what, limit in limits.items():
        yield f"--max-{what}"
        yield str(limit)


def _answers(reasons: Sequence[Reason], commands: CommandLines) -> Iterator[WayOn]:
    for reason in reasons:
        if reason.code is ParkReason.PENDING_PERMISSION:
            yield from answers(commands, str(reason.detail["request"]), str(reason.detail["tool"]))


def adopting(trust: Trust, commands: CommandLines) -> WayOn:
    """What comes first in a store that cannot vouch for its facts: everything that writes to it is refused."""
    original = "this copy" if trust.copied else "what is there"
    end = ", although its end may be missing" if trust.end_may_be_lost else ""
    told = f"go on with {original}{end}; what is missing proves nothing then"
    return WayOn(commands.about("adopt", "--note", WHY), told)


def answers(commands: CommandLines, request_id: str, tool_name: str) -> tuple[WayOn, WayOn]:
    """The two commands that decide a question."""
    return (
        WayOn(commands.about("approve", request_id), f"permit the call of {tool_name}, once"),
        WayOn(commands.about("deny", request_id), f"refuse the call of {tool_name}"),
    )


def _new_turn(session: str, commands: CommandLines, what_for: str, *arguments: str) -> WayOn:
    return WayOn(commands.asking("run", MESSAGE, "--session", session, *arguments), commands.to_ask(what_for))


def _resume(
    session: str, commands: CommandLines, what_for: str, *arguments: str, accepting: Sequence[str] = ()
) -> WayOn:
    return WayOn(commands.resuming(session, *arguments, accepting=accepting), commands.to_ask(what_for))


def _ending(operations: Sequence[OperationSeen]) -> Iterator[WayOn]:
    for seen in operations:
        if seen.over.overness is Overness.RUNNING:
            yield from ending(seen.over.processes, seen.verdict.tool_name)


def ending(processes: Sequence[ProcessInfo], tool_name: str) -> Iterator[WayOn]:
    """Ending the first process ends all of an operation: it is the supervisor."""
    if not processes:
        return
    process = processes[0]
    if process.name == OWNER_PROCESS:  # which may be stopped, and then heeds nothing else
        yield WayOn(f"kill -KILL {process.pid}", f"end the process in which {tool_name} may still run")
        return
    yield WayOn(f"kill {process.pid}", f"end what {tool_name} started ({process.name})")


def _reconciling(parking: Parking, commands: CommandLines) -> Iterator[WayOn]:
    """Looking again where the tools that this needs are here, and going on where no tool is missing."""
    elsewhere = _not_here(parking.reasons)
    operations = [
        seen
        for seen in parking.operations
        if seen.verdict.tool_name not in elsewhere or seen.verdict.mode not in _RUN_AGAIN
    ]
    for way in looking_again(operations, parking.session_id, commands):
        yield way
        if not elsewhere:
            told = "the same, and continue where that settles it"
            yield _resume(parking.session_id, commands, told, "--reconcile")


def _not_here(reasons: Sequence[Reason]) -> frozenset[str]:
    """The used tools that are gone, or not what they were."""
    drifted = [one.detail for one in reasons if one.code is ParkReason.TOOL_CATALOG_MISMATCH]
    named = [detail.get(how) for detail in drifted for how in ("missing", "changed")]
    return frozenset(str(name) for names in named if isinstance(names, list) for name in names)


def looking_again(operations: Sequence[OperationSeen], session: str, commands: CommandLines) -> tuple[WayOn, ...]:
    """The command that looks again, where something was promised about it and nothing of it runs any more."""
    open_now = (seen for seen in operations if seen.verdict.status is VerdictStatus.INDETERMINATE)
    promised = [seen for seen in open_now if seen.verdict.mode in _PROMISING and seen.over.overness is Overness.OVER]
    if not promised:
        return ()
    tools = ", ".join(dict.fromkeys(seen.verdict.tool_name for seen in promised))
    return (WayOn(commands.about("reconcile", session), f"look again what became of {tools}"),)


def _settling(operations: Sequence[OperationSeen], commands: CommandLines) -> Iterator[WayOn]:
    """What a person may say of operations that nobody can prove, or nobody can look at."""
    uncertain = [seen for seen in operations if seen.verdict.status in UNSETTLED and seen.verdict.operation_id]
    for seen in uncertain[:SETTLED_MAX]:
        operation_id, tool = str(seen.verdict.operation_id), seen.verdict.tool_name
        if seen.over.overness is Overness.OVER:
            yield from settling(commands, operation_id, tool)
        elif seen.over.overness is Overness.COULD_NOT_LOOK:
            yield declaring_over(commands, operation_id, tool)


def declaring_over(commands: CommandLines, operation_id: str, tool_name: str) -> WayOn:
    """The command by which a person says that nothing of an operation runs any more, where nobody can look."""
    over = commands.about("settle", operation_id, "--declare-over", "--note", WHY)
    return WayOn(over, f"once you have made sure of it: say that nothing of {tool_name} runs any more")


def settling(commands: CommandLines, operation_id: str, tool_name: str) -> tuple[WayOn, WayOn]:
    """The two commands by which a person says what became of an operation."""
    happened = commands.about("settle", operation_id, "--completed", RESULT, "--note", WHY)
    not_executed = commands.about("settle", operation_id, "--not-executed", "--note", WHY)
    return (
        WayOn(happened, f"once you have looked: say that {tool_name} happened, and with which result"),
        WayOn(not_executed, f"or that {tool_name} did not happen"),
    )


def _drift(reasons: Sequence[Reason]) -> tuple[str, ...]:
    found: list[str] = []
    for reason in reasons:
        if reason.code is ParkReason.TOOL_CATALOG_MISMATCH:
            found.append("tools")
        if reason.code is ParkReason.EXECUTION_PROFILE_MISMATCH:
            acceptable = reason.detail.get("acceptable")  # a policy that permits more is none
            found += [str(one) for one in acceptable] if isinstance(acceptable, list) else []
    return tuple(dict.fromkeys(found))


class _Policy(NamedTuple):
    """Commands under a policy that a resume may have, and what is said of it where it is not the one that was given."""

    commands: CommandLines
    told: str = ""


def _policies(reasons: Sequence[Reason], commands: CommandLines) -> tuple[_Policy, ...]:
    """The policies that a resume may have, most fitting first; one that permits more than the recorded one is none."""
    policy = Drift.PERMISSION_POLICY.value
    for detail in (one.detail for one in reasons if one.code is ParkReason.EXECUTION_PROFILE_MISMATCH):
        changed, acceptable, recorded, now = (detail.get(name) for name in ("changed", "acceptable", "recorded", "now"))
        if not isinstance(changed, list) or not isinstance(recorded, dict) or not isinstance(now, dict):
            continue
        if policy not in changed:
            continue
        before, is_told = str(recorded[policy]), PermissionPolicy.named_wholly(str(recorded[policy])) is not None
        if isinstance(acceptable, list) and policy in acceptable and (is_told or commands.permissions):
            continue
        if is_told:
            return (_Policy(commands.with_recorded_permissions(), " with the permissions that the run recorded"),)
        return _instead(before, str(now[policy]), commands)
    return (_Policy(commands),)


def _instead(recorded: str, now: str, commands: CommandLines) -> tuple[_Policy, ...]:
    """Policies in place of a recorded one that its name does not tell; first that which is in force without a word."""
    asking = "--ask-elsewhere" if "--ask-elsewhere" in commands.permissions else "--ask"
    found = [_Policy(commands.permitting("--deny"), " with nothing permitted but reading")]
    if narrows(recorded, Otherwise.ASK):
        found.insert(int(now == Otherwise.DENY), _Policy(commands.permitting(asking), " with each call asked of you"))
    return tuple(found)


def _consenting(parking: Parking, policies: Sequence[_Policy]) -> Iterator[WayOn]:
    """One command that says yes to everything that a person may say yes to; none where a used tool is gone."""
    drift, foreign = _drift(parking.reasons), ParkReason.FOREIGN_RUN_NOT_ADOPTED in parking.codes
    if _gone(parking.reasons):
        return
    for commands, told in policies:
        changed = bool(drift or commands.accepted)
        if foreign:
            what_for = f"continue it knowingly{told}: what it does not hold may have happened"
            what_for += ", and the model is told what changed" if changed else ""
            yield _resume(parking.session_id, commands, what_for, "--adopt", accepting=drift)
        elif drift or told:
            what_for = f"continue{told}{', although that changed; the model is told' if changed else ''}"
            yield _resume(parking.session_id, commands, what_for, accepting=drift)


def _gone(reasons: Sequence[Reason]) -> bool:
    """True where a used tool is gone: then accepting it would offer a history that names a tool nobody has."""
    return any(one.code is ParkReason.TOOL_CATALOG_MISMATCH and one.detail.get("missing") for one in reasons)
