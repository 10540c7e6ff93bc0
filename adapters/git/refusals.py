"""What in a workspace keeps it from having checkpoints. SPEC section 16."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Collection, Iterable
from typing import Final

from ...ports.checkpoints import Unsupported, WhyUnsupported
from .policy import Own
from .program import CannotAnswer, failure
from .raw_view import RawView
from .users_files import content_of

PATHS_SHOWN_MAX: Final = 20
NESTED: Final = "a repository of its own, which Git sees as one thing, is in it"
TRACKED: Final = "other repositories are tracked in it"
ATTRIBUTES: Final = b".gitattributes"


def refuse_gitlinks(why: WhyUnsupported, paths: Collection[bytes]) -> None:
    """Other repositories, which an index names and does not hold."""
    if paths:
        raise refused(why, TRACKED if why is WhyUnsupported.SUBMODULES else NESTED, paths)


def refuse_nested_repository(view: RawView) -> None:
    """Name the untracked repositories inside, where there are any."""
    folder = view.repository.folder
    listed = view.run("ls-files", "-o", "-z", "--directory", "--exclude-standard", "--full-name", cwd=folder)
    refuse_repositories_in(view.repository.top, [path[:-1] for path in listed.out.split(b"\0") if path.endswith(b"/")])


def refuse_repositories_in(top: str, folders: Iterable[bytes]) -> None:
    """What became a repository of its own is refused also where its files were known before."""
    root = os.fsencode(top)
    if nested := [path for path in folders if path and os.path.lexists(os.path.join(root, path, b".git"))]:
        raise refused(WhyUnsupported.NESTED_REPOSITORY, NESTED, nested)


def refuse_collisions(paths: Collection[bytes]) -> None:
    """Paths that are one file where names are compared without case, or composed."""
    simple = b"".join(paths).isascii()
    if len({path.lower() for path in paths} if simple else {_folded(path) for path in paths}) == len(paths):
        return
    by_folded: dict[bytes, list[bytes]] = {}
    for path in paths:
        by_folded.setdefault(_folded(path), []).append(path)
    colliding = [path for group in by_folded.values() if len(group) > 1 for path in group]
    raise refused(WhyUnsupported.CASE_COLLISION, "some names differ only in case", colliding)


def _folded(path: bytes) -> bytes:
    if path.isascii():
        return path.lower()
    folded = unicodedata.normalize("NFC", path.decode("utf-8", "surrogateescape")).casefold()
    return folded.encode("utf-8", "surrogateescape")


def refuse_lfs(view: RawView, paths: Iterable[bytes]) -> None:
    """Where attributes send files to LFS, its store holds the content, and Git's only says where."""
    repository = view.repository
    top = os.fsencode(repository.top)
    inside = [os.path.join(top, path) for path in paths if path.endswith(ATTRIBUTES)]
    outside = [os.path.join(folder, ".gitattributes") for folder in (*repository.folders_around, repository.folder)]
    files = [*inside, *map(os.fsencode, (*outside, *repository.attribute_files))]
    if not any(b"filter=lfs" in content_of(file) for file in files):
        return
    ended = repository.run("ls-files", "-z", "--full-name", "--", ":(attr:filter=lfs)", index=view.index)
    if ended.status:
        raise failure(repository.top, ["ls-files"], ended)
    if found := [path for path in ended.out.split(b"\0") if path]:
        raise refused(WhyUnsupported.LFS, "the content of some files is kept by Git LFS", found)


def refuse_everything_ignored(view: RawView, own: Own) -> None:
    """An empty tree is true of an empty folder alone."""
    root = os.fsencode(view.repository.folder)
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name != b".git"]
        inside = {os.path.relpath(os.path.join(folder, name), root) for name in files if name != b".git"}
        paths = {view.repository.prefix + path for path in inside}
        if content := paths - own.among(paths):
            detail = "all its files are ignored: there would be nothing in a checkpoint"
            raise refused(WhyUnsupported.EVERYTHING_IGNORED, detail, content)


def refused(why: WhyUnsupported, detail: str, paths: Iterable[bytes]) -> CannotAnswer:
    """The refusal, with the first of the paths as text."""
    shown = tuple(path.decode("utf-8", "backslashreplace") for path in sorted(paths)[:PATHS_SHOWN_MAX])
    return CannotAnswer(Unsupported(why, detail, shown))
