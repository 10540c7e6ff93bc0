"""The contract of `Checkpoints`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import pytest

from ..checkpoints import (
    Capture,
    CaptureLimits,
    Checkpoint,
    CheckpointMissing,
    Checkpoints,
    Compared,
    Difference,
    Differs,
    Kept,
    KeptCheckpoint,
    Materialized,
    Removed,
    TargetTaken,
    TargetUnusable,
    Unsupported,
    Verification,
    WhyUnsupported,
)
from ..workspace import CouldNotLook

FILES = {"a.txt": b"one\n", "deep/b.bin": bytes(range(256)), "empty": b""}


class WorkingFolders(Protocol):
    """Folders that an implementation can look at, in the hands of the test."""

    @abstractmethod
    def make(self, name: str) -> str:
        """Make a folder that can have checkpoints, without a file, and return its path."""

    @abstractmethod
    def path(self, name: str) -> str:
        """The path of a folder that may not be there."""

    @abstractmethod
    def write(self, folder: str, path: str, content: bytes) -> None:
        """Write a file, and the folders on the way to it."""

    @abstractmethod
    def delete(self, folder: str, path: str) -> None:
        """Delete a file."""

    @abstractmethod
    def files(self, folder: str) -> dict[str, bytes]:
        """All files of a folder, without what its checkpoints are kept in."""


def captured(answer: Capture) -> Checkpoint:
    """The same, where anything else fails the test."""
    assert isinstance(answer, Checkpoint), answer
    return answer


def compared(answer: Verification) -> Compared:
    """The same, where anything else fails the test."""
    assert isinstance(answer, Compared), answer
    return answer


def list_of(checkpoints: Checkpoints, folder: str) -> tuple[KeptCheckpoint, ...]:
    """What is kept, where anything else fails the test."""
    answer = checkpoints.kept(folder)
    assert isinstance(answer, Kept), answer
    return answer.checkpoints


class CheckpointsContract:
    """Subclass it, override the fixtures, and pytest checks an implementation of the port."""

    @pytest.fixture
    def checkpoints(self) -> Checkpoints:
        """The implementation."""
        pytest.fail("override the fixture `checkpoints`")

    @pytest.fixture
    def folders(self) -> WorkingFolders:
        """The folders that it looks at."""
        pytest.fail("override the fixture `folders`")

    @pytest.fixture
    def unsupported(self, folders: WorkingFolders) -> str:
        """A folder that cannot have checkpoints."""
        pytest.fail("override the fixture `unsupported`")

    @pytest.fixture
    def unreadable(self, folders: WorkingFolders) -> str:
        """A folder that nobody can look at."""
        pytest.fail("override the fixture `unreadable`")

    @pytest.fixture
    def at_once(self) -> Callable[[Sequence[Callable[[], Capture]]], list[Capture]]:
        """Runs functions in threads of their own and returns what they return, in their order."""
        pytest.fail("override the fixture `at_once`")

    @pytest.fixture
    def folder(self, folders: WorkingFolders) -> str:
        """A folder with files."""
        folder = folders.make("folder")
        for path, content in FILES.items():
            folders.write(folder, path, content)
        return folder

    def test_a_folder_is_as_it_was_captured_and_capturing_changes_no_file(
        self, checkpoints: Checkpoints, folders: WorkingFolders, folder: str
    ) -> None:
        checkpoint = captured(checkpoints.capture(folder, "one"))
        assert compared(checkpoints.verify(folder, checkpoint)) == Compared((), 0, same_policy=True)
        assert folders.files(folder) == FILES

    def test_every_path_that_differs_is_named_with_how_it_differs(
        self, checkpoints: Checkpoints, folders: WorkingFolders, folder: str
    ) -> None:
        checkpoint = captured(checkpoints.capture(folder, "one"))
        folders.write(folder, "a.txt", b"two\n")
        folders.delete(folder, "empty")
        folders.write(folder, "deep/new", b"new")
        assert compared(checkpoints.verify(folder, checkpoint)) == Compared(
            (
                Difference("a.txt", Differs.CHANGED),
                Difference("deep/new", Differs.ADDED),
                Difference("empty", Differs.REMOVED),
            ),
            3,
            same_policy=True,
        )

    def test_content_is_compared_not_its_age(
        self, checkpoints: Checkpoints, folders: WorkingFolders, folder: str
    ) -> None:
        checkpoint = captured(checkpoints.capture(folder, "one"))
        folders.write(folder, "a.txt", b"two\n")
        changed = captured(checkpoints.capture(folder, "two"))
        folders.write(folder, "a.txt", b"one\n")
        again = captured(checkpoints.capture(folder, "three"))
        assert checkpoint.tree_id == again.tree_id != changed.tree_id
        assert len({one.ref for one in (checkpoint, changed, again)}) == 3
        assert compared(checkpoints.verify(folder, checkpoint)).total == 0
        assert compared(checkpoints.verify(folder, changed)).total == 1

    def test_an_empty_folder_has_a_checkpoint_too(self, checkpoints: Checkpoints, folders: WorkingFolders) -> None:
        folder = folders.make("nothing")
        checkpoint = captured(checkpoints.capture(folder, "one"))
        assert compared(checkpoints.verify(folder, checkpoint)).total == 0
        folders.write(folder, "a", b"")
        assert compared(checkpoints.verify(folder, checkpoint)).differences == (Difference("a", Differs.ADDED),)

    def test_the_same_key_never_comes_to_mean_other_content(
        self, checkpoints: Checkpoints, folders: WorkingFolders, folder: str
    ) -> None:
        checkpoint = captured(checkpoints.capture(folder, "one"))
        assert checkpoints.capture(folder, "one") == checkpoint
        folders.write(folder, "a.txt", b"two\n")
        assert isinstance(checkpoints.capture(folder, "one"), CouldNotLook)
        assert compared(checkpoints.verify(folder, checkpoint)).total == 1

    @pytest.mark.parametrize("key", ["", "-a", "a-", "a/b", "a.b", "a b", "..", "é", "a" * 101])
    def test_a_key_is_letters_digits_and_dashes(self, checkpoints: Checkpoints, folder: str, key: str) -> None:
        with pytest.raises(ValueError, match="key"):
            checkpoints.capture(folder, key)
        assert list_of(checkpoints, folder) == ()

    def test_a_checkpoint_is_written_out_into_a_folder_of_its_own(
        self, checkpoints: Checkpoints, folders: WorkingFolders, folder: str
    ) -> None:
        checkpoint = captured(checkpoints.capture(folder, "one"))
        folders.write(folder, "a.txt", b"two\n")
        made = checkpoints.materialize(folder, checkpoint, folders.path("target"))
        assert isinstance(made, Materialized), made
        assert folders.files(made.path) == FILES
        assert folders.files(folder) == {**FILES, "a.txt": b"two\n"}

    def test_what_was_written_out_can_have_checkpoints_itself(
        self, checkpoints: Checkpoints, folders: WorkingFolders, folder: str
    ) -> None:
        checkpoint = captured(checkpoints.capture(folder, "one"))
        made = checkpoints.materialize(folder, checkpoint, folders.path("target"))
        assert isinstance(made, Materialized), made
        again = captured(checkpoints.capture(made.path, "two"))
        assert again.tree_id == checkpoint.tree_id
        folders.write(made.path, "a.txt", b"two\n")
        assert compared(checkpoints.verify(made.path, again)).differences == (Difference("a.txt", Differs.CHANGED),)
        assert compared(checkpoints.verify(folder, checkpoint)).total == 0

    def test_nothing_is_written_over_what_is_there(
        self, checkpoints: Checkpoints, folders: WorkingFolders, folder: str
    ) -> None:
        checkpoint = captured(checkpoints.capture(folder, "one"))
        taken = folders.make("taken")
        folders.write(taken, "mine", b"mine")
        before = folders.files(taken)
        assert isinstance(checkpoints.materialize(folder, checkpoint, taken), TargetTaken)
        assert isinstance(checkpoints.materialize(folder, checkpoint, folder), TargetTaken)
        assert folders.files(taken) == before

    def test_nothing_is_written_into_the_workspace(
        self, checkpoints: Checkpoints, folders: WorkingFolders, folder: str
    ) -> None:
        checkpoint = captured(checkpoints.capture(folder, "one"))
        before = folders.files(folder)
        assert isinstance(checkpoints.materialize(folder, checkpoint, f"{folder}/inside"), TargetUnusable)
        assert folders.files(folder) == before
        assert captured(checkpoints.capture(folder, "two")).tree_id == checkpoint.tree_id

    def test_what_was_written_out_needs_no_checkpoint_any_more(
        self, checkpoints: Checkpoints, folders: WorkingFolders, folder: str
    ) -> None:
        checkpoint = captured(checkpoints.capture(folder, "one"))
        made = checkpoints.materialize(folder, checkpoint, folders.path("target"))
        assert isinstance(made, Materialized), made
        assert checkpoints.remove(folder, checkpoint.ref) == Removed(was_there=True)
        again = captured(checkpoints.capture(made.path, "two"))
        assert again.tree_id == checkpoint.tree_id
        assert compared(checkpoints.verify(made.path, again)).total == 0

    def test_a_checkpoint_that_is_not_there_is_missing_and_never_equal(
        self, checkpoints: Checkpoints, folders: WorkingFolders, folder: str
    ) -> None:
        checkpoint = captured(checkpoints.capture(folder, "one"))
        folders.write(folder, "a.txt", b"two\n")
        other = captured(checkpoints.capture(folder, "two"))
        target = folders.path("target")
        for gone in (checkpoint._replace(ref=f"{checkpoint.ref}x"), checkpoint._replace(tree_id=other.tree_id)):
            assert isinstance(checkpoints.verify(folder, gone), CheckpointMissing)
            assert isinstance(checkpoints.materialize(folder, gone, target), CheckpointMissing)
        made = checkpoints.materialize(folder, checkpoint, target)
        assert isinstance(made, Materialized), made

    def test_what_is_kept_is_listed_until_it_is_removed(
        self, checkpoints: Checkpoints, folders: WorkingFolders, folder: str
    ) -> None:
        assert list_of(checkpoints, folder) == ()
        first, second = (captured(checkpoints.capture(folder, key)) for key in ("b", "a"))
        listed = list_of(checkpoints, folder)
        assert [one.checkpoint for one in listed] == [first, second]
        assert {one.folder for one in listed} == {folder}
        assert listed[0].made_at <= listed[1].made_at
        assert checkpoints.remove(folder, first.ref) == Removed(was_there=True)
        assert checkpoints.remove(folder, first.ref) == Removed(was_there=False)
        assert [one.checkpoint for one in list_of(checkpoints, folder)] == [second]
        assert isinstance(checkpoints.verify(folder, first), CheckpointMissing)
        assert compared(checkpoints.verify(folder, second)).total == 0

    def test_more_than_was_allowed_is_refused_and_not_kept(
        self, checkpoints: Checkpoints, folders: WorkingFolders, folder: str
    ) -> None:
        content, plenty = sum(len(content) for content in FILES.values()), 1_000_000
        for limits in (CaptureLimits(plenty, content - 1), CaptureLimits(content - 1, plenty)):
            answer = checkpoints.capture(folder, "one", limits)
            assert isinstance(answer, Unsupported), answer
            assert answer.why is WhyUnsupported.CONTENT_TOO_LARGE
        assert list_of(checkpoints, folder) == ()
        captured(checkpoints.capture(folder, "one", CaptureLimits(content, content)))

    def test_what_is_kept_already_counts_for_nothing(
        self, checkpoints: Checkpoints, folders: WorkingFolders, folder: str
    ) -> None:
        captured(checkpoints.capture(folder, "one"))
        captured(checkpoints.capture(folder, "two", CaptureLimits(0, 0)))
        folders.write(folder, "deep/new", b"new")
        assert isinstance(checkpoints.capture(folder, "three", CaptureLimits(2, 2)), Unsupported)
        captured(checkpoints.capture(folder, "three", CaptureLimits(3, 3)))

    def test_what_is_no_checkpoint_is_not_removed(self, checkpoints: Checkpoints, folder: str) -> None:
        for ref in ("", "refs/heads/main", "HEAD", "--all"):
            assert checkpoints.remove(folder, ref) == Removed(was_there=False)

    def test_where_there_can_be_none_every_method_says_why(
        self, checkpoints: Checkpoints, folders: WorkingFolders, folder: str, unsupported: str
    ) -> None:
        checkpoint = captured(checkpoints.capture(folder, "one"))
        answers = (
            checkpoints.capture(unsupported, "two"),
            checkpoints.kept(unsupported),
            checkpoints.verify(unsupported, checkpoint),
            checkpoints.materialize(unsupported, checkpoint, folders.path("target")),
            checkpoints.remove(unsupported, checkpoint.ref),
        )
        assert [type(answer) for answer in answers] == [Unsupported] * 5

    def test_not_being_able_to_look_is_none_of_the_other_answers(
        self, checkpoints: Checkpoints, folders: WorkingFolders, folder: str, unreadable: str
    ) -> None:
        checkpoint = captured(checkpoints.capture(folder, "one"))
        answers = (
            checkpoints.capture(unreadable, "two"),
            checkpoints.kept(unreadable),
            checkpoints.verify(unreadable, checkpoint),
            checkpoints.materialize(unreadable, checkpoint, folders.path("target")),
            checkpoints.remove(unreadable, checkpoint.ref),
        )
        assert [type(answer) for answer in answers] == [CouldNotLook] * 5

    def test_those_who_capture_at_once_all_keep_the_same_content(
        self,
        checkpoints: Checkpoints,
        folder: str,
        at_once: Callable[[Sequence[Callable[[], Capture]]], list[Capture]],
    ) -> None:
        made = at_once([partial(checkpoints.capture, folder, f"key-{number}") for number in range(4)])
        assert len({captured(answer).tree_id for answer in made}) == 1
        assert len(list_of(checkpoints, folder)) == 4
