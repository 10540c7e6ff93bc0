"""Which workspace a folder is. SPEC section 16, R5: proof of the same workspace, never of the same content."""

from __future__ import annotations

from abc import abstractmethod
from enum import StrEnum
from typing import NamedTuple, Protocol, TypeAlias

MARKER_NAME = ".safepoint-workspace.json"
MARKER_BYTES_MAX = 4096
MARKER_SCHEMA_VERSION = 1
IDENTITY_PREFIX = "workspace:v1:"


class WorkspaceSeen(NamedTuple):
    """The folder is this workspace.

    Attributes:
        identity: `workspace:v1:<uuid>`.
        canonical_path: absolute, every link resolved.
        notice: what could not be done beside it, for a person; such as a Git exclude file that cannot be written.
        renewed_from: the identity that it had before a person renewed it.
        adopted: whether a person said of the folder at this path that it is the workspace, whatever copies there are.
    """

    identity: str
    canonical_path: str
    notice: str | None = None
    renewed_from: str | None = None
    adopted: bool = False


class Absent(StrEnum):
    """What a successful look did not find."""

    FOLDER = "folder"
    MARKER = "marker"


class WorkspaceMissing(NamedTuple):
    """Looked, and it is not there."""

    what: Absent
    path: str


class MarkerFault(StrEnum):
    """Why a folder or its marker is not accepted, and never silently replaced."""

    NOT_A_FOLDER = "not_a_folder"
    SYMLINKED = "symlinked"
    NOT_A_FILE = "not_a_file"
    OVERSIZED = "oversized"
    MALFORMED = "malformed"
    NEWER = "newer"


class WorkspaceRefused(NamedTuple):
    """There is something, and it cannot be trusted to name the workspace."""

    fault: MarkerFault
    path: str
    detail: str


class CouldNotLook(NamedTuple):
    """Neither there nor not there: reading failed. F1."""

    path: str
    detail: str


WorkspaceObservation: TypeAlias = WorkspaceSeen | WorkspaceMissing | WorkspaceRefused | CouldNotLook


class WorkspaceIdentity(Protocol):
    """Reads and makes the marker of a workspace. Safe with several processes at once: they agree on one identity."""

    @abstractmethod
    def observe(self, path: str) -> WorkspaceObservation:
        """Look without changing anything.

        A moved folder keeps its identity; two folders never share one unless one was copied.
        """

    @abstractmethod
    def ensure(self, path: str) -> WorkspaceObservation:
        """As `observe`, but make a missing marker, and name it in the repository's exclude file where there is one.

        A marker that is there is never changed. `WorkspaceMissing` is then about the folder, and `CouldNotLook` also
        says that the marker could not be made.
        """

    @abstractmethod
    def renew(self, path: str) -> WorkspaceObservation:
        """Give a folder that is a copy an identity of its own, at a person's word; the old one is named beside it.

        Whole or not at all, whenever it is interrupted. A folder without a marker is only looked at.
        """

    @abstractmethod
    def adopt(self, path: str) -> WorkspaceObservation:
        """Note in the marker, at a person's word, that the folder at this path is the workspace: a copy of it, or the
        folder after a move, says nothing of the kind.

        The identity stays. Whole or not at all, whenever it is interrupted. A folder without a marker is only looked
        at.
        """

    @abstractmethod
    def disown(self, path: str) -> WorkspaceObservation:
        """Take back what `adopt` noted, at a person's word on another folder; nothing else changes."""
