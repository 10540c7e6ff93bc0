"""`safepoint approve` and `deny`: from another terminal, while the run waits, and after its process was killed."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest

from .program import PAY, Program, ended

STEPS = ({"text": "I pay.", "calls": [PAY]}, {"text": "I pay now.", "calls": [PAY]}, {"text": "Done."})
ONCE = ({"text": "I pay.", "calls": [PAY]}, {"text": "Done."})


def asked(program: Program) -> list[str]:
    """The questions that wait; none where the store is only just being made."""
    ran = program("status", "--json")
    if ran.document.get("code") == "store_missing":
        return []
    assert ran.code == 0, ran
    return [str(one["request_id"]) for one in ran.document["permissions"]]


@pytest.fixture
def waiting(program: Program) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Starts a run that waits for a person at another terminal; it is ended when the test is over."""
    started: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        process = program.start(*program.run("--session", "s1", "--ask-elsewhere"))
        started.append(process)
        deadline = time.monotonic() + 30
        while not asked(program):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.05)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        if process.stdout is not None and not process.stdout.closed:
            process.communicate()


def request(program: Program) -> str:
    (only,) = asked(program)
    return only


@pytest.mark.parametrize(("verb", "effects"), [("approve", ["paid"]), ("deny", [])])
def test_a_run_that_waits_goes_on_when_another_terminal_decides(
    program: Program, waiting: Callable[[], subprocess.Popen[str]], verb: str, effects: list[str]
) -> None:
    program.script(*ONCE)
    process = waiting()
    assert program.effects == []
    ran = program(verb, request(program), "--by", "ada", "--json")
    assert (ran.code, ran.document["result"], ran.document["by"]) == (0, "answered", "ada")
    assert ran.document["approved"] is (verb == "approve")
    done = ended(process)
    assert done.code == 0
    assert program.effects == effects
    facts = program("show", "s1", "--json").document["run"]["facts"]
    assert [fact["type"] for fact in facts].count("permission.decided.v1") == 1
    again = program(verb, ran.document["request_id"], "--session", "s1", "--json")
    assert (again.code, again.document["result"]) == (0, "already_decided")
    other_verb = "deny" if verb == "approve" else "approve"
    for more in (("--session", "s1"), ()):
        other = program(other_verb, ran.document["request_id"], *more)
        assert (other.code, "It was decided before: ada" in other.out, "That stands." in other.out) == (2, True, True)


def test_the_question_is_shown_with_both_commands_wherever_a_person_looks(
    program: Program, waiting: Callable[[], subprocess.Popen[str]]
) -> None:
    program.script(*ONCE)
    process = waiting()
    request_id = request(program)
    commands = [f"safepoint {verb} {request_id} --store {program.store}" for verb in ("approve", "deny")]
    for looking in (("list",), ("status",), ("status", "s1"), ("show", "s1")):
        said = program(*looking).out
        assert request_id in said
        assert [command in said for command in commands] == [True, True], looking
    assert program("list", "--json").document["permissions"][0]["request_id"] == request_id
    process.kill()
    assert request_id in process.communicate()[1], "the run itself has said so, too"
    parked = program("plan", "s1", "--json")
    assert parked.code == 3
    assert [one["code"] for one in parked.document["reasons"]] == ["pending_permission"]
    listed = [one["command"] for one in parked.document["commands"]]
    assert [command in listed for command in commands] == [True, True]


def test_an_approval_after_the_process_was_killed_lets_exactly_one_call_of_the_next_run_through(
    program: Program, waiting: Callable[[], subprocess.Popen[str]]
) -> None:
    script = program.script(*STEPS)
    process = waiting()
    request_id = request(program)
    process.kill()
    process.communicate()
    ran = program("approve", request_id)
    assert ran.code == 0
    said = f"Continue with: safepoint resume s1 --store {program.store}\nAdd --script FILE to it: no record names the"
    assert said in ran.out
    assert program("status", "--json").document["permissions"] == []
    assert program("approve", request_id, "--session", "s1", "--json").document["result"] == "already_decided"
    assert program.effects == []
    resumed = program("resume", "s1", "--script", script, "--json")
    assert (resumed.code, resumed.document["status"]) == (0, "completed")
    assert program.effects == ["paid"]
    facts = program("show", "s1", "--json").document["run"]["facts"]
    (dispatched,) = [fact["facts"] for fact in facts if fact["type"] == "tool.dispatched.v1"]
    assert dispatched["grant_id"]


def test_a_question_that_was_dropped_waits_no_more(
    program: Program, waiting: Callable[[], subprocess.Popen[str]]
) -> None:
    script = program.script(*ONCE)
    process = waiting()
    request_id = request(program)
    process.kill()
    process.communicate()
    assert program("resume", "s1", "--script", script, "--drop-permissions").code == 0
    assert program("status", "--json").document["permissions"] == []
    ran = program("approve", request_id, "--session", "s1", "--json")
    assert (ran.code, ran.document["result"], program.effects) == (2, "closed", [])


def test_a_question_that_nobody_asked_is_a_usage_error(program: Program) -> None:
    program.script({"text": "Done."})
    program(*program.run("--session", "s1"))
    for more in ((), ("--session", "s1")):
        ran = program("approve", "nobody", *more, "--json")
        assert (ran.code, ran.document["code"]) == (2, "unknown_request")
    assert program("approve", "nobody", "--session", "s2", "--json").document["code"] == "unknown_session"
    assert program("approve", "no\x07body", "--json").code == 2
    assert program("approve", "nobody", "--by", "", "--json").code == 2


def test_nothing_is_made_where_there_is_no_store(program: Program) -> None:
    ran = program("deny", "somebody", "--json")
    assert (ran.code, ran.document["code"]) == (2, "store_missing")
    assert not program.store.exists()


@pytest.mark.parametrize("how", ["a signal", "cancel"])
def test_a_run_that_is_stopped_while_it_waits_closes_its_question_once_for_good(
    program: Program, waiting: Callable[[], subprocess.Popen[str]], how: str
) -> None:
    """F4: closed as cancelled, once, with the answer to its call and the terminal event."""
    program.script(*ONCE)
    process = waiting()
    request_id = request(program)
    if how == "cancel":
        assert program("cancel", "s1", "--json").document["result"] == "stopping"
    else:
        process.send_signal(signal.SIGINT)
    assert ended(process).code == (1 if how == "cancel" else 130)
    facts = [fact["type"] for fact in program("show", "s1", "--json").document["run"]["facts"]]
    assert [facts.count(f"{kind}.v1") for kind in ("permission.closed", "permission.decided", "run.ended")] == [1, 0, 1]
    late = program("approve", request_id, "--session", "s1", "--json")
    assert (late.code, late.document["result"], program.effects) == (2, "closed", [])


def test_a_resume_may_wait_for_another_terminal_as_well(
    program: Program, waiting: Callable[[], subprocess.Popen[str]]
) -> None:
    script = program.script(*STEPS)
    process = waiting()
    dropped = request(program)
    process.kill()
    process.communicate()
    resumed = program.start("resume", "s1", "--script", script, "--drop-permissions", "--ask-elsewhere")
    try:
        deadline = time.monotonic() + 30
        while [one["request_id"] for one in program("status", "--json").document["permissions"]] in ([], [dropped]):
            assert time.monotonic() < deadline
            assert resumed.poll() is None
            time.sleep(0.05)
        assert program("approve", request(program)).code == 0
        assert ended(resumed).code == 0
    finally:
        if resumed.poll() is None:
            resumed.kill()
            resumed.communicate()
    assert program.effects == ["paid"]


def test_many_who_decide_at_once_make_one_decision(
    program: Program, waiting: Callable[[], subprocess.Popen[str]]
) -> None:
    program.script(*ONCE)
    process = waiting()
    request_id = request(program)
    process.kill()
    process.communicate()
    deciding = [program.start(verb, request_id, "--session", "s1", "--json") for verb in ("approve", "deny") * 2]
    results = [ended(one).document for one in deciding]
    kept = [one for one in results if one.get("result") == "kept"]
    assert len(kept) == 1
    others = {one.get("result") or one["code"] for one in results if one not in kept}
    assert others == {"already_decided"}, "who was slower is told, not sent away"
    run = program("show", "s1", "--json").document["run"]
    (decided,) = [fact["facts"] for fact in run["facts"] if fact["type"] == "permission.decided.v1"]
    assert decided["approved"] is kept[0]["approved"]


@pytest.mark.parametrize("hit", [8, 14, 18, 20, 22, 24])
def test_an_approval_that_is_killed_at_any_instant_counts_once_or_can_be_given_again(
    program: Program, waiting: Callable[[], subprocess.Popen[str]], hit: int
) -> None:
    """From taking the session over and closing its run to releasing it, at every few statements."""
    script = program.script(*STEPS)
    process = waiting()
    request_id = request(program)
    process.kill()
    process.communicate()
    program.killed_at(f"random:{hit}", "approve", request_id)
    assert program("verify").code == 0
    again = program("approve", request_id, "--session", "s1", "--json").document
    assert again["result"] in ("kept", "already_decided")
    assert again["approved"] is True
    facts = program("show", "s1", "--json").document["run"]["facts"]
    assert [fact["type"] for fact in facts].count("permission.decided.v1") == 1
    assert program("resume", "s1", "--script", script).code == 0
    assert program.effects == ["paid"]
