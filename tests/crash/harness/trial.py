"""One trial: the program is killed, its store is looked at, and a resume goes as far as it may."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .program import KILLED, Ended, Hooks, Started, wait_for
from .record import Record, lock_files_of
from .stage import SESSION, Stage


@dataclass(frozen=True, slots=True)
class Death:
    """What stands right after a kill.

    Attributes:
        record: the facts that were committed.
        effects: counted by the trial, per effects file.
        requests: how often the provider was asked.
    """

    ended: Ended
    record: Record
    requests: int


def kill(stage: Stage, *command: str, at: str, session: str = SESSION) -> Death:
    """Let the program die at a failpoint, and make sure that it cleaned nothing up."""
    return watch_death(stage, stage.start(*command, hooks=Hooks(kill=at), session=session), session=session)


def watch_death(stage: Stage, started: Started, *, session: str = SESSION) -> Death:
    """Wait until a started program is killed, and make sure that it cleaned nothing up."""
    ended = started.ended()
    assert ended.exit_code == KILLED, f"it was not killed: {ended}"
    assert ended.out == "", "a killed program prints no result"
    assert lock_files_of(stage.store, started.pid), (
        "the lock file of the killed owner is gone: something was cleaned up"
    )
    return Death(ended, stage.record, len(stage.requests))


def look(stage: Stage, session: str = SESSION) -> dict[str, Any]:
    """Plan twice: both say the same, and no byte that matters has changed."""
    before = stage.fingerprint
    first, second = (stage.look("plan", session=session) for _ in range(2))
    assert stage.fingerprint == before, "looking changed the store"
    plan = first.expect(first.exit_code)
    assert plan == second.expect(first.exit_code), "two readings give two plans"
    return plan


def wait_until_over(stage: Stage) -> None:
    """Wait until nothing that was started runs any more: a supervisor lets go a moment after its last process ended."""
    wait_for("an operation does not get over", lambda: _all_over(stage.look("plan").document))


def _all_over(plan: dict[str, Any]) -> bool:
    return all(operation["over"] == "over" for operation in plan["operations"])


def verdicts(stage: Stage, session: str = SESSION) -> list[str]:
    """The verdict on each call of a session, in order."""
    shown = [stage.look("show", "--run", run_id, session=session).expect(0) for run_id in stage.record.run_ids(session)]
    operations = [operation for document in shown for operation in document["run"]["operations"]]
    return [f"{operation['verdict']} / {operation['reason']}" for operation in operations]


def codes(document: dict[str, Any]) -> list[str]:
    """The park reasons, in order."""
    return [reason["code"] for reason in document["reasons"]]


def check_record(stage: Stage, earlier: Record, session: str = SESSION) -> None:
    """What must be true of every store after repair, whatever happened to it before."""
    record = stage.record
    assert record.begins_with(earlier), "a committed fact was lost or changed"
    for run_id, ends in zip(record.run_ids(session), record.ends(session), strict=True):
        assert len(ends) == 1, f"run {run_id} has {len(ends)} terminal events: {ends}"
    assert not [request for request in stage.requests if "refused" in request], "an illegal history was offered"
    verified = stage.look("verify").expect(0)
    assert verified["sound"], verified
