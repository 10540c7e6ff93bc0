"""From the files of a workspace to a tree object: which belong to it. SPEC section 16, F15."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable
from typing import Final, NamedTuple

from ...ports.checkpoints import WhyUnsupported
from ...ports.workspace import CouldNotLook
from .names import Names, users_index_of
from .policy import Own
from .program import CannotAnswer, failure
from .raw_view import RawView
from .refusals import (
    refuse_collisions,
    refuse_everything_ignored,
    refuse_gitlinks,
    refuse_lfs,
    refuse_nested_repository,
    refuse_repositories_in,
    refused,
)

GITLINK: Final = b"160000"
ATTEMPTS: Final = 3


class Listed(NamedTuple):
    """What an index names, from the top of the working tree. Plain sets of bytes: there may be very many."""

    paths: set[bytes]
    gitlinks: list[bytes]


class Known(NamedTuple):
    """A tree that the view's index was made for, and what was found out about its names."""

    tree: str
    names: Names


def write_tree(view: RawView, own: Own, known: Known | None = None) -> Known:
    """Bring the view's index up to the files as they are, and write it as a tree.

    In it is what the user's index names, also where it is ignored, and what is not ignored; nothing else, whatever the
    view's index held before.

    Args:
        view: over the working tree; the less its index differs from the files, the less is read.
        own: the files in the workspace that are ours and no content.
        known: what is known of the index that the view begins with.

    Raises:
        CannotAnswer: something in the folder refuses, or could not be read.
        OSError: likewise.
    """
    _refuse_ignored_folder(view)
    users_index = users_index_of(view.repository)
    if known is not None and known.names.users_index == users_index:
        _add(view)
        tree = _write(view)
        if _has_known_names(view, known, tree):
            return Known(tree, known.names)
    tracked = _of_users_index(view)
    refuse_gitlinks(WhyUnsupported.SUBMODULES, tracked.gitlinks)
    _add(view)
    paths = _settled_paths(view, own, tracked.paths)
    names = Names.of(users_index, paths, tracked.paths)
    refuse_repositories_in(view.repository.top, names.folders)
    refuse_collisions(paths | set(names.folders))
    refuse_lfs(view, names.attributes)
    if not paths:
        refuse_everything_ignored(view, own)
    return Known(_write(view) if paths else _empty_tree(view), names)


def _has_known_names(view: RawView, known: Known, tree: str) -> bool:
    """Whether all that was found out about the names holds of this tree, too.

    Raises:
        CannotAnswer: something refuses.
    """
    changed = view.ask("diff-tree", "-r", "-z", "--raw", "--no-renames", known.tree, tree).split(b"\0")[:-1:2]
    if not all(about[-1:] in b"MT" and about.split()[1] != GITLINK for about in changed):
        return False
    names, top = known.names, view.repository.top
    if _ignored(view, names.untracked) or any(_is_file(top, path) for path in names.absent):
        return False
    refuse_repositories_in(top, names.folders)
    refuse_lfs(view, names.attributes)
    return True


def _settled_paths(view: RawView, own: Own, tracked: set[bytes]) -> set[bytes]:
    """Take out of the index what belongs to nobody, and put in what is tracked although it is ignored."""
    there = _listed(view, view.ask("ls-files", "-s", "-z", "--full-name"))
    refuse_gitlinks(WhyUnsupported.NESTED_REPOSITORY, there.gitlinks)
    mine = own.among(there.paths)
    gone = _ignored(view, there.paths - tracked - mine) | mine
    missing = tracked - there.paths
    kept = {path for path in missing - own.among(missing) if _is_file(view.repository.top, path)}
    if gone:
        view.ask("update-index", "--force-remove", "-z", "--stdin", given=_lines(gone))
    if kept:
        view.ask("update-index", "--add", "--remove", "-z", "--stdin", given=_lines(kept))
    return (there.paths - gone) | kept


def _write(view: RawView) -> str:
    prefix = view.repository.prefix
    ended = view.run("write-tree", *([f"--prefix={os.fsdecode(prefix)}"] if prefix else []))
    if ended.status and "prefix" in ended.error and "not found" in ended.error:
        return _empty_tree(view)
    if ended.status:
        raise failure(view.repository.top, ["write-tree"], ended)
    return ended.out.decode().strip()


def _empty_tree(view: RawView) -> str:
    return view.ask("hash-object", "-t", "tree", "-w", "--stdin").decode().strip()


def _refuse_ignored_folder(view: RawView) -> None:
    prefix = view.repository.prefix
    if prefix and _ignored(view, [prefix]):
        raise refused(WhyUnsupported.FOLDER_IGNORED, "the repository around this folder ignores it", [])


def _add(view: RawView) -> None:
    """Let Git find what changed. Files that come and go meanwhile make it fail: it is tried again."""
    folder = view.repository.folder
    for attempt in range(1, ATTEMPTS + 1):
        ended = view.run("add", "--all", "--", ".", cwd=folder)
        if not ended.status and "could not open directory" not in ended.error:
            return
        refuse_nested_repository(view)
        if attempt == ATTEMPTS:
            raise failure(folder, ["add"], ended)


def _listed(view: RawView, listing: bytes) -> Listed:
    """What `ls-files -s -z` wrote: mode, object and stage, of one length, before each path."""
    head = (
        len("100644 ") + hashlib.new(view.repository.object_format, usedforsecurity=False).digest_size * 2 + len(" 0\t")
    )
    lines = listing.split(b"\0")
    lines.pop()
    has_gitlinks = listing.startswith(GITLINK) or b"\0" + GITLINK in listing
    gitlinks = [line[head:] for line in lines if line.startswith(GITLINK)] if has_gitlinks else []
    return Listed({line[head:] for line in lines}, gitlinks)


def _of_users_index(view: RawView) -> Listed:
    index = view.copy_of_users_index()
    if index is None:
        return Listed(set(), [])
    arguments = ("ls-files", "-s", "-z", "--full-name")
    return _listed(view, view.ask(*arguments, cwd=view.repository.folder, GIT_INDEX_FILE=index))


def _ignored(view: RawView, paths: Iterable[bytes]) -> set[bytes]:
    """Those of the paths that are ignored, as if none were in an index."""
    here = b"./"  # a file may be called `:(exclude)x`, which alone would mean something else
    given = _lines(here + path for path in paths)
    if not given:
        return set()
    ended = view.run("check-ignore", "--no-index", "-z", "--stdin", given=given)
    if ended.status not in {0, 1}:  # 1: none of them
        raise failure(view.repository.top, ["check-ignore"], ended)
    return {path.removeprefix(here) for path in ended.out.split(b"\0") if path}


def _lines(paths: Iterable[bytes]) -> bytes:
    return b"".join(path + b"\0" for path in sorted(paths))


def _is_file(top: str, path: bytes) -> bool:
    """Whether a file or a link stands at the path itself, not behind a link."""
    full = os.path.join(os.fsencode(top), path)
    try:
        mode = os.lstat(full).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise CannotAnswer(CouldNotLook(os.fsdecode(full), str(error))) from error
    folder = os.path.dirname(full)
    return (stat.S_ISREG(mode) or stat.S_ISLNK(mode)) and os.path.realpath(folder) == folder
