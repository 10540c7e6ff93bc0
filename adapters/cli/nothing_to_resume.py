"""Nothing waits to be continued: one line, an expected state (r3-167)."""

from __future__ import annotations

from ...domain.explanations import explain
from ...domain.reasons import ParkReason
from . import documents
from .exit_codes import ExitCode
from .output import Output


def say_nothing(out: Output, schema: str, sentence: str) -> int:
    """Say it in one line; returns the exit status.

    Args:
        schema: of the command's document.
        sentence: what was looked at.
    """
    code = ParkReason.RESUME_CANDIDATE_MISSING
    out.tell(f"Nothing to continue: {sentence}")
    explanation = explain(code)
    reason = {
        "code": code.value,
        "sentence": explanation.sentence,
        "next_step": explanation.next_step,
        "expected": explanation.expected,
        "detail": {"detail": sentence},
    }
    decision = "park" if schema == documents.PLAN else "parked"
    members = {"decision": decision, "reasons": [reason], "exit_code": int(ExitCode.PARKED)}
    out.document(schema, documents.filled(schema, members))
    return ExitCode.PARKED
