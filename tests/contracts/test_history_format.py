"""Every format that histories are read in keeps the contract."""

from __future__ import annotations

import pytest

from safepoint.adapters.interchange.formats import history_formats
from safepoint.ports.contract_kit.history_format import HistoryFormatContract
from safepoint.ports.history_format import HistoryFormat

from ..adapters.interchange.exported import exported
from ..adapters.interchange.reading import SAMPLES

FORMATS = history_formats()
SAMPLE_OF = {
    "anthropic": "anthropic_thinking.json",
    "openai-chat": "chat_parallel.json",
    "claude-code": "claude_code_tree.jsonl",
    "codex": "codex_aborted.jsonl",
    "maka": "maka_interrupted.jsonl",
    "openai-responses": "responses_lines.jsonl",
}


class TestHistoryFormats(HistoryFormatContract):
    @pytest.fixture(params=sorted(FORMATS))
    def history_format(self, request: pytest.FixtureRequest) -> HistoryFormat:
        return FORMATS[request.param]

    @pytest.fixture
    def sample(self, history_format: HistoryFormat) -> bytes:
        name = SAMPLE_OF.get(history_format.name)
        return exported() if name is None else (SAMPLES / name).read_bytes()
