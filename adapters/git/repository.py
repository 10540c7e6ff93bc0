"""The repository that holds a workspace: where it is, and what in it keeps it from having checkpoints."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...ports.checkpoints import NotKept, Unsupported, WhyUnsupported
from ...ports.workspace import CouldNotLook
from .program import NOTHING_OF_THE_USER_RUNS, CannotAnswer, Ended, check_version, failure, run_git

_TRUE: Final = frozenset({"", "true", "yes", "on", "1"})
_FACTS: Final = r"^core\.(sparsecheckout|excludesfile|attributesfile|ignorecase|precomposeunicode|sharedrepository)$"


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository with a working tree, seen from one folder in it.

    Attributes:
        folder: the workspace, canonical.
        top: the root of the working tree, canonical.
        git: the Git folder of this working tree; `common` is the one that all working trees share.
        object_format: `sha1` or `sha256`.
        facts: the settings that say which files are looked at, by lower-case name.
    """

    folder: str
    top: str
    git: str
    common: str
    object_format: str
    facts: dict[str, str]

    @property
    def prefix(self) -> bytes:
        """The workspace inside the working tree, ending in `/`; empty where it is the whole."""
        relative = os.path.relpath(self.folder, self.top)
        return b"" if relative == "." else os.fsencode(relative) + b"/"

    @property
    def folders_around(self) -> tuple[str, ...]:
        """The folders around the workspace inside the working tree, from its root; none where it is the whole."""
        parts = os.fsdecode(self.prefix).split("/")[:-1]
        return tuple(os.path.join(self.top, *parts[:count]) for count in range(len(parts)))

    @property
    def objects(self) -> str:
        """The folder of objects."""
        return os.path.join(self.common, "objects")

    @property
    def exclude_files(self) -> tuple[str, ...]:
        """What is ignored besides what the `.gitignore` files say; they need not be there."""
        return os.path.join(self.common, "info", "exclude"), self.named_file("core.excludesfile", "ignore")

    @property
    def attribute_files(self) -> tuple[str, ...]:
        """The attributes that stand outside the working tree; they need not be there."""
        return os.path.join(self.common, "info", "attributes"), self.named_file("core.attributesfile", "attributes")

    def named_file(self, fact: str, default: str) -> str:
        """A file that the configuration names, or else the one of this name in the user's own folder."""
        if fact in self.facts:
            return os.path.expanduser(self.facts[fact]) or os.devnull
        settings = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
        return os.path.join(settings, "git", default)

    def is_true(self, fact: str) -> bool:
        """Whether a setting is on."""
        return fact in self.facts and self.facts[fact].lower() in _TRUE

    def run(self, *arguments: str, held: tuple[int, ...] = (), apart: bool = False, index: str | None = None) -> Ended:
        """Run a command in the user's own repository, without any program of the user's: for refs and attributes."""
        environment = {} if index is None else {"GIT_INDEX_FILE": index}
        options = (*NOTHING_OF_THE_USER_RUNS, f"--git-dir={self.git}", f"--work-tree={self.top}")
        return run_git([*options, *arguments], cwd=self.top, environment=environment, held=held, apart=apart)


def find_repository(folder: str) -> Repository:
    """Find the repository around a folder.

    Raises:
        CannotAnswer: there is none that can have checkpoints, or it could not be looked at.
    """
    try:
        folder = os.path.realpath(folder, strict=True)
        if not os.path.isdir(folder):
            raise NotADirectoryError(f"{folder} is no folder")
    except (OSError, ValueError) as error:
        raise CannotAnswer(CouldNotLook(folder, str(error))) from error
    check_version()
    of_place = ("--is-bare-repository", "--is-inside-git-dir", "--is-inside-work-tree")
    ended = run_git(["rev-parse", *of_place, "--show-object-format", "--absolute-git-dir", "--show-cdup"], cwd=folder)
    if ended.status:
        raise CannotAnswer(_no_repository(folder, ended))
    bare, inside, at_work, object_format, rest = os.fsdecode(ended.out).split("\n", 4)
    if bare == "true":
        raise _refused(WhyUnsupported.BARE_REPOSITORY, f"{folder} is in a repository without a working tree")
    if inside == "true":
        raise _refused(WhyUnsupported.INSIDE_GIT_FOLDER, f"{folder} is the inside of a repository")
    if at_work != "true":
        raise _refused(WhyUnsupported.NOT_A_REPOSITORY, f"the repository around {folder} has its files elsewhere")
    git, up, _ = rest.rsplit("\n", 2)
    top = os.path.realpath(os.path.join(folder, up))
    repository = Repository(folder, top, git, _common(git), object_format, _facts(folder, git))
    if repository.is_true("core.sparsecheckout"):
        raise _refused(WhyUnsupported.SPARSE_CHECKOUT, "the working tree is sparse: not all that is tracked is in it")
    return repository


def _no_repository(folder: str, ended: Ended) -> NotKept:
    """Why Git finds no repository. One that it cannot read is not one that is not there. F1."""
    said = ended.error.removeprefix("fatal: ")
    if "dubious ownership" in said:
        return Unsupported(WhyUnsupported.REPOSITORY_NOT_TRUSTED, said)
    if "unknown repository extension" in said or "repo version" in said:
        return Unsupported(WhyUnsupported.REPOSITORY_FORMAT, said)
    around = (Path(folder), *Path(folder).parents)
    if "not a git repository" in said and not any(os.path.lexists(place / ".git") for place in around):
        return Unsupported(WhyUnsupported.NOT_A_REPOSITORY, f"{folder} is in no Git repository")
    return CouldNotLook(folder, said)


def _common(git: str) -> str:
    """The Git folder that the working trees share."""
    try:
        named = Path(git, "commondir").read_bytes()
    except FileNotFoundError:
        return os.path.realpath(git)
    except OSError as error:
        raise CannotAnswer(CouldNotLook(git, str(error))) from error
    return os.path.realpath(os.path.join(git, os.fsdecode(named.rstrip(b"\r\n"))))


def _facts(folder: str, git: str) -> dict[str, str]:
    arguments = [f"--git-dir={git}", "config", "-z", "--includes", "--get-regexp", _FACTS]
    ended = run_git(arguments, cwd=folder)
    if ended.status not in {0, 1}:  # 1: none of them is set
        raise failure(folder, arguments, ended)
    lines = [os.fsdecode(line).partition("\n") for line in ended.out.split(b"\0") if line]
    return {name: value for name, _, value in lines}


def _refused(why: WhyUnsupported, detail: str) -> CannotAnswer:
    return CannotAnswer(Unsupported(why, detail))
