"""Checkpoints carried by the repository that holds the workspace. SPEC section 16, ADR 0060."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from ...ports.checkpoints import (
    DIFFERENCES_MAX,
    Capture,
    CaptureLimits,
    Checkpoint,
    CheckpointMissing,
    Checkpoints,
    Compared,
    Kept,
    Materialization,
    NotKept,
    Removed,
    Verification,
)
from ...ports.clock import Clock
from ...ports.workspace import CouldNotLook
from . import index_cache, refs
from .comparing import differences_between
from .isolated import write_out
from .names import Names
from .policy import Own, policy_hash
from .program import CannotAnswer
from .raw_view import RawView, raw_view
from .repository import Repository, find_repository
from .sizes import refuse_too_large
from .working_tree import Known, write_tree

AnswerT = TypeVar("AnswerT")
_KEY_CHARS: Final = 32


class _Before(NamedTuple):
    """What is remembered, and the tree that it was made for."""

    ref: str
    commit: str
    names: Names
    tree: str


class GitCheckpoints(Checkpoints):
    """Makes commits of a working tree without the user's branch, index, hooks, filters, configuration or identity.

    Args:
        place: a folder of ours for indexes and views; made when it is first needed. What is in it is a cache.
        clock: says when a checkpoint was made.
        own: files of ours that may lie in a workspace and are no content, absolute; `*` at the end of one stands for
            any ending. The place is one of them.
    """

    def __init__(self, place: Path, clock: Clock, own: tuple[str, ...] = ()) -> None:
        self._place, self._clock = place, clock
        self._own = (f"{os.path.realpath(place)}/*", *own)

    def capture(self, folder: str, key: str, limits: CaptureLimits | None = None) -> Capture:
        """Write the files as they are as a tree, and keep it by a ref of our own."""
        ref = refs.ref_of(key)
        return _answered(folder, lambda: self._capture(folder, ref, limits))

    def kept(self, folder: str) -> Kept | NotKept:
        """The checkpoints of the repository that holds the folder."""
        return _answered(folder, lambda: Kept(tuple(one.kept for one in refs.checkpoints_in(find_repository(folder)))))

    def verify(self, folder: str, checkpoint: Checkpoint) -> Verification:
        """Compare; new objects that this takes are thrown away again."""
        return _answered(folder, lambda: self._verify(folder, checkpoint))

    def materialize(self, folder: str, checkpoint: Checkpoint, target: str) -> Materialization:
        """Make a repository of its own, with all objects of the checkpoint."""
        return _answered(folder, lambda: self._materialize(folder, checkpoint, target))

    def remove(self, folder: str, ref: str) -> Removed | NotKept:
        """Remove the ref."""
        return _answered(folder, lambda: Removed(refs.give_up(find_repository(folder), ref)))

    def _capture(self, folder: str, ref: str, limits: CaptureLimits | None) -> Checkpoint | CouldNotLook:
        repository = find_repository(folder)
        policy = policy_hash(repository)
        with self._view(repository, keep_objects=True) as view:
            before = self._recall(repository, view)
            if limits is not None:
                refuse_too_large(view, limits)
            tree, names = self._written(repository, view, before)
            checkpoint = Checkpoint(refs.CARRIER, ref, tree, policy)
            commit = refs.make_commit(view, tree, policy, self._clock.now())
            if not refs.keep(repository, ref, commit):
                there = refs.checkpoints_in(repository, ref)
                if not there or there[0].kept.checkpoint != checkpoint:
                    return CouldNotLook(folder, f"{ref} is there already, and keeps other content")
                commit = there[0].commit
            now = index_cache.Remembered(ref, commit, names)
            if before is not None and before.tree == tree:
                # Of two that keep the same objects the older: the newer is often given up again, for nothing changed.
                now = index_cache.Remembered(before.ref, before.commit, names)
            index_cache.remember(self._cached_index(repository), view.index, now)
        return checkpoint

    def _verify(self, folder: str, checkpoint: Checkpoint) -> Compared | CheckpointMissing:
        repository = find_repository(folder)
        with self._view(repository, keep_objects=False) as view:
            commit = refs.whole_checkpoint(repository, view, checkpoint)
            if isinstance(commit, CheckpointMissing):
                return commit
            now = self._written(repository, view, self._recall(repository, view))
            found = differences_between(view, checkpoint.tree_id, now.tree)
        same_policy = policy_hash(repository) == checkpoint.policy_hash
        return Compared(tuple(found[:DIFFERENCES_MAX]), len(found), same_policy)

    def _materialize(self, folder: str, checkpoint: Checkpoint, target: str) -> Materialization:
        repository = find_repository(folder)
        with self._view(repository, keep_objects=False) as view:
            commit = refs.whole_checkpoint(repository, view, checkpoint)
        if isinstance(commit, CheckpointMissing):
            return commit
        return write_out(repository, Own(repository, self._own), self._place, commit, target)

    def _recall(self, repository: Repository, view: RawView) -> _Before | None:
        """Begin with what is remembered of the files, if the checkpoint is there that keeps its objects."""
        remembered = index_cache.recall(self._cached_index(repository), view.index)
        if remembered is None:
            return None
        for found in refs.checkpoints_in(repository, remembered.ref):
            if found.commit == remembered.commit:
                return _Before(*remembered, found.kept.checkpoint.tree_id)
        os.unlink(view.index)
        return None

    def _written(self, repository: Repository, view: RawView, before: _Before | None) -> Known:
        known = None if before is None else Known(before.tree, before.names)
        return write_tree(view, Own(repository, self._own), known)

    @contextmanager
    def _view(self, repository: Repository, *, keep_objects: bool) -> Iterator[RawView]:
        self._place.mkdir(mode=0o700, parents=True, exist_ok=True)
        with raw_view(repository, self._place, Own(repository, self._own), keep_objects=keep_objects) as view:
            yield view

    def _cached_index(self, repository: Repository) -> Path:
        """One for each workspace, told apart by all that decides what stands in it."""
        about = (repository.folder, repository.top, repository.common, repository.object_format, *self._own)
        return self._place / f"index-{hashlib.sha256(os.fsencode(chr(0).join(about))).hexdigest()[:_KEY_CHARS]}"


def _answered(folder: str, work: Callable[[], AnswerT]) -> AnswerT | NotKept:
    """What the work answers, or what ended it."""
    try:
        return work()
    except CannotAnswer as ended:
        return ended.answer
    except OSError as error:
        return CouldNotLook(folder, str(error))
