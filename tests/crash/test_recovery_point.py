"""P10: a recovery decision is written and not committed. SPEC section 20."""

from __future__ import annotations

from pathlib import Path

from safepoint.ports.failpoints import Failpoint

from .harness.contract import EXPECTED
from .harness.program import KILLED, Hooks
from .harness.stage import SESSION, Stage, step
from .harness.tools import PAYMENT
from .harness.trial import check_record, codes, kill, look, verdicts

RECOVERING = Path(__file__).parent / "harness" / "recovering.py"


def test_a_recovery_decision_that_was_not_committed_was_not_made(stage: Stage) -> None:
    expected = EXPECTED[Failpoint.RECOVERY_DECIDED]
    stage.play([step("I pay.", PAYMENT.call), step("Done.")])
    kill(stage, "run", "pay", at="P4")
    stage.do("resume").expect(3)
    before = stage.record

    decide = (str(RECOVERING), str(stage.store), SESSION)
    died = stage.program.run_python(*decide, hooks=Hooks(kill="P10"))
    assert died.exit_code == KILLED, died
    assert stage.record == before
    assert (len(stage.effects()), len(stage.requests)) == (expected.effects[0], expected.requests[0])
    assert verdicts(stage) == [expected.verdict]
    assert codes(look(stage)) == [expected.resume.code]

    assert stage.program.run_python(*decide).exit_code == 0
    assert verdicts(stage) == ["parked / contract_forbids_recovery"]
    assert codes(look(stage)) == ["tool_recovery_parked"]
    assert codes(stage.do("resume").expect(3)) == ["tool_recovery_parked"]
    assert (len(stage.effects()), len(stage.requests)) == (expected.effects[1], expected.requests[1])
    check_record(stage, before)
