"""A folder made from a checkpoint: a repository of its own with all that the checkpoint holds. ADR 0082."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ...ports.checkpoints import Materialized, TargetTaken, TargetUnusable
from ...ports.workspace import MARKER_NAME, CouldNotLook
from .folder_lock import folder_lock
from .policy import Own
from .program import NO_CONFIG_OF_THE_USER, CannotAnswer, failure, run_git
from .raw_view import RAW_ATTRIBUTES, exclude_line, quoted
from .repository import Repository
from .users_files import content_of

BRANCH: Final = "safepoint"
BASE_REF: Final = "refs/safepoint/base"
PARTIAL_PREFIX: Final = ".safepoint-partial-"
FILLING_PREFIX: Final = "filling-"
_PATH_NAME: Final = "path"
_RANDOM_BYTES: Final = 16
_PATIENCE_SECONDS: Final = 60.0
_OF_GIT_FOLDERS: Final = ("HEAD", "objects", "refs")


def write_out(
    repository: Repository, own: Own, place: Path, commit: str, target: str
) -> Materialized | TargetTaken | TargetUnusable:
    """Make the folder beside its place and move it there when it is whole.

    Args:
        own: what of the workspace is ours and no content: a folder may be made there.
        place: our own folder, where it is written down which folders are being filled.

    Raises:
        CannotAnswer: it could not be made; what was begun is gone, or is taken away by the next try.
        OSError: likewise.
    """
    parent, name = os.path.split(os.path.abspath(target))
    if not name or not os.path.isdir(parent):
        return TargetUnusable(target, f"{parent} is no folder")
    beside = os.path.realpath(parent, strict=True)
    target = os.path.join(beside, name)
    if os.path.lexists(target):
        return TargetTaken(target)
    if why := _why_not_there(repository, own, target):
        return TargetUnusable(target, why)
    with _filling(place, beside) as (partial, lock):
        _fill(repository, commit, partial, lock)
        if os.path.lexists(target):
            return TargetTaken(target)
        os.rename(partial, target)
    _sync(beside)
    return Materialized(target)


def _why_not_there(repository: Repository, own: Own, target: str) -> str | None:
    """A repository in the workspace would be a nested one, which no checkpoint holds; one in a Git folder, damage."""
    for around in _with_parents(os.path.dirname(target)):
        if os.path.basename(around) == ".git" or all(
            os.path.lexists(os.path.join(around, name)) for name in _OF_GIT_FOLDERS
        ):
            return f"{around} is a folder of Git's own"
    inside = os.path.relpath(target, repository.folder)
    if inside.split(os.sep)[0] == os.pardir:
        return None
    ours = (repository.prefix + os.fsencode(path) for path in _with_parents(inside))
    return None if own.among(set(ours)) else f"it is inside the workspace {repository.folder}"


def _with_parents(path: str) -> Iterator[str]:
    yield path
    yield from (str(around) for around in Path(path).parents if str(around) != os.curdir)


@contextlib.contextmanager
def _filling(place: Path, beside: str) -> Iterator[tuple[str, int]]:
    """Make the folder that is filled, under a name that nobody else makes, and write that down before.

    What a killed process wrote down is taken away; nothing else is ever removed.

    Yields:
        The folder, and the descriptor of the lock that tells that it is being filled.
    """
    partial = os.path.join(beside, f"{PARTIAL_PREFIX}{secrets.token_hex(_RANDOM_BYTES)}")
    with contextlib.ExitStack() as held:
        try:
            with folder_lock(place, patience_seconds=_PATIENCE_SECONDS):
                _remove_left_behind(place)
                record = tempfile.mkdtemp(prefix=FILLING_PREFIX, dir=place)
                lock = held.enter_context(folder_lock(record))
        except TimeoutError as error:
            raise CannotAnswer(CouldNotLook(os.fspath(place), str(error))) from error
        try:
            Path(record, _PATH_NAME).write_bytes(os.fsencode(partial))
            os.mkdir(partial)
            try:
                yield partial, lock
            finally:
                shutil.rmtree(partial, ignore_errors=True)
        finally:
            if not os.path.lexists(partial):
                shutil.rmtree(record, ignore_errors=True)


def _remove_left_behind(place: Path) -> None:
    """Remove folders whose process was killed while it filled them. The caller holds the place."""
    for record in place.glob(f"{FILLING_PREFIX}*"):
        with contextlib.suppress(OSError), folder_lock(record):
            with contextlib.suppress(FileNotFoundError):
                partial = os.fsdecode((record / _PATH_NAME).read_bytes())
                if os.path.basename(partial).startswith(PARTIAL_PREFIX):
                    shutil.rmtree(partial)
            shutil.rmtree(record)


def _fill(repository: Repository, commit: str, folder: str, lock: int) -> None:
    def git(*arguments: str, given: bytes = b"", **variables: str) -> None:
        environment = {**NO_CONFIG_OF_THE_USER, "GIT_CEILING_DIRECTORIES": os.path.dirname(folder), **variables}
        ended = run_git(arguments, cwd=folder, environment=environment, given=given, held=(lock,))
        if ended.status:
            raise failure(folder, arguments, ended)

    git("init", "--quiet", "--template=", f"--object-format={repository.object_format}", f"--initial-branch={BRANCH}")
    own = Path(folder, ".git")
    (own / "info").mkdir(exist_ok=True)
    (own / "info" / "attributes").write_bytes(RAW_ATTRIBUTES)
    excluded = content_of(repository.exclude_files[0]) + b"\n" + exclude_line(MARKER_NAME.encode())
    (own / "info" / "exclude").write_bytes(excluded)
    # All that the checkpoint holds is copied, and what is packed is copied as it is: nothing is borrowed.
    pack = ("pack-objects", "--quiet", "--revs", "--window=0", ".git/objects/pack/pack")
    git(*pack, given=commit.encode() + b"\n", GIT_ALTERNATE_OBJECT_DIRECTORIES=quoted(repository.objects))
    git("update-ref", f"refs/heads/{BRANCH}", commit)
    git("update-ref", BASE_REF, commit)
    git("read-tree", "--reset", "-u", commit)


def _sync(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
