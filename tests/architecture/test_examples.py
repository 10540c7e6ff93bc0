"""Every example is run as a reader would run it, and says what the pages say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

SAYS = {
    "embed_and_resume.py": ["killed", "The bill is paid, once.", "['10.00']"],
    "child_run.py": [
        "killed",
        "delegate: child_run_interrupted",
        "The bill is paid, once.",
        "My clerk has done it.",
        "['10.00']",
    ],
    "your_loop.py": [
        "killed",
        "parked: dangling_tool_state",
        "a person looks what became of pay",
        "Paid.",
        "['10.00']",
    ],
    "script.py": [
        "pay   done  effect done",
        "pay   error effect none",
        "pay   error effect unknown",
        "steal error effect none",
        "completed - One is paid; of one I do not know.",
        "in doubt: pay",
        "payments: 1",
    ],
    "project_settings.py": ["store: state/agent.sqlite", "permission: ask", "Hello."],
    "swap_a_part.py": [
        "completed at 2030-01-01T00:00:00.000000Z",
        "told: execution_started execution_completed",
        "stores: 0",
    ],
    "without_the_container.py": ["completed - I greeted."],
    "host.py": ["0 interrupted", "1 interrupted", "You are welcome.", "['paid']"],
    "own_tools.py": [
        "balance      replay_safe      completed  effect none",
        "charge       idempotent       completed  effect done",
        "charge       idempotent       completed  effect none",
        "request      replay_safe      completed  effect none",
        "request      outcome_unknown  completed  effect none",
        "build        outcome_unknown  completed  effect done",
        "send_letter  outcome_unknown  completed  effect done",
    ],
    "langgraph_thread.py": ["killed", "safe to go on: False dangling_tool_state", "Paid.", "['10']"],
    "mcp_tools.py": ["balance: 100", "ToolNotOver", "a person looks what became of bank__pay", "['10']"],
    "openai_agents_agent.py": ["9", "a person looks what became of pay", "Paid.", "['10']"],
    "pydantic_ai_agent.py": ["9", "a person looks what became of pay", "Paid.", "['0']"],
    "own_reconciler.py": ["killed", "parked: dangling_tool_state", "The bill is paid, once.", "payments: 1"],
    "own_sink.py": ["execution_started 1", "execution_completed 1"],
    "provider_histories.py": [
        "['ThinkingBlock', 'CallBlock'] tool_use",
        "['user', 'assistant', 'user']",
        "['user', 'assistant', 'tool']",
        "['user', 'function_call', 'function_call_output']",
    ],
}


@pytest.mark.parametrize("name", SAYS)
def test_an_example_does_what_it_says(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == SAYS[name]


def test_every_example_is_tried() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(SAYS)
