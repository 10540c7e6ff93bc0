"""Records a person's word about one operation, and says what that means for its session."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ...application.settlement import Recorded, SaidBy, Settlement, SettlementRefusal, SettlementRefused
from ...domain import canonical
from ...domain.events.event import Json
from ...domain.events.tool import Statement
from ...domain.identifiers import OperationId, parse_id
from ...domain.tool_results import RESULT_BYTES_MAX
from ..opened_store import OpenedStore
from . import documents
from .announcing import announcing
from .escaping import one_line
from .exit_codes import ExitCode
from .output import Output
from .parking import say_ways
from .persons import person, require_person
from .resumable import commands_of
from .runtimes import require_store, writing
from .session_names import known, require_whole
from .usage import UsageError, required_text
from .ways_on import MESSAGE, WayOn, as_documents

_SAID: Final = {
    Statement.COMPLETED: "attested as completed",
    Statement.NOT_EXECUTED: "attested as not executed",
    Statement.OVER: "declared over",
}


def what_is_said(
    operation: str, completed: str | None, by: str | None, note: str, *, not_executed: bool, declare_over: bool
) -> SaidBy:
    """The one statement that the options make.

    Raises:
        UsageError: they make none, or several.
    """
    if (completed is not None) + not_executed + declare_over != 1:
        raise UsageError("Say one of --completed RESULT, --not-executed and --declare-over.")
    try:
        operation_id = OperationId(parse_id(operation, "an operation id"))
    except ValueError as error:
        raise UsageError(f"This is no operation id: {error}.", "`safepoint status` shows the ids.") from error
    name, why = required_text("--by", person() if by is None else by), required_text("--note", note)
    if completed is not None:
        return SaidBy(operation_id, Statement.COMPLETED, name, why, _result(completed))
    return SaidBy(operation_id, Statement.NOT_EXECUTED if not_executed else Statement.OVER, name, why)


def _result(given: str) -> Json:
    """JSON where it is strict JSON, else the text; `@FILE` stands for what is in a file, `@@` for a leading @."""
    text = given[1:] if given.startswith("@@") else _content(Path(given[1:])) if given.startswith("@") else given
    try:
        return canonical.decode(text.encode())
    except (canonical.CanonicalError, UnicodeEncodeError):
        return text


def _content(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            content = opened.read(RESULT_BYTES_MAX + 1)
        if len(content) > RESULT_BYTES_MAX:
            raise UsageError(f"{file} has more than {RESULT_BYTES_MAX} bytes.", "Give a shorter result.")
        return content.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The result cannot be read from {file}: {error}.", "Name a file with text.") from error


def settle_one(out: Output, store: Path, said: SaidBy) -> int:
    """Record it; returns the exit status."""
    require_store(store)
    with writing(store) as runtime:
        require_person(runtime)
        settled = _settled(runtime, out, said)
        summary = known(runtime, settled.session_id)
        commands = commands_of(runtime, store, settled.session_id)
    named = f"Operation {one_line(said.operation_id)} ({one_line(settled.tool_name)})"
    before = " It was recorded before, in the same words." if settled.recorded is Recorded.BEFORE else ""
    out.say(f"{named} is {_SAID[said.statement]}, by {one_line(said.by)}: {one_line(said.note)}{before}")
    if settled.told_later:
        out.say("The next run of the session tells the model, which was shown that it was not known.")
    ways = [WayOn(commands.about("show", settled.session_id, "--run", settled.run_id), "see it in its run")]
    if said.statement is Statement.OVER:
        again = ("settle", said.operation_id, "--not-executed", "--note", "WHY")
        ways.append(WayOn(commands.about(*again), "say what became of it, once you know"))
    if summary.state.may_be_resumed:
        ways.append(WayOn(commands.about("plan", settled.session_id), "see whether its run can be continued"))
    elif settled.told_later:
        turn = commands.asking("run", MESSAGE, "--session", settled.session_id)
        ways.append(WayOn(turn, commands.to_ask("start the next turn")))
    say_ways(out, ways)
    members = {
        "operation_id": said.operation_id,
        "session_id": settled.session_id,
        "run_id": settled.run_id,
        "tool": settled.tool_name,
        "statement": said.statement.value,
        "by": said.by,
        "note": said.note,
        "recorded": settled.recorded.value,
        "told_later": settled.told_later,
        "commands": as_documents(ways),
        "exit_code": int(ExitCode.DONE),
    }
    out.document(documents.SETTLE, documents.filled(documents.SETTLE, members))
    return ExitCode.DONE


def _settled(runtime: OpenedStore, out: Output, said: SaidBy) -> Settlement:
    try:
        settled: Settlement = runtime.parts.settle_operation()(said, announcing(out))
    except SettlementRefused as refused:
        if refused.code is SettlementRefusal.UNKNOWN_OPERATION:
            require_whole(runtime)
        raise
    return settled
