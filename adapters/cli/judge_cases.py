"""Answers cases of Maka, a line for a line, as they come."""

from __future__ import annotations

import sys

from ..interchange.maka_cases import Answer, answer_case, written
from .exit_codes import ExitCode
from .history_input import opened
from .usage import UsageError

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def judge_cases(file: str, format_name: str) -> int:
    """Answer every line; the exit status tells whether one of them could not be judged."""
    if format_name not in {"auto", "maka"}:
        raise UsageError("Cases are Maka's; --cases goes with no other format.")
    code = ExitCode.DONE
    with opened(file) as lines:
        for number, line in enumerate(lines, 1):
            stripped = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
            if not stripped.strip():
                continue
            answer, judged = _answered(stripped, number)
            if not judged:
                code = ExitCode.USAGE
            sys.stdout.write(written(answer) + "\n")
    return code


def _answered(line: bytes, number: int) -> tuple[Answer, bool]:
    try:
        answer, judged = answer_case(line.decode())
    except UnicodeDecodeError:
        answer, judged = {"id": None, "error": "not UTF-8"}, False
    return (answer if judged else {**answer, "line": number}), judged
