"""Permission to use the store is lost in the middle of a run, between T1 and T2 or right before T1. Issue 3.

What is open stays open, so a run may also come to its end; it is never half written, and goes on when it may again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .harness import nobody
from .harness.program import NO_HOOKS, Ended, Hooks, Started
from .harness.stage import SESSION, Stage, step
from .harness.tools import PAYMENT
from .harness.trial import check_record, codes

PAID = (step("I pay.", PAYMENT.call), step("Done."))
NAMES = {"database": "", "WAL": "-wal", "anchor": ".anchor"}
TAKEN = ("folder", *NAMES)
STAYS_OPEN = {"database", "WAL"}
"""Files that the process holds open from before; what it was given it keeps."""


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that somebody else can reach, and owns."""
    folder = Path(tempfile.mkdtemp(prefix="safepoint-"))
    give_away(folder)
    yield folder
    folder.chmod(0o700)
    shutil.rmtree(folder)


@pytest.fixture
def open_stage(shared: Path) -> Iterator[Stage]:
    """A stage in it."""
    stage = Stage.in_folder(shared)
    stage.play(PAID)
    give_away(shared)
    yield stage
    shared.chmod(0o700)
    stage.clean_up()


def give_away(folder: Path) -> None:
    if os.geteuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, nobody.NOBODY, nobody.NOBODY)


def start(stage: Stage, *command: str, hooks: Hooks = NO_HOOKS) -> Started:
    """The program as nobody."""
    program = str(Path(nobody.__file__))
    return stage.program._start((program,), stage.arguments(*command), hooks)


def do(stage: Stage, *command: str) -> Ended:
    return start(stage, *command).ended()


def place(folder: Path, store: Path, taken: str) -> Path:
    """What permission is taken of."""
    return folder if taken == "folder" else store.with_name(f"{store.name}{NAMES[taken]}")


@contextmanager
def without(stage: Stage, taken: str) -> Iterator[None]:
    """Take the permission away, and give it back."""
    path = place(stage.folder, stage.store, taken)
    mode = path.stat().st_mode & 0o777
    path.chmod(0)
    yield
    if path.exists():  # a WAL goes with its last user
        path.chmod(mode)


@pytest.mark.parametrize(
    ("taken", "point", "paid"),
    [("folder", "P1", 0), ("folder", "P4", 1), ("anchor", "P1", 0), ("anchor", "P4", 1), ("database", "P4", 1)],
)
def test_permission_lost_in_mid_run_is_a_typed_error_and_the_run_goes_on_when_it_is_back(
    open_stage: Stage, taken: str, point: str, paid: int
) -> None:
    stage = open_stage
    started = start(stage, "run", "pay", hooks=Hooks(stop=point))
    started.stopped()
    with without(stage, taken):
        started.go_on()
        ended = started.ended()
    outcomes = stage.record.of_session(SESSION, "tool.responded.v1")
    if taken in STAYS_OPEN:
        assert ended.expect(0)["status"] == "completed"
        assert (stage.effects(), len(outcomes), len(stage.requests)) == (["paid"], 1, 2)
        return
    told = ended.expect(5)
    assert told["code"] == "store_unavailable"
    assert "Permission denied" in told["message"]
    assert len(stage.effects()) == paid or outcomes
    before = stage.record
    resumed = do(stage, "resume")
    if paid and not outcomes:
        assert codes(resumed.expect(3)) == ["dangling_tool_state"]
    else:
        assert resumed.expect(0)["decision"] == "continued"
    assert len(stage.effects()) == max(paid, len(outcomes))
    check_record(stage, before)
    assert stage.look("verify").expect(0)["sound"]


@pytest.mark.parametrize("taken", TAKEN)
def test_the_library_says_what_it_may_not_reach_and_writes_on_when_it_may(shared: Path, taken: str) -> None:
    """A store that is open in a process which loses the permission; what is open stays open."""
    command = [sys.executable, str(Path(nobody.__file__)), "library", str(shared / "store.sqlite")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        said = []
        for mode in (None, 0, None):
            path = place(shared, shared / "store.sqlite", taken)
            kept = path.stat().st_mode & 0o777
            path.chmod(kept if mode is None else mode)
            process.stdin.write("write\n")
            process.stdin.flush()
            said.append(process.stdout.readline().split())
            path.chmod(kept)
        process.stdin.close()
        *_, last = process.stdout.read().split()
    middle = "stored" if taken in STAYS_OPEN | {"anchor"} else "StoreUnavailable"
    assert [words[0] for words in said] == ["stored", middle, "stored"]
    assert int(last) == sum(words[0] == "stored" for words in said)
