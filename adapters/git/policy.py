"""Which files belong to a checkpoint, as one name: equal names, equal choice. SPEC section 16."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Set
from typing import Final

from ...domain import canonical
from ...ports.workspace import MARKER_NAME
from .repository import Repository
from .users_files import content_of

RULES: Final = {
    "version": 1,
    "bytes": "as in the file",
    "modes": "file, executable file, symbolic link",
    "tracked": "also where ignored",
    "untracked": "where not ignored",
    "empty_folders": "not kept",
}


def policy_hash(repository: Repository) -> str:
    """Name the choice of files: our rules, and what is ignored by rules that stand outside the workspace.

    The `.gitignore` files inside it are content, and told by the tree.

    Raises:
        OSError: the rules could not be read.
    """
    around = [os.path.join(folder, ".gitignore") for folder in repository.folders_around]
    ignored = [_rules(file) for file in (*repository.exclude_files, *around)]
    folded = [repository.is_true(fact) for fact in ("core.ignorecase", "core.precomposeunicode")]
    return canonical.sha256_hex(canonical.encode({"rules": RULES, "ignored": ignored, "folded": folded}))


class Own:
    """Knows the files in a workspace that are ours: the marker, and what was said to be.

    Args:
        repository: tells where the workspace lies in the working tree.
        own: absolute paths; `*` at the end of one stands for any ending.
    """

    def __init__(self, repository: Repository, own: Iterable[str]) -> None:
        inside = os.path.join(repository.folder, "")
        named = [os.path.join(inside, MARKER_NAME), *(path for path in own if path.startswith(inside))]
        self.paths = tuple(repository.prefix + os.fsencode(path.removeprefix(inside)) for path in named)
        self._names = {path for path in self.paths if not path.endswith(b"*")}
        self._beginnings = tuple(path[:-1] for path in self.paths if path.endswith(b"*"))

    def among(self, paths: Set[bytes]) -> set[bytes]:
        """Those of the paths, from the top of the working tree, that are ours."""
        beginning = {path for path in paths if path.startswith(self._beginnings)} if self._beginnings else set()
        return beginning | (self._names & paths)


def _rules(file: str) -> str:
    """The digest of the lines that mean something, without the one that we add ourselves."""
    lines = [line.rstrip(b"\r") for line in content_of(file).split(b"\n")]
    meant = [line for line in lines if line.strip() and not line.startswith(b"#") and line != MARKER_NAME.encode()]
    return hashlib.sha256(b"\n".join(meant)).hexdigest()
