"""Removes what dead calls left beside their effects, where these are settled without being looked at again.

A reconcile tidies up by itself. A person's word, and forgetting, end an operation too, and nobody comes back to it.
"""

from __future__ import annotations

from pathlib import Path

from ..domain.events.tool import RecoveryMode
from ..domain.operation.state import Operation
from ..domain.run.state import Run
from ..ports.reconciler import AskedOperation
from ..ports.workspace import WorkspaceIdentity, WorkspaceSeen
from .looking_up import tidied
from .reconcilers import Reconcilers


class TidyOperations:
    """Tidies up by whoever knows the contract that T1 recorded; what cannot be removed stays."""

    def __init__(self, reconcilers: Reconcilers, workspaces: WorkspaceIdentity) -> None:
        self._reconcilers = reconcilers
        self._workspaces = workspaces

    def __call__(self, run: Run, operation: Operation) -> None:
        """Tidy up after an operation that is over, in the folder that its run recorded, if that is still the same."""
        call, dispatch, opening = operation.called, operation.dispatch, run.opening
        if call is None or dispatch is None or opening is None or dispatch.contract.mode is not RecoveryMode.RECONCILE:
            return
        reconciler = self._reconcilers.of(dispatch.contract)
        seen = self._workspaces.observe(opening.cwd)
        if reconciler is None or not isinstance(seen, WorkspaceSeen) or seen.identity != opening.workspace_identity:
            return
        tidied(reconciler, AskedOperation(call, dispatch, Path(seen.canonical_path), seen.identity))
