"""The demo really kills, counts from outside, and fails when a count is not the expected one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from safepoint.adapters.demo import main
from safepoint.adapters.demo.apart import StageApart
from safepoint.adapters.demo.stage import ActFailed, Stage
from safepoint.adapters.demo.story import ACTS, PORT_AFTER, PORT_OF_SOMEBODY_ELSE, Counts
from safepoint.adapters.demo.table import document, print_apart, print_table
from safepoint.ports.failpoints import Failpoint

FIRST, EDITED = ACTS[0], ACTS[3]


def test_every_act_of_the_story_ends_with_the_counts_that_it_promises(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run_demo(as_json=True) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "safepoint.cli.demo.v1"
    assert [act["act"] for act in told["acts"]] == ["a", "b", "c", "d", "e"]
    assert [act["decision"] for act in told["acts"]] == ["continue", "park", "park", "park", "continue"]
    assert [act["observation"] for act in told["acts"]] == [
        None,
        "matches_prior_state",
        "matches_expected_state",
        "diverged",
        None,
    ]
    assert [act["became"] for act in told["acts"]] == [None, "parked", "completed", "parked", None]
    assert [act["counted_at_the_end"]["writes"] for act in told["acts"]] == [1, 0, 1, 1, 1]
    assert [act["counted_at_the_end"]["payments"] for act in told["acts"]] == [1, 0, 1, 0, 1]
    assert [act["counted_at_the_end"]["provider_requests"] for act in told["acts"]] == [4, 1, 3, 1, 3]


def test_an_edit_of_another_process_is_never_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    played = Stage(tmp_path).play(EDITED)
    assert played.content == PORT_OF_SOMEBODY_ELSE
    assert (played.observation, played.became) == ("diverged", "parked")
    assert played.as_expected
    print_table([played])
    assert "kept" in capsys.readouterr().out


def test_what_a_look_finds_is_part_of_what_is_expected(tmp_path: Path) -> None:
    played = Stage(tmp_path).play(ACTS[2])
    assert played.as_expected
    assert not replace(played, observation="diverged").as_expected
    assert not replace(played, ended=Counts(3, 2, 1)).as_expected


def test_a_count_that_is_not_the_expected_one_fails_the_demo(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = replace(EDITED, ended=Counts(1, 2, 0))
    monkeypatch.setattr(main, "ACTS", (wrong,))
    assert main.run_demo(as_json=False) == 1
    assert "NOT AS EXPECTED" in capsys.readouterr().out


def test_an_agent_that_does_not_die_where_it_should_is_said_plainly(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    survives = replace(FIRST, failpoint=Failpoint.CLAIM_COMMITTED)  # no first run of a session reaches it
    with pytest.raises(ActFailed, match="was to die and ended with 0"):
        Stage(tmp_path).play(survives)
    monkeypatch.setattr(main, "ACTS", (survives,))
    assert main.run_demo(as_json=True) == 1
    assert "could not be played" in capsys.readouterr().err


def test_the_table_shows_every_act(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    played = Stage(tmp_path).play(FIRST)
    print_table([played])
    shown = capsys.readouterr().out
    assert "(a)" in shown and "continue" in shown and "requests: 4" in shown  # noqa: PT018
    assert document([played])["as_expected"] is True


def test_what_somebody_else_wrote_stays_and_the_work_goes_on_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    played = StageApart(tmp_path).play_apart()
    assert played is not None
    assert (played.codes, played.paths) == (("workspace_drift",), ("config.json",))
    assert (played.here, played.there) == (PORT_OF_SOMEBODY_ELSE, PORT_AFTER)
    assert (played.payments_here, played.payments_there, played.requests) == (0, 1, 3)
    assert played.as_expected
    print_apart(replace(played, payments_there=2))
    assert "NOT AS EXPECTED" in capsys.readouterr().out
    assert not document([], replace(played, here=PORT_AFTER))["as_expected"]


def test_without_git_that_act_is_not_played_and_this_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    played = StageApart(tmp_path).play_apart()
    assert played is None
    print_apart(played)
    assert "no `git`" in capsys.readouterr().out
    assert document([], played)["as_expected"]
