"""What a prompt, an argument, a result or a secret is found in, and what it is never found in. R15, F14, report r3-144.

Values are planted wherever content can stand, everything is done that a person or a program does, and every log, span,
counter and view is searched for them. The list below names all commands: a new one has to say what it may hold.
"""

from __future__ import annotations

import json
import logging
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from safepoint.adapters.cli.main import COMMANDS
from safepoint.adapters.cli.system_prompt import SYSTEM_PROMPT
from safepoint.adapters.observation import chosen_sinks
from safepoint.adapters.observation.logging_sink import LoggingSink
from safepoint.adapters.observation.opentelemetry_sink import OpenTelemetrySink

from ..models import chat_server, message_events
from ..models.chat_server import serving
from .program import Program, Ran, ended

PLANTED = {
    "prompt": "planted-prompt",
    "system prompt": SYSTEM_PROMPT[:40],
    "argument": "planted-argument",
    "result": "API_KEY=sk-test-abcdefghijklmnopqrst",
    "second result": "AKIAABCDEFGHIJKLMNOP",
    "key block": "-----BEGIN PRIVATE KEY-----",
    "answer": "planted-answer",
    "thinking": "planted-thinking",
    "environment": "planted-environment",
    "key": message_events.API_KEY,
    "attested result": "planted-attested",
}
NOTE = "planted-note"
"""What a person says of an operation: for whoever looks at it later, so more views hold it; logs and spans never."""

CONTENT_BY_DESIGN = {
    "run": "what the model says, as it says it, and what it asks permission for",
    "resume": "the same",
    "show": "messages; with --full arguments and results",
    "export": "everything; with --redact all but what looks like a credential",
    "judge": "with --full the history",
    "backup": "the file is the store",
    "restore": "the same",
    "import": "the store gets what the file holds",
    "settle": "repeats the note that was given",
    "abandon": "the same",
    "adopt": "the same",
    "approve": "at the terminal that asks, what is asked for",
    "deny": "the same",
    "demo": "its own story",
}
"""Commands that may print or write content, and which."""
NOTES_BY_DESIGN = frozenset({"plan"})
"""Commands that hold a person's note, and no other content."""
NEVER = (
    "list", "status", "plan", "doctor", "verify", "reconcile", "cancel", "takeover", "rebuild", "workspace",
    "checkpoint", "gc", "forget",
)  # fmt: skip
"""Commands that never print content, whatever they are asked."""


def found(text: str, *but: str) -> list[str]:
    """The planted values that stand in a text, by name."""
    return [name for name, value in PLANTED.items() if value in text and name not in but]


def test_every_command_says_whether_it_may_hold_content() -> None:
    assert set(COMMANDS) == set(CONTENT_BY_DESIGN) | set(NEVER)
    assert not set(CONTENT_BY_DESIGN) & set(NEVER)


def test_the_page_lists_the_same_commands() -> None:
    page = (Path(__file__).parents[3] / "docs" / "observability.md").read_text()
    never = page.split("Nor in what ")[1].split(" print,")[0]
    assert set(re.findall(r"`(\w+)`", never)) == set(NEVER)
    table = page.split("hold content by design")[1]
    first = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert set(re.findall(r"`(\w+)`", " ".join(first))) == set(CONTENT_BY_DESIGN)


class Watched:
    """Everything that operators are told in this process."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.exporter = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.meters = MeterProvider([self.reader])

    def sinks(self, environment: object) -> list[LoggingSink | OpenTelemetrySink]:
        return [LoggingSink(), OpenTelemetrySink(self.tracers, self.meters)]

    def told(self) -> str:
        spans = "".join(span.to_json() for span in self.exporter.get_finished_spans())
        counted = self.reader.get_metrics_data()
        return "\n".join(self.lines) + spans + ("" if counted is None else counted.to_json())


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    everything = Watched()

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            everything.lines.append(f"{record.getMessage()} {record.__dict__}")

    handler, logger = Kept(), logging.getLogger("safepoint.lifecycle")
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    monkeypatch.setattr(chosen_sinks, "sinks_from", everything.sinks)
    yield everything
    logger.removeHandler(handler)
    logger.setLevel(logging.NOTSET)
    everything.tracers.shutdown()
    everything.meters.shutdown()


def looked(program: Program, session: str = "s1") -> dict[str, str]:
    """What the commands say that only look, for people and for programs, errors included."""
    views: dict[str, tuple[str | Path, ...]] = {
        "list": (),
        "status": (),
        "status SESSION": (session,),
        "plan": (session,),
        "doctor": (),
        "verify": (),
        "rebuild": (),
        "workspace": (program.workspace,),
        "gc": (),
        "checkpoint": ("list", "--workspace", program.workspace),
    }
    said: dict[str, str] = {}
    for view, arguments in views.items():
        for more in ((), ("--json",)):
            ran = program(view.split()[0], *arguments, *more)
            said[" ".join((view, *more))] = ran.out + ran.err
    return said


def assert_nothing_is_told(program: Program, session: str = "s1") -> None:
    seen = looked(program, session)
    assert {view: found(text) for view, text in seen.items() if found(text)} == {}
    with_notes = {view.split()[0] for view, text in seen.items() if NOTE in text}
    assert with_notes <= NOTES_BY_DESIGN


@pytest.fixture
def killed(program: Program) -> Ran:
    """A turn that was killed after its effect, with a value planted wherever one can stand."""
    (program.workspace / ".env").write_text(
        "\n".join(PLANTED[name] for name in ("result", "second result", "key block"))
    )
    read = {"tool": "read_file", "args": {"path": ".env"}}
    pay = {"tool": "record_effect", "args": {"path": "effects.log", "line": PLANTED["argument"]}}
    program.script(
        {"text": PLANTED["answer"], "thinking": PLANTED["thinking"], "calls": [read]},
        {"text": "I pay.", "calls": [pay]},
        {"text": "Done."},
    )
    arguments = ("--script", program.folder / "script.json", "--workspace", program.workspace, "--session", "s1")
    hooks = {"SAFEPOINT_TEST_HOOKS": "1", "SAFEPOINT_FAILPOINT": "P4:2", "SAFEPOINT_LOG": "debug"}
    return program.process("run", PLANTED["prompt"], *arguments, **hooks, PLANTED=PLANTED["environment"])


def operation(program: Program) -> str:
    (one,) = [
        one for one in program("plan", "s1", "--json").document["operations"] if one["verdict"] == "indeterminate"
    ]
    return str(one["operation_id"])


def test_a_crash_and_everything_after_it_is_told_without_content(
    program: Program, killed: Ran, watched: Watched
) -> None:
    """Field report r3-144: credentials that arrive as tool output."""
    assert killed.code == -9
    logged = [line for line in killed.err.splitlines() if " safepoint." in line]
    assert logged
    assert found("\n".join(logged)) == []
    assert_nothing_is_told(program)
    script = program.folder / "script.json"
    parked = program("resume", "s1", "--script", script)
    reconciled = program("reconcile", "s1")
    assert (parked.code, reconciled.code) == (3, 3)
    assert found(parked.out + parked.err + reconciled.out + reconciled.err) == []
    settled = program("settle", operation_of(program), "--completed", PLANTED["attested result"], "--note", NOTE)
    assert settled.code == 0
    assert_nothing_is_told(program)
    assert program("resume", "s1", "--script", script).code == 0
    assert_nothing_is_told(program)
    stopped, taken = program("cancel", "s1"), program("takeover", "s1")
    assert found(stopped.out + stopped.err + taken.out + taken.err) == []
    gone = [program("forget", "s1", *more) for more in ((), ("--yes",), ("--json",))]
    assert [found(ran.out + ran.err) for ran in gone] == [[], [], []]
    told = watched.told()
    kinds = ("repair_completed", "plan_parked", "operation_reconciled", "operation_attested", "plan_approved")
    assert [kind for kind in (*kinds, "execution_started", "execution_completed") if kind not in told] == []
    assert found(told) == []
    assert NOTE not in told


def operation_of(program: Program) -> str:
    (one,) = [one for one in program("plan", "s1", "--json").document["operations"] if one["verdict"] == "parked"]
    return str(one["operation_id"])


def test_what_holds_content_by_design_does_hold_it(program: Program, killed: Ran) -> None:
    """Otherwise this page would search for values that are nowhere."""
    assert PLANTED["answer"] in killed.err, "shown while it comes"
    assert found(program("show", "s1", "--full").out) == [
        "prompt",
        "argument",
        "result",
        "second result",
        "key block",
        "answer",
        "thinking",
    ]
    exported = program("export", "s1").out
    assert found(exported) == ["prompt", "argument", "result", "second result", "key block", "answer", "thinking"]
    redacted = program("export", "s1", "--redact").out
    assert found(redacted) == ["prompt", "argument", "answer", "thinking"]
    stored = b"".join(path.read_bytes() for path in program.store.parent.glob("store.sqlite*") if path.is_file())
    kept = found(stored.decode("latin-1"))
    assert set(PLANTED) - set(kept) == {"system prompt", "environment", "key", "attested result"}


def test_a_question_that_waits_is_told_without_its_arguments(program: Program) -> None:
    program.script(
        {
            "text": "I pay.",
            "calls": [{"tool": "record_effect", "args": {"path": "effects.log", "line": PLANTED["argument"]}}],
        },
        {"text": "Done."},
    )
    process = program.start(*program.run("--session", "s1", "--ask-elsewhere"))
    deadline = time.monotonic() + 30
    while not (asked := program("status", "--json").document.get("permissions")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert_nothing_is_told(program)
    refused = program("deny", asked[0]["request_id"])
    assert refused.code == 0
    assert found(refused.out + refused.err) == []
    assert PLANTED["argument"] in ended(process).err, "it is shown to whoever is asked there"
    assert_nothing_is_told(program)


ENDPOINTS = {
    "openai": ("OPENAI", chat_server.refuses(400, f"bad: {PLANTED['prompt']} {PLANTED['key']}")),
    "anthropic": (
        "ANTHROPIC",
        message_events.refuses(400, "invalid_request_error", f"bad: {PLANTED['prompt']} {PLANTED['key']}"),
    ),
}


@pytest.mark.parametrize("provider", ENDPOINTS)
def test_no_client_logs_a_request_and_no_error_repeats_the_key(program: Program, provider: str) -> None:
    """At the level debug official clients log whole requests."""
    variable, answer = ENDPOINTS[provider]
    with serving(answer) as server:
        address = server.base_url if provider == "openai" else message_events.address_of(server)
        environment = {f"{variable}_API_KEY": PLANTED["key"], f"{variable}_BASE_URL": address, "SAFEPOINT_LOG": "debug"}
        asked = ("--provider", provider, "--model", "m", "--workspace", program.workspace, "--session", "s1")
        ran = program.process("run", PLANTED["prompt"], *asked, **environment)
    assert ran.code == 1
    *logged, failed, _ = ran.err.splitlines()
    assert any("execution_failed" in line for line in logged)
    assert found("\n".join(logged)) == []
    assert found(failed) == ["prompt"], "whoever ran it reads what the provider said"
    assert PLANTED["key"] not in ran.out + ran.err
    assert_nothing_is_told(program)


@pytest.mark.parametrize("change", ["no json", "another type", "another member"])
def test_a_damaged_event_is_named_without_what_it_holds(program: Program, killed: Ran, change: str) -> None:
    told = PLANTED["argument"].encode()
    changes: dict[str, Callable[[bytes], bytes]] = {
        "no json": lambda state: state[:-10],
        "another type": lambda state: state.replace(b'"sequence":', b'"sequence":"planted-argument",'),
        "another member": lambda state: state.replace(b'{"', b'{"planted-argument":1,"', 1),
    }
    changed = changes[change]
    with closing(sqlite3.connect(program.store, isolation_level=None)) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        rows = connection.execute("SELECT rowid, state FROM stored_events").fetchall()
        (row, state) = next((row, bytes(state)) for row, state in rows if told in bytes(state))
        connection.execute("UPDATE stored_events SET state = ? WHERE rowid = ?", (changed(state), row))
    assert program("verify").code == 4
    assert_nothing_is_told(program)
    parked = program("resume", "s1", "--script", program.folder / "script.json")
    assert found(parked.out + parked.err) == []


def test_a_note_in_a_plan_is_all_that_a_plan_holds_of_what_people_say(program: Program, killed: Ran) -> None:
    settled = program("settle", operation(program), "--completed", PLANTED["attested result"], "--note", NOTE)
    assert settled.code == 0
    planned = program("plan", "s1", "--json")
    assert json.dumps(NOTE) in planned.out
    assert found(planned.out) == []


def test_files_beside_the_store_hold_nothing(program: Program, killed: Ran) -> None:
    folder = Path(program.store).parent
    others = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("store.sqlite")]
    assert others
    assert [path.name for path in others if found(path.read_bytes().decode("latin-1"))] == []
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.glob("store.sqlite*") if path.is_file())
