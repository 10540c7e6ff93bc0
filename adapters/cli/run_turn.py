"""Runs one turn from the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import anyio

from ...application.copied_folders import WorkspaceCopied, twin_at
from ...application.live_runs import LiveRun
from ...application.run_agent import Screen
from ...application.run_turn import TurnResult
from ...application.turn_context import ContextChoice
from ...domain.errors import StoreMissing
from ...domain.events.run import Budgets
from ...domain.identifiers import SessionId
from ...ports.checkpoints import NotKept
from ...ports.workspace import WorkspaceIdentity, WorkspaceSeen
from . import places
from .agents import AgentOptions, parts_for_turn, require_folder, workspace_folder
from .content import NOTHING_SAID, ContentOptions, keeping, not_bound
from .driving import Driving
from .ending import report_turn
from .output import Output
from .policies import described
from .resumable import Source, commands_for, source_of
from .runtimes import reading, writing
from .session_names import session_id_of
from .usage import UsageError

PROMPT_CHARS_MAX = 200_000
DIGITS_MAX = 9
FIT = "fit"


def run_turn(
    out: Output,
    prompt: str | None,
    session: str | None,
    options: AgentOptions,
    store: Path,
    context: ContextChoice,
    budgets: Budgets | None = None,
    content: ContentOptions = NOTHING_SAID,
) -> int:
    """Check everything that was given, then open the store and drive the turn; returns the exit status."""
    named = session_id_of(None, session)
    text = _message(prompt)
    parts = parts_for_turn(options)
    before = _run_before(store, named)
    recorded = None if before is None else before.cwd
    folder = recorded if recorded is not None and options.workspace is None else workspace_folder(options)
    runtime = writing(store)
    workspaces = runtime.parts.workspaces()
    require_folder(folder, workspaces)
    _require_no_copy(workspaces, folder, recorded)
    with runtime:
        agent = keeping(parts.in_workspace(folder, workspaces.ensure), runtime, content)
        session_id = named or runtime.parts.ids().fresh(SessionId)
        use_case = runtime.parts.run_turn()
        driving = Driving(runtime, described(agent.gate, options.policy), options.policy.hearing)
        commands = commands_for(store, options)

        async def work(screen: Screen, started: Callable[[LiveRun], None]) -> TurnResult:
            screen = replace(screen, not_bound=tell_not_bound)
            result: TurnResult = await use_case(
                session_id, text, agent, screen, started, context=context, budgets=budgets
            )
            return result

        def tell_not_bound(why: NotKept) -> None:
            seen = None if before is None else before.seen
            if seen is None or seen.checkpoints is not None:  # once, and again where it was otherwise
                driving.live_screen.line(not_bound(why))

        with driving.explaining(session_id, commands):
            result = anyio.run(driving.through, agent, work)
        return report_turn(out, runtime, result, driving, commands)


def _run_before(store: Path, named: SessionId | None) -> Source | None:
    """The newest run of the session: a new turn goes on in its folder, wherever it is typed, unless one is named.

    Raises:
        SessionForgotten: nothing can be begun in it.
    """
    if named is None or not places.is_there(store):
        return None
    try:
        with reading(store) as runtime:
            summary = runtime.parts.inspect_sessions().one(named)
            return None if summary is None else source_of(runtime, summary)
    except StoreMissing:  # whoever made it was killed before it held anything: the turn makes it anew
        return None


def _require_no_copy(workspaces: WorkspaceIdentity, folder: str, recorded: str | None) -> None:
    """Where the session's own folder is still there, another with its marker is a copy, whatever other runs know.

    Raises:
        WorkspaceCopied: it is, and nobody said which of the two is the workspace.
    """
    seen = workspaces.observe(folder)
    if recorded is None or not isinstance(seen, WorkspaceSeen) or seen.adopted:
        return
    if twin_at(workspaces, seen, recorded) is not None:
        raise WorkspaceCopied(recorded, seen.canonical_path)


def _message(prompt: str | None) -> str:
    """The user's message.

    Raises:
        UsageError: there is none, or it cannot be kept.
    """
    if prompt is None and sys.stdin.isatty():
        raise UsageError("No message is given.", "Give it as an argument, or on standard input.")
    text = sys.stdin.read(PROMPT_CHARS_MAX + 1) if prompt is None else prompt
    if not text.strip():
        raise UsageError("The message is empty.", "Give it as an argument, or on standard input.")
    if len(text) > PROMPT_CHARS_MAX:
        raise UsageError(f"The message has more than {PROMPT_CHARS_MAX} characters.", "Put it into a file to be read.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError("The message is not valid UTF-8.", "Check the encoding of your terminal.") from None
    return text


def context_choice(turns: str | None, *, leave_out_damaged: bool) -> ContextChoice:
    """What the options say of the history.

    Raises:
        UsageError: the number of turns is none.
    """
    if turns == FIT:
        return ContextChoice(fit=True, leave_out_damaged=leave_out_damaged)
    if turns is not None and not (turns.isascii() and turns.isdigit() and len(turns) <= DIGITS_MAX):
        raise UsageError(f"--context-turns takes a number of turns, or {FIT!r}; not {turns!r}.")
    return ContextChoice(None if turns is None else int(turns), leave_out_damaged=leave_out_damaged)
