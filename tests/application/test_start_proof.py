"""Only the commit that began a run gives the right to call the provider, once. SPEC section 14 and R12."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from safepoint.adapters.memory.model_provider import PlannedModel, says
from safepoint.adapters.memory.tables import Failure
from safepoint.application.run_agent import Screen
from safepoint.application.start_proof import ProofUsed, StartAttempt, StartProof
from safepoint.application.start_turn import Begun
from safepoint.domain.commands import OpenRun
from safepoint.domain.errors import StoreUnavailable
from safepoint.domain.events.run import RunEnded

from ..domain.facts import Facts
from .wiring import SESSION, Process, go


async def begun(process: Process) -> Begun:
    owned = process.ownership.own(SESSION)
    return await process.start(owned, process.agent([says("done")]), "hello")


def test_a_proof_cannot_be_made_by_hand() -> None:
    process = Process()
    start = go(lambda: begun(process))
    for forge in (StartProof, lambda *_: type(start.proof)(start.identity.run_id)):
        with pytest.raises(TypeError):
            forge(object(), start.identity.run_id)


def test_an_object_of_the_type_that_no_commit_gave_is_worth_nothing() -> None:
    forged = object.__new__(StartProof)
    with pytest.raises(TypeError):
        forged.use()
    with pytest.raises(TypeError):
        forged.run_id  # noqa: B018 (asking is what fails)


def test_a_proof_says_nothing_but_what_its_commit_said() -> None:
    proof = go(lambda: begun(Process())).proof
    with pytest.raises(AttributeError):
        proof.run_id = "another"  # type: ignore[misc, assignment]
    with pytest.raises(AttributeError):
        proof._run_id = "another"  # type: ignore[attr-defined]


def test_there_is_no_other_kind_of_proof() -> None:
    with pytest.raises(TypeError):
        type("Forged", (StartProof,), {"use": lambda proof: "r"})


def test_a_proof_cannot_be_copied_or_pickled() -> None:
    proof = go(lambda: begun(Process())).proof
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps, lambda one: pickle.dumps(one, protocol=0)):
        with pytest.raises(TypeError):
            duplicate(proof)
    assert proof.use()


def test_of_many_threads_that_use_one_proof_one_does() -> None:
    proof = go(lambda: begun(Process())).proof
    at_once = threading.Barrier(8)

    def use(_: int) -> bool:
        at_once.wait()
        try:
            proof.use()
        except ProofUsed:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(use, range(8))) == 1


def test_a_fork_cannot_use_the_proof_of_its_parent() -> None:
    program = Path(__file__).with_name("forked_proof.py")
    ended = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.stdout.split(), ended.stderr) == (["child:", "ProofUsed", "parent:", "r"], "")


def test_a_proof_cannot_be_used_twice() -> None:
    process = Process()
    start = go(lambda: begun(process))
    assert start.proof.use() == start.identity.run_id
    with pytest.raises(ProofUsed) as used:
        start.proof.use()
    assert used.value.run_id == start.identity.run_id


def test_a_run_that_is_driven_twice_calls_the_provider_for_the_first_time_only() -> None:
    process = Process()
    model = PlannedModel([says("done"), says("again")])

    async def work() -> None:
        start = await begun(process)
        agent = process.agent(model)
        await process.drive(start, agent, Screen(), lambda live: None)
        with pytest.raises(ProofUsed):
            await process.drive(start, agent, Screen(), lambda live: None)

    go(work)
    assert len(model.asked) == 1
    assert len(process.of(process.head(), RunEnded)) == 1


def test_a_commit_that_begins_no_run_gives_no_proof() -> None:
    process = Process()
    owned = process.ownership.own(SESSION)
    r = Facts("r", session=SESSION, incarnation=owned.incarnation_id)
    r.epoch = owned.epoch

    async def work() -> None:
        _, proof = await StartAttempt(r.open_run())(process.async_ledger)
        assert proof is not None
        command: Any = r.append(r.cancelled())
        _, none = await StartAttempt(command)(process.async_ledger)
        assert none is None

    go(work)


def first_commit(process: Process) -> OpenRun:
    """A command whose ids were made for one attempt."""
    owned = process.ownership.own(SESSION)
    r = Facts("r", session=SESSION, incarnation=owned.incarnation_id)
    r.epoch = owned.epoch
    return r.open_run()


@pytest.mark.parametrize("failure", [Failure.COMMIT_LOST, Failure.COMMIT_STORED])
def test_the_attempt_that_does_not_know_whether_its_commit_was_kept_converges_and_has_its_proof_once(
    failure: Failure,
) -> None:
    process = Process()
    attempt = StartAttempt(first_commit(process))

    async def work() -> None:
        process.world.store.fail_next(failure)
        with pytest.raises(StoreUnavailable):
            await attempt(process.async_ledger)
        receipt, proof = await attempt(process.async_ledger)
        assert receipt.first is (failure is Failure.COMMIT_LOST)
        assert proof is not None
        assert proof.run_id == "r"
        again, none = await attempt(process.async_ledger)
        assert (again.events, none) == (receipt.events, None)

    go(work)


def test_another_attempt_with_the_same_candidates_gets_no_proof() -> None:
    process = Process()
    command = first_commit(process)

    async def work() -> None:
        _, proof = await StartAttempt(command)(process.async_ledger)
        assert proof is not None
        _, none = await StartAttempt(command)(process.async_ledger)
        assert none is None

    go(work)


@pytest.mark.parametrize("failure", [Failure.COMMIT_LOST, Failure.COMMIT_STORED])
def test_a_turn_begins_although_its_first_commit_was_in_doubt(failure: Failure) -> None:
    process = Process()
    owned = process.ownership.own(SESSION)
    process.world.store.fail_next(failure)
    model = PlannedModel([says("done")])

    async def work() -> RunEnded:
        start = await process.start(owned, process.agent(model), "hello")
        await process.drive(start, process.agent(model), Screen(), lambda live: None)
        return process.of(start.identity.run_id, RunEnded)[0]

    assert go(work).failure_class is None
    assert len(model.asked) == 1
    assert process.topics(process.head())[:2] == ["run.opened", "message.user"]
