"""From the files of a workspace to a tree object: which belong to it, and what refuses. SPEC section 16, F15."""

from __future__ import annotations

import hashlib
import os
import stat
import unicodedata
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final, NamedTuple

from ...ports.checkpoints import Unsupported, WhyUnsupported
from ...ports.workspace import CouldNotLook
from .policy import Own
from .program import CannotAnswer, failure
from .raw_view import RawView

GITLINK: Final = b"160000"
ATTEMPTS: Final = 3
PATHS_SHOWN_MAX: Final = 20
NESTED: Final = "a repository of its own, which Git sees as one thing, is in it"


class Listed(NamedTuple):
    """What an index names, from the top of the working tree. Plain sets of bytes: there may be very many."""

    paths: set[bytes]
    gitlinks: list[bytes]


def write_tree(view: RawView, own: Own) -> str:
    """Bring the view's index up to the files as they are, and write it as a tree.

    In it is what the user's index names, also where it is ignored, and what is not ignored; nothing else, whatever the
    view's index held before.

    Args:
        view: over the working tree; the less its index differs from the files, the less is read.
        own: the files in the workspace that are ours and no content.

    Returns:
        The tree's id.

    Raises:
        CannotAnswer: something in the folder refuses, or could not be read.
    """
    repository = view.repository
    _refuse_ignored_folder(view)
    tracked = _of_users_index(view)
    if tracked.gitlinks:
        raise _refused(WhyUnsupported.SUBMODULES, "other repositories are tracked in it", tracked.gitlinks)
    _add(view)
    there = _listed(view, view.ask("ls-files", "-s", "-z", "--full-name"))
    if there.gitlinks:
        raise _refused(WhyUnsupported.NESTED_REPOSITORY, NESTED, there.gitlinks)
    mine = own.among(there.paths)
    gone = _ignored(view, there.paths - tracked.paths - mine) | mine
    missing = tracked.paths - there.paths
    kept = {path for path in missing - own.among(missing) if _is_file(repository.top, path)}
    if gone:
        view.ask("update-index", "--force-remove", "-z", "--stdin", given=_lines(gone))
    if kept:
        view.ask("update-index", "--add", "--remove", "-z", "--stdin", given=_lines(kept))
    paths = (there.paths - gone) | kept
    folders = _folders(paths)
    _refuse_repositories_in(repository.top, folders)
    _refuse_collisions(paths | folders)
    _refuse_lfs(view, paths)
    if not paths:
        _refuse_everything_ignored(view, own)
        return view.ask("hash-object", "-t", "tree", "-w", "--stdin").decode().strip()
    part = [f"--prefix={os.fsdecode(repository.prefix)}"] if repository.prefix else []
    return view.ask("write-tree", *part).decode().strip()


def _add(view: RawView) -> None:
    """Let Git find what changed. Files that come and go meanwhile make it fail: it is tried again."""
    folder = view.repository.folder
    for attempt in range(1, ATTEMPTS + 1):
        ended = view.run("add", "--all", "--", ".", cwd=folder)
        if not ended.status and "could not open directory" not in ended.error:
            return
        _refuse_nested_repository(view)
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


def _refuse_ignored_folder(view: RawView) -> None:
    prefix = view.repository.prefix
    if prefix and _ignored(view, [prefix]):
        raise _refused(WhyUnsupported.FOLDER_IGNORED, "the repository around this folder ignores it", [])


def _refuse_nested_repository(view: RawView) -> None:
    """Name the untracked repositories inside, where there are any."""
    folder = view.repository.folder
    listed = view.run("ls-files", "-o", "-z", "--directory", "--exclude-standard", "--full-name", cwd=folder)
    _refuse_repositories_in(view.repository.top, [path[:-1] for path in listed.out.split(b"\0") if path.endswith(b"/")])


def _refuse_repositories_in(top: str, folders: Iterable[bytes]) -> None:
    """What became a repository of its own is refused also where its files were known before."""
    root = os.fsencode(top)
    if nested := [path for path in folders if path and os.path.lexists(os.path.join(root, path, b".git"))]:
        raise _refused(WhyUnsupported.NESTED_REPOSITORY, NESTED, nested)


def _folders(paths: Iterable[bytes]) -> set[bytes]:
    """All folders on the way to the paths, without the top."""
    folders = {path.rpartition(b"/")[0] for path in paths}
    while parents := {folder.rpartition(b"/")[0] for folder in folders} - folders:
        folders |= parents
    return folders - {b""}


def _refuse_collisions(paths: Collection[bytes]) -> None:
    """Paths that are one file where names are compared without case, or composed."""
    simple = b"".join(paths).isascii()
    if len({path.lower() for path in paths} if simple else {_folded(path) for path in paths}) == len(paths):
        return
    by_folded: dict[bytes, list[bytes]] = {}
    for path in paths:
        by_folded.setdefault(_folded(path), []).append(path)
    colliding = [path for group in by_folded.values() if len(group) > 1 for path in group]
    raise _refused(WhyUnsupported.CASE_COLLISION, "some names differ only in case", colliding)


def _folded(path: bytes) -> bytes:
    if path.isascii():
        return path.lower()
    folded = unicodedata.normalize("NFC", path.decode("utf-8", "surrogateescape")).casefold()
    return folded.encode("utf-8", "surrogateescape")


def _refuse_lfs(view: RawView, paths: Iterable[bytes]) -> None:
    """Where attributes send files to LFS, its store holds the content, and Git's only says where."""
    repository = view.repository
    top = os.fsencode(repository.top)
    inside = [os.path.join(top, path) for path in paths if path.endswith(b".gitattributes")]
    outside = [os.path.join(folder, ".gitattributes") for folder in (*repository.folders_around, repository.folder)]
    files = [*inside, *map(os.fsencode, (*outside, *repository.attribute_files))]
    if not any(b"filter=lfs" in _text(file) for file in files):
        return
    ended = repository.run("ls-files", "-z", "--full-name", "--", ":(attr:filter=lfs)", index=view.index)
    if ended.status:
        raise failure(repository.top, ["ls-files"], ended)
    if found := [path for path in ended.out.split(b"\0") if path]:
        raise _refused(WhyUnsupported.LFS, "the content of some files is kept by Git LFS", found)


def _text(file: bytes) -> bytes:
    try:
        return Path(os.fsdecode(file)).read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return b""


def _refuse_everything_ignored(view: RawView, own: Own) -> None:
    """An empty tree is true of an empty folder alone."""
    root = os.fsencode(view.repository.folder)
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name != b".git"]
        inside = {os.path.relpath(os.path.join(folder, name), root) for name in files if name != b".git"}
        paths = {view.repository.prefix + path for path in inside}
        if content := paths - own.among(paths):
            detail = "all its files are ignored: there would be nothing in a checkpoint"
            raise _refused(WhyUnsupported.EVERYTHING_IGNORED, detail, content)


def _refused(why: WhyUnsupported, detail: str, paths: Iterable[bytes]) -> CannotAnswer:
    shown = tuple(path.decode("utf-8", "backslashreplace") for path in sorted(paths)[:PATHS_SHOWN_MAX])
    return CannotAnswer(Unsupported(why, detail, shown))
