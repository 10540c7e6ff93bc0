"""A folder made from a checkpoint: a repository of its own, so that the user's one hears nothing of it. ADR 0061."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ...ports.checkpoints import Materialized, TargetTaken
from ...ports.workspace import MARKER_NAME, CouldNotLook
from .folder_lock import folder_lock
from .program import NO_CONFIG_OF_THE_USER, CannotAnswer, failure, run_git
from .raw_view import RAW_ATTRIBUTES, exclude_line
from .repository import Repository

BRANCH: Final = "safepoint"
BASE_REF: Final = "refs/safepoint/base"
PARTIAL_SUFFIX: Final = ".safepoint-partial"
_NAME_CHARS_MAX: Final = 200


def write_out(repository: Repository, commit: str, target: str) -> Materialized | TargetTaken:
    """Make the folder beside its place and move it there when it is whole.

    Raises:
        CannotAnswer: it could not be made; what was begun is gone, or is taken away by the next try.
        OSError: likewise.
    """
    place = os.path.join(os.path.realpath(os.path.dirname(os.path.abspath(target)), strict=True), _name(target))
    if os.path.lexists(place):
        return TargetTaken(place)
    partial = f"{os.path.dirname(place)}/.{_name(target)[:_NAME_CHARS_MAX]}{PARTIAL_SUFFIX}"
    with _held(partial) as lock:
        try:
            _empty(partial)
            _fill(repository, commit, partial, lock)
            if os.path.lexists(place):
                return TargetTaken(place)
            os.rename(partial, place)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
    _sync(os.path.dirname(place))
    return Materialized(place)


def _name(target: str) -> str:
    name = os.path.basename(os.path.abspath(target))
    if not name:
        raise CannotAnswer(CouldNotLook(target, "it names no folder"))
    return name


@contextlib.contextmanager
def _held(partial: str) -> Iterator[int]:
    """Make the folder that is filled, or take over the one that a killed process left."""
    while True:
        Path(partial).mkdir(exist_ok=True)
        try:
            with folder_lock(partial) as lock:
                if _is_still(partial, lock):
                    yield lock
                    return
        except FileNotFoundError:
            continue  # somebody else finished it, or took it away
        except TimeoutError as error:
            raise CannotAnswer(CouldNotLook(partial, str(error))) from error


def _is_still(path: str, descriptor: int) -> bool:
    return os.path.samestat(os.stat(path), os.fstat(descriptor))


def _empty(folder: str) -> None:
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)


def _fill(repository: Repository, commit: str, folder: str, lock: int) -> None:
    def git(*arguments: str) -> None:
        environment = {**NO_CONFIG_OF_THE_USER, "GIT_CEILING_DIRECTORIES": os.path.dirname(folder)}
        ended = run_git(arguments, cwd=folder, environment=environment, held=(lock,))
        if ended.status:
            raise failure(folder, arguments, ended)

    git("init", "--quiet", "--template=", f"--object-format={repository.object_format}", f"--initial-branch={BRANCH}")
    own = Path(folder, ".git")
    (own / "info").mkdir(exist_ok=True)
    (own / "info" / "attributes").write_bytes(RAW_ATTRIBUTES)
    (own / "info" / "exclude").write_bytes(_excludes(repository) + exclude_line(MARKER_NAME.encode()))
    (own / "objects" / "info").mkdir(exist_ok=True)
    (own / "objects" / "info" / "alternates").write_bytes(_alternates(repository))
    git("update-ref", f"refs/heads/{BRANCH}", commit)
    git("update-ref", BASE_REF, commit)
    git("read-tree", "--reset", "-u", commit)


def _excludes(repository: Repository) -> bytes:
    try:
        return Path(repository.exclude_files[0]).read_bytes() + b"\n"
    except (FileNotFoundError, NotADirectoryError):
        return b""


def _alternates(repository: Repository) -> bytes:
    path = os.fsencode(repository.objects)
    if b"\n" in path or path.startswith((b"#", b'"')):
        raise CannotAnswer(CouldNotLook(repository.objects, "Git cannot borrow objects from a folder of such a name"))
    return path + b"\n"


def _sync(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
