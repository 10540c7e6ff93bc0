"""What was seen of the world outside the store, for the gates. SPEC sections 13, 15 and 16."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from ..identifiers import OperationId
from ..reasons import ParkReason
from .survey import Baseline


class Busy(NamedTuple):
    """A living owner works on the session: its process, where it is known."""

    pid: int | None = None
    detail: str = ""


class Authority(StrEnum):
    """Whether this process may write the session."""

    HELD_OR_FREE = "held_or_free"
    FENCED = "fenced"
    COULD_NOT_LOOK = "could_not_look"


class RunningProcess(NamedTuple):
    """A process that an operation left, so that a person can end it."""

    pid: int
    name: str = ""


class NotOver(NamedTuple):
    """An operation that is not proven over: it runs, or that could not be looked at."""

    operation_id: OperationId
    could_not_look: bool
    processes: tuple[RunningProcess, ...] = ()


class WorkspaceFound(NamedTuple):
    """The workspace that is there now; both None where the host works without one."""

    identity: str | None
    path: str | None


class WorkspaceUnknown(NamedTuple):
    """No identity to compare: `code` says whether none is there, two places share one, or it could not be looked at.

    Attributes:
        no_folder: there is not even a folder.
    """

    code: ParkReason
    paths: tuple[str, ...] = ()
    detail: str = ""
    no_folder: bool = False


@dataclass(frozen=True, slots=True)
class CheckpointFacts:
    """The newest checkpoint that the lineage accepted, and what was seen of it now. SPEC section 16.

    Attributes:
        carrier_available: the promised kind of checkpoint can be had now; `detail` says why not.
        could_not_look: why the content could not be compared; None where it could, or was not asked.
        present: the artifact is there.
        covers: no writing operation is beyond it, or every one left its identity.
        uncovered_by: names of the tools that wrote without leaving one.
        restored: False where a restore was asked for and failed.
        drifted_paths: what differs from the expected tree, those first that the model has read; not always all.
        drifted: how many differ.
        baseline: what was accepted, and `epoch` how often it was set anew.
        as_kept: the expected tree is the checkpoint itself: nothing was written after it.
    """

    ref: str
    carrier_available: bool
    present: bool
    covers: bool
    uncovered_by: tuple[str, ...] = ()
    restored: bool = True
    drifted_paths: tuple[str, ...] = ()
    drifted: int = 0
    could_not_look: str | None = None
    detail: str = ""
    baseline: Baseline | None = None
    epoch: int = 0
    as_kept: bool = True


class ModelWindow(NamedTuple):
    """What the model can take, in tokens, and what the history has as counted by its provider, if it can count."""

    limit_tokens: int
    history_tokens: int | None = None
