"""The contract of `HistoryFormat`: whatever a file holds, it is read, told of, and read the same again."""

from __future__ import annotations

import pytest

from ...domain.identifiers import SessionId, parse_id
from ..history_format import History, HistoryFormat

NOISE = (b"", b"\n\n", b"{", b"null", b"[]", b'{"a":', b"\xff\xfe\x00", b"no JSON at all\n", b'"\\ud800"', b"0" * 5000)
"""What is a history of no format."""


class HistoryFormatContract:
    """Subclass it, override the fixtures, and pytest checks an implementation of the port."""

    @pytest.fixture
    def history_format(self) -> HistoryFormat:
        """The implementation."""
        pytest.fail("override the fixture `history_format`")

    @pytest.fixture
    def sample(self) -> bytes:
        """A sound file of the format, with a tool call."""
        pytest.fail("override the fixture `sample`")

    def test_it_has_a_name(self, history_format: HistoryFormat) -> None:
        assert parse_id(history_format.name, "format") == history_format.name

    def test_it_recognises_its_own_files_and_no_noise(self, history_format: HistoryFormat, sample: bytes) -> None:
        assert history_format.recognises(sample)
        assert [data for data in NOISE if history_format.recognises(data)] == []

    def test_a_sound_file_becomes_runs_with_facts(self, history_format: HistoryFormat, sample: bytes) -> None:
        history = history_format.read(sample)
        assert history.format == history_format.name
        assert history.runs
        assert all(run.sealed for run in history.runs)
        assert any(run.facts for run in history.runs)
        assert list(history.unreadable) == []

    def test_the_same_bytes_give_the_same_history(self, history_format: HistoryFormat, sample: bytes) -> None:
        assert said(history_format.read(sample)) == said(history_format.read(sample))

    def test_it_becomes_the_session_that_is_asked_for(self, history_format: HistoryFormat, sample: bytes) -> None:
        history = history_format.read(sample, SessionId("asked-for"))
        sealed_already = history.session is not None  # such events name their session, and are never made to lie
        assert (history.session_id == "asked-for") is not sealed_already
        assert {run.identity.session_id for run in history.runs} == {history.session_id}

    @pytest.mark.parametrize("noise", NOISE, ids=[f"noise-{number}" for number in range(len(NOISE))])
    def test_noise_is_read_without_an_error_and_makes_no_call(
        self, history_format: HistoryFormat, noise: bytes
    ) -> None:
        history = history_format.read(noise)
        topics = {event.topic for run in history.runs for event in run.events}
        assert [topic for topic in topics if topic.startswith("tool.")] == []

    def test_a_file_that_was_cut_anywhere_is_read_without_an_error(
        self, history_format: HistoryFormat, sample: bytes
    ) -> None:
        for cut in range(0, len(sample), max(1, len(sample) // 50)):
            assert said(history_format.read(sample[:cut])) == said(history_format.read(sample[:cut]))

    def test_a_file_with_a_damaged_byte_anywhere_is_read_without_an_error(
        self, history_format: HistoryFormat, sample: bytes
    ) -> None:
        for place in range(0, len(sample), max(1, len(sample) // 50)):
            damaged = bytearray(sample)
            damaged[place] ^= 0x81
            history_format.read(bytes(damaged))


def said(history: History) -> object:
    """All that a history says, as a value that can be compared."""
    runs = [(run.identity, [one.digest for one in run.sealed], repr(run.facts)) for run in history.runs]
    return (history.session_id, runs, history.findings, history.lines, history.redacted, history.foreign)
