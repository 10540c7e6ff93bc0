"""A view of the working tree that is our own: attributes, configuration, hooks and index of the user play no part.

It is a Git folder of a few small files, made anew for each piece of work, over the user's working tree and objects. Its
`info/attributes` outrank every other attribute, so that blobs hold the bytes of the files. ADR 0060.
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from .folder_lock import folder_lock
from .policy import Own
from .program import NO_CONFIG_OF_THE_USER, Ended, failure, run_git
from .repository import Repository
from .users_files import content_of

RAW_ATTRIBUTES: Final = b"* -text -ident -filter !eol !working-tree-encoding\n"
VIEW_PREFIX: Final = "view-"
YOUNG_SECONDS: Final = 60


class RawView:
    """Runs commands over a working tree as it is.

    Attributes:
        folder: the Git folder of the view; its `index` is ours.
        objects: where new objects go; where that is a folder of the view, they go with it.
    """

    def __init__(self, repository: Repository, folder: str, objects: str) -> None:
        self.repository, self.folder, self.objects = repository, folder, objects
        self.index = os.path.join(folder, "index")

    @property
    def environment(self) -> dict[str, str]:
        """What makes `git` see this view."""
        of_view = {
            **NO_CONFIG_OF_THE_USER,
            "GIT_DIR": self.folder,
            "GIT_WORK_TREE": self.repository.top,
            "GIT_OBJECT_DIRECTORY": self.objects,
        }
        if self.objects != self.repository.objects:
            of_view["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = quoted(self.repository.objects)
        return of_view

    def run(self, *arguments: str, given: bytes = b"", cwd: str | None = None, **variables: str) -> Ended:
        """Run a command, whatever its end."""
        environment = {**self.environment, **variables}
        return run_git(arguments, cwd=cwd or self.repository.top, environment=environment, given=given)

    def ask(self, *arguments: str, given: bytes = b"", cwd: str | None = None, **variables: str) -> bytes:
        """Run a command and return what it wrote.

        Raises:
            CannotAnswer: it failed.
        """
        ended = self.run(*arguments, given=given, cwd=cwd, **variables)
        if ended.status:
            raise failure(cwd or self.repository.top, arguments, ended)
        return ended.out

    def copy_of_users_index(self) -> str | None:
        """A copy of the user's index with what it is split into, for reading names; None where there is none yet."""
        copy = os.path.join(self.folder, "users-index")
        for part in glob.glob(os.path.join(glob.escape(self.repository.git), "sharedindex.*")):
            shutil.copyfile(part, os.path.join(self.folder, os.path.basename(part)))
        try:
            return shutil.copyfile(os.path.join(self.repository.git, "index"), copy)
        except FileNotFoundError:
            return None


@contextlib.contextmanager
def raw_view(repository: Repository, place: Path, own: Own, *, keep_objects: bool) -> Iterator[RawView]:
    """Make a view for a while.

    Args:
        repository: whose working tree it is.
        place: the folder that views are made in; what killed processes left there is taken away.
        keep_objects: whether new objects go to the user's repository, or go with the view.
        own: files of ours in the workspace, which are never part of it.

    Raises:
        OSError: it could not be made.
    """
    folder = tempfile.mkdtemp(prefix=VIEW_PREFIX, dir=place)
    try:
        with folder_lock(folder):
            _remove_left_behind(place)
            _furnish(repository, folder, own)
            yield RawView(repository, folder, repository.objects if keep_objects else os.path.join(folder, "objects"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_left_behind(place: Path) -> None:
    """Remove views whose process was killed: nobody holds them. One that is young may just not be held yet."""
    for folder in place.glob(f"{VIEW_PREFIX}*"):
        with contextlib.suppress(OSError):
            if time.time() - folder.stat().st_mtime >= YOUNG_SECONDS:
                with folder_lock(folder):
                    shutil.rmtree(folder, ignore_errors=True)


def _furnish(repository: Repository, folder: str, own: Own) -> None:
    root = Path(folder)
    for name in ("refs", "objects", "info"):
        (root / name).mkdir()
    (root / "HEAD").write_bytes(b"ref: refs/heads/none\n")
    (root / "config").write_bytes(_config(repository))
    (root / "info" / "attributes").write_bytes(RAW_ATTRIBUTES)
    lines = [exclude_line(path) for path in own.paths if b"\n" not in path]
    (root / "info" / "exclude").write_bytes(content_of(repository.exclude_files[0]) + b"\n" + b"".join(lines))


def exclude_line(path: bytes) -> bytes:
    """A line of an exclude file that means this path alone; `*` at its end keeps its meaning."""
    name, star = (path[:-1], b"*") if path.endswith(b"*") else (path, b"")
    return b"/" + re.sub(rb"([\\*?\[\] ])", rb"\\\1", name) + star + b"\n"


def _config(repository: Repository) -> bytes:
    facts, is_true = repository.facts, repository.is_true
    settings: dict[str, str] = {
        "bare": "false",
        "fileMode": "true",
        "symlinks": "true",
        "ignoreCase": _bool(is_true("core.ignorecase")),
        "precomposeUnicode": _bool(is_true("core.precomposeunicode")),
        "excludesFile": repository.exclude_files[1],
        "attributesFile": os.devnull,
        "hooksPath": os.devnull,
        "autocrlf": "false",
        "fsmonitor": "false",
        "untrackedCache": "false",
        "logAllRefUpdates": "false",
        "quotePath": "false",
        "fsync": "committed,loose-object",
        "fsyncMethod": "batch",
    }
    if "core.sharedrepository" in facts:
        settings["sharedRepository"] = facts["core.sharedrepository"] or "true"
    lines = ["[core]", *(f"\t{name} = {config_text(value)}" for name, value in settings.items())]
    if repository.object_format == "sha1":
        lines += ["\trepositoryFormatVersion = 0"]
    else:
        lines += ["\trepositoryFormatVersion = 1", "[extensions]", f"\tobjectFormat = {repository.object_format}"]
    lines += ["[advice]", "\taddEmbeddedRepo = false", "[gc]", "\tauto = 0", ""]
    return os.fsencode("\n".join(lines))


def _bool(value: bool) -> str:
    return "true" if value else "false"


def config_text(value: str) -> str:
    """A value as a configuration file holds it, whatever is in it."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def quoted(path: str) -> str:
    """A path as the list of alternate object folders takes it, whatever is in it."""

    def escape(found: re.Match[str]) -> str:
        return "\\n" if found[0] == "\n" else "\\" + found[0]

    return '"' + re.sub(r'["\\\n]', escape, path) + '"'
