"""A capture after a change of one file, in a repository of 50,000 files and 1 GB. Issue 5."""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from safepoint.adapters.git.checkpoints import GitCheckpoints
from safepoint.adapters.system.clock import SystemClock
from safepoint.ports.checkpoints import Checkpoint

from .bars import CHECKPOINT_OF_ONE_CHANGE
from .measuring import Measured, median, microseconds, ratios
from .workplace import Workplace

FILES_PER_FOLDER = 200
COLD_SECONDS = 1.5
"""Git reads again what is as young as its index: everything is older before anything is measured."""


def checkpoint_of_one_change(work: Workplace) -> Iterator[Measured]:
    """A capture against `git status` of the same tree with the same change, in turns."""
    sizes = work.sizes
    folder = work.fresh("project")
    work.tell(f"making a repository of {sizes.files:,} files and {sizes.files * sizes.file_bytes / 1e6:,.0f} MB")
    paths = _make_repository(folder, sizes.files, sizes.file_bytes)
    checkpoints = GitCheckpoints(work.fresh("place"), SystemClock())
    time.sleep(COLD_SECONDS)
    _git(folder, "status", "--porcelain")  # keeps what it finds in the index, as it does for the user
    work.settle()
    keys = (f"key-{number}" for number in range(sizes.files))
    first = _seconds(lambda: _capture(checkpoints, folder, next(keys)))
    time.sleep(COLD_SECONDS)
    _capture(checkpoints, folder, next(keys))
    taken: dict[str, list[float]] = {"status": [], "capture": []}
    for number in range(sizes.rounds):
        _change(folder / paths[number * len(paths) // sizes.rounds], number)
        works: list[tuple[str, Callable[[], object]]] = [
            ("status", lambda: _git(folder, "--no-optional-locks", "status", "--porcelain")),
            ("capture", lambda: _capture(checkpoints, folder, next(keys))),
        ]
        for name, one in works if number % 2 == 0 else reversed(works):
            taken[name].append(_seconds(one))
    yield Measured(
        CHECKPOINT_OF_ONE_CHANGE,
        ratios(taken["capture"], taken["status"]),
        figures={
            "files": f"{sizes.files:,}",
            "git status": microseconds(median(taken["status"])),
            "capture": microseconds(median(taken["capture"])),
            "first capture, which reads everything": microseconds(first),
        },
    )


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _capture(checkpoints: GitCheckpoints, folder: Path, key: str) -> None:
    made = checkpoints.capture(str(folder), key)
    if not isinstance(made, Checkpoint):
        raise RuntimeError(f"not captured: {made}")


def _change(file: Path, number: int) -> None:
    with file.open("r+b") as stream:
        stream.write(b"changed %d\n" % number)


def _make_repository(folder: Path, files: int, file_bytes: int) -> list[str]:
    """Commit files of random bytes and write them out; their objects stand in one pack, as in a clone."""
    folder.mkdir()
    _git(folder, "init", "--quiet", "--initial-branch=main")
    paths = [f"folder-{number // FILES_PER_FOLDER}/file-{number}" for number in range(files)]
    command = ["git", "-c", "core.compression=0", "fast-import", "--quiet"]
    with subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE) as importing:
        assert importing.stdin is not None
        _write_history(importing.stdin, paths, file_bytes)
    if importing.returncode:
        raise RuntimeError("the repository could not be made")
    _git(folder, "reset", "--quiet", "--hard", "main")
    return paths


def _write_history(stream: IO[bytes], paths: list[str], file_bytes: int) -> None:
    dice = random.Random(5)
    stream.write(b"commit refs/heads/main\ncommitter Bench <bench@localhost> 1700000000 +0000\ndata 0\n")
    for path in paths:
        stream.write(b"M 100644 inline %s\ndata %d\n" % (path.encode(), file_bytes))
        stream.write(dice.randbytes(file_bytes) + b"\n")
    stream.write(b"\n")


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL, env={**os.environ})
