"""What runs: a model, tools, who may permit them, and where. SPEC sections 8 and 13 (execution profile)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ..domain import canonical
from ..domain.events.run import ExecutionProfile
from ..ports.checkpoints import Checkpoints
from ..ports.model_provider import ModelProvider, OfferedTool
from ..ports.permission_gate import PermissionGate
from ..ports.tool_catalog import ToolCatalog


class Binding(StrEnum):
    """Which new turns are bound to the content of their workspace. ADR 0081."""

    NEVER = "never"
    WHERE_POSSIBLE = "where_possible"
    """Where it can be kept, and without copying much; else that it is not is told before the model is asked."""
    ALWAYS = "always"
    """Where it cannot be kept, nothing is begun. A continuation of an unbound run is bound, too."""


@dataclass(frozen=True, slots=True)
class Agent:
    """The parts that a run is executed with.

    Attributes:
        workspace: the folder that the tools work in, absolute.
        workspace_identity: as it was observed, None where the folder has none.
        checkpoints: where the folder's content can be kept; None where it is not to be kept.
        binding: whether a new turn is bound to its workspace's content from its start; a continuation goes on as its
            lineage began (R18).
    """

    provider: ModelProvider
    catalog: ToolCatalog
    gate: PermissionGate
    system_prompt: str
    workspace: Path
    workspace_identity: str | None
    checkpoints: Checkpoints | None = None
    binding: Binding = Binding.NEVER

    def profile(self) -> ExecutionProfile:
        """What a run records of these parts; a difference parks a resume."""
        model = self.provider.profile()
        return ExecutionProfile(
            provider=model.provider,
            model=model.model,
            account=model.account,
            system_prompt_digest=canonical.sha256_hex(self.system_prompt.encode()),
            permission_policy=self.gate.policy_id(),
            tools=tuple(sorted((tool.profile for tool in self.catalog.tools()), key=lambda tool: tool.name)),
        )

    def offered(self) -> tuple[OfferedTool, ...]:
        """The tools as the model is offered them."""
        return tuple(OfferedTool(t.name, t.description, t.input_schema) for t in self.catalog.tools())
