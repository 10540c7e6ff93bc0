"""Makes the parts of an agent from what an embedding program gives: names, functions, folders. SPEC section 17."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

from ...application.agent import Agent, Binding
from ...domain.errors import SafepointError
from ...ports.checkpoints import Checkpoints
from ...ports.model_provider import ModelProvider
from ...ports.permission_gate import PermissionGate
from ...ports.tool_catalog import ToolCatalog
from ...ports.workspace import (
    CouldNotLook,
    WorkspaceIdentity,
    WorkspaceMissing,
    WorkspaceObservation,
    WorkspaceRefused,
    WorkspaceSeen,
)
from ..models.by_name import ENDPOINTS, PROVIDERS, at_endpoint
from ..models.named import NamedModel
from ..permission.allow_list import AllowListGate
from ..permission.deny import DenyGate
from ..permission.elsewhere import ElsewhereGate
from ..permission.terminal import TextOutput
from ..tools.catalog import FunctionCatalog, Tool

Permission: TypeAlias = Literal["allow", "ask", "deny"] | PermissionGate
"""`allow`: every tool that the program gave, but no repeat of an effect that is not settled. `ask`: calls that may have
an effect wait for a person, here or in another process. `deny`: nothing but reading."""
Keep: TypeAlias = Literal["auto", "git", "none"]
"""Whether runs are bound to the content of their workspace, kept by Git; `auto`: where that is possible."""
Tools: TypeAlias = ToolCatalog | Iterable[Callable[..., Any] | Tool]
Model: TypeAlias = ModelProvider | str | None

UNNAMED: Final = "unnamed"
_BINDINGS: Final = {"auto": Binding.WHERE_POSSIBLE, "git": Binding.ALWAYS, "none": Binding.NEVER}


class ConfigurationUnusable(SafepointError):
    """Settings do not fit; each is named with the place where it was said. No value is shown: it may be a key."""


class WorkspaceUnusable(ValueError):
    """The folder that was named as workspace is not there, or its marker cannot be trusted.

    Attributes:
        seen: what was found.
    """

    def __init__(self, folder: str, seen: WorkspaceObservation) -> None:
        super().__init__(f"{folder} cannot be the workspace: {_said_of(seen)}")
        self.seen = seen


def _said_of(seen: WorkspaceObservation) -> str:
    match seen:
        case WorkspaceMissing():
            return "there is no such folder; make it first"
        case WorkspaceRefused():
            return f"{seen.path} is not accepted ({seen.fault}): {seen.detail}"
        case CouldNotLook():
            return f"{seen.path} could not be looked at: {seen.detail}"
        case WorkspaceSeen():
            return "it is there"


def model_of(given: Model) -> ModelProvider:
    """The provider that was meant.

    Args:
        given: a provider; or `openai:NAME`, `anthropic:NAME` (key from the environment), `scripted:FILE`; None for a
            loop that asks a model of its own and does not say which.

    Raises:
        ValueError: it names no provider that is known here.
        TypeError: it is no provider.
        ProviderUnusable: its key or its package is missing.
    """
    if given is None:
        return NamedModel(UNNAMED, UNNAMED)
    if not isinstance(given, str):
        return _provider(given)
    provider, _, name = given.partition(":")
    if provider not in PROVIDERS or not name:
        raise ValueError(
            f"{given!r} names no model: give {', '.join(f'{one}:NAME' for one in PROVIDERS)}, or a provider"
        )
    if provider in ENDPOINTS:
        return at_endpoint(provider, name)
    from ..models.scripted import ScriptedModel

    return ScriptedModel.from_file(Path(name))


def _provider(given: ModelProvider) -> ModelProvider:
    missing = [name for name in ("profile", "stream", "aclose") if not callable(getattr(given, name, None))]
    if missing:
        raise TypeError(f"a {type(given).__name__} is no model: a provider has `{missing[0]}`; or give its name")
    return given


def catalog_of(given: Tools) -> ToolCatalog:
    """The catalog of what was given.

    Raises:
        ToolDefinitionError: one of it cannot be a tool, or two have one name.
        TypeError: it is a mapping, which would be read as its keys alone.
    """
    if isinstance(given, Mapping):
        raise TypeError("tools are given as a list: `tools=[pay]`, each under its own name, or a `contract(name)`")
    return FunctionCatalog(given) if isinstance(given, Iterable) else given


def gate_of(given: Permission) -> PermissionGate:
    """The gate that was meant.

    Raises:
        ValueError: it is none of the words.
    """
    match given:
        case "allow":
            return AllowListGate((), DenyGate(), allow_all=True)
        case "ask":
            return ElsewhereGate(lambda request: (), output=_Nowhere())
        case "deny":
            return DenyGate()
        case str():
            raise ValueError(f"{given!r} is no permission: give 'allow', 'ask', 'deny', or a gate")
        case _:
            return given


class _Nowhere(TextOutput):
    """A program is no terminal: what waits is listed to whoever asks for it."""

    def write(self, text: str, /) -> int:
        return len(text)

    def flush(self) -> None:
        return


def placed(
    model: ModelProvider,
    catalog: ToolCatalog,
    gate: PermissionGate,
    system_prompt: str,
    workspace: str | os.PathLike[str] | None,
    store: Path,
    workspaces: WorkspaceIdentity,
    keep: Callable[[], Checkpoints],
    checkpoints: Keep,
) -> Agent:
    """Put an agent into its folder.

    Args:
        workspace: gets its marker; None for an agent whose tools work in no folder: it is then in the store's, which is
            only looked at.
        keep: makes what keeps the content of folders.
        checkpoints: whether new turns are bound to it; continuations go on as their lineage began.

    Raises:
        WorkspaceUnusable: it is not there, or cannot be trusted.
        ValueError: there is no workspace whose content could be kept, or no such kind.
    """
    if checkpoints not in get_args(Keep) or (checkpoints == "git" and workspace is None):
        raise ValueError(f"checkpoints={checkpoints!r} needs a workspace, and is one of {', '.join(get_args(Keep))}")
    if workspace is None:
        seen = workspaces.observe(str(store.parent))
        identity = seen.identity if isinstance(seen, WorkspaceSeen) else None
        return Agent(model, catalog, gate, system_prompt, store.parent, identity)
    folder = str(Path(workspace).absolute())
    seen = workspaces.ensure(folder)
    if not isinstance(seen, WorkspaceSeen):
        raise WorkspaceUnusable(folder, seen)
    place = Path(seen.canonical_path)
    return Agent(model, catalog, gate, system_prompt, place, seen.identity, keep(), _BINDINGS[checkpoints])
