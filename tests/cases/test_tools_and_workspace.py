"""Field reports: the tools, the model or the folder are not what they were. SPEC sections 13 and 16, R5."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from safepoint.adapters.memory.model_provider import PlannedModel, calls, says
from safepoint.adapters.tools.decorator import tool
from safepoint.domain.planning.observations import CheckpointFacts
from safepoint.domain.planning.outcome import Park
from safepoint.domain.reasons import ParkReason

from ..adapters.cli.program import PAY, READ, WRITE, Program
from ..application.counted_tools import Counted
from ..domain.planning.situation import facts_of, parks
from ..domain.planning.situation import interrupted as interrupted_story
from .programs import DONE, codes_in, interrupted, resume
from .resuming import ResumingProcess, SharedWorld

P = ParkReason
ACT = calls(("mcp__calc__add", {"n": 1}))


def test_r3_052_a_used_tool_that_is_not_registered_is_missed_by_name_and_then_gone_on_with() -> None:
    """The run used the dynamic tool 'mcp__calc__add'; O; X. Resume where that server has not been registered."""
    world, add, other = SharedWorld(), Counted(name="mcp__calc__add"), Counted(name="other")
    ResumingProcess(world).runs("go", [ACT], [add.function, other.function])
    process, model = ResumingProcess(world), PlannedModel([says("done")])
    plan = process.plans([other.function]).plan
    assert isinstance(plan, Park)
    assert [(one.code, one.detail["missing"]) for one in plan.reasons] == [
        (P.TOOL_CATALOG_MISMATCH, ["mcp__calc__add"])
    ]
    assert process.parks(model, [other.function]) == (P.TOOL_CATALOG_MISMATCH,)
    resumed = process.continues(model, [add.function, other.function])
    request = model.asked[0].request
    assert {offered.name for offered in request.tools} >= {"mcp__calc__add"}
    assert (resumed.outcome.text, add.calls) == ("done", [1])


def test_r3_042_a_changed_contract_is_said_with_both_short_hashes_and_the_tool() -> None:
    """The ledger was made with catalog H1; resume with H2."""
    world, before = SharedWorld(), Counted(name="mcp__calc__add")
    ResumingProcess(world).runs("go", [ACT], [before.function])
    after = Counted(name="mcp__calc__add", recovery="never_auto_retry")
    plan = ResumingProcess(world).plans([after.function]).plan
    assert isinstance(plan, Park)
    (reason,) = plan.reasons
    assert (reason.code, reason.detail["changed"]) == (P.TOOL_CATALOG_MISMATCH, ["mcp__calc__add"])
    recorded, now = str(reason.detail["recorded"]), str(reason.detail["now"])
    assert (len(recorded), len(now), recorded == now) == (12, 12, False)


def test_r3_054_the_order_of_the_catalog_is_no_difference_and_a_new_optional_field_is() -> None:
    """Catalog [t1,t2,t3]; resume with [t3,t1,t2]; and with t2's schema gaining an optional field."""
    world = SharedWorld()
    t1, t2, t3 = (Counted(name=name) for name in ("t1", "t2", "t3"))
    process = ResumingProcess(world)
    process.runs("go", [calls(("t2", {"n": 1}))], [t1.function, t2.function, t3.function])

    @tool(name="t2")
    def wider(n: int, m: int = 0) -> str:
        """Act."""
        return "acted"

    plan = process.plans([t3.function, t1.function, wider]).plan
    assert isinstance(plan, Park)
    assert [(one.code, one.detail["changed"]) for one in plan.reasons] == [(P.TOOL_CATALOG_MISMATCH, ["t2"])]
    resumed = process.continues([says("done")], [t3.function, t1.function, t2.function])
    assert resumed.notes == ()


# ---- the folder -----------------------------------------------------------------------------------------------------


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main")
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_r3_055_a_project_that_was_moved_is_found_by_its_session_with_both_paths_shown(program: Program) -> None:
    """A session made in one folder; the folder is moved; resume by id from the new one."""
    interrupted(program, "P7", WRITE)
    moved = program.folder / "moved"
    shutil.move(program.workspace, moved)
    ran = program(*resume(program, "--workspace", moved), "--json")
    (note,) = [note for note in ran.document["notes"] if note["code"] == "workspace_moved"]
    assert {str(program.workspace), str(moved)} <= set(note["detail"].values())
    assert (ran.code, ran.document["decision"]) == (0, "continued")


def test_r3_057_the_main_checkout_is_not_the_worktree_that_the_run_worked_in(program: Program) -> None:
    """A session in worktree W (branch b); resume with the main checkout as its folder."""
    main = program.workspace
    git(main, "init")
    (main / "a.txt").write_text("a")
    git(main, "add", "a.txt")
    git(main, "commit", "-m", "one")
    tree = program.folder / "tree"
    git(main, "worktree", "add", "-b", "b", str(tree))
    program.script({"text": "I look.", "calls": [READ]}, {"text": "I write.", "calls": [WRITE]}, DONE)
    run = ("run", "Do it.", "--script", program.folder / "script.json", "--session", "s1")
    assert (
        program(*run, "--workspace", main, "--session", "s1").code == 0
    )  # the main checkout has an identity of its own
    program.killed_at("P7", *run[:-1], "s2", "--workspace", tree)
    files = sorted(path.name for path in main.iterdir())
    ran = program(*resume(program, "--workspace", main, session="s2"), "--json")
    assert (ran.code, codes_in(ran)) == (3, ["workspace_identity_mismatch"])
    detail = ran.document["reasons"][0]["detail"]
    assert (detail["expected_path"], detail["found_path"]) == (str(tree), str(main))
    assert detail["expected"] != detail["found"]
    assert sorted(path.name for path in main.iterdir()) == files
    assert not (tree / "config.json").exists()


def test_r3_060_a_resume_changes_no_file_that_is_not_committed(program: Program) -> None:
    """One modified tracked file, one staged, one untracked: what they hold stays, and so does the index."""
    folder = program.workspace
    git(folder, "init")
    for name in ("modified", "staged"):
        (folder / name).write_text("old")
    git(folder, "add", "modified", "staged")
    git(folder, "commit", "-m", "one")
    interrupted(program, "P7", PAY)
    for name in ("modified", "staged", "untracked"):
        (folder / name).write_text(f"{name} by the user")
    git(folder, "add", "staged")

    def state() -> tuple[list[str], str, str]:
        held = [
            hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in ("modified", "staged", "untracked")
        ]
        return held, git(folder, "status", "--porcelain"), git(folder, "diff", "--cached")

    before = state()
    assert codes_in(program(*resume(program, "--json"))) == ["workspace_drift"]
    assert state() == before
    assert program(*resume(program, "--rebaseline")).code == 0
    assert state() == before


@pytest.mark.parametrize("paths", [("f",), ("f", "g")])
def test_r3_061_the_same_identity_is_no_proof_of_the_same_content(paths: tuple[str, ...]) -> None:
    """A file was read, then changed by the user: where a checkpoint shows that, the plan parks and lists it."""
    run = interrupted_story()
    seen = CheckpointFacts("ref", carrier_available=True, present=True, covers=True, drifted_paths=paths)
    (reason,) = parks(facts_of(run, checkpoint=seen)).reasons
    assert (reason.code, list(reason.detail["paths"])) == (P.WORKSPACE_DRIFT, list(paths))  # type: ignore[arg-type]


def test_r3_061_a_file_that_the_user_changed_after_it_was_read_parks_and_once_accepted_is_told(
    program: Program,
) -> None:
    """Fact: read f. Crash. The user edits f. Resume; and again, when the user accepts it."""
    folder = program.workspace
    (folder / "f").write_text("h1")
    (folder / "g").write_text("g")
    git(folder, "init")
    git(folder, "add", "f", "g")
    git(folder, "commit", "-m", "one")
    program.script({"text": "I read.", "calls": [{"tool": "read_file", "args": {"path": "f"}}]}, DONE)
    program.killed_at("P7", *program.run("--session", "s1", "--checkpoints", "git"))
    (folder / "f").write_text("h2")
    (folder / "a").write_text("new")
    parked = program(*resume(program), "--json")
    assert codes_in(parked) == ["workspace_drift"]
    assert parked.document["reasons"][0]["detail"]["paths"] == ["f", "a"]  # what was read comes first
    resumed = program(*resume(program), "--rebaseline")
    assert resumed.code == 0, resumed
    facts = program("show", "s1", "--full", "--json").document["run"]["facts"]
    assert any("f, a" in str(fact["content"]) for fact in facts if fact["type"] == "message.host.v1")
    assert (folder / "f").read_text() == "h2"


def test_r3_141_the_ref_of_a_checkpoint_goes_with_its_session(program: Program) -> None:
    """After the session is deleted, the ref is removed."""
    folder = program.workspace
    git(folder, "init")
    program.script(DONE)
    assert program(*program.run("--session", "s1", "--checkpoints", "git")).code == 0
    assert "refs/safepoint/checkpoints" in git(folder, "for-each-ref")
    assert program("forget", "s1", "--yes").code == 0
    assert "refs/safepoint/checkpoints" not in git(folder, "for-each-ref")
