"""Files as they are read and judged, in a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safepoint.adapters.cli.exit_codes import ExitCode
from safepoint.adapters.cli.judge_file import exit_code_of
from safepoint.adapters.cli.judgement_documents import of_judgement
from safepoint.adapters.interchange.formats import history_formats
from safepoint.application.judge_history import HistoryReader, Judgement, judge
from safepoint.domain.events.event import RunEvent

SAMPLES = Path(__file__).with_name("samples")
READ = HistoryReader(history_formats())


def judged(data: bytes, format_name: str = "auto") -> Judgement:
    """A file as it is judged."""
    return judge(READ(data, format_name))


def chat(*messages: dict[str, Any]) -> Judgement:
    """OpenAI chat messages, as one document."""
    return judged(json.dumps(messages).encode(), "openai-chat")


def anthropic(*messages: dict[str, Any]) -> Judgement:
    """Anthropic messages, as one document."""
    return judged(json.dumps(messages).encode(), "anthropic")


def lines(*objects: Any) -> bytes:
    """A JSON-lines file; bytes stand as they are."""
    return b"".join((one if isinstance(one, bytes) else json.dumps(one).encode()) + b"\n" for one in objects)


def verdicts(judgement: Judgement) -> list[tuple[str, str, str]]:
    """Call, verdict and reason, in order."""
    return [
        (verdict.call_id, verdict.status.value, verdict.reason.value)
        for run in judgement.runs
        for verdict in run.resolution.verdicts
    ]


def replayed(judgement: Judgement) -> list[str]:
    """The kinds of the items of the legal replay; calls and results with their ids."""
    return [
        f"{item.kind}:{item.call_id}" if item.kind in {"call", "result"} else item.kind
        for item in judgement.replay.items
    ]


def findings(judgement: Judgement) -> list[tuple[str, int]]:
    """Code and line of everything that was found, but for the end that every interrupted run gets."""
    listed = ((found.code.value, found.place.line) for found in judgement.history.findings)
    return [found for found in listed if found[0] != "terminal_added"]


def issues(judgement: Judgement) -> list[tuple[str, int | None]]:
    """Code and line of every contradiction."""
    document = of_judgement(judgement, full=False)
    return [(issue["code"], issue["line"]) for issue in document["issues"]]


def codes(judgement: Judgement) -> set[str]:
    """Why it could not be continued."""
    return {reason.code.value for reason in judgement.reasons}


def exit_status(judgement: Judgement) -> ExitCode:
    """The status that the program would leave with."""
    return exit_code_of(judgement)


def events_of(judgement: Judgement, kind: type[RunEvent]) -> list[Any]:
    """The events of a kind, over all runs."""
    return [event for run in judgement.runs for event in run.read.events if isinstance(event, kind)]


def statuses(judgement: Judgement) -> list[str | None]:
    """How each run ended."""
    return [None if run.status is None else run.status.value for run in judgement.runs]


def user(text: str) -> dict[str, Any]:
    """A message of the user, in both message formats."""
    return {"role": "user", "content": text}


def calling(*calls: tuple[str, str, Any], text: str | None = None) -> dict[str, Any]:
    """An OpenAI message with calls: id, name, arguments."""
    listed = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}
        for call_id, name, args in calls
    ]
    return {"role": "assistant", "content": text, "tool_calls": listed}


def answer(call_id: str, content: Any = "ok") -> dict[str, Any]:
    """An OpenAI answer to a call."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def said(text: str) -> dict[str, Any]:
    """Text of the model, in both message formats."""
    return {"role": "assistant", "content": text}
