"""What a capture that nobody asked for would read and copy. ADR 0081."""

from __future__ import annotations

from pathlib import Path

import pytest

from safepoint.adapters.git import program
from safepoint.adapters.opened_store import OpenedStore
from safepoint.adapters.settings import Settings
from safepoint.ports.checkpoints import CaptureLimits, Checkpoint, Unsupported, WhyUnsupported

from .repositories import captured, checkpoints_of, commit, git, make_repository, write

PLENTY = 1_000_000
TOO_LARGE = WhyUnsupported.CONTENT_TOO_LARGE


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository with 100 bytes that are committed, and 10 that are not."""
    folder = make_repository(tmp_path / "tree")
    write(folder, "committed", bytes(100))
    commit(folder)
    write(folder, "untracked", bytes(10))
    return folder


def why(answer: object) -> WhyUnsupported | None:
    return answer.why if isinstance(answer, Unsupported) else None


def test_what_the_repository_holds_is_read_and_not_new(tmp_path: Path, folder: Path) -> None:
    checkpoints = checkpoints_of(tmp_path)
    assert why(checkpoints.capture(str(folder), "one", CaptureLimits(9, PLENTY))) is TOO_LARGE
    assert why(checkpoints.capture(str(folder), "one", CaptureLimits(PLENTY, 109))) is TOO_LARGE
    captured(checkpoints.capture(str(folder), "one", CaptureLimits(10, 110)))


def test_what_is_ignored_counts_only_where_it_is_tracked(tmp_path: Path, folder: Path) -> None:
    write(folder, "tracked.log", bytes(50))
    git(folder, "add", "tracked.log")
    write(folder, ".gitignore", b"*.log")
    write(folder, "huge.log", bytes(5_000))
    checkpoints = checkpoints_of(tmp_path)
    assert why(checkpoints.capture(str(folder), "one", CaptureLimits(15, 164))) is TOO_LARGE
    captured(checkpoints.capture(str(folder), "one", CaptureLimits(15, 165)))


def test_what_lies_around_the_workspace_counts_for_nothing(tmp_path: Path, folder: Path) -> None:
    write(folder, "part/inside", bytes(7))
    captured(checkpoints_of(tmp_path).capture(str(folder / "part"), "one", CaptureLimits(7, 7)))


def test_a_refusal_leaves_nothing_in_the_repository(tmp_path: Path, folder: Path) -> None:
    before = sorted((folder / ".git").rglob("*"))
    assert why(checkpoints_of(tmp_path).capture(str(folder), "one", CaptureLimits(0, 0))) is TOO_LARGE
    assert sorted((folder / ".git").rglob("*")) == before


def test_where_there_is_no_repository_no_program_is_started_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[object] = []
    monkeypatch.setattr(program, "run_git", lambda *arguments, **_: started.append(arguments))
    monkeypatch.setattr("safepoint.adapters.git.repository.run_git", program.run_git)
    with OpenedStore(Settings(tmp_path / "store.sqlite")) as runtime:
        checkpoints = runtime.parts.checkpoints()
        answer = checkpoints.capture(str(tmp_path), "one", CaptureLimits(PLENTY, PLENTY))
    assert not isinstance(answer, Checkpoint)
    assert (why(answer), started) == (WhyUnsupported.NOT_A_REPOSITORY, [])
    assert not Path(f"{tmp_path / 'store.sqlite'}.checkpoints").exists()
