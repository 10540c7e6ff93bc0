"""Whether runs are bound to the content of their workspace, and what is done where it has changed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

from ...application.accept_drift import Isolated, NothingHasDrifted, Rebaselined
from ...application.agent import Agent, Binding
from ...application.plan_resume import PlanRequest
from ...application.resume_run import Parked
from ...domain.identifiers import SessionId
from ...ports.checkpoints import NotKept, Unsupported
from .escaping import one_line
from .output import Output
from .persons import person, require_person
from .usage import UsageError

if TYPE_CHECKING:
    from ..opened_store import OpenedStore

CHECKPOINTS_VARIABLE: Final = "SAFEPOINT_CHECKPOINTS"
AUTO: Final = "auto"
GIT: Final = "git"
NONE: Final = "none"
_BINDINGS: Final = {AUTO: Binding.WHERE_POSSIBLE, GIT: Binding.ALWAYS}
SHOWN_MAX: Final = 20


@dataclass(frozen=True, slots=True)
class ContentOptions:
    """What was said of the workspace's content.

    Attributes:
        checkpoints: `auto`, `git` or `none`; None where a continuation goes on as its run began.
        isolated, rebaseline: what to do about drift; not both.
    """

    checkpoints: str | None = None
    isolated: bool = False
    rebaseline: bool = False

    @property
    def decides(self) -> bool:
        """Whether something is to be done about drift."""
        return self.isolated or self.rebaseline


NOTHING_SAID: Final = ContentOptions()
UNREAD: Final = "checkpoints_unread"


def content_options(
    checkpoints: str | None, *, isolated: bool = False, rebaseline: bool = False, new_turn: bool = False
) -> ContentOptions:
    """Read the options; a new turn that says nothing does as the environment says, and else is bound where it can be.

    Raises:
        UsageError: they contradict each other, or the mode is none.
    """
    chosen = checkpoints or ((os.environ.get(CHECKPOINTS_VARIABLE) or AUTO) if new_turn else None)
    if chosen not in {None, AUTO, GIT, NONE}:
        raise UsageError(f"There are no checkpoints of kind {chosen!r}.", f"Choose from: {AUTO}, {GIT}, {NONE}.")
    if isolated and rebaseline:
        raise UsageError("--isolated and --rebaseline exclude each other.", "Choose one.")
    if chosen == NONE and (isolated or rebaseline):
        raise UsageError("Without checkpoints nothing can be compared.", "Leave --checkpoints none away.")
    return ContentOptions(chosen, isolated, rebaseline)


def keeping(agent: Agent, runtime: OpenedStore, options: ContentOptions) -> Agent:
    """The agent with the means to keep its workspace's content, where that was asked for or may have been promised."""
    if options.checkpoints == NONE:
        return agent
    binding = _BINDINGS.get(options.checkpoints or "", Binding.NEVER)
    return replace(agent, checkpoints=runtime.parts.checkpoints(), binding=binding)


def not_bound(why: NotKept) -> str:
    """What a person is told where a turn could not be bound to its content."""
    code = str(why.why) if isinstance(why, Unsupported) else UNREAD
    return f"Not bound to the content of its folder [{code}]: {one_line(why.detail, 400)}"


@dataclass(frozen=True, slots=True)
class OnDrift:
    """What was done about drift before resuming.

    Attributes:
        parked: why nothing was done; resuming is parked for the same.
        folder: the new folder that the run goes on in, if there is one.
    """

    parked: Parked | None = None
    folder: Path | None = None
    members: Mapping[str, Any] | None = None


def settle_drift(
    out: Output,
    runtime: OpenedStore,
    session_id: SessionId,
    agent: Agent,
    request: PlanRequest,
    options: ContentOptions,
) -> OnDrift:
    """Accept the present content, or make a folder of its own, where that was asked for; says what was done."""
    if not options.decides:
        return OnDrift()
    require_person(runtime)
    accept = runtime.parts.accept_drift()
    decide = accept.isolate if options.isolated else accept.rebaseline
    answer: Isolated | Rebaselined | NothingHasDrifted | Parked = decide(session_id, agent, request, by=person())
    match answer:
        case Parked():
            return OnDrift(answer)
        case Isolated():
            out.say(f"The run goes on in {one_line(answer.path)}; {one_line(answer.folder)} was not touched.")
            home = bring_home(answer)
            out.say("When it has ended, bring its result home with:")
            out.say(f"  {home}")
            members = {"path": answer.path, "folder": answer.folder, "bring_home": home}
            return OnDrift(None, Path(answer.path), {"isolated": members})
        case Rebaselined():
            out.say(f"The present content is the baseline from now on; {answer.total} paths differed:")
            for path in answer.paths[:SHOWN_MAX]:
                out.say(f"  {one_line(path)}")
            if answer.total > SHOWN_MAX:
                out.say(f"  and {answer.total - SHOWN_MAX} more")
            accepted = {"paths": list(answer.paths), "count": answer.total, "epoch": answer.epoch}
            return OnDrift(members={"rebaselined": accepted})
        case NothingHasDrifted():
            apart = f"{one_line(str(agent.workspace))} is a folder of the run's own already: no other was made."
            out.say(apart if options.isolated else "Nothing has drifted: there is nothing to accept.")
            return OnDrift()


def bring_home(isolated: Isolated) -> str:
    """The command that brings what was done in an isolated folder into the user's: as changes of files, no commit."""
    there, home = quote(isolated.path), quote(isolated.folder)
    prefix = f'"$(git -C {home} rev-parse --show-prefix)"'
    return (
        f"git -C {there} add -A && git -C {there} diff --cached --binary {quote(isolated.base)}"
        f" | git -C {home} apply --directory={prefix}"
    )
