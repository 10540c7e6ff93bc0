"""After a crash the bytes of files are compared, and none is ever written. SPEC section 10, F1, F7, F8."""

from __future__ import annotations

import dataclasses
import errno
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safepoint.adapters.memory.failpoints import RecordingFailpoints
from safepoint.adapters.tools.builtin.atomic_write import temporary_name
from safepoint.adapters.tools.builtin.file_reconciler import FileReconciler
from safepoint.adapters.tools.builtin.writing import append_file, delete_file, edit_file, move_file, write_file
from safepoint.adapters.tools.catalog import FunctionCatalog
from safepoint.domain import canonical
from safepoint.domain.errors import RefusedWithoutEffect
from safepoint.domain.events.event import Json
from safepoint.domain.events.tool import Effect, Life, Observation, ToolCalled, ToolDispatched
from safepoint.domain.file_evidence import FileEvidence, read_evidence
from safepoint.domain.identifiers import (
    EventId,
    ExecutionIdentity,
    IncarnationId,
    InvocationId,
    OperationId,
    RunId,
    SessionId,
    StepId,
    ToolCallId,
    TurnId,
)
from safepoint.domain.recovery.bundle_rules import COMPLETED_BY, PARKED_BY
from safepoint.ports.reconciler import AskedOperation
from safepoint.ports.tool_catalog import BoundCall, SyncCall, ToolContext, Workspace

from .file_matrix import EVENTS, NEW, OLD, STORIES, Cell, cells, prepare, table, world

IDENTITY = "workspace:v1:11111111-1111-4111-8111-111111111111"
OPERATION = OperationId("operation-1")
CATALOG = FunctionCatalog([write_file, edit_file, append_file, delete_file, move_file])
DOCUMENT = Path(__file__).parents[3] / "docs" / "file-evidence.md"


def bound(tool: str, arguments: Json) -> BoundCall:
    call = CATALOG.bind(tool, arguments)
    assert isinstance(call, BoundCall), call
    return call


def asked(call: BoundCall, arguments: Json, evidence: Json, workspace: Path, identity: str | None) -> AskedOperation:
    """What the use case asks of the reconciler, from what T1 recorded."""
    spine: dict[str, Any] = {
        "session_id": SessionId("s"),
        "run_id": RunId("r"),
        "turn_id": TurnId("t"),
        "invocation_id": InvocationId("i"),
        "occurred_at": "2026-11-30T00:00:00.000000Z",
    }
    called = ToolCalled(
        event_id=EventId("called"),
        step_id=StepId("1"),
        call_id=ToolCallId("a"),
        tool_name=call.tool_name,
        args=arguments,
        **spine,
    )
    dispatch = ToolDispatched(
        event_id=EventId("dispatched"),
        operation_id=OPERATION,
        call_id=ToolCallId("a"),
        tool_name=call.tool_name,
        args_hash=canonical.args_hash(call.tool_name, arguments),
        contract=call.contract,
        evidence=evidence,
        incarnation_id=IncarnationId("owner"),
        life=Life.TASK,
        **spine,
    )
    return AskedOperation(called, dispatch, workspace, identity)


class Crash:
    """One call that is carried out in a folder, while the world at each instant is kept as a copy."""

    def __init__(self, folder: Path, tool: str, arguments: Json, *, identity: str | None = IDENTITY) -> None:
        self.workspace = folder / "workspace"
        self.call, self.arguments = bound(tool, arguments), arguments
        self.evidence = self.call.evidence(Workspace(self.workspace, identity))
        self._copies = folder / "copies"
        self.result: Json = None

    def play(self) -> None:
        """Carry the call out."""
        failpoints = RecordingFailpoints()
        failpoints.at_hit = self._keep
        context = ToolContext(
            identity=ExecutionIdentity(SessionId("s"), RunId("r"), TurnId("t"), InvocationId("i")),
            operation_id=OPERATION,
            idempotency_key="key",
            workspace=self.workspace,
            cancel=_NeverSet(),
            report=lambda line: None,
            failpoints=failpoints,
            evidence=self.evidence,
        )
        assert isinstance(self.call.implementation, SyncCall)
        assert isinstance(self.arguments, dict)
        returned = self.call.implementation.run(self.arguments, context)
        self.result = self.call.returned(returned).result
        self._keep("T2 missing")

    def _keep(self, hit: str) -> None:
        instant = {"before_effect": "before the effect", "temporary_written": "temporary written"}
        name = instant.get(hit.rpartition(".")[2], hit if hit == "T2 missing" else "after the effect")
        shutil.copytree(self.workspace, self._copies / name, symlinks=True)

    def at(self, instant: str) -> Path:
        """The world in which it was killed at that instant."""
        return self._copies / instant

    def asked(self, workspace: Path, identity: str | None = IDENTITY) -> AskedOperation:
        return asked(self.call, self.arguments, self.evidence, workspace, identity)


class _NeverSet:
    def is_set(self) -> bool:
        return False


def cell_of(cell: Cell) -> str:
    return f"{cell.story.name}, {cell.instant}, {cell.event}"


@pytest.fixture(scope="module")
def crashes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Crash]:
    made = {}
    for story in STORIES:
        folder = tmp_path_factory.mktemp("story").resolve()
        (folder / "workspace").mkdir()
        prepare(folder / "workspace", story)
        made[story.name] = Crash(folder, story.tool, dict(story.arguments))
        made[story.name].play()
    return made


@pytest.mark.parametrize("cell", [*cells()], ids=cell_of)
def test_each_cell_is_observed_as_the_table_says_and_no_file_is_written(
    crashes: dict[str, Crash], cell: Cell, tmp_path: Path
) -> None:
    crash = crashes[cell.story.name]
    workspace = tmp_path.resolve() / "workspace"
    shutil.copytree(crash.at(cell.instant), workspace, symlinks=True)
    EVENTS[cell.event](workspace / cell.story.subject(cell.instant), cell.story)
    before = world(workspace)
    reconciler, operation = FileReconciler(), crash.asked(workspace)

    observed = reconciler.observe(operation)
    assert observed.observation is cell.expected, observed.detail
    assert reconciler.observe(operation) == observed, "the same world gives the same answer"
    assert world(workspace) == before, "looking changes nothing"

    mode = operation.contract.mode
    if observed.observation in COMPLETED_BY[mode]:
        assert observed.result is not None
        assert (observed.result.is_error, observed.result.effect) == (False, Effect.DONE)
        if observed.observation is Observation.ALREADY_SATISFIED:
            assert observed.result.result == {"path": "src/a.txt", "size_bytes": len(OLD), "already_so": True}
        else:
            assert observed.result.result == crash.result, "the answer that the tool itself would have given"
    else:
        assert observed.observation in PARKED_BY[mode]
        assert observed.result is None
    assert observed.evidence_digest is not None
    assert observed.detail

    for _ in range(2):
        reconciler.tidy(operation)
    temporary = str(Path(cell.story.subject("before the effect")).with_name(temporary_name(OPERATION)))
    assert (temporary in before) is (cell.instant == "temporary written")
    assert world(workspace) == {path: seen for path, seen in before.items() if path != temporary}


def test_the_table_in_the_docs_is_the_one_that_is_tested() -> None:
    assert table() in DOCUMENT.read_text(), "put the output of python -m tests.adapters.tools.file_matrix there"


# ---- what a look may not conclude -----------------------------------------------------------------------------------


@pytest.fixture
def crash(tmp_path: Path) -> Crash:
    """An edit that happened, and whose result was lost."""
    story = next(one for one in STORIES if one.name == "edit")
    folder = tmp_path.resolve()
    (folder / "workspace").mkdir()
    prepare(folder / "workspace", story)
    made = Crash(folder, story.tool, dict(story.arguments))
    made.play()
    return made


@pytest.mark.parametrize("identity", [None, "workspace:v1:22222222-2222-4222-8222-222222222222"])
def test_another_workspace_proves_nothing_however_its_files_look(crash: Crash, identity: str | None) -> None:
    observed = FileReconciler().observe(crash.asked(crash.workspace, identity))
    assert (observed.observation, observed.result) == (Observation.UNREADABLE, None)


def test_a_run_without_a_workspace_identity_proves_nothing(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    crash = Crash(tmp_path.resolve(), "write_file", {"path": "a", "content": "x"}, identity=None)
    crash.play()
    for identity in (None, IDENTITY):
        assert FileReconciler().observe(crash.asked(crash.workspace, identity)).observation is Observation.UNREADABLE


@pytest.mark.parametrize("call", ["open", "read", "stat", "fstat"])
def test_a_file_that_cannot_be_read_is_neither_there_nor_absent(
    crash: Crash, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """F1: could not look is not absent; no error while looking is an answer."""
    for number in (errno.EACCES, errno.EIO, errno.ESTALE, errno.ENAMETOOLONG):

        def fail(*arguments: object, **options: object) -> int:
            raise OSError(number, os.strerror(number))  # noqa: B023

        with monkeypatch.context() as patched:
            patched.setattr(os, call, fail)
            observed = FileReconciler().observe(crash.asked(crash.workspace))
        assert (observed.observation, observed.result) == (Observation.UNREADABLE, None)
        assert "cannot be read" in observed.detail


def test_a_workspace_that_is_gone_is_no_absence_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "a").write_text("x")
    crash = Crash(tmp_path.resolve(), "delete_file", {"path": "a"})
    crash.play()
    assert FileReconciler().observe(crash.asked(crash.workspace)).observation is Observation.MATCHES_EXPECTED_STATE
    assert FileReconciler().observe(crash.asked(tmp_path / "gone")).observation is Observation.UNREADABLE


def test_a_file_whose_folder_is_gone_too_is_not_what_a_removal_leaves(tmp_path: Path) -> None:
    (tmp_path / "workspace" / "a").mkdir(parents=True)
    (tmp_path / "workspace" / "a" / "b").write_text("x")
    crash = Crash(tmp_path.resolve(), "delete_file", {"path": "a/b"})
    crash.play()
    (crash.workspace / "a").rmdir()
    assert FileReconciler().observe(crash.asked(crash.workspace)).observation is Observation.DIVERGED


def test_a_folder_that_has_become_a_link_is_not_followed(crash: Crash) -> None:
    (crash.workspace / "src").rename(crash.workspace / "real")
    (crash.workspace / "src").symlink_to("real")
    observed = FileReconciler().observe(crash.asked(crash.workspace))
    assert observed.observation is Observation.DIVERGED
    assert "symbolic link" in observed.detail


@pytest.mark.parametrize("made", ["a file", "a folder", "a pipe"])
def test_something_else_in_the_place_of_a_file_or_its_folder_is_no_match(crash: Crash, made: str) -> None:
    for place in (crash.workspace / "src" / "a.txt", crash.workspace / "src"):
        shutil.rmtree(place) if place.is_dir() else place.unlink()
        if made == "a folder":
            place.mkdir()
        elif made == "a pipe":
            os.mkfifo(place)
        else:
            place.write_text("theirs")
        observed = FileReconciler().observe(crash.asked(crash.workspace))
        assert observed.observation is Observation.DIVERGED
        assert "None" not in observed.detail


@pytest.mark.parametrize("grows", [True, False])
def test_a_file_that_is_written_while_it_is_read_is_unreadable(
    crash: Crash, monkeypatch: pytest.MonkeyPatch, grows: bool
) -> None:
    path, read = crash.workspace / "src" / "a.txt", os.read

    def read_and_write(file: int, length: int) -> bytes:
        content = read(file, length)
        path.write_bytes(path.read_bytes() + (b"more" if grows else b""))
        return content

    monkeypatch.setattr(os, "read", read_and_write)
    observed = FileReconciler().observe(crash.asked(crash.workspace))
    assert observed.observation is Observation.UNREADABLE
    assert "changes while it is read" in observed.detail


def _damaged(evidence: Json, *way: str | int, value: Json = None, gone: bool = False) -> Json:
    copy = canonical.decode_canonical(canonical.encode(evidence))
    inner = copy
    for step in way[:-1]:
        inner = inner[step]  # type: ignore[index]
    if gone:
        del inner[way[-1]]  # type: ignore[union-attr, arg-type]
    else:
        inner[way[-1]] = value  # type: ignore[index]
    return copy


def test_evidence_that_is_not_understood_whole_is_not_believed_in_part(crash: Crash) -> None:
    recorded = crash.evidence
    strange: list[Json] = [
        None,
        [],
        "text",
        {},
        _damaged(recorded, "format", value="safepoint.file-evidence.v2"),
        _damaged(recorded, "more", value=1),
        _damaged(recorded, "result", gone=True),
        _damaged(recorded, "transform", value="write"),
        _damaged(recorded, "transform_version", value=2),
        _damaged(recorded, "files", value=[]),
        _damaged(recorded, "files", 0, "path", value="../outside"),
        _damaged(recorded, "files", 0, "path", value="/etc/passwd"),
        _damaged(recorded, "files", 0, "after", "sha256", value="0"),
        _damaged(recorded, "files", 0, "after", "size_bytes", value="22"),
        _damaged(recorded, "files", 0, "after", "kind", value="imagined"),
    ]
    for evidence in strange:
        operation = asked(crash.call, crash.arguments, evidence, crash.workspace, IDENTITY)
        observed = FileReconciler().observe(operation)
        assert (observed.observation, observed.result) == (Observation.UNREADABLE, None), evidence
        FileReconciler().tidy(operation)
    assert FileReconciler().observe(crash.asked(crash.workspace)).observation is Observation.MATCHES_EXPECTED_STATE


def test_a_regular_file_that_no_record_describes_matches_nothing(crash: Crash) -> None:
    """A file that is too large to be read has no digest, and neither has evidence without one: that is no match."""
    evidence = crash.evidence
    for side in ("before", "after"):
        evidence = _damaged(evidence, "files", 0, side, "sha256", value=None)
    operation = asked(crash.call, crash.arguments, evidence, crash.workspace, IDENTITY)
    assert FileReconciler().observe(operation).observation is Observation.DIVERGED


# ---- for people -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (NEW.replace(b"\n", b"\r\n"), "line ends crlf instead of lf"),
        (b"\xef\xbb\xbf" + NEW, "byte order mark"),
        (NEW.decode().encode("utf-16"), "utf-16 instead of utf-8"),
        (NEW[:9], "9 bytes instead of 23"),
        (b"\xff\xfe" + b"x", "utf-16"),
        (b"\x80", "no text instead of utf-8"),
    ],
)
def test_the_difference_is_named_without_the_content(crash: Crash, content: bytes, said: str) -> None:
    (crash.workspace / "src" / "a.txt").write_bytes(content)
    observed = FileReconciler().observe(crash.asked(crash.workspace))
    assert observed.observation is Observation.DIVERGED
    assert said in observed.detail
    assert "line two" not in observed.detail


def test_changed_permissions_are_said_and_left(crash: Crash) -> None:
    path = crash.workspace / "src" / "a.txt"
    path.chmod(0o600)
    observed = FileReconciler().observe(crash.asked(crash.workspace))
    assert observed.observation is Observation.MATCHES_EXPECTED_STATE
    assert "permissions 0600 instead of 0644" in observed.detail
    FileReconciler().tidy(crash.asked(crash.workspace))
    assert path.stat().st_mode & 0o7777 == 0o600


# ---- field reports --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (NEW, Observation.MATCHES_EXPECTED_STATE),
        (OLD, Observation.MATCHES_PRIOR_STATE),
        (NEW[: len(NEW) // 2], Observation.DIVERGED),
        (NEW.replace(b"\n", b"\r\n"), Observation.DIVERGED),
        (b"\xef\xbb\xbf" + NEW, Observation.DIVERGED),
        (OLD.swapcase(), Observation.DIVERGED),
    ],
    ids=["(i) as meant", "(ii) as before", "(iii) half", "(iv) CRLF", "(v) mark", "same size"],
)
def test_r3_062_a_write_is_confirmed_by_its_bytes_alone(tmp_path: Path, found: bytes, expected: Observation) -> None:
    folder = tmp_path.resolve()
    (folder / "workspace").mkdir()
    (folder / "workspace" / "f").write_bytes(OLD)
    crash = Crash(folder, "write_file", {"path": "f", "content": NEW.decode()})
    (crash.workspace / "f").write_bytes(found)
    assert FileReconciler().observe(crash.asked(crash.workspace)).observation is expected


def test_r3_063_bytes_are_counted_and_not_characters(tmp_path: Path) -> None:
    """3792 characters that are 3799 bytes; the file is there in full, and nobody was told."""
    text = "naïve… café, déjà vu" + "x" * 3772
    folder = tmp_path.resolve()
    (folder / "workspace").mkdir()
    crash = Crash(folder, "write_file", {"path": "note", "content": text})
    crash.play()
    observed = FileReconciler().observe(crash.asked(crash.workspace))
    assert observed.observation is Observation.MATCHES_EXPECTED_STATE
    assert observed.result is not None
    assert observed.result.result == {"path": "note", "size_bytes": len(text.encode()), "created": True}
    (crash.workspace / "note").write_bytes(text.encode()[: len(text)])
    assert FileReconciler().observe(crash.asked(crash.workspace)).observation is Observation.DIVERGED


@pytest.mark.parametrize(
    ("lines", "expected"),
    [(0, Observation.MATCHES_PRIOR_STATE), (1, Observation.MATCHES_EXPECTED_STATE), (2, Observation.DIVERGED)],
)
def test_r3_065_an_append_is_confirmed_by_exactly_one_more_line(
    tmp_path: Path, lines: int, expected: Observation
) -> None:
    folder = tmp_path.resolve()
    (folder / "workspace").mkdir()
    (folder / "workspace" / "f").write_bytes(b"x\n")
    crash = Crash(folder, "append_file", {"path": "f", "text": "x\n"})
    (crash.workspace / "f").write_bytes(b"x\n" * (1 + lines))
    assert FileReconciler().observe(crash.asked(crash.workspace)).observation is expected
    (crash.workspace / "f").write_bytes(b"y\n" + b"x\n" * lines)
    assert FileReconciler().observe(crash.asked(crash.workspace)).observation is Observation.DIVERGED


# ---- properties -----------------------------------------------------------------------------------------------------

TEXTS = st.text(alphabet=st.sampled_from("ab\n\r\ufeffé😀\0"), max_size=12)
CONTENTS = st.one_of(TEXTS.map(str.encode), st.binary(max_size=12))


@st.composite
def written(draw: st.DrawFn) -> tuple[str, dict[str, Json], bytes | None]:
    """A call, and what its file holds before."""
    tool = draw(st.sampled_from(["write_file", "edit_file", "append_file", "delete_file", "move_file"]))
    prior = draw(CONTENTS if tool in {"delete_file", "move_file"} else st.one_of(st.none(), CONTENTS))
    match tool:
        case "write_file":
            return tool, {"path": "f", "content": draw(TEXTS)}, prior
        case "append_file":
            return tool, {"path": "f", "text": draw(TEXTS.filter(bool))}, prior
        case "delete_file":
            return tool, {"path": "f"}, prior
        case "move_file":
            return tool, {"path": "f", "new_path": "g/h"}, prior
        case _:
            old = draw(TEXTS.filter(bool))
            around = draw(CONTENTS), draw(CONTENTS)
            arguments: dict[str, Json] = {"path": "f", "old_text": old, "new_text": draw(TEXTS), "replace_all": True}
            return tool, arguments, old.encode().join(around)


@given(case=written(), other=CONTENTS, appended=st.binary(min_size=1, max_size=3))
@settings(max_examples=150, deadline=None)
def test_what_was_done_is_what_was_recorded_and_any_other_bytes_are_no_match(
    case: tuple[str, dict[str, Json], bytes | None], other: bytes, appended: bytes
) -> None:
    tool, arguments, prior = case
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made).resolve()
        workspace = folder / "workspace"
        workspace.mkdir()
        if prior is not None:
            (workspace / "f").write_bytes(prior)
        try:
            crash = Crash(folder, tool, arguments)
        except RefusedWithoutEffect:
            assert prior is None, "only what is not there is refused here"
            return
        crash.play()
        reconciler, operation = FileReconciler(), crash.asked(workspace)
        observed = reconciler.observe(operation)
        path = workspace / ("g/h" if tool == "move_file" else "f")
        left = path.read_bytes() if path.exists() else None
        unchanged = left == prior and tool != "move_file"
        done = Observation.ALREADY_SATISFIED if unchanged else Observation.MATCHES_EXPECTED_STATE
        assert observed.observation is done
        assert observed.result is not None
        assert unchanged or observed.result.result == crash.result
        for content in (other, (left or b"") + appended, (left or b"")[:-1]):
            path.write_bytes(content)
            seen = reconciler.observe(operation)
            if content == left:
                assert seen == observed
            else:
                assert seen.observation in {Observation.MATCHES_PRIOR_STATE, Observation.DIVERGED}
                assert (seen.observation is Observation.MATCHES_PRIOR_STATE) is (
                    content == prior and tool != "move_file"
                )
                assert seen.result is None


@given(prior=st.binary(max_size=8), now=st.binary(max_size=8))
@settings(max_examples=50, deadline=None)
def test_whatever_stands_there_when_it_is_carried_out_it_does_what_it_recorded_or_nothing(
    prior: bytes, now: bytes
) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made).resolve()
        (folder / "workspace").mkdir()
        path = folder / "workspace" / "f"
        path.write_bytes(prior)
        crash = Crash(folder, "append_file", {"path": "f", "text": "x"})
        path.write_bytes(now)
        if now == prior:
            crash.play()
            assert path.read_bytes() == prior + b"x"
        else:
            with pytest.raises(RefusedWithoutEffect, match="changed by somebody else"):
                crash.play()
            assert path.read_bytes() == now


def test_observations_do_not_depend_on_when_the_file_was_written(crash: Crash) -> None:
    before = FileReconciler().observe(crash.asked(crash.workspace))
    os.utime(crash.workspace / "src" / "a.txt", ns=(1, 1))
    assert FileReconciler().observe(crash.asked(crash.workspace)) == before


def test_the_other_operations_of_the_run_keep_their_temporary_files(crash: Crash) -> None:
    theirs = crash.workspace / "src" / temporary_name(OperationId("operation-2"))
    theirs.write_text("half")
    FileReconciler().tidy(crash.asked(crash.workspace))
    assert theirs.exists()
    other = dataclasses.replace(crash.asked(crash.workspace), workspace_identity="workspace:v1:other")
    mine = crash.workspace / "src" / temporary_name(OPERATION)
    mine.write_text("half")
    FileReconciler().tidy(other)
    assert mine.exists(), "nothing is removed in another workspace"


def later(tool: str, arguments: Json, workspace: Path, **changed: Any) -> ToolDispatched:
    """T1 of a call that the same session made afterwards, as the files stood in `workspace` then."""
    call = bound(tool, arguments)
    evidence = call.evidence(Workspace(workspace, changed.pop("identity", IDENTITY)))
    dispatch = asked(call, arguments, evidence, workspace, IDENTITY).dispatch
    return dispatch.model_copy(update={"operation_id": OperationId("operation-2"), **changed})


INSTANTS = dict.fromkeys(cell.story.name + ", " + cell.instant for cell in cells())


@pytest.mark.parametrize(("story", "instant"), [name.split(", ") for name in INSTANTS], ids=list(INSTANTS))
def test_a_later_call_of_the_session_that_touched_the_file_is_the_witness(
    crashes: dict[str, Crash], story: str, instant: str
) -> None:
    """Whatever the file looks like now, as the expected state, or as the prior one."""
    crash = crashes[story]
    if read_evidence_of(crash).changes_nothing:
        expected = Observation.ALREADY_SATISFIED
    elif instant in {"after the effect", "T2 missing"}:
        expected = Observation.MATCHES_EXPECTED_STATE
    else:
        expected = Observation.MATCHES_PRIOR_STATE
    touched = [one.path for one in read_evidence_of(crash).files]
    then = crash.at(instant)
    witnesses = tuple(later("write_file", {"path": path, "content": "other"}, then) for path in touched)
    for now in ("before the effect", "T2 missing"):
        operation = dataclasses.replace(crash.asked(crash.at(now)), later=witnesses)
        assert FileReconciler().observe(operation).observation is expected


def read_evidence_of(crash: Crash) -> FileEvidence:
    evidence = read_evidence(crash.evidence)
    assert evidence is not None
    return evidence


def test_a_later_call_in_another_workspace_or_of_another_path_or_tool_is_no_witness(crash: Crash) -> None:
    (crash.workspace / "src" / "b.txt").write_text("b")
    elsewhere = later("write_file", {"path": "src/a.txt", "content": "x"}, crash.workspace, identity="other")
    of_b = later("write_file", {"path": "src/b.txt", "content": "x"}, crash.workspace)
    shell = crash.asked(crash.workspace).dispatch.model_copy(
        update={"contract": of_b.contract.model_copy(update={"contract_id": "run_shell"}), "evidence": None}
    )
    operation = crash.asked(crash.workspace)
    with_them = dataclasses.replace(operation, later=(elsewhere, of_b, shell))
    assert FileReconciler().observe(with_them) == FileReconciler().observe(operation)


def test_where_a_later_file_call_recorded_what_nobody_understands_it_has_diverged(crash: Crash) -> None:
    odd = later("write_file", {"path": "src/a.txt", "content": "x"}, crash.workspace, evidence={"format": "?"})
    operation = dataclasses.replace(crash.asked(crash.workspace), later=(odd,))
    assert FileReconciler().observe(operation).observation is Observation.DIVERGED
