"""Plain functions in processes of their own. SPEC sections 8 and 15."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from safepoint.adapters.process.supervisor import ProcessSupervisor
from safepoint.domain.identifiers import OperationId
from safepoint.ports.supervised import (
    FunctionCall,
    FunctionFailed,
    FunctionFailure,
    FunctionReturned,
    Overness,
    SupervisedExit,
)
from safepoint.ports.supervisor import SupervisedSlot, WorkNotStarted

from .conftest import Owner

SAMPLES = "function_samples"


@pytest.fixture(autouse=True)
def samples_on_the_import_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


@pytest.fixture
def slot(locks: Path) -> Iterator[SupervisedSlot]:
    slot = ProcessSupervisor(locks, result_bytes_max=10_000).prepare(OperationId("op-1"))
    yield slot
    slot.end(grace_seconds=0.0)


def run(slot: SupervisedSlot, function: str, **arguments: str | int) -> SupervisedExit:
    slot.start(FunctionCall(SAMPLES, function, arguments))
    ended = slot.wait(60.0)
    assert ended is not None
    return ended


def failed(ended: SupervisedExit) -> FunctionFailed:
    assert isinstance(ended.outcome, FunctionFailed)
    return ended.outcome


def test_what_a_function_prints_does_not_mix_with_its_result(slot: SupervisedSlot) -> None:
    ended = run(slot, "print_and_return", text="hello")
    assert ended.outcome == FunctionReturned({"returned": "hello"})
    assert (ended.stdout.data, ended.stderr.data) == (b"hello\n", b"hello\n")


def test_what_a_function_leaves_running_does_not_hold_up_its_result(slot: SupervisedSlot) -> None:
    ended = run(slot, "leave_sleeping")
    assert ended.left_running
    assert ended.outcome == FunctionReturned(ended.living[0].pid)


def test_what_a_function_starts_cannot_write_into_its_result(slot: SupervisedSlot) -> None:
    assert run(slot, "let_a_child_write_everywhere").outcome == FunctionReturned("kept")


def test_a_process_that_vanishes_has_no_outcome(slot: SupervisedSlot) -> None:
    ended = run(slot, "vanish")
    assert (ended.exit_code, ended.outcome) == (3, None)


def test_an_exit_inside_a_function_is_what_it_raised(slot: SupervisedSlot) -> None:
    outcome = failed(run(slot, "leave_by_exit"))
    assert (outcome.failure, outcome.error_classes[0], outcome.message) == (
        FunctionFailure.RAISED,
        "builtins:SystemExit",
        "enough",
    )


def test_a_result_over_the_bound_is_no_result(slot: SupervisedSlot) -> None:
    assert failed(run(slot, "repeat", text="x", times=1_000_000)).failure is FunctionFailure.RESULT_TOO_LARGE


def test_an_argument_may_be_large(slot: SupervisedSlot) -> None:
    ended = run(slot, "repeat", text="ü\0" * 200_000, times=0)
    assert ended.outcome == FunctionReturned("")


def test_a_coroutine_is_awaited(slot: SupervisedSlot) -> None:
    assert run(slot, "wait_a_moment").outcome == FunctionReturned("awaited")


def test_a_refusal_in_a_subclass_is_a_refusal(slot: SupervisedSlot) -> None:
    outcome = failed(run(slot, "refuse_in_a_subclass"))
    assert (outcome.refused_without_effect, outcome.message) == (True, "closed")


def test_what_a_decorator_left_says_what_to_call(slot: SupervisedSlot) -> None:
    assert run(slot, "wrapped", text="abc").outcome == FunctionReturned("ABC")


def test_arguments_that_are_not_json_are_not_handed_over(slot: SupervisedSlot) -> None:
    with pytest.raises(WorkNotStarted):
        slot.start(FunctionCall(SAMPLES, "repeat", {"text": float("nan"), "times": 1}))
    assert slot.end() is Overness.OVER


@pytest.mark.parametrize("name", ["not_callable", "missing", "Wrapped.missing", "print_and_return.<locals>.f"])
def test_what_cannot_be_called_was_not_run(slot: SupervisedSlot, name: str) -> None:
    assert failed(run(slot, name)).failure is FunctionFailure.NOT_IMPORTABLE


def test_nothing_in_the_workers_folder_hides_a_module_of_the_user(
    slot: SupervisedSlot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "supervision.py").write_text("def whose():\n    return 'mine'\n")  # a name that we use, too
    monkeypatch.syspath_prepend(str(tmp_path))
    slot.start(FunctionCall("supervision", "whose", {}))
    ended = slot.wait(60.0)
    assert ended is not None
    assert ended.outcome == FunctionReturned("mine")


SCRIPT = """
import sys
from pathlib import Path

def whose(word):
    return [word, __name__]

if __name__ == "__main__":
    from safepoint.adapters.process.supervisor import ProcessSupervisor
    from safepoint.ports.supervised import FunctionCall
    slot = ProcessSupervisor(Path(sys.argv[1])).prepare("op-1")
    slot.start(FunctionCall("__main__", "whose", {"word": "ran"}))
    print(slot.wait().outcome.value, flush=True)
"""


@pytest.mark.parametrize("how", ["script", "module"])
def test_a_function_of_the_main_script_is_found_without_running_the_script_again(
    locks: Path, tmp_path: Path, start_owner: Callable[[str], Owner], how: str
) -> None:
    (tmp_path / "agent.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "agent"] if how == "module" else [sys.executable, str(tmp_path / "agent.py")]
    owner = start_owner(f"os.chdir({str(tmp_path)!r})\nos.execv(sys.executable, {[*command, str(locks)]!r})\n")
    assert owner.hear() == {"script": "['ran', '__safepoint_main__']", "module": "['ran', 'agent']"}[how]
