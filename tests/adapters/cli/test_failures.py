"""Every error that can reach a person has an exit status, a code and a next step, and no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from safepoint.__main__ import main
from safepoint.adapters.cli.exit_codes import ExitCode
from safepoint.adapters.cli.failures import failure_of
from safepoint.adapters.cli.main import application
from safepoint.adapters.cli.usage import UsageError
from safepoint.application.adopt_store import AdoptionNotNeeded
from safepoint.application.ownership import SessionBusy
from safepoint.application.repair_session import Repaired, RepairKind
from safepoint.application.run_turn import SessionQuarantined
from safepoint.application.turn_context import HistoryTooLarge, HistoryUnusable
from safepoint.domain import errors
from safepoint.domain.identifiers import RunId, SessionId
from safepoint.domain.reasons import LedgerIssue, ParkReason, WriteRefusal
from safepoint.domain.sealing import DamagedEvent
from safepoint.ports.incarnations import Liveness, OwnershipUnavailable
from safepoint.ports.provider_failures import ProviderUnusable
from safepoint.ports.store_backup import CopyTargetTaken, StoreInUse

from .program import Program

SESSION = SessionId("s1")
QUARANTINED = Repaired(SESSION, RepairKind.QUARANTINED, code=ParkReason.RUNTIME_LEDGER_UNREADABLE, detail="damaged")


@pytest.mark.parametrize(
    ("error", "exit_code", "code"),
    [
        (UsageError("a", code="b"), ExitCode.USAGE, "b"),
        (ProviderUnusable("a", "b"), ExitCode.USAGE, "provider_unusable"),
        (SessionBusy(SESSION, None, Liveness.ALIVE), ExitCode.BUSY, "session_busy"),
        (SessionQuarantined(QUARANTINED), ExitCode.CORRUPTION, "runtime_ledger_unreadable"),
        (HistoryUnusable(SessionId("s"), (RunId("r"),)), ExitCode.CORRUPTION, "history_unusable"),
        (HistoryTooLarge(SessionId("s"), 900, 800, 3), ExitCode.PARKED, "history_too_large"),
        (OwnershipUnavailable("a"), ExitCode.BUSY, "ownership_unavailable"),
        (StoreInUse("a"), ExitCode.BUSY, "store_in_use"),
        (CopyTargetTaken(Path("a")), ExitCode.USAGE, "file_exists"),
        (AdoptionNotNeeded("a"), ExitCode.USAGE, "adoption_not_needed"),
        (errors.WriteRefused(WriteRefusal.OWNER_FENCED, "a"), ExitCode.BUSY, "owner_fenced"),
        (errors.WriteRefused(WriteRefusal.SESSION_BUSY, "a"), ExitCode.BUSY, "session_busy"),
        (errors.WriteRefused(WriteRefusal.RUN_SEALED, "a"), ExitCode.RUN_FAILED, "run_sealed"),
        (
            DamagedEvent("run:r", 1, LedgerIssue.CHAIN_BROKEN, "a"),
            ExitCode.CORRUPTION,
            "runtime_ledger_unreadable",
        ),
        (errors.StoreMissing("a"), ExitCode.USAGE, "store_missing"),
        (errors.StoreUnusable("a"), ExitCode.USAGE, "store_unusable"),
        (errors.StoreVersionOlder(1, 2), ExitCode.USAGE, "store_version_older"),
        (errors.StoreVersionOlder(1, 2, "it is a copy"), ExitCode.USAGE, "store_version_older"),
        (errors.StoreForbidden("x"), ExitCode.BUSY, "store_unavailable"),
        (errors.StoreObstructed("x"), ExitCode.BUSY, "store_unavailable"),
        (errors.StoreUnreadable("x"), ExitCode.CORRUPTION, "store_damaged"),
        (errors.ViewsDamaged("x"), ExitCode.CORRUPTION, "store_damaged"),
        (errors.StoreVersionNewer(2, 1), ExitCode.USAGE, "store_version_newer"),
        (errors.StoreBehindAnchor("a"), ExitCode.CORRUPTION, "ledger_behind_anchor"),
        (errors.StoreGone("a"), ExitCode.CORRUPTION, "ledger_behind_anchor"),
        (errors.StoreNotAdopted("a"), ExitCode.PARKED, "foreign_run_not_adopted"),
        (errors.StoreDamaged("a"), ExitCode.CORRUPTION, "store_damaged"),
        (errors.StoreFull("a"), ExitCode.RUN_FAILED, "store_full"),
        (errors.StoreUnavailable("a"), ExitCode.BUSY, "store_unavailable"),
        (errors.StoreUnavailable("a", no_room=True), ExitCode.BUSY, "store_unavailable"),
        (errors.StoreError("a"), ExitCode.BUSY, "store_unavailable"),
        (ZeroDivisionError("a"), ExitCode.RUN_FAILED, "internal_error"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_each_error_has_its_status_and_code(error: Exception, exit_code: ExitCode, code: str) -> None:
    failure = failure_of(error)
    assert (failure.exit_code, failure.code) == (exit_code, code)
    assert failure.message
    assert failure.next_step or isinstance(error, UsageError)
    assert failure_of(ExceptionGroup("a task failed", [error])) == failure


def test_every_error_of_a_store_is_known_here() -> None:
    """A new subclass must be given its status on purpose."""
    known = {
        *(
            "StoreUnavailable",
            "StoreMissing",
            "StoreUnusable",
            "StoreFull",
            "StoreVersionNewer",
            "StoreVersionOlder",
            "ViewsDamaged",
            "StoreForbidden",
            "StoreObstructed",
            "StoreUnreadable",
            "StoreDamaged",
        ),
        *("StoreNotAdopted", "StoreBehindAnchor", "StoreGone", "BackupDamaged"),
    }
    found: set[str] = set()
    left = [errors.StoreError]
    while left:
        for subclass in left.pop().__subclasses__():
            if subclass.__module__ == errors.__name__:
                found.add(subclass.__name__)
            left.append(subclass)
    assert found == known


def test_every_command_explains_itself(program: Program) -> None:
    names = [command.name for command in application().registered_commands]
    for name in names:
        ran = program.bare(str(name), "--help")
        assert ran.code == 0
        assert "Usage: safepoint" in ran.out


def test_the_version_is_that_of_the_package(program: Program) -> None:
    import safepoint

    assert program.bare("--version").out == f"safepoint {safepoint.__version__}\n"


def test_a_reader_that_goes_away_is_no_error(program: Program) -> None:
    program.script({"text": "x" * 200_000})
    process = program.start(*program.run())
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait() in (0, 141)
    assert "Traceback" not in said
    assert "Exception" not in said


def test_a_present_folder_that_is_gone_is_said(program: Program) -> None:
    program.script({"text": "Hello."})
    gone = program.folder / "gone"
    gone.mkdir()
    code = (
        "import os, sys; os.chdir(sys.argv[1]); os.rmdir(sys.argv[1]);"
        " from safepoint.adapters.cli.main import call; sys.exit(call(sys.argv[2:]))"
    )
    arguments = program.arguments("run", "Do it.", "--script", program.folder / "script.json")
    ran = subprocess.run(
        # As the installed command, which does not look for modules in the present folder.
        [sys.executable, "-P", "-c", code, str(gone), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **program.environment},
    )
    assert ran.returncode == 2
    assert "The present folder is not there any more." in ran.stderr
    assert "Traceback" not in ran.stderr
    assert not program.store.exists()


def test_a_state_folder_that_cannot_be_made_is_said(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    program.script({"text": "Hello."})
    blocked = program.folder / "a-file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(blocked))
    ran = program.bare(*program.run(), "--json")
    assert (ran.code, ran.document["code"]) == (2, "store_unusable")


def test_lifecycle_events_are_shown_to_who_asks_for_them(program: Program) -> None:
    program.script({"text": "Hello."})
    assert "execution_started" not in program.process(*program.run()).err
    assert "execution_started" in program.process(*program.run(), SAFEPOINT_LOG="info").err


def test_an_unknown_log_level_is_ignored(program: Program, tmp_path: Path) -> None:
    assert program.process("list", SAFEPOINT_LOG="loud").code == 0


def test_windows_is_refused_by_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(SystemExit, match="Windows is not supported"):
        main()
