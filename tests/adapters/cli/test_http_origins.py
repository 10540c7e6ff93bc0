"""Where `http_request` may go: what the user's environment names, and nothing is guessed from what cannot be read."""

from __future__ import annotations

import json

import pytest

from safepoint.adapters.cli.http_origins import VARIABLE, http_origins
from safepoint.adapters.cli.usage import UsageError

from ..tools.http_server import honouring, serving
from .program import Program


@pytest.mark.parametrize(
    ("given", "origins"),
    [
        ("", {}),
        (" , ", {}),
        ("https://A.example", {"https://a.example": None}),
        (
            "https://a.example=86400, http://127.0.0.1:8080",
            {"https://a.example": 86400, "http://127.0.0.1:8080": None},
        ),
    ],
)
def test_each_origin_is_named_with_what_its_server_promises(given: str, origins: dict[str, int | None]) -> None:
    assert http_origins({VARIABLE: given}) == origins


@pytest.mark.parametrize(
    "given", ["a.example", "ftp://a.example", "https://a.example=", "https://a.example=0", "https://a.example=day"]
)
def test_what_cannot_be_read_is_said(given: str) -> None:
    with pytest.raises(UsageError, match=VARIABLE):
        http_origins({VARIABLE: given})


def test_a_payment_over_http_that_was_cut_off_is_delivered_again_and_made_once(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(honouring) as server:
        monkeypatch.setenv(VARIABLE, f"{server.url}=86400")
        pay = {"tool": "http_request", "args": {"url": f"{server.url}/pay", "method": "POST", "body": "7"}}
        program.script({"text": "I pay.", "calls": [pay]}, {"text": "Paid."})
        program.killed_at("P4", *program.run("--session", "s1"), "--allow-all")
        assert (server.count(), len(server.done)) == (1, 1)
        ran = program("resume", "s1", "--script", program.folder / "script.json", "--reconcile", "--json")
        assert (ran.code, ran.document["decision"]) == (0, "continued"), ran
        assert [one["observation"] for one in ran.document["reconciled"]] == ["redelivered"]
        assert (server.count(), len(server.done)) == (2, 1)
        shown = program("show", "s1", "--full", "--json").document
        assert "idempotency" not in json.dumps(shown["run"]["facts"]).lower()


def test_without_servers_the_tool_is_not_offered(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    program.script(
        {"text": "I ask.", "calls": [{"tool": "http_request", "args": {"url": "http://127.0.0.1/"}}]}, {"text": "No."}
    )
    assert program(*program.run("--session", "s1")).code == 0
    shown = program("show", "s1", "--json").document["run"]["operations"]
    assert [(one["tool"], one["operation_id"]) for one in shown] == [("http_request", None)]


def test_a_variable_that_cannot_be_read_stops_the_command(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "nonsense")
    program.script({"text": "Hello."})
    ran = program(*program.run("--session", "s1"))
    assert (ran.code, VARIABLE in ran.err) == (2, True)
