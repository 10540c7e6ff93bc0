"""Checkpoints as refs of our own: made once, listed, given up. SPEC section 16, F15."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from datetime import datetime
from typing import Final, NamedTuple

from ...domain import canonical
from ...domain.events.event import Timestamp
from ...ports.checkpoints import CHECKPOINT_KEY, Checkpoint, CheckpointMissing, KeptCheckpoint
from ...ports.workspace import CouldNotLook
from .folder_lock import folder_lock
from .program import CannotAnswer, failure
from .raw_view import RawView
from .repository import Repository

CARRIER: Final = "git"
NAMESPACE: Final = "refs/safepoint/checkpoints/"
LOCK_PATIENCE_SECONDS: Final = 60.0
IDENTITY: Final = {"NAME": "Safepoint", "EMAIL": "safepoint@localhost"}
_FORMAT: Final = "--format=%(refname)%00%(objectname)%00%(tree)%00%(contents)%00%01"


class Found(NamedTuple):
    """A checkpoint in a repository, and the commit that carries it."""

    kept: KeptCheckpoint
    commit: str

    @property
    def ref(self) -> str:
        """Its name."""
        return self.kept.checkpoint.ref


def ref_of(key: str) -> str:
    """The ref of a key.

    Raises:
        ValueError: it is no key.
    """
    if CHECKPOINT_KEY.fullmatch(key) is None:
        raise ValueError(f"no key of a checkpoint: {key!r}")
    return NAMESPACE + key


def make_commit(view: RawView, tree: str, policy: str, made_at: Timestamp) -> str:
    """Make the commit that carries a tree: without parents, and in our own name."""
    folder = os.fsencode(view.repository.folder).decode("utf-8", "backslashreplace")
    about = {"folder": folder, "made_at": made_at, "policy_hash": policy, "version": 1}
    message = b"Safepoint checkpoint\n\n" + canonical.encode(about) + b"\n"
    date = f"{int(datetime.fromisoformat(made_at).timestamp())} +0000"
    variables = {f"GIT_{role}_{what}": text for role in ("AUTHOR", "COMMITTER") for what, text in IDENTITY.items()}
    dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    return view.ask("commit-tree", tree, "-F", "-", given=message, **variables, **dates).decode().strip()


def checkpoints_in(repository: Repository, *refs: str) -> list[Found]:
    """The checkpoints of these refs, or all of them; what is damaged or none of ours is left out.

    Raises:
        CannotAnswer: it could not be looked.
    """
    arguments = ["for-each-ref", _FORMAT, *(refs or (NAMESPACE.rstrip("/"),))]
    ended = repository.run(*arguments)
    if ended.status and len(refs) == 1:
        return []  # it is there, and its commit cannot be read
    if ended.status:
        names = _asked(repository, "for-each-ref", "--format=%(refname)", *arguments[2:])
        return [found for name in names.decode().splitlines() for found in checkpoints_in(repository, name)]
    found = []
    for entry in ended.out.split(b"\0\1\n"):
        ref, _, rest = entry.partition(b"\0")
        commit, _, rest = rest.partition(b"\0")
        tree, _, message = rest.partition(b"\0")
        with contextlib.suppress(canonical.CanonicalError, IndexError, KeyError, TypeError, ValueError):
            about = canonical.decode(message.split(b"\n\n", 1)[1])
            found.append(_found(ref.decode(), commit.decode(), tree.decode(), about))
    return sorted(found, key=lambda one: (one.kept.made_at, one.ref))


def _asked(repository: Repository, *arguments: str) -> bytes:
    ended = repository.run(*arguments)
    if ended.status:
        raise failure(repository.top, arguments, ended)
    return ended.out


def _found(ref: str, commit: str, tree: str, about: object) -> Found:
    if not isinstance(about, dict):
        raise TypeError(about)
    checkpoint = Checkpoint(CARRIER, ref, tree, str(about["policy_hash"]))
    return Found(KeptCheckpoint(checkpoint, str(about["made_at"]), str(about["folder"])), commit)


def whole_checkpoint(repository: Repository, view: RawView, checkpoint: Checkpoint) -> str | CheckpointMissing:
    """The commit of a checkpoint that is there with all its objects."""
    if checkpoint.carrier != CARRIER or not checkpoint.ref.startswith(NAMESPACE):
        return CheckpointMissing(checkpoint.ref, f"it is not carried by Git, but by {checkpoint.carrier}")
    found = checkpoints_in(repository, checkpoint.ref)
    if not found:
        return CheckpointMissing(checkpoint.ref, f"{repository.common} has no such checkpoint, or cannot read it")
    if found[0].kept.checkpoint.tree_id != checkpoint.tree_id:
        return CheckpointMissing(checkpoint.ref, "the ref has other content than was accepted")
    ended = view.run("rev-list", "--objects", "--quiet", found[0].commit)
    if ended.status:
        return CheckpointMissing(checkpoint.ref, f"it is not whole: {ended.error}")
    return found[0].commit


def keep(repository: Repository, ref: str, commit: str) -> bool:
    """Let a new ref name a commit; False where the ref is there already.

    Raises:
        CannotAnswer: it could not be written.
    """
    arguments = ["update-ref", "--no-deref", ref, commit, "0" * len(commit)]
    with _refs_held(repository) as lock:
        _remove_stale_lock(repository, ref)
        ended = repository.run(*arguments, held=(lock,))
        if ended.status and not checkpoints_in(repository, ref):
            raise failure(repository.top, arguments, ended)
    return ended.status == 0


def give_up(repository: Repository, ref: str) -> bool:
    """Remove a ref; False where there was none.

    Raises:
        CannotAnswer: it could not be removed.
    """
    if not ref.startswith(NAMESPACE) or CHECKPOINT_KEY.fullmatch(ref.removeprefix(NAMESPACE)) is None:
        return False
    with _refs_held(repository) as lock:
        there = repository.run("show-ref", "--verify", "--quiet", ref)
        if there.status:
            return False
        _remove_stale_lock(repository, ref)
        arguments = ["update-ref", "--no-deref", "-d", ref]
        # Apart from us: half way through it holds a lock of the user's repository, and must not be killed with us.
        ended = repository.run(*arguments, held=(lock,), apart=True)
        if ended.status:
            raise failure(repository.top, arguments, ended)
    return True


@contextlib.contextmanager
def _refs_held(repository: Repository) -> Iterator[int]:
    """Keep every other process of ours, whatever its store, from writing these refs; also beyond our own end, until
    the command that we started has ended.
    """
    try:
        with folder_lock(repository.common, patience_seconds=LOCK_PATIENCE_SECONDS) as lock:
            yield lock
    except TimeoutError as error:
        raise CannotAnswer(CouldNotLook(repository.common, str(error))) from error


def _remove_stale_lock(repository: Repository, ref: str) -> None:
    """The lock of one ref of ours that a killed command left; nobody alive can hold it, for we hold all of them."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        os.unlink(os.path.join(repository.common, f"{ref}.lock"))
