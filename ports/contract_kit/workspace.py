"""The contract of `WorkspaceIdentity`."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import pytest

from ..workspace import Absent, CouldNotLook, WorkspaceIdentity, WorkspaceMissing, WorkspaceObservation, WorkspaceSeen

IDENTITY = re.compile(r"workspace:v1:[^\s]{1,180}")


class Folders(Protocol):
    """The places that an implementation looks at, in the hands of the test."""

    @abstractmethod
    def make(self, name: str) -> str:
        """Make an empty folder and return its path."""

    @abstractmethod
    def path(self, name: str) -> str:
        """The path of a folder that may not be there."""

    @abstractmethod
    def move(self, source: str, name: str) -> str:
        """Move a folder and return its new path."""

    @abstractmethod
    def copy(self, source: str, name: str) -> str:
        """Copy a folder with all that it holds and return the path of the copy."""


def seen(observation: WorkspaceObservation) -> WorkspaceSeen:
    """The same, where anything else fails the test."""
    assert isinstance(observation, WorkspaceSeen), observation
    return observation


class WorkspaceIdentityContract:
    """Subclass it, override the fixtures, and pytest checks an implementation of the port."""

    @pytest.fixture
    def workspaces(self) -> WorkspaceIdentity:
        """The implementation."""
        pytest.fail("override the fixture `workspaces`")

    @pytest.fixture
    def folders(self) -> Folders:
        """The places that it looks at."""
        pytest.fail("override the fixture `folders`")

    @pytest.fixture
    def unreadable(self, folders: Folders) -> str:
        """A folder that nobody can look at."""
        pytest.fail("override the fixture `unreadable`")

    @pytest.fixture
    def at_once(
        self,
    ) -> Callable[[Sequence[Callable[[], WorkspaceObservation]]], list[WorkspaceObservation]]:
        """Runs functions in threads of their own and returns what they return, in their order."""
        pytest.fail("override the fixture `at_once`")

    def test_looking_makes_no_identity(self, workspaces: WorkspaceIdentity, folders: Folders) -> None:
        path = folders.make("a")
        for _ in range(2):
            observed = workspaces.observe(path)
            assert isinstance(observed, WorkspaceMissing)
            assert observed.what is Absent.MARKER

    def test_an_identity_once_made_stays(self, workspaces: WorkspaceIdentity, folders: Folders) -> None:
        path = folders.make("a")
        made = seen(workspaces.ensure(path))
        assert IDENTITY.fullmatch(made.identity)
        assert seen(workspaces.ensure(path)) == made
        assert seen(workspaces.observe(path)) == made

    def test_a_folder_that_is_not_there_is_missing_and_is_not_made(
        self, workspaces: WorkspaceIdentity, folders: Folders
    ) -> None:
        for look in (workspaces.observe, workspaces.ensure, workspaces.observe):
            observed = look(folders.path("nowhere"))
            assert isinstance(observed, WorkspaceMissing)
            assert observed.what is Absent.FOLDER

    def test_not_being_able_to_look_is_not_finding_nothing(
        self, workspaces: WorkspaceIdentity, unreadable: str
    ) -> None:
        assert isinstance(workspaces.observe(unreadable), CouldNotLook)
        assert isinstance(workspaces.ensure(unreadable), CouldNotLook)

    def test_two_folders_have_two_identities(self, workspaces: WorkspaceIdentity, folders: Folders) -> None:
        first, second = (seen(workspaces.ensure(folders.make(name))) for name in ("a", "b"))
        assert first.identity != second.identity
        assert first.canonical_path != second.canonical_path

    def test_a_moved_folder_keeps_its_identity(self, workspaces: WorkspaceIdentity, folders: Folders) -> None:
        before = seen(workspaces.ensure(folders.make("a")))
        moved = folders.move(folders.path("a"), "b")
        after = seen(workspaces.observe(moved))
        assert after.identity == before.identity
        assert after.canonical_path != before.canonical_path
        assert isinstance(workspaces.observe(folders.path("a")), WorkspaceMissing)

    def test_a_copied_folder_is_not_given_another_identity_unasked(
        self, workspaces: WorkspaceIdentity, folders: Folders
    ) -> None:
        original = seen(workspaces.ensure(folders.make("a")))
        copy = folders.copy(folders.path("a"), "b")
        assert seen(workspaces.ensure(copy)).identity == original.identity

    def test_those_who_make_it_at_once_agree(
        self,
        workspaces: WorkspaceIdentity,
        folders: Folders,
        at_once: Callable[[Sequence[Callable[[], WorkspaceObservation]]], list[WorkspaceObservation]],
    ) -> None:
        for attempt in range(10):
            path = folders.make(f"folder-{attempt}")
            made = at_once([partial(workspaces.ensure, path)] * 4)
            assert len({seen(observation).identity for observation in made}) == 1

    def test_a_copy_that_is_renewed_is_another_workspace_and_says_what_it_was(
        self, workspaces: WorkspaceIdentity, folders: Folders
    ) -> None:
        original = seen(workspaces.ensure(folders.make("a")))
        copy = folders.copy(folders.path("a"), "b")
        renewed = seen(workspaces.renew(copy))
        assert renewed.identity != original.identity
        assert renewed.renewed_from == original.identity
        assert seen(workspaces.observe(copy)) == seen(workspaces.ensure(copy)) == renewed
        assert seen(workspaces.observe(folders.path("a"))) == original

    def test_what_has_no_identity_is_not_renewed(
        self, workspaces: WorkspaceIdentity, folders: Folders, unreadable: str
    ) -> None:
        bare = folders.make("a")
        assert isinstance(workspaces.renew(bare), WorkspaceMissing)
        assert isinstance(workspaces.observe(bare), WorkspaceMissing)
        assert isinstance(workspaces.renew(folders.path("nowhere")), WorkspaceMissing)
        assert isinstance(workspaces.renew(unreadable), CouldNotLook)

    def test_of_copies_the_one_that_a_person_named_says_so_where_it_stands(
        self, workspaces: WorkspaceIdentity, folders: Folders
    ) -> None:
        original = seen(workspaces.ensure(folders.make("a")))
        assert not original.adopted
        before = folders.copy(folders.path("a"), "b")
        adopted = seen(workspaces.adopt(folders.path("a")))
        assert adopted == original._replace(adopted=True)
        assert seen(workspaces.adopt(folders.path("a"))) == seen(workspaces.ensure(folders.path("a"))) == adopted
        after = folders.copy(folders.path("a"), "c")
        for copy in (before, after):
            assert seen(workspaces.observe(copy)).identity == original.identity
            assert not seen(workspaces.observe(copy)).adopted

    def test_a_renewed_folder_is_adopted_by_nobody(self, workspaces: WorkspaceIdentity, folders: Folders) -> None:
        path = folders.make("a")
        workspaces.ensure(path)
        workspaces.adopt(path)
        renewed = seen(workspaces.renew(path))
        assert not renewed.adopted
        assert seen(workspaces.adopt(path)) == renewed._replace(adopted=True)  # and it is told still what it was

    def test_what_was_said_of_one_folder_is_taken_back_there_alone(
        self, workspaces: WorkspaceIdentity, folders: Folders
    ) -> None:
        original = seen(workspaces.ensure(folders.make("a")))
        copy = folders.copy(folders.path("a"), "b")
        for path in (folders.path("a"), copy):
            workspaces.adopt(path)
        assert seen(workspaces.disown(folders.path("a"))) == seen(workspaces.observe(folders.path("a"))) == original
        assert seen(workspaces.disown(folders.path("a"))) == original
        assert seen(workspaces.observe(copy)).adopted

    def test_what_has_no_identity_is_not_disowned(
        self, workspaces: WorkspaceIdentity, folders: Folders, unreadable: str
    ) -> None:
        bare = folders.make("a")
        assert isinstance(workspaces.disown(bare), WorkspaceMissing)
        assert isinstance(workspaces.disown(folders.path("nowhere")), WorkspaceMissing)
        assert isinstance(workspaces.disown(unreadable), CouldNotLook)

    def test_what_has_no_identity_is_not_adopted(
        self, workspaces: WorkspaceIdentity, folders: Folders, unreadable: str
    ) -> None:
        bare = folders.make("a")
        assert isinstance(workspaces.adopt(bare), WorkspaceMissing)
        assert isinstance(workspaces.observe(bare), WorkspaceMissing)
        assert isinstance(workspaces.adopt(folders.path("nowhere")), WorkspaceMissing)
        assert isinstance(workspaces.adopt(unreadable), CouldNotLook)
