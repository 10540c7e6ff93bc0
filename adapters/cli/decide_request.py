"""Decides a question that waits for a person, wherever its run lives, or after it ended."""

from __future__ import annotations

from pathlib import Path

from ...application.decide_permission import Decided, Decision, UnknownQuestion
from ...domain.identifiers import RequestId, parse_id
from . import documents
from .announcing import announcing
from .command_lines import CommandLines
from .escaping import one_line
from .exit_codes import ExitCode
from .output import Output
from .persons import person, require_person
from .resumable import commands_of
from .runtimes import require_store, writing
from .session_names import known, session_id_of
from .usage import UsageError, required_text

_EXIT = {
    Decided.ANSWERED: ExitCode.DONE,
    Decided.KEPT: ExitCode.DONE,
    Decided.CLOSED: ExitCode.USAGE,
    Decided.NOT_WAITED_FOR: ExitCode.BUSY,
}


def decide_request(
    out: Output, store: Path, request: str, session: str | None, by: str | None, *, approved: bool
) -> int:
    """Decide it; returns the exit status."""
    name = required_text("--by", person() if by is None else by)
    request_id, named = _request_id(request), session_id_of(None, session)
    require_store(store)
    with writing(store) as runtime:
        require_person(runtime)
        if named is not None:
            known(runtime, named)
        decide = runtime.parts.decide_permission()
        try:
            decision: Decision = decide(
                request_id, approved=approved, by=name, session_id=named, announce=announcing(out)
            )
        except UnknownQuestion as unknown:
            raise _unknown(unknown, CommandLines(store)) from unknown
        commands = commands_of(runtime, store, decision.session_id)
    code = _EXIT.get(decision.decided) or (ExitCode.DONE if decision.approved is approved else ExitCode.USAGE)
    ways = _ways(decision, commands, approved=approved)
    for line in (_said(decision), *ways):
        out.say(line)
    members = {
        "request_id": decision.request_id,
        "session_id": decision.session_id,
        "run_id": decision.run_id,
        "tool": decision.tool_name,
        "result": decision.decided.value,
        "approved": decision.approved,
        "by": decision.by,
        "exit_code": int(code),
    }
    out.document(documents.DECIDE, documents.filled(documents.DECIDE, members))
    return code


def _request_id(given: str) -> RequestId:
    try:
        given.encode()
        return RequestId(parse_id(given, "a request id"))
    except ValueError as error:
        raise UsageError(f"This is no request id: {error}.", "`safepoint status` shows what waits.") from error


def _unknown(unknown: UnknownQuestion, commands: CommandLines) -> UsageError:
    if unknown.session_id is not None:
        hint = f"`{commands.about('show', unknown.session_id)}` shows what was asked there."
        return UsageError(f"{_sentence(unknown)}.", hint, code="unknown_request")
    hint = f"`{commands.about('status')}` shows what waits; --session SESSION looks in that session's events."
    return UsageError(f"{_sentence(unknown)} in this store, as far as its views tell.", hint, code="unknown_request")


def _sentence(unknown: UnknownQuestion) -> str:
    said = one_line(str(unknown), 400)
    return said[:1].upper() + said[1:]


def _said(decision: Decision) -> str:
    tool, by = one_line(decision.tool_name, 60), one_line(decision.by, 200)
    verb = "permits" if decision.approved else "refuses"
    match decision.decided:
        case Decided.ANSWERED:
            return f"{by} {verb} the call of {tool}; run {decision.run_id} goes on."
        case Decided.KEPT:
            return f"{by} {verb} the call of {tool}; it is kept for the run that comes next in this session."
        case Decided.ALREADY_DECIDED:
            return f"It was decided before: {by} {verb} the call of {tool}. That stands."
        case Decided.CLOSED:
            return f"The question about {tool} no longer stands: its run was stopped, or continued without it."
        case Decided.NOT_WAITED_FOR:
            return f"Run {decision.run_id} goes on without an answer about {tool}; decide again when it has ended."


def _ways(decision: Decision, commands: CommandLines, *, approved: bool) -> tuple[str, ...]:
    if decision.decided is not Decided.KEPT or not approved:
        return ()
    resume = one_line(commands.resuming(decision.session_id), 2_000)
    what = commands.what_is_missing
    added = (f"Add {commands.missing} to it: no record names the {what}.",) if what else ()
    holds = "It holds for one call with exactly these arguments, of the tool as it is now."
    return (f"Continue with: {resume}", *added, holds)
