"""Judges a file: for people what could not be read, how each call stands, and whether it could go on; or one object."""

from __future__ import annotations

from ...application.judge_history import FormatUnknown, HistoryReader, JudgeHistory, Judgement
from ...domain.explanations import explain
from ..interchange.formats import history_formats
from . import judgement_documents as documents
from .escaping import one_line
from .exit_codes import ExitCode, exit_code_of_park
from .history_input import bytes_of, unknown_format
from .output import Output

_SHOWN_MAX = 200


def judge_file(out: Output, file: str, format_name: str, *, full: bool) -> int:
    """Judge it; returns the exit status."""
    judge = JudgeHistory(HistoryReader(history_formats()))
    try:
        judgement = judge(bytes_of(file), format_name)
    except FormatUnknown as error:
        raise unknown_format(str(error)) from error
    code = exit_code_of(judgement)
    _say(out, file, judgement)
    members = {"file": file, **documents.of_judgement(judgement, full=full), "exit_code": int(code)}
    out.document(documents.JUDGE, {name: members[name] for name in documents.MEMBERS[documents.JUDGE]})
    return code


def exit_code_of(judgement: Judgement) -> ExitCode:
    """0 where it could be continued; a file of which nothing can be read cannot be used at all."""
    history = judgement.history
    if history.unreadable and not history.runs:
        return ExitCode.CORRUPTION if history.session else ExitCode.USAGE
    if judgement.has_corruption:
        return ExitCode.CORRUPTION
    return exit_code_of_park(reason.code for reason in judgement.reasons) if judgement.reasons else ExitCode.DONE


def _say(out: Output, file: str, judgement: Judgement) -> None:
    history, counted = judgement.history, documents.counts(judgement)
    out.say(
        f"{one_line(file)}: {history.format}, {history.lines} lines, {len(history.runs)} runs, "
        f"{counted['calls']} calls, {counted['responses']} responses."
    )
    say_findings(out, judgement)
    operations = documents.of_operations(judgement)
    for said in operations[:_SHOWN_MAX]:
        where = "" if said["line"] is None else f", line {said['line']}"
        name = f"{one_line(said['tool'], 60)} (call {one_line(said['call_id'], 60)}{where})"
        out.say(f"  {name}: {said['verdict']}, {said['reason']}: {said['sentence']}")
    if len(operations) > _SHOWN_MAX:
        out.say(f"  … and {len(operations) - _SHOWN_MAX} more calls; --json lists all")
    say_issues(out, judgement)
    _say_replay(out, judgement)
    for reason in {reason.code: reason for reason in judgement.reasons}.values():
        out.say(f"It could not be continued: {explain(reason.code).sentence} [{reason.code}]")
    if not judgement.reasons:
        out.say("It could be continued, on a host like the one that recorded it.")


def say_findings(out: Output, judgement: Judgement) -> None:
    """What was found while the file was read; what could not be read comes first."""
    for finding in sorted(judgement.history.findings, key=lambda one: not one.unreadable)[:_SHOWN_MAX]:
        kind = "Unreadable" if finding.unreadable else "Note"
        times = f" ({finding.times} times)" if finding.times > 1 else ""
        detail = f": {one_line(finding.detail)}" if finding.detail else ""
        path = f", {one_line(finding.place.path, 80)}" if finding.place.path else ""
        where = f"line {finding.place.line}, byte {finding.place.offset}{path}"
        out.say(f"{kind}: {where} [{finding.code}]{detail}{times}")


def say_issues(out: Output, judgement: Judgement) -> None:
    """Where facts contradict one another."""
    for issue in list(documents.of_issues(judgement))[:_SHOWN_MAX]:
        where = "" if issue["line"] is None else f"line {issue['line']}, byte {issue['offset']}, "
        call = "" if issue["call_id"] is None else f", call {one_line(issue['call_id'], 60)}"
        out.say(f"Corrupt: {where}fact {one_line(issue['event_id'], 60)}{call} [{issue['code']}]")


def _say_replay(out: Output, judgement: Judgement) -> None:
    replay = judgement.replay
    if replay.blocked is not None:
        out.say(f"No history can be made of it [{replay.blocked}].")
        return
    trimmed = f"; {len(replay.trimmed)} facts at its end are left out" if replay.trimmed else ""
    out.say(f"A continuation would begin with {len(replay.items)} items{trimmed}.")
