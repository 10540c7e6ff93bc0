"""Shows which workspace a folder is, and takes a person's word where two folders are the same one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...application.settle_workspace import InterruptedRun, SettleWorkspace, WorkspaceStanding
from ...ports.workspace import WorkspaceSeen
from . import documents, places
from .agents import unusable
from .command_lines import CommandLines
from .escaping import one_line
from .exit_codes import ExitCode
from .output import Output
from .parking import say_ways
from .persons import person, require_person
from .runtimes import reading, unopened, writing
from .usage import required_text
from .ways_on import WayOn, as_documents

SHOWN_MAX = 20


def settle_folder(out: Output, store: Path, folder: str, action: str, by: str | None) -> int:
    """Show, adopt or renew; returns the exit status."""
    name = required_text("--by", person() if by is None else by)
    if action == "show":
        return _show(out, store, folder)
    commands = CommandLines(store)
    with writing(store) as runtime:
        require_person(runtime)
        settle: SettleWorkspace = runtime.parts.settle_workspace()
        settled = settle.adopt(folder, by=name) if action == "adopt" else settle.renew(folder, by=name)
        standing = settle.look(folder)
    seen = settled.seen
    if action == "renew":
        out.say(f"{one_line(seen.canonical_path)} is a workspace of its own now: {seen.identity}")
        out.say(f"  before: {settled.before}")
    else:
        out.say(f"{one_line(seen.canonical_path)} is the workspace {seen.identity}, as {one_line(name)} said.")
    for run in settled.runs[:SHOWN_MAX]:
        out.say(f"  recorded for session {one_line(run.session_id)}, run {one_line(run.run_id)}")
    if not settled.runs:
        out.say("  No interrupted run of this store had to be told.")
    ways = [_resuming(commands, run, seen) for run in settled.runs[:SHOWN_MAX]]
    say_ways(out, ways)
    _document(out, standing, action, settled.before, settled.runs, name, ways, ExitCode.DONE)
    return ExitCode.DONE


def _show(out: Output, store: Path, folder: str) -> int:
    standing = _looked(store, folder)
    seen = standing.seen
    out.say(f"{one_line(seen.canonical_path)} is the workspace {seen.identity}")
    if seen.renewed_from is not None:
        out.say(f"  renewed; before: {seen.renewed_from}")
    for run in standing.runs[:SHOWN_MAX]:
        out.say(f"  session {one_line(run.session_id)} was interrupted in {one_line(run.folder)}")
    ways: list[WayOn] = []
    for other in standing.elsewhere:
        out.say(f"The same marker is in {one_line(other)}: one is a copy of the other.")
    if seen.adopted and standing.elsewhere:
        out.say("This folder is the workspace, as a person said.")
    elif standing.elsewhere:
        commands = CommandLines(store)
        ways += [
            WayOn(commands.about("workspace", "adopt", seen.canonical_path), "say that this folder is the workspace"),
            WayOn(commands.about("workspace", "renew", seen.canonical_path), "say that this folder is another one"),
        ]
        say_ways(out, ways)
    code = ExitCode.PARKED if standing.elsewhere and not seen.adopted else ExitCode.DONE
    _document(out, standing, "show", None, standing.runs, None, ways, code)
    return code


def _looked(store: Path, folder: str) -> WorkspaceStanding:
    if places.is_there(store):
        with reading(store) as runtime:
            standing: WorkspaceStanding = runtime.parts.settle_workspace().look(folder)
            return standing
    seen = unopened(store).workspaces().observe(folder)
    if not isinstance(seen, WorkspaceSeen):
        raise unusable(seen)
    return WorkspaceStanding(seen, (), ())


def _resuming(commands: CommandLines, run: InterruptedRun, seen: WorkspaceSeen) -> WayOn:
    command = commands.about("resume", run.session_id, "--workspace", seen.canonical_path)
    return WayOn(command, "continue what was interrupted")


def _document(
    out: Output,
    standing: WorkspaceStanding,
    action: str,
    before: str | None,
    runs: Sequence[InterruptedRun],
    by: str | None,
    ways: Sequence[WayOn],
    code: ExitCode,
) -> None:
    members = {
        "action": action,
        "folder": standing.seen.canonical_path,
        "identity": standing.seen.identity,
        "before": before or standing.seen.renewed_from,
        "elsewhere": list(standing.elsewhere),
        "runs": [{"session_id": run.session_id, "run_id": run.run_id, "folder": run.folder} for run in runs],
        "by": by,
        "commands": as_documents(ways),
        "exit_code": int(code),
    }
    out.document(documents.WORKSPACE, documents.filled(documents.WORKSPACE, members))
