"""What runs: made from options, or from what the run to continue recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ...application.agent import Agent
from ...domain.events.run import NOT_RECORDED, ExecutionProfile
from ...ports.model_provider import ModelProvider
from ...ports.permission_gate import PermissionGate
from ...ports.provider_failures import ProviderUnusable
from ...ports.tool_catalog import ToolCatalog
from ...ports.workspace import (
    Absent,
    CouldNotLook,
    WorkspaceIdentity,
    WorkspaceMissing,
    WorkspaceObservation,
    WorkspaceRefused,
    WorkspaceSeen,
)
from ..models.by_name import ENDPOINTS, OPENAI, PROVIDERS, SCRIPTED, at_endpoint
from ..models.named import NamedModel
from .http_origins import http_origins
from .places import absolute
from .policies import PolicyOptions, gate_of
from .system_prompt import SYSTEM_PROMPT
from .usage import UsageError


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """What was said on the command line about who works, where, and with whose permission."""

    provider: str | None = None
    script: Path | None = None
    model: str | None = None
    workspace: Path | None = None
    policy: PolicyOptions = field(default_factory=PolicyOptions)
    window: int | None = None

    def __post_init__(self) -> None:
        """Take a provider that stands before the model's name, as in `anthropic:NAME`, where none is named alone."""
        named, _, model = (self.model or "").partition(":")
        if self.provider is None and named in ENDPOINTS:
            object.__setattr__(self, "provider", named)
            object.__setattr__(self, "model", model)


@dataclass(frozen=True, slots=True)
class AgentParts:
    """An agent that has no workspace yet."""

    provider: ModelProvider
    catalog: ToolCatalog
    gate: PermissionGate

    def in_workspace(self, folder: str, look: Callable[[str], WorkspaceObservation]) -> Agent:
        """Put the agent into a workspace.

        Args:
            look: observes or ensures the workspace.

        Raises:
            UsageError: it is not there, or cannot be used.
        """
        seen = look(folder)
        if not isinstance(seen, WorkspaceSeen):
            raise unusable(seen)
        return self.at(Path(seen.canonical_path), seen.identity)

    def at(self, folder: Path, identity: str | None) -> Agent:
        """Put the agent there as it is."""
        return Agent(self.provider, self.catalog, self.gate, SYSTEM_PROMPT, folder, identity)


def parts_for_turn(options: AgentOptions) -> AgentParts:
    """Make the agent of a new turn. Looks at the script and the environment, and changes nothing.

    Raises:
        UsageError, ProviderUnusable: an option cannot be used.
    """
    return _parts(options, _provider(_provider_name(options, None), options, None), None)


def workspace_folder(options: AgentOptions) -> str:
    """The folder of a new turn."""
    return str(absolute(options.workspace or Path()))


def require_folder(folder: str, workspaces: WorkspaceIdentity) -> None:
    """Make sure that a workspace is there, marked or not; changes nothing.

    Raises:
        UsageError: it is not there, or cannot be used.
    """
    seen = workspaces.observe(folder)
    if not isinstance(seen, WorkspaceSeen) and not (isinstance(seen, WorkspaceMissing) and seen.what is Absent.MARKER):
        raise unusable(seen)


def agent_for_resume(
    options: AgentOptions,
    recorded: ExecutionProfile | None,
    cwd: str | None,
    workspaces: WorkspaceIdentity,
    *,
    for_looking: bool = False,
) -> Agent:
    """Make the agent that continues a run: as the run recorded it, where no option says otherwise. Changes nothing.

    Args:
        recorded: the run's profile, None where it cannot be read.
        cwd: the folder that the run worked in.
        for_looking: a plan: where a script or key is missing, the recorded provider is taken as it was.

    Raises:
        UsageError, ProviderUnusable: an option cannot be used.
    """
    provider = _provider_for_resume(options, recorded, for_looking=for_looking)
    parts = _parts(options, provider, recorded)
    folder = absolute(options.workspace or Path(cwd or ""))
    seen = workspaces.observe(str(folder))
    if isinstance(seen, WorkspaceSeen):
        return parts.at(Path(seen.canonical_path), seen.identity)
    return parts.at(folder, None)  # the planner says what is missing


def _provider_for_resume(
    options: AgentOptions, recorded: ExecutionProfile | None, *, for_looking: bool
) -> ModelProvider:
    try:
        name = _provider_name(options, recorded)
        return _provider(name, options, recorded)
    except (UsageError, ProviderUnusable):
        as_recorded = recorded is not None and options.script is None and options.provider in (None, recorded.provider)
        if for_looking and recorded is not None and as_recorded:
            account = None if recorded.account == NOT_RECORDED else recorded.account
            model = options.model or _recorded_model(recorded)
            return NamedModel(recorded.provider, model, account=account, window_tokens=options.window)
        if recorded is not None and as_recorded and recorded.provider not in PROVIDERS:
            raise UsageError(
                f"This run was recorded by a program that asks its model {recorded.provider!r} itself.",
                f"Resume it in that program, or here with another: --provider {' or '.join(PROVIDERS)}.",
            ) from None
        raise


def _provider_name(options: AgentOptions, recorded: ExecutionProfile | None) -> str:
    name = options.provider
    if name is None and options.script is not None:
        name = SCRIPTED
    if name is None:
        name = OPENAI if recorded is None else recorded.provider
    if name not in PROVIDERS:
        raise UsageError(f"There is no provider {name!r} here.", f"Give --provider {' or '.join(PROVIDERS)}.")
    return name


def _provider(name: str, options: AgentOptions, recorded: ExecutionProfile | None) -> ModelProvider:
    if name == SCRIPTED:
        if options.model is not None:
            raise UsageError("--model goes with an endpoint.", "A script names its model itself.")
        if options.window is not None:
            raise UsageError("--window goes with an endpoint.", "A script names its window itself.")
        if options.script is None:
            raise UsageError("The scripted provider needs a script.", "Give it with --script FILE.")
        from ..models.scripted import ScriptedModel

        return ScriptedModel.from_file(options.script)
    if options.script is not None:
        raise UsageError("--script goes with the provider scripted.", "Leave one of the two options away.")
    model = options.model or (_recorded_model(recorded) if recorded is not None and recorded.provider == name else "")
    return at_endpoint(name, model, window_tokens=options.window)


def _recorded_model(recorded: ExecutionProfile) -> str:
    """The name of the model; empty where the record does not tell it, which is no name that could be asked for."""
    return "" if recorded.model == NOT_RECORDED else recorded.model


def _parts(options: AgentOptions, provider: ModelProvider, recorded: ExecutionProfile | None) -> AgentParts:
    from ..tools.builtin import builtin_tools
    from ..tools.catalog import FunctionCatalog

    scripted = provider.profile().provider == SCRIPTED
    catalog = FunctionCatalog(builtin_tools(scripted=scripted, origins=http_origins()))
    names = [tool.name for tool in catalog.tools()]
    policy = None if recorded is None else recorded.permission_policy
    return AgentParts(provider, catalog, gate_of(options.policy, tools=names, scripted=scripted, recorded=policy))


def unusable(seen: WorkspaceMissing | WorkspaceRefused | CouldNotLook) -> UsageError:
    """What is said of a folder that cannot be worked in."""
    match seen:
        case WorkspaceMissing(what=Absent.MARKER):
            message = f"The folder {seen.path} is no workspace yet: it has no marker."
            return UsageError(message, "Name the folder that a run worked in.", code="workspace_missing")
        case WorkspaceMissing():
            return UsageError(
                f"The workspace {seen.path} is not there.", "Check which folder is named.", code="workspace_missing"
            )
        case WorkspaceRefused():
            hint = "Look at it: it names which workspace this is, and is never replaced silently."
            return UsageError(
                f"The workspace {seen.path} cannot be used: {seen.detail}.", hint, code="workspace_refused"
            )
        case CouldNotLook():
            message = f"The workspace {seen.path} could not be looked at: {seen.detail}."
            return UsageError(message, "Check its permissions.", code="workspace_unreadable")
