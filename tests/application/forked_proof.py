"""A process that forks while it holds a start proof, and says who may use it."""

from __future__ import annotations

import os
import sys

from safepoint.application.ledger import Receipt
from safepoint.application.start_proof import ProofUsed, StartProof, _proof
from safepoint.domain.events.run import ExecutionProfile, RunOpened
from safepoint.domain.identifiers import EventId, IncarnationId, InvocationId, RunId, SessionId, TurnId
from safepoint.domain.sealing import FIRST_PREVIOUS_DIGEST, seal


def given() -> StartProof:
    """As a first commit gives it."""
    opened = RunOpened(
        session_id=SessionId("s"),
        occurred_at="2030-01-01T00:00:00.000000Z",
        event_id=EventId("e"),
        run_id=RunId("r"),
        turn_id=TurnId("t"),
        invocation_id=InvocationId("i"),
        cwd="/",
        profile=ExecutionProfile(
            provider="p", model="m", system_prompt_digest="0" * 64, permission_policy="deny", tools=()
        ),
        incarnation_id=IncarnationId("me"),
        epoch=1,
    )
    proof = _proof(Receipt((seal(opened, 1, FIRST_PREVIOUS_DIGEST),)))
    assert proof is not None
    return proof


def said(proof: StartProof) -> str:
    """What using it came to."""
    try:
        return proof.use()
    except ProofUsed:
        return "ProofUsed"


if __name__ == "__main__":
    mine = given()
    child = os.fork()
    if child == 0:
        sys.stdout.write(f"child: {said(mine)}\n")
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)
    sys.stdout.write(f"parent: {said(mine)}\n")
