"""Stands for a peer's program: its steps take as long as the command line says; a negative time makes it die."""

from __future__ import annotations

import json
import sys


def answer(what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def main(seconds: float) -> None:
    answer({"ready": {"journal_mode": "none"}})
    for question in sys.stdin:
        if seconds < 0:
            sys.exit("the ledger is full")
        answer({"seconds": [seconds] * int(question)})


if __name__ == "__main__":
    main(float(sys.argv[1]))
