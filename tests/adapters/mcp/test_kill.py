"""An agent is killed while an MCP server is in the middle of a tool: what it does then alone, and with Safepoint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

import safepoint
from safepoint.adapters.mcp import Server, connect
from safepoint.domain.events.run import RunStatus

from ..pages import row_of
from .agents import alone, bank, effects, free_port, killed, listening, opened

PAGE = "frameworks/mcp.md"
PAYS = "`pay`, of which nothing is said"
BOOKS = "`book`, `idempotentHint`, server trusted"
READS = "`balance`, `readOnlyHint`, server trusted"
UNTRUSTED = "`book` or `balance`, server not trusted"


@pytest.fixture(params=["stdio", "http"])
def port(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where the server listens; empty where whoever connects starts it."""
    if request.param == "stdio":
        yield ""
        return
    free = free_port()
    with listening(tmp_path, free):
        yield str(free)


def test_alone_it_calls_again_what_it_heard_nothing_of(tmp_path: Path, port: str) -> None:
    killed(tmp_path, "alone", port)
    anyio.run(alone, tmp_path, port)
    assert effects(tmp_path) == ["pay 5", "pay 5"]
    assert row_of(PAGE, PAYS)[0] == "2"


@pytest.mark.parametrize(("tool", "row"), [("book", BOOKS), ("balance", READS)])
def test_alone_a_hint_makes_no_difference(tmp_path: Path, tool: str, row: str) -> None:
    killed(tmp_path, "alone", "", tool)
    anyio.run(alone, tmp_path, "")
    assert [str(len(effects(tmp_path)))] * 2 == [row_of(PAGE, row)[0], row_of(PAGE, UNTRUSTED)[0]]


def test_with_safepoint_it_waits_for_a_person_and_pays_once(tmp_path: Path, port: str) -> None:
    killed(tmp_path, "guarded", port, "pay", "trusted")

    async def main() -> None:
        server = bank(tmp_path, port, trusted=True)
        async with connect([server]) as connected, opened(tmp_path, connected.tools) as runtime:
            session = runtime.session("bill")
            left = await session.reconcile()
            assert left is not None
            assert not left.settled, "the tool promises nothing"
            with pytest.raises(safepoint.ResumeParked) as parked:
                await session.record_resume().__aenter__()
            assert parked.value.parked.codes == (safepoint.ParkReason.TOOL_RECOVERY_PARKED,)
            (operation,) = await session.unsettled()
            assert (operation.tool_name, operation.mode) == ("bank__pay", "outcome_unknown")
            word = {"by": "alice", "note": "the bank says so"}
            await session.settle(operation.operation_id, "completed", result="paid 5", **word)
            async with session.record_resume() as run:
                (shown,) = [item.result for item in run.history() if item.kind == "result"]
                said = "Completed, as attested by alice; this was not observed by the program."
                assert shown == {"note": said, "result": "paid 5"}
                await run.model_step(safepoint.step("Done."))
            assert run.outcome is not None
            assert run.outcome.status is RunStatus.COMPLETED

    anyio.run(main)
    assert effects(tmp_path) == ["pay 5"]
    assert row_of(PAGE, PAYS)[1:] == ["1", "parked until a person says what happened"]


def test_what_a_trusted_server_says_that_it_may_get_again_it_gets_again_with_the_same_key(tmp_path: Path) -> None:
    killed(tmp_path, "guarded", "", "book", "trusted")
    (first,) = effects(tmp_path)

    async def main() -> None:
        server = bank(tmp_path, trusted=True)
        async with (
            connect([server]) as connected,
            opened(tmp_path, connected.tools) as runtime,
            runtime.session("bill").record_resume(reconcile=True) as run,
        ):
            assert [item.result for item in run.history() if item.kind == "result"] == ["booked 5"]
            await run.model_step(safepoint.step("Done."))

    anyio.run(main)
    assert effects(tmp_path) == [first, first]
    assert row_of(PAGE, BOOKS)[1:] == ["2", "delivered again, with the same key"]
    assert first.split()[2] != "-"


def test_what_only_reads_is_read_again(tmp_path: Path) -> None:
    killed(tmp_path, "guarded", "", "balance", "trusted")

    async def main() -> None:
        server = bank(tmp_path, trusted=True)
        async with (
            connect([server]) as connected,
            opened(tmp_path, connected.tools) as runtime,
            runtime.session("bill").record_resume(reconcile=True) as run,
        ):
            assert [item.result for item in run.history() if item.kind == "result"] == ["100"]
            await run.model_step(safepoint.step("Done."))

    anyio.run(main)
    assert effects(tmp_path) == ["balance", "balance"]
    assert row_of(PAGE, READS)[1:] == ["2", "read again"]


@pytest.mark.parametrize("tool", ["balance", "book"])
def test_what_a_server_says_that_nobody_trusts_is_no_promise(tmp_path: Path, tool: str) -> None:
    killed(tmp_path, "guarded", "", tool)

    async def main() -> None:
        async with connect([bank(tmp_path)]) as connected, opened(tmp_path, connected.tools) as runtime:
            left = await runtime.session("bill").reconcile()
            assert left is not None
            assert not left.settled

    anyio.run(main)
    assert [str(len(effects(tmp_path)))] == row_of(PAGE, UNTRUSTED)[1:2]


def test_a_server_that_is_gone_parks_what_used_it(tmp_path: Path) -> None:
    killed(tmp_path, "guarded", "", "pay")

    async def main() -> None:
        gone = Server(name="bank", command=str(tmp_path / "no-such-program"))
        async with connect([gone]) as connected, opened(tmp_path, connected.tools) as runtime:
            assert "FileNotFoundError" in connected.gone["bank"]
            plan = await runtime.session("bill").plan()
            assert isinstance(plan, safepoint.Park)
            assert safepoint.ParkReason.TOOL_CATALOG_MISMATCH in plan.codes

    anyio.run(main)


def test_trust_that_is_given_later_changes_no_promise_that_was_recorded(tmp_path: Path) -> None:
    killed(tmp_path, "guarded", "", "book")

    async def main() -> None:
        server = bank(tmp_path, trusted=True)
        async with connect([server]) as connected, opened(tmp_path, connected.tools) as runtime:
            session = runtime.session("bill")
            left = await session.reconcile()
            assert left is not None
            assert not left.settled
            plan = await session.plan()
            assert isinstance(plan, safepoint.Park)
            assert safepoint.ParkReason.TOOL_CATALOG_MISMATCH in plan.codes

    anyio.run(main)
    assert len(effects(tmp_path)) == 1
