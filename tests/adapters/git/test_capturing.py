"""What is in a checkpoint: the bytes of the files that belong to the workspace. SPEC section 16, F15."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from safepoint.ports.checkpoints import Checkpoint, Compared, Difference, Differs, Kept, Materialized, Removed

from .repositories import captured, checkpoints_of, commit, files_under, git, make_repository, tree_of, write, write_odd

Build = Callable[[Path], None]


def odd_names(folder: Path) -> None:
    names = [b"line\nbreak", b"-dash", b"--all", b":(exclude)x", b" space ", b"tab\t", b'quote"', b"back\\slash", b"*"]
    names += [b"[a]", "\u00fcml\u00e4ut".encode(), "\u65e5\u672c".encode(), b"\xff\xfe", b"!not", b"#hash", b"a\x01b"]
    for name in names:
        write_odd(folder, name, name)


def line_ends_and_filters(folder: Path) -> None:
    write(
        folder, ".gitattributes", b"*.txt text eol=lf\n*.id ident\n*.u16 working-tree-encoding=UTF-16\n*.up filter=up\n"
    )
    write(folder, "crlf.txt", b"one\r\ntwo\r\n")
    write(folder, "mixed.txt", b"one\r\ntwo\n")
    write(folder, "name.id", b"$Id: kept as it is $\n")
    write(folder, "wide.u16", "wide".encode("utf-16"))
    write(folder, "bytes.up", b"lower\n")
    write(folder, "bom.txt", b"\xef\xbb\xbfbom\r\n")
    git(folder, "config", "core.autocrlf", "input")
    git(folder, "config", "filter.up.clean", "tr a-z A-Z")
    git(folder, "config", "filter.up.required", "true")


def links(folder: Path) -> None:
    write(folder, "real/file")
    (folder / "to_file").symlink_to("real/file")
    (folder / "to_folder").symlink_to("real")
    (folder / "dangling").symlink_to("nowhere")
    (folder / "absolute").symlink_to("/etc/hostname")
    (folder / "outside").symlink_to("../..")


def executables(folder: Path) -> None:
    write(folder, "tool").chmod(0o755)
    write(folder, "plain").chmod(0o644)
    write(folder, "group").chmod(0o674)
    git(folder, "config", "core.fileMode", "false")


def staged_and_changed(folder: Path) -> None:
    write(folder, "a", b"committed\n")
    write(folder, "gone", b"committed\n")
    write(folder, "moved", b"committed\n")
    commit(folder)
    write(folder, "a", b"staged\n")
    git(folder, "add", "a")
    write(folder, "a", b"changed\n")
    (folder / "gone").unlink()
    git(folder, "mv", "moved", "here")
    git(folder, "rm", "--quiet", "--cached", "here")
    write(folder, "new")
    git(folder, "add", "--intent-to-add", "new")


def in_a_conflict(folder: Path) -> None:
    write(folder, "a", b"1\n")
    commit(folder)
    git(folder, "checkout", "--quiet", "-b", "other")
    write(folder, "a", b"2\n")
    commit(folder)
    git(folder, "checkout", "--quiet", "main")
    write(folder, "a", b"3\n")
    commit(folder)
    git(folder, "-c", "user.name=n", "-c", "user.email=e", "merge", "--quiet", "other", status=1)


def without_a_look(folder: Path) -> None:
    """Files that the user told Git not to look at."""
    write(folder, "assumed", b"1\n")
    write(folder, "skipped", b"1\n")
    commit(folder)
    git(folder, "update-index", "--assume-unchanged", "assumed")
    git(folder, "update-index", "--skip-worktree", "skipped")
    write(folder, "assumed", b"2\n")
    write(folder, "skipped", b"2\n")


def detached(folder: Path) -> None:
    write(folder, "a")
    commit(folder)
    git(folder, "checkout", "--quiet", "--detach")
    write(folder, "b")


def split_index(folder: Path) -> None:
    write(folder, "a")
    commit(folder)
    git(folder, "update-index", "--split-index")
    write(folder, "b")
    git(folder, "add", "b")


def a_file_became_a_folder(folder: Path) -> None:
    write(folder, "a")
    write(folder, "b/c")
    commit(folder)
    (folder / "a").unlink()
    write(folder, "a/now")
    (folder / "b/c").unlink()
    (folder / "b").rmdir()
    (folder / "b").symlink_to("a")


def binary(folder: Path) -> None:
    write(folder, "bytes", bytes(range(256)) * 40)
    write(folder, "empty", b"")
    write(folder, "large", os.urandom(1024) * 3000)


def pipes(folder: Path) -> None:
    write(folder, "a")
    os.mkfifo(folder / "pipe")


BUILDS: tuple[Build, ...] = (
    *(odd_names, line_ends_and_filters, links, executables, staged_and_changed, in_a_conflict, without_a_look),
    *(detached, split_index, a_file_became_a_folder, binary, pipes),
)


def as_a_tree(folder: Path) -> dict[str, tuple[str, bytes]]:
    """What a tree of all files must have."""
    return {
        path: ("120000" if (folder / path).is_symlink() else "100755" if seen.mode & 0o100 else "100644", seen.content)
        for path, seen in files_under(folder).items()
    }


@pytest.mark.parametrize("build", BUILDS, ids=lambda build: build.__name__)
def test_every_file_is_in_it_byte_for_byte(tmp_path: Path, build: Build) -> None:
    folder = make_repository(tmp_path / "project")
    build(folder)
    pipe = folder / "pipe"
    pipe.unlink(missing_ok=True)  # neither file nor link, left out; put back for the capture
    expected = as_a_tree(folder)
    if build is pipes:
        os.mkfifo(pipe)
    checkpoints = checkpoints_of(tmp_path)
    for number in range(2):  # from nothing, and from what is remembered
        checkpoint = captured(checkpoints.capture(str(folder), f"key{number}"))
        assert tree_of(folder, checkpoint) == expected
        assert checkpoints.verify(str(folder), checkpoint) == Compared((), 0, same_policy=True)
    made = checkpoints.materialize(str(folder), checkpoint, str(tmp_path / "out"))
    assert isinstance(made, Materialized)
    assert as_a_tree(Path(made.path)) == expected
    assert captured(checkpoints.capture(made.path, "again")).tree_id == checkpoint.tree_id
    git(folder, "fsck", "--strict")


def test_what_is_ignored_is_out_unless_it_is_tracked(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "project")
    write(folder, "tracked.log")
    write(folder, "deep/tracked.log")
    commit(folder)
    write(folder, ".gitignore", b"*.log\nbuild\n/deep/\n")
    for path in ("other.log", "build/out", "deep/other", "excluded", "untracked"):
        write(folder, path)
    write(folder, ".git/info/exclude", b"excluded\n")
    checkpoints = checkpoints_of(tmp_path)
    paths = {".gitignore", "tracked.log", "deep/tracked.log", "untracked"}
    assert tree_of(folder, captured(checkpoints.capture(str(folder), "one"))).keys() == paths
    git(folder, "add", "--force", "other.log")
    assert tree_of(folder, captured(checkpoints.capture(str(folder), "two"))).keys() == paths | {"other.log"}
    git(folder, "rm", "--quiet", "--cached", "tracked.log")
    three = captured(checkpoints.capture(str(folder), "three"))
    assert tree_of(folder, three).keys() == (paths | {"other.log"}) - {"tracked.log"}


def test_what_the_user_ignores_everywhere_is_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    write(tmp_path, "settings/git/ignore", b"*.mine\n")
    folder = make_repository(tmp_path / "project")
    write(folder, "a.mine")
    write(folder, "b")
    assert tree_of(folder, captured(checkpoints_of(tmp_path).capture(str(folder), "one"))).keys() == {"b"}


def test_what_is_remembered_never_shows_in_what_is_captured(tmp_path: Path) -> None:
    """A file that was captured, and is ignored since then, is out, as where it is seen for the first time."""
    folder = make_repository(tmp_path / "project")
    write(folder, "build/x")
    write(folder, "a")
    checkpoints = checkpoints_of(tmp_path)
    captured(checkpoints.capture(str(folder), "one"))
    write(folder, "build/.gitignore", b"*\n")
    remembered = captured(checkpoints.capture(str(folder), "two"))
    anew = captured(checkpoints_of(tmp_path / "elsewhere").capture(str(folder), "three"))
    assert remembered.tree_id == anew.tree_id
    assert tree_of(folder, anew).keys() == {"a"}


def test_the_marker_and_our_own_files_are_never_content(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "project")
    write(folder, "a")
    write(folder, ".safepoint-workspace.json")
    write(folder, "sub/.safepoint-workspace.json")
    commit(folder)  # even where somebody tracks it
    write(folder, ".gitignore", b"!*\n")
    for name in ("store.sqlite", "store.sqlite-wal", "store.sqlite.locks/x"):
        write(folder, f"state/{name}")
    checkpoints = checkpoints_of(tmp_path)
    checkpoints = type(checkpoints)(folder / "place", checkpoints._clock, (f"{folder}/state/store.sqlite*",))
    for key in ("one", "two"):
        checkpoint = captured(checkpoints.capture(str(folder), key))
        assert tree_of(folder, checkpoint).keys() == {".gitignore", "a", "sub/.safepoint-workspace.json"}
    assert checkpoints.verify(str(folder), checkpoint) == Compared((), 0, same_policy=True)


def test_of_a_larger_repository_only_the_workspace_is_captured(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "project")
    folder = top / "part [of] it"
    write(top, "outside")
    write(top, ".gitignore", b"*.log\n")
    write(folder, "inside", b"1\n")
    write(folder, "tracked.log")
    git(top, "add", "--force", ".")
    write(folder, "ignored.log")
    write(folder, ".safepoint-workspace.json")
    write(folder, "deep/er")
    checkpoints = checkpoints_of(tmp_path)
    checkpoint = captured(checkpoints.capture(str(folder), "one"))
    assert tree_of(top, checkpoint).keys() == {"inside", "tracked.log", "deep/er"}
    write(top, "outside", b"changed\n")
    assert checkpoints.verify(str(folder), checkpoint) == Compared((), 0, same_policy=True)
    write(folder, "inside", b"2\n")
    assert checkpoints.verify(str(folder), checkpoint) == Compared(
        (Difference("inside", Differs.CHANGED),), 1, same_policy=True
    )
    made = checkpoints.materialize(str(folder), checkpoint, str(tmp_path / "out"))
    assert isinstance(made, Materialized)
    assert files_under(tmp_path / "out").keys() == {"inside", "tracked.log", "deep/er"}


@pytest.mark.parametrize("empty", ["", "sub"])
def test_an_empty_folder_of_a_repository_has_an_empty_checkpoint(tmp_path: Path, empty: str) -> None:
    top = make_repository(tmp_path / "project")
    (top / empty).mkdir(exist_ok=True)
    checkpoint = captured(checkpoints_of(tmp_path).capture(str(top / empty), "one"))
    assert tree_of(top, checkpoint) == {}


def test_a_worktree_is_captured_by_its_own_index(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "project")
    write(folder, "a", b"1\n")
    commit(folder)
    git(folder, "worktree", "add", "--quiet", str(tmp_path / "tree"))
    tree = tmp_path / "tree"
    write(tree, ".gitignore", b"*.log\n")
    write(tree, "forced.log")
    git(tree, "add", "--force", "forced.log")
    checkpoints = checkpoints_of(tmp_path)
    checkpoint = captured(checkpoints.capture(str(tree), "one"))
    assert tree_of(tree, checkpoint).keys() == {".gitignore", "a", "forced.log"}
    kept = checkpoints.kept(str(folder))
    assert isinstance(kept, Kept)
    assert [(one.checkpoint, one.folder) for one in kept.checkpoints] == [(checkpoint, str(tree))]


def test_a_repository_of_the_other_object_format_works(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "project", "--object-format=sha256")
    write(folder, "a")
    write(folder, ".gitignore", b"*.log\n")
    checkpoints = checkpoints_of(tmp_path)
    checkpoint = captured(checkpoints.capture(str(folder), "one"))
    assert len(checkpoint.tree_id) == 64
    write(folder, ".gitignore", b"a\n")
    compared = checkpoints.verify(str(folder), checkpoint)
    assert compared == Compared((Difference(".gitignore", Differs.CHANGED),), 1, same_policy=True)
    assert isinstance(checkpoints.materialize(str(folder), checkpoint, str(tmp_path / "out")), Materialized)


def test_a_repository_that_borrows_objects_and_has_an_odd_path_works(tmp_path: Path) -> None:
    origin = make_repository(tmp_path / "origin")
    write(origin, "a")
    commit(origin)
    odd = tmp_path / 'odd "path": 100%\n'
    git(tmp_path, "clone", "--quiet", "--shared", str(origin), str(odd))
    write(odd, "b")
    checkpoints = checkpoints_of(tmp_path)
    checkpoint = captured(checkpoints.capture(str(odd), "one"))
    assert checkpoints.verify(str(odd), checkpoint) == Compared((), 0, same_policy=True)


def test_a_repository_whose_path_is_no_text_works(tmp_path: Path) -> None:
    folder = make_repository(Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff project")))
    write(folder, "sub/a")
    checkpoints = checkpoints_of(tmp_path)
    for workspace in (folder, folder / "sub"):
        checkpoint = captured(checkpoints.capture(str(workspace), workspace.name[-3:].strip()))
        assert checkpoints.verify(str(workspace), checkpoint) == Compared((), 0, same_policy=True)
        made = checkpoints.materialize(str(workspace), checkpoint, f"{workspace}-copy")
        assert isinstance(made, Materialized)
        assert isinstance(checkpoints.kept(made.path), Kept)


def test_a_worktree_of_a_bare_repository_works(tmp_path: Path) -> None:
    origin = make_repository(tmp_path / "origin")
    write(origin, "a")
    commit(origin)
    git(tmp_path, "clone", "--quiet", "--bare", str(origin), "bare")
    git(tmp_path / "bare", "worktree", "add", "--quiet", str(tmp_path / "tree"), "main")
    write(tmp_path / "tree", "b")
    checkpoint = captured(checkpoints_of(tmp_path).capture(str(tmp_path / "tree"), "one"))
    assert tree_of(tmp_path / "bare", checkpoint).keys() == {"a", "b"}


def test_inside_a_hook_of_another_repository_nothing_is_taken_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_repository(tmp_path / "other")
    write(other, "theirs")
    folder = make_repository(tmp_path / "project")
    write(folder, "ours")
    for name, value in {"GIT_DIR": other / ".git", "GIT_WORK_TREE": other, "GIT_INDEX_FILE": other / "x"}.items():
        monkeypatch.setenv(name, str(value))
    checkpoint = captured(checkpoints_of(tmp_path).capture(str(folder), "one"))
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name)
    assert tree_of(folder, checkpoint).keys() == {"ours"}
    assert not (other / ".git" / "refs" / "safepoint").exists()


def test_a_path_that_is_no_text_is_shown_as_text_and_can_still_be_opened(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "project")
    checkpoints = checkpoints_of(tmp_path)
    checkpoint = captured(checkpoints.capture(str(folder), "one"))
    names = {
        b"\xffname": r'"\xffname"',
        rb"\xffname": r"\xffname",
        rb'"\xffname"': r'"\"\\xffname\""',
        b'\xff\\"': r'"\xff\\\""',
    }
    for name in names:
        write_odd(folder, name, b"here")
    compared = checkpoints.verify(str(folder), checkpoint)
    assert isinstance(compared, Compared)
    assert {os.fsencode(one.path): one.shown for one in compared.differences} == names
    assert all((folder / one.path).read_bytes() == b"here" for one in compared.differences)


def test_two_stores_keep_checkpoints_of_one_repository_side_by_side(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "project")
    write(folder, "a")
    made = [captured(checkpoints_of(tmp_path / name).capture(str(folder), name)) for name in ("one", "two")]
    assert isinstance(made[0], Checkpoint)
    assert made[0].tree_id == made[1].tree_id


def test_what_was_done_in_a_copy_is_brought_home_as_a_patch(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "project")
    line_ends_and_filters(folder)
    write(folder, "gone")
    checkpoints = checkpoints_of(tmp_path)
    made = checkpoints.materialize(
        str(folder), captured(checkpoints.capture(str(folder), "one")), str(tmp_path / "out")
    )
    assert isinstance(made, Materialized)
    copy = Path(made.path)
    write(copy, "crlf.txt", b"one\r\nchanged\r\n")
    write(copy, "new/bytes", bytes(range(256)))
    (copy / "gone").unlink()
    git(copy, "add", "-A")
    patch = git(copy, "diff", "--cached", "--binary", "refs/safepoint/base")
    git(folder, "apply", given=patch)
    assert as_a_tree(folder) == as_a_tree(copy)


def test_a_copy_needs_nothing_of_the_repository_that_it_was_made_from(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "project")
    write(folder, "tracked")
    commit(folder)
    git(folder, "gc", "--quiet")
    write(folder, "untracked", b"precious\n")
    checkpoints = checkpoints_of(tmp_path)
    checkpoint = captured(checkpoints.capture(str(folder), "one"))
    copy = tmp_path / "copy"
    assert isinstance(checkpoints.materialize(str(folder), checkpoint, str(copy)), Materialized)
    # What lies in the first repository, and what nobody names there, is kept by a checkpoint of the copy all the same.
    write(folder, "also", b"the same in both\n")
    git(folder, "add", "also")
    git(folder, "rm", "--quiet", "--cached", "also")
    write(copy, "also", b"the same in both\n")
    kept = captured(checkpoints.capture(str(copy), "two"))
    assert checkpoints.remove(str(folder), checkpoint.ref) == Removed(was_there=True)
    shutil.rmtree(folder)
    assert checkpoints.verify(str(copy), kept) == Compared((), 0, same_policy=True)
    (copy / "untracked").unlink()
    git(copy, "fsck", "--strict", "--no-dangling")
    git(copy, "checkout", "--", "untracked")
    assert (copy / "untracked").read_bytes() == b"precious\n"
    assert not (copy / ".git" / "objects" / "info" / "alternates").exists()


def test_a_copy_holds_the_objects_of_its_checkpoint_and_no_others(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "project")
    write(folder, "secret", b"gone by now\n")
    commit(folder)
    (folder / "secret").unlink()
    write(folder, "a")
    commit(folder)
    checkpoints = checkpoints_of(tmp_path)
    checkpoint = captured(checkpoints.capture(str(folder), "one"))
    copy = tmp_path / "copy"
    assert isinstance(checkpoints.materialize(str(folder), checkpoint, str(copy)), Materialized)
    names = git(copy, "cat-file", "--batch-all-objects", "--batch-check=%(objecttype)").decode().split()
    assert sorted(names) == ["blob", "commit", "tree"]
