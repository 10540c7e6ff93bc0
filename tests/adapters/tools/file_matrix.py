"""Every file tool, killed at every instant, and everything that may happen to its file before somebody looks again.

The table of expectations stands here once; docs/file-evidence.md shows it, and a test compares the two.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from safepoint.domain.events.event import Json
from safepoint.domain.events.tool import Observation

OLD = b"line one\nline two: old\n"
NEW = b"line one\nline two: new\n"
APPENDED = OLD + b"line three\n"
THEIRS = b"somebody else was here\n"

E = Observation.MATCHES_EXPECTED_STATE
A = Observation.ALREADY_SATISFIED
P = Observation.MATCHES_PRIOR_STATE
D = Observation.DIVERGED
SHOWN = {E: "finalized", A: "finalized, already so", P: "parked, as before", D: "parked, diverged", None: ""}


@dataclass(frozen=True)
class Story:
    """One call of a tool, and the file that it is about.

    Attributes:
        prior: what the file holds before, None where it is not there.
        expected: what the file holds after, None where it is to be gone.
        moved_to: where the content is afterwards, by default where it was.
    """

    name: str
    tool: str
    arguments: Mapping[str, Json]
    prior: bytes | None
    expected: bytes | None
    moved_to: str | None = None

    @property
    def instants(self) -> tuple[str, ...]:
        """Where it can be killed."""
        between = ("temporary written",) if self.tool in {"write_file", "edit_file", "append_file"} else ()
        return ("before the effect", *between, "after the effect", "T2 missing")

    def subject(self, instant: str) -> str:
        """The path that people would see: of a move, where the content is at that instant."""
        done = instant in {"after the effect", "T2 missing"}
        return self.moved_to if self.moved_to is not None and done else str(self.arguments["path"])


PATH = "src/a.txt"
STORIES = (
    Story("replace", "write_file", {"path": PATH, "content": NEW.decode()}, OLD, NEW),
    Story("make", "write_file", {"path": PATH, "content": NEW.decode()}, None, NEW),
    Story("write the same", "write_file", {"path": PATH, "content": OLD.decode()}, OLD, OLD),
    Story("edit", "edit_file", {"path": PATH, "old_text": "old", "new_text": "new"}, OLD, NEW),
    Story("append", "append_file", {"path": PATH, "text": "line three\n"}, OLD, APPENDED),
    Story("delete", "delete_file", {"path": PATH}, OLD, None),
    Story("move", "move_file", {"path": PATH, "new_path": "lib/b.txt"}, OLD, OLD, moved_to="lib/b.txt"),
)


def _nothing(path: Path, story: Story) -> None:
    """Leave it."""


def _edited(path: Path, story: Story) -> None:
    path.write_bytes(THEIRS)


def _deleted(path: Path, story: Story) -> None:
    path.unlink(missing_ok=True)


def _linked(path: Path, story: Story) -> None:
    """Replace it by a link to a file that holds exactly what is expected: what a link leads to counts for nothing."""
    path.unlink(missing_ok=True)
    beside = path.with_name("beside")
    beside.write_bytes(story.expected if story.expected is not None else OLD)
    path.symlink_to("beside")


def _mode(path: Path, story: Story) -> None:
    if path.exists():
        path.chmod(0o755)


def _half(path: Path, story: Story) -> None:
    meant = story.expected if story.expected is not None else OLD
    path.write_bytes(meant[: len(meant) // 2])


def _recoded(path: Path, story: Story) -> None:
    """As an editor of another system saves it: a byte order mark, other line ends."""
    meant = story.expected if story.expected is not None else OLD
    path.write_bytes(b"\xef\xbb\xbf" + meant.replace(b"\n", b"\r\n"))


def _same(path: Path, story: Story) -> None:
    """Somebody else writes the very bytes that are expected; of a file that is to be gone, those that it held."""
    beside = path.with_name("beside")
    beside.write_bytes(story.expected if story.expected is not None else OLD)
    beside.rename(path)


EVENTS: Mapping[str, Callable[[Path, Story], None]] = {
    "nothing": _nothing,
    "edited": _edited,
    "deleted": _deleted,
    "made a link": _linked,
    "mode changed": _mode,
    "half written": _half,
    "other encoding": _recoded,
    "same bytes": _same,
}

# Per instant before and after the effect, in the order of EVENTS.
_CONTENT = ((P, D, D, D, P, D, D, E), (E, D, D, D, E, D, D, E))
EXPECTED: Mapping[str, tuple[tuple[Observation, ...], tuple[Observation, ...]]] = {
    "replace": _CONTENT,
    "make": ((P, D, P, D, P, D, D, E), (E, D, P, D, E, D, D, E)),
    "write the same": ((A, D, D, D, A, D, D, A), (A, D, D, D, A, D, D, A)),
    "edit": _CONTENT,
    "append": _CONTENT,
    "delete": ((P, D, E, D, P, D, D, P), (E, D, E, D, E, D, D, P)),
    "move": ((P, D, D, D, P, D, D, P), (E, D, D, D, E, D, D, E)),
}


class Cell(NamedTuple):
    """One cell of the matrix."""

    story: Story
    instant: str
    event: str
    expected: Observation


def cells() -> Iterator[Cell]:
    """All of them."""
    for story in STORIES:
        for instant in story.instants:
            done = instant in {"after the effect", "T2 missing"}
            for event, expected in zip(EVENTS, EXPECTED[story.name][done], strict=True):
                yield Cell(story, instant, event, expected)


def table() -> str:
    """The matrix as the docs show it."""
    lines = [
        f"| call | killed | {' | '.join(EVENTS)} |",
        f"|---|---|{'---|' * len(EVENTS)}",
    ]
    for story in STORIES:
        for instant in story.instants:
            row = [SHOWN[cell.expected] for cell in cells() if (cell.story, cell.instant) == (story, instant)]
            lines.append(f"| {story.name} (`{story.tool}`) | {instant} | {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def prepare(workspace: Path, story: Story) -> None:
    """Make the world before the call."""
    (workspace / "src").mkdir()
    if story.prior is not None:
        (workspace / PATH).write_bytes(story.prior)
        (workspace / PATH).chmod(0o644)


def world(folder: Path) -> dict[str, tuple[object, ...]]:
    """Everything that can be seen of a folder: names, kinds, permissions, inodes, times and bytes."""
    seen: dict[str, tuple[object, ...]] = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        held: object = path.read_bytes() if path.is_file() and not path.is_symlink() else None
        if path.is_symlink():
            held = path.readlink()
        mtime = status.st_mtime_ns if not path.is_dir() else None
        seen[str(path.relative_to(folder))] = (status.st_mode, status.st_ino, mtime, held)
    return seen


if __name__ == "__main__":
    sys.stdout.write(table())
