"""`safepoint doctor`: what is wrong and what to do, and which sessions a deploy would strand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from safepoint.adapters.cli import host_checks
from safepoint.adapters.cli.host_checks import FREE_BYTES_MIN, Level, file_system_of

from .program import PAY, READ, Program

DONE = {"text": "Done."}


def checks(program: Program) -> dict[str, dict[str, str]]:
    return {one["name"]: one for one in program("doctor", "--json").document["checks"]}


def test_a_store_that_is_in_order_is_said_to_be_so(program: Program) -> None:
    program.script(DONE)
    program(*program.run("--session", "s1"))
    before = program.bytes_of_store()
    ran = program("doctor")
    assert ran.code == 0
    assert "FAULT" not in ran.out
    found = checks(program)
    assert {name for name, one in found.items() if one["level"] == "ok"} >= {
        "store",
        "owners",
        "waiting",
        "locks",
        "files",
    }
    assert "SQLite" in found["versions"]["said"]
    assert program.bytes_of_store() == before, "nothing was changed by looking"


def test_where_there_is_no_store_the_host_is_looked_at_and_none_is_made(program: Program) -> None:
    ran = program("doctor", "--json")
    assert (ran.code, ran.document["exists"]) == (0, False)
    assert {"platform", "file_system", "versions"} <= checks(program).keys()
    assert not program.store.exists()


def test_what_waits_for_a_person_is_counted(program: Program) -> None:
    program.script({"text": "I pay.", "calls": [PAY]}, DONE)
    program.killed_at("P4", *program.run("--session", "s1"))
    found = checks(program)
    assert found["owners"]["level"] == "note"
    assert "1 of 1 owners are dead" in found["owners"]["said"]
    assert "Interrupted sessions: 1; operations without a certain outcome: 1" in found["waiting"]["said"]
    assert "safepoint status" in found["waiting"]["next_step"]


def test_a_lost_anchor_is_a_fault_of_its_own_status(program: Program) -> None:
    program.script(DONE)
    program(*program.run("--session", "s1"))
    Path(f"{program.store}.anchor").unlink()
    ran = program("doctor", "--json")
    assert ran.code == 4
    found = {one["name"]: one for one in ran.document["checks"]}
    assert found["store"]["level"] == "fault"
    assert "adopt" in found["store"]["next_step"]


def test_a_file_that_is_no_store_is_named(program: Program) -> None:
    program.store.write_text("hello " * 1_000)
    ran = program("doctor")
    assert ran.code == 2
    assert "FAULT  store:" in ran.out


def test_files_that_others_may_read_are_named_with_the_command_that_closes_them(program: Program) -> None:
    program.script(DONE)
    program(*program.run("--session", "s1"))
    program.store.chmod(0o644)
    found = checks(program)["files"]
    assert (found["level"], "store.sqlite" in found["said"], "chmod" in found["next_step"]) == ("note", True, True)


def test_a_network_file_system_is_a_fault(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_checks, "file_system_of", lambda path: "nfs4")
    ran = program("doctor", "--json")
    assert ran.code == 2
    (fault,) = [one["name"] for one in ran.document["checks"] if one["level"] == Level.FAULT]
    assert fault == "file_system"


def test_little_room_is_noted(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    class Usage:
        free = FREE_BYTES_MIN - 1

    monkeypatch.setattr("shutil.disk_usage", lambda folder: Usage)
    assert checks(program)["space"]["level"] == "note"


def test_a_host_that_does_not_tell_its_boot_is_a_fault(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise OSError("no /proc here")

    monkeypatch.setattr(host_checks, "read_host_facts", refuse)
    assert checks(program)["platform"]["level"] == "fault"


def test_resuming_that_is_switched_off_is_noted(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    program.script(DONE)
    program(*program.run("--session", "s1"))
    monkeypatch.setenv("SAFEPOINT_RESUME", "0")
    assert checks(program)["resume"]["level"] == "note"


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/", "ext4"), ("/home/ada/x", "nfs4"), ("/homestead/x", "ext4"), ("/mnt/my disk/x", "xfs"), ("/mnt/x", "ext4")],
)
def test_the_file_system_is_that_of_the_longest_mount(tmp_path: Path, path: str, kind: str) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text("d / ext4 rw 0 0\nserver:/x /home nfs4 rw 0 0\nd /mnt/my\\040disk xfs rw 0 0\n")
    assert file_system_of(Path(path), mounts) == kind
    assert file_system_of(Path(path), tmp_path / "none") is None


# A deploy


def catalog(program: Program, change: Any = lambda tools: None) -> Path:
    """The catalog of this program, changed."""
    file = program.folder / "catalog.json"
    file.unlink(missing_ok=True)
    assert program.bare("doctor", "--export-catalog", file).code == 0
    document = json.loads(file.read_text())
    change(document["tools"])
    file.write_text(json.dumps(document))
    return file


def without(name: str) -> Any:
    return lambda tools: tools.remove(next(one for one in tools if one["name"] == name))


def changed(name: str) -> Any:
    return lambda tools: next(one for one in tools if one["name"] == name).update(schema_digest="0" * 64)


def three_sessions(program: Program) -> None:
    program.script({"text": "I pay.", "calls": [PAY]}, DONE)
    program.killed_at("P7", *program.run("--session", "paying"))
    program.script({"text": "I look.", "calls": [READ]}, DONE)
    program.killed_at("P7", *program.run("--session", "looking"))
    program.script({"text": "I pay.", "calls": [PAY]}, DONE)
    assert program(*program.run("--session", "ended")).code == 0


@pytest.mark.parametrize(
    ("change", "missing", "altered"),
    [(without("record_effect"), ["record_effect"], []), (changed("record_effect"), [], ["record_effect"])],
)
def test_a_deploy_without_a_tool_that_an_interrupted_run_used_strands_its_session_alone(
    program: Program, change: Any, missing: list[str], altered: list[str]
) -> None:
    three_sessions(program)
    before = program.bytes_of_store()
    ran = program("doctor", "--against", catalog(program, change), "--json")
    assert ran.code == 3
    (stranded,) = ran.document["stranded"]
    assert (stranded["session_id"], stranded["state"]) == ("paying", "interrupted")
    assert (stranded["missing"], stranded["changed"]) == (missing, altered)
    assert ran.document["judged"] == 2
    said = program("doctor", "--against", catalog(program, change)).out
    assert "Would be stranded: paying (interrupted): record_effect" in said
    assert "safepoint plan paying" in said
    assert program.bytes_of_store() == before


@pytest.mark.parametrize("change", [lambda tools: None, without("write_file"), changed("run_shell")])
def test_a_deploy_that_changes_nothing_that_was_used_strands_nobody(program: Program, change: Any) -> None:
    three_sessions(program)
    ran = program("doctor", "--against", catalog(program, change), "--json")
    assert (ran.code, ran.document["stranded"]) == (0, [])
    assert program("doctor", "--against", "builtin").code == 0


def test_a_session_that_could_not_be_judged_is_named_and_no_proof_that_all_is_well(program: Program) -> None:
    three_sessions(program)
    with program.store.open("r+b") as file:
        content = file.read()
        at = content.rindex(b"I look.")
        file.seek(at)
        file.write(b"I LOOK.")
    ran = program("doctor", "--against", "builtin", "--json")
    assert ran.code == 4
    assert ran.document["not_judged"] == ["looking"]


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"schema": "safepoint.catalog.v1"}', '{"schema": "other", "tools": []}', "\x00"]
)
def test_what_is_no_catalog_is_a_usage_error(program: Program, content: str) -> None:
    file = program.folder / "catalog.json"
    file.write_text(content)
    ran = program("doctor", "--against", file, "--json")
    assert (ran.code, ran.document["code"]) == (2, "catalog_unusable")
    assert program("doctor", "--against", "nowhere.json", "--json").document["code"] == "catalog_unusable"


def test_a_tool_that_is_named_twice_is_a_usage_error(program: Program) -> None:
    file = catalog(program, lambda tools: tools.append(tools[0]))
    assert program("doctor", "--against", file).code == 2


def test_a_catalog_is_never_written_over_a_file(program: Program) -> None:
    file = catalog(program)
    before = file.read_text()
    ran = program.bare("doctor", "--export-catalog", file, "--json")
    assert (ran.code, ran.document["code"]) == (2, "file_exists")
    assert file.read_text() == before
