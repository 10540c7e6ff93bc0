"""Copies of a workspace's content that a run can be bound to. SPEC section 16, F15: they never approve a resume."""

from __future__ import annotations

import re
from abc import abstractmethod
from enum import StrEnum
from typing import NamedTuple, Protocol, TypeAlias

from ..domain.events.event import Timestamp
from .workspace import CouldNotLook

CHECKPOINT_KEY = re.compile(r"[0-9A-Za-z](?:[0-9A-Za-z_-]{0,98}[0-9A-Za-z])?")
DIFFERENCES_MAX = 1000


class Checkpoint(NamedTuple):
    """A kept copy of a workspace, as the fact that accepts it names it.

    Attributes:
        carrier: the kind of store that keeps it, such as `git`.
        ref: its name there; one name never comes to mean other content.
        tree_id: names the content itself: equal for equal files, and only for them.
        policy_hash: names which files are in it: two checkpoints of one policy can be compared.
    """

    carrier: str
    ref: str
    tree_id: str
    policy_hash: str


class KeptCheckpoint(NamedTuple):
    """One that is there, whether a fact accepts it or not.

    Attributes:
        folder: the canonical path of the workspace that it was made of.
    """

    checkpoint: Checkpoint
    made_at: Timestamp
    folder: str


class WhyUnsupported(StrEnum):
    """What keeps a folder from having checkpoints. A closed set: each is told to the person, never worked around."""

    NO_GIT = "no_git"
    GIT_TOO_OLD = "git_too_old"
    NOT_A_REPOSITORY = "not_a_repository"
    REPOSITORY_NOT_TRUSTED = "repository_not_trusted"
    REPOSITORY_FORMAT = "repository_format"
    BARE_REPOSITORY = "bare_repository"
    INSIDE_GIT_FOLDER = "inside_git_folder"
    FOLDER_IGNORED = "folder_ignored"
    EVERYTHING_IGNORED = "everything_ignored"
    SPARSE_CHECKOUT = "sparse_checkout"
    SUBMODULES = "submodules"
    NESTED_REPOSITORY = "nested_repository"
    LFS = "lfs"
    CASE_COLLISION = "case_collision"
    CONTENT_TOO_LARGE = "content_too_large"


class CaptureLimits(NamedTuple):
    """How much a capture may be that nobody asked for.

    Attributes:
        new_bytes: of files whose content is not kept where the checkpoint would be, 0 or more.
        read_bytes: of all files that would have to be read, 0 or more; what is known since an earlier capture need not.
    """

    new_bytes: int
    read_bytes: int


class Unsupported(NamedTuple):
    """Looked, and this folder cannot have checkpoints: only the weaker mode is left, chosen before T1. R18."""

    why: WhyUnsupported
    detail: str
    paths: tuple[str, ...] = ()


class CheckpointMissing(NamedTuple):
    """Looked, and the checkpoint is not there, is not whole, or its name means other content."""

    ref: str
    detail: str


class Differs(StrEnum):
    """How a path of the folder differs from the checkpoint."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


class Difference(NamedTuple):
    """One path that differs.

    Attributes:
        path: relative to the workspace, with `/`; bytes that are no UTF-8 as `os.fsdecode` gives them, so that the file
            can be opened by it. Nothing but `shown` belongs in a fact or before a person.
    """

    path: str
    how: Differs

    @property
    def shown(self) -> str:
        """The path as strict text, and no two paths alike.

        It is the path itself, unless that holds bytes that are no UTF-8 or begins with a double quote: then it stands
        in double quotes, with `\\xNN` for such a byte, and a backslash before a quote or a backslash.
        """
        odd = any("\udc80" <= char <= "\udcff" for char in self.path)
        if not odd and not self.path.startswith('"'):
            return self.path
        escaped = self.path.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + escaped.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace") + '"'


class Compared(NamedTuple):
    """The folder was compared with the checkpoint.

    Attributes:
        differences: by path, at most `DIFFERENCES_MAX`; empty where the content is the same.
        total: how many there are.
        same_policy: False where other files would be captured today than then, such as after a change of what is
            ignored: a difference may then come from there.
    """

    differences: tuple[Difference, ...]
    total: int
    same_policy: bool


class Materialized(NamedTuple):
    """The content stands in a folder of its own, whole."""

    path: str


class TargetTaken(NamedTuple):
    """Something is at the target already; it was not touched."""

    path: str


class TargetUnusable(NamedTuple):
    """No folder may be made at the target, or none can be: inside the workspace or a folder of its store, or nowhere.

    Attributes:
        detail: for people: what is there.
    """

    path: str
    detail: str


class Kept(NamedTuple):
    """What is there, the oldest first."""

    checkpoints: tuple[KeptCheckpoint, ...]


class Removed(NamedTuple):
    """It is not there; and whether it was."""

    was_there: bool


NotKept: TypeAlias = Unsupported | CouldNotLook
"""Why a folder's content is not kept, or what is kept of it cannot be reached."""
Capture: TypeAlias = Checkpoint | NotKept
Verification: TypeAlias = Compared | CheckpointMissing | NotKept
Materialization: TypeAlias = Materialized | TargetTaken | TargetUnusable | CheckpointMissing | NotKept


class Checkpoints(Protocol):
    """Captures, compares, writes out and removes; what is accepted, and what follows, others decide.

    No method changes a file of the folder, or what belongs to the user in its repository. Whoever is killed at any
    point leaves at most a checkpoint that no fact names; the same call again finishes the work. Methods block (they
    may read a whole workspace) and may be called from several threads and processes at once.
    """

    @abstractmethod
    def capture(self, folder: str, key: str, limits: CaptureLimits | None = None) -> Capture:
        """Keep a copy of the folder's content: what the user tracks, and what is untracked and not ignored.

        The caller sees to it that nothing writes meanwhile (SPEC section 16, *When*). It lasts until it is removed.

        Args:
            folder: the workspace; it may lie inside a larger repository, of which only it is captured.
            key: names this checkpoint in its store for good, as `CHECKPOINT_KEY` allows; letters, digits, `_` and `-`.
                Captured again under the same key: the same answer for the same content, and for other content
                `CouldNotLook`.
            limits: what is beyond them is refused as `CONTENT_TOO_LARGE`, before anything is read or kept; an estimate
                from names and sizes. None: whatever it is.

        Raises:
            ValueError: the key is none.
        """

    @abstractmethod
    def kept(self, folder: str) -> Kept | NotKept:
        """All checkpoints in the store of this folder; those of other workspaces in one store too."""

    @abstractmethod
    def verify(self, folder: str, checkpoint: Checkpoint) -> Verification:
        """Compare the folder's content with a checkpoint, which is read whole: what is missing of it is told.

        A file of the checkpoint that is there unchanged is no difference, also where it is ignored by now.
        """

    @abstractmethod
    def materialize(self, folder: str, checkpoint: Checkpoint, target: str) -> Materialization:
        """Write the content into a new folder, which appears whole or not at all and can have checkpoints itself.

        The new folder needs nothing of the first one or its store, whatever becomes of them.

        Args:
            folder: where the checkpoint was made: it is looked up in that store, and the folder is not touched.
            target: must not be there; its parent must, and be no part of the workspace or of its store.
        """

    @abstractmethod
    def remove(self, folder: str, ref: str) -> Removed | NotKept:
        """Give a checkpoint up. Its content goes when its store next collects garbage.

        Args:
            folder: a workspace in whose store it is.
            ref: what is none of ours is never touched: it is as if it were not there.
        """
