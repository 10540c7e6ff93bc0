"""A reader of the pages puts Safepoint around a loop that is there: under 30 lines, killed from outside, resumed."""

from __future__ import annotations

import ast
import difflib
import signal
import subprocess
import sys
import time
from pathlib import Path

import safepoint
from safepoint.application.inspect_sessions import SessionState

ROOT = Path(__file__).parents[2]

AGENT = '''
"""An agent that somebody has: a client of a provider, a tool, a loop."""

import sys
import time
from pathlib import Path


def ask_model(messages):
    paid = messages[-1]["role"] == "tool"
    call = {"id": "call_1", "type": "function", "function": {"name": "pay", "arguments": '{"amount":"10.00"}'}}
    message = {"role": "assistant", "content": "Paid."} if paid else {"role": "assistant", "tool_calls": [call]}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop" if paid else "tool_calls"}]}


def pay(amount):
    with Path("payments.txt").open("a") as payments:
        payments.write(f"{amount}\\n")
    time.sleep(60)
    return f"paid {amount}"


TOOLS = {"pay": pay}
'''

LOOP = """
import json


def loop(question):
    messages = [{"role": "user", "content": question}]
    while True:
        step = ask_model(messages)["choices"][0]["message"]
        messages.append(step)
        calls = step.get("tool_calls") or []
        for call in calls:
            result = TOOLS[call["function"]["name"]](**json.loads(call["function"]["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
        if not calls:
            return step["content"]


if __name__ == "__main__":
    print(loop("Pay the bill."))
"""

MAIN = """
if __name__ == "__main__":
    anyio.run(go_on if sys.argv[1:] == ["resume"] else begin, Path("store.sqlite"))
"""


def shown_on(page: str, heading: str) -> str:
    """The first block of Python below a heading."""
    below = (ROOT / page).read_text().split(f"\n## {heading}\n", 1)[1]
    return below.split("```python\n", 1)[1].split("```", 1)[0]


def lines_of(program: str) -> list[str]:
    """Its lines without comments, blank lines and docstrings, formatted alike."""
    tree = ast.parse(program)
    for node in ast.walk(tree):
        match getattr(node, "body", None):
            case [ast.Expr(value=ast.Constant()), *rest] if rest:
                node.body = rest  # type: ignore[attr-defined]
    return ast.unparse(tree).splitlines()


def with_safepoint() -> str:
    return "\n".join([AGENT, "import anyio\nimport safepoint\n", shown_on("docs/library.md", "You run the loop"), MAIN])


def test_what_the_readme_shows_is_what_the_page_shows() -> None:
    page = shown_on("docs/library.md", "You run the loop")
    assert page.startswith(shown_on("README.md", "In your program").rstrip())


def test_it_takes_fewer_than_30_lines() -> None:
    before, after = (lines_of(program) for program in ("\n".join([AGENT, LOOP]), with_safepoint()))
    added = [line for line in difflib.ndiff(before, after) if line.startswith("+ ") and line[2:].strip()]
    assert 10 < len(added) < 30, added


def test_it_is_killed_in_its_tool_and_resumed(tmp_path: Path) -> None:
    program = tmp_path / "agent.py"
    program.write_text(with_safepoint())
    payments = tmp_path / "payments.txt"
    agent = subprocess.Popen([sys.executable, program.name], cwd=tmp_path)
    try:
        while not payments.exists() or not payments.read_text():
            assert agent.poll() is None, "it ended before it paid"
            time.sleep(0.05)
    finally:
        agent.kill()
    assert agent.wait(60) == -signal.SIGKILL
    command = [sys.executable, program.name, "resume"]
    resumed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    assert resumed.stderr == ""
    assert resumed.stdout.splitlines() == ["parked: dangling_tool_state", "a person looks what became of pay"]
    assert payments.read_text() == "10.00\n"
    with safepoint.open_sync(tmp_path / "store.sqlite") as runtime:
        summary = runtime.session("bill").summary()
    assert summary is not None
    assert summary.state is SessionState.COMPLETED
