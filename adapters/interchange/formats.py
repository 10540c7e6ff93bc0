"""Every format that histories are read in, by its name; the order is that in which a file is asked what it is."""

from __future__ import annotations

from ...ports.history_format import HistoryFormat
from .anthropic import AnthropicMessages
from .claude_code import ClaudeCodeSession
from .codex import CodexRollout
from .maka_ledger import MakaLedger
from .openai_chat import OpenAiChat
from .openai_responses import OpenAiResponses
from .safepoint_export import SafepointExport


def history_formats() -> dict[str, HistoryFormat]:
    """All formats; the more particular ones first."""
    formats: tuple[HistoryFormat, ...] = (
        SafepointExport(),
        MakaLedger(),
        CodexRollout(),
        ClaudeCodeSession(),
        OpenAiResponses(),
        AnthropicMessages(),
        OpenAiChat(),
    )
    return {one.name: one for one in formats}
