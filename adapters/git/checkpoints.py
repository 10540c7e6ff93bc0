"""Checkpoints carried by the repository that holds the workspace. SPEC section 16, ADR 0052."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

from ...ports.checkpoints import (
    DIFFERENCES_MAX,
    Capture,
    Checkpoint,
    CheckpointMissing,
    Checkpoints,
    Compared,
    Kept,
    Materialization,
    Removed,
    Unsupported,
    Verification,
)
from ...ports.clock import Clock
from ...ports.workspace import CouldNotLook
from . import index_cache, refs
from .comparing import differences_between
from .isolated import write_out
from .policy import Own, policy_hash
from .program import CannotAnswer
from .raw_view import RawView, raw_view
from .repository import Repository, find_repository
from .working_tree import write_tree

AnswerT = TypeVar("AnswerT")
_KEY_CHARS: Final = 32


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

    def capture(self, folder: str, key: str) -> Capture:
        """Write the files as they are as a tree, and keep it by a ref of our own."""
        ref = refs.ref_of(key)
        return _answered(folder, lambda: self._capture(folder, ref))

    def kept(self, folder: str) -> Kept | Unsupported | CouldNotLook:
        """The checkpoints of the repository that holds the folder."""
        return _answered(folder, lambda: Kept(tuple(one.kept for one in refs.checkpoints_in(find_repository(folder)))))

    def verify(self, folder: str, checkpoint: Checkpoint) -> Verification:
        """Compare; new objects that this takes are thrown away again."""
        return _answered(folder, lambda: self._verify(folder, checkpoint))

    def materialize(self, folder: str, checkpoint: Checkpoint, target: str) -> Materialization:
        """Make a repository of its own that borrows the objects of the one that has the checkpoint."""
        return _answered(folder, lambda: self._materialize(folder, checkpoint, target))

    def remove(self, folder: str, ref: str) -> Removed | Unsupported | CouldNotLook:
        """Remove the ref."""
        return _answered(folder, lambda: Removed(refs.give_up(find_repository(folder), ref)))

    def _capture(self, folder: str, ref: str) -> Checkpoint | CouldNotLook:
        repository = find_repository(folder)
        policy = policy_hash(repository)
        with self._view(repository, keep_objects=True) as view:
            known = self._recall(repository, view)
            tree = write_tree(view, Own(repository, self._own))
            checkpoint = Checkpoint(refs.CARRIER, ref, tree, policy)
            commit = refs.make_commit(view, tree, policy, self._clock.now())
            if not refs.keep(repository, ref, commit):
                there = refs.checkpoints_in(repository, ref)
                if not there or there[0].kept.checkpoint != checkpoint:
                    return CouldNotLook(folder, f"{ref} is there already, and keeps other content")
                commit = there[0].commit
            # Of two that keep the same objects the older: the newer is often given up again, for nothing had changed.
            if known is None or known.kept.checkpoint.tree_id != tree:
                index_cache.remember(self._cached_index(repository), view.index, ref, commit)
            else:
                index_cache.remember(self._cached_index(repository), view.index, known.ref, known.commit)
        return checkpoint

    def _verify(self, folder: str, checkpoint: Checkpoint) -> Compared | CheckpointMissing:
        repository = find_repository(folder)
        with self._view(repository, keep_objects=False) as view:
            commit = refs.whole_checkpoint(repository, view, checkpoint)
            if isinstance(commit, CheckpointMissing):
                return commit
            self._recall(repository, view)
            found = differences_between(view, checkpoint.tree_id, write_tree(view, Own(repository, self._own)))
        same_policy = policy_hash(repository) == checkpoint.policy_hash
        return Compared(tuple(found[:DIFFERENCES_MAX]), len(found), same_policy)

    def _materialize(self, folder: str, checkpoint: Checkpoint, target: str) -> Materialization:
        repository = find_repository(folder)
        with self._view(repository, keep_objects=False) as view:
            commit = refs.whole_checkpoint(repository, view, checkpoint)
        return commit if isinstance(commit, CheckpointMissing) else write_out(repository, commit, target)

    def _recall(self, repository: Repository, view: RawView) -> refs.Found | None:
        """Begin with what is remembered of the files, and the checkpoint that keeps its objects."""
        known = index_cache.recall(self._cached_index(repository), view.index)
        if known is None:
            return None
        ref, commit = known
        for found in refs.checkpoints_in(repository, ref):
            if found.commit == commit:
                return found
        os.unlink(view.index)
        return None

    @contextmanager
    def _view(self, repository: Repository, *, keep_objects: bool) -> Iterator[RawView]:
        self._place.mkdir(mode=0o700, parents=True, exist_ok=True)
        with raw_view(repository, self._place, Own(repository, self._own), keep_objects=keep_objects) as view:
            yield view

    def _cached_index(self, repository: Repository) -> Path:
        """One for each workspace, told apart by all that decides what stands in it."""
        about = (repository.folder, repository.top, repository.common, repository.object_format)
        return self._place / f"index-{hashlib.sha256(os.fsencode(chr(0).join(about))).hexdigest()[:_KEY_CHARS]}"


def _answered(folder: str, work: Callable[[], AnswerT]) -> AnswerT | Unsupported | CouldNotLook:
    """What the work answers, or what ended it."""
    try:
        return work()
    except CannotAnswer as ended:
        return ended.answer
    except OSError as error:
        return CouldNotLook(folder, str(error))
