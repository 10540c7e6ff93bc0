"""How a peer's program is asked for durable steps: one line with their number in, one line with their seconds out.

It says that it is ready once everything is imported and steps have been done: what is measured is a warm process.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

WARM_UP = 30
ARGUMENTS: Mapping[str, str] = {"path": "a.txt", "content": "hello world" * 10}
"""What a step is called with, beside its number: as much as our own pair records."""


def serve(program: Callable[[Path], tuple[Callable[[int], list[float]], Mapping[str, object]]]) -> None:
    """Set a peer up in the folder that the command line names, and answer until the questions end.

    Args:
        program: given the folder, returns what does so many steps (their seconds, one by one) and what the peer says of
            how durable it is.
    """
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever the peer prints is no answer
    steps, facts = program(Path(sys.argv[1]))
    steps(WARM_UP)
    answers.write(json.dumps({"ready": dict(facts)}) + "\n")
    for question in sys.stdin:
        answers.write(json.dumps({"seconds": steps(int(question))}) + "\n")
    answers.flush()
    os._exit(0)  # threads of a peer that wait for work are not waited for
