"""Three generations of a run, each killed in the middle of its work, over two turns: one history, each effect once."""

from __future__ import annotations

from .harness.stage import SESSION, Stage, call, step
from .harness.trial import check_record, codes, kill, look, verdicts

GENERATIONS = 3
TURNS = 2


def payment(number: int) -> dict[str, object]:
    """A payment that can be told from all others."""
    return call("record_effect", path="effects.txt", line=f"paid {number}", contract="never_auto_retry")


def script() -> list[dict[str, object]]:
    """Each generation pays once, and the last one of a turn says so."""
    steps = []
    for turn in range(TURNS):
        numbers = range(turn * GENERATIONS + 1, (turn + 1) * GENERATIONS + 1)
        steps += [step(f"I pay {number}.", payment(number)) for number in numbers]
        steps.append(step("That was all."))
    return steps


def test_three_generations_over_two_turns_are_each_killed_and_end_with_one_history_and_each_effect_once(
    forked_stage: Stage,
) -> None:
    stage = forked_stage
    stage.play(script())
    for turn in range(TURNS):
        record = kill(stage, "run", f"turn {turn}", at="P6").record
        for _ in range(GENERATIONS - 1):
            assert codes(look(stage)) == []
            record = kill(stage, "resume", at="P6").record
        stage.do("resume").expect(0)
        check_record(stage, record)

    paid = [f"paid {number}" for number in range(1, TURNS * GENERATIONS + 1)]
    assert stage.effects() == paid
    record = stage.record
    assert record.ends(SESSION) == [*([["failed"]] * GENERATIONS + [["completed"]]) * TURNS]
    calls = [fact["args"]["line"] for fact in record.of_session(SESSION, "tool.called.v1")]
    assert calls == paid
    assert verdicts(stage) == ["completed / matching_response"] * len(paid)
    last = stage.requests[-1]
    assert last["results"] == last["calls"]
    assert len(set(last["calls"])) == len(paid), "the model is shown every call, once, with its answer"
    claims = record.of_session(SESSION, "run.claimed.v1")
    assert [len(claim["segments"]) for claim in claims] == [1, 2, 3] * TURNS
