"""Which calls need a person: from options, from what a run recorded, or the default. SPEC F6."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ...domain.permission_policy import Otherwise, PermissionPolicy
from ...ports.permission_gate import PermissionGate, PermissionRequest
from ..permission.allow_list import AllowListGate
from ..permission.deny import DenyGate
from ..permission.elsewhere import ElsewhereGate
from ..permission.terminal import TerminalGate
from . import places
from .command_lines import CommandLines
from .escaping import one_line
from .persons import person
from .usage import UsageError
from .ways_on import answers


@dataclass(slots=True)
class Hearing:
    """Whether a person at another terminal can be heard.

    Attributes:
        deaf: why not; None while one can. Known only once the store is owned.
    """

    deaf: str | None = None


@dataclass(frozen=True, slots=True)
class PolicyOptions:
    """What was said on the command line about permissions.

    Attributes:
        ask_elsewhere: a person is asked at another terminal, wherever the policy asks one.
        store: named in the commands that such a person is shown.
    """

    allow: tuple[str, ...] = ()
    allow_all: bool = False
    ask: bool = False
    deny: bool = False
    ask_elsewhere: bool = False
    store: Path = field(default_factory=places.default_store)
    hearing: Hearing = field(default_factory=Hearing, compare=False, repr=False)

    @property
    def given(self) -> bool:
        """True when anything was said of what is permitted; where a person sits is none of it."""
        return bool(self.allow) or self.allow_all or self.ask or self.deny

    @property
    def arguments(self) -> tuple[str, ...]:
        """The options as they were given."""
        asks = (("--ask", self.ask), ("--ask-elsewhere", self.ask_elsewhere))
        given = (("--allow-all", self.allow_all), *asks, ("--deny", self.deny))
        listed = (part for name in self.allow for part in ("--allow", name))
        return (*listed, *(option for option, is_given in given if is_given))


def gate_of(
    options: PolicyOptions, *, tools: Iterable[str], scripted: bool, recorded: str | None = None
) -> PermissionGate:
    """Make the gate.

    Args:
        tools: the names that may be permitted.
        scripted: everything is permitted by default, because the script's author is the user.
        recorded: the policy of the run to continue; used again where no option says otherwise. Where it cannot be made
            again, the default permits nothing unasked: more than the recorded one could not be accepted.

    Raises:
        UsageError: the options contradict each other, or name a tool that is not there.
    """
    for option, asks in (("--ask", options.ask), ("--ask-elsewhere", options.ask_elsewhere)):
        if asks and options.deny:
            raise UsageError(f"{option} and --deny contradict each other.", "Give one of them.")
    known = sorted(tools)
    if unknown := sorted(set(options.allow) - set(known)):
        raise UsageError(f"There is no tool named {', '.join(unknown)}.", f"The tools are: {', '.join(known)}.")
    if not options.given and recorded is not None and (again := _recorded_gate(recorded, options)) is not None:
        return again
    asking = options.ask or options.ask_elsewhere or (not options.deny and has_terminal())
    otherwise: PermissionGate = _asker(options) if asking else DenyGate()
    unasked = scripted and not options.given and not options.ask_elsewhere and recorded is None
    allow_all = options.allow_all or unasked
    if not allow_all and not options.allow:
        return otherwise
    return AllowListGate(options.allow, otherwise, allow_all=allow_all)


def _asker(options: PolicyOptions) -> PermissionGate:
    if not options.ask_elsewhere:
        return TerminalGate(person())
    commands = CommandLines(options.store)

    def ways(request: PermissionRequest) -> Iterable[str]:
        yield "It waits for an answer from another terminal:"
        for way in answers(commands, request.request_id, request.tool_name):
            yield f"  {one_line(way.command, 2_000)}"

    return ElsewhereGate(ways, lambda: options.hearing.deaf)


def described(gate: PermissionGate, options: PolicyOptions, recorded: str | None = None) -> str:
    """Say which policy is in force, and where it comes from.

    Args:
        recorded: the policy of the run to continue, None for a new turn.
    """
    in_force = gate.policy_id()
    by_the_run = not options.given and in_force == recorded
    asked = options.given or (options.ask_elsewhere and not by_the_run)
    source = "as asked" if asked else "as the run recorded" if by_the_run else "by default"
    return f"{one_line(in_force, 200)} ({source})"


def has_terminal() -> bool:
    """True when a question can be shown and answered."""
    return os.isatty(0) and sys.stderr.isatty()


def _recorded_gate(policy_id: str, options: PolicyOptions) -> PermissionGate | None:
    """The gate that names itself so.

    None where a name does not tell (a very long list is named by its digest), or a person is to be asked and it asks
    none.
    """
    policy = PermissionPolicy.named_wholly(policy_id)
    if policy is None:
        return None
    asks = policy.otherwise is Otherwise.ASK
    if options.ask_elsewhere and not asks:
        return None
    otherwise: PermissionGate = _asker(options) if asks else DenyGate()
    if not policy.allow_all and policy_id == policy.otherwise:
        return otherwise
    return AllowListGate(policy.allowed or (), otherwise, allow_all=policy.allow_all)
