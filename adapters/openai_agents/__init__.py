"""OpenAI Agents SDK: an agent's steps are recorded as they happen, its tools go through T1 and T2. SPEC section 17.

Needs the extra `openai-agents`. See `docs/frameworks/openai-agents.md`.
"""

from __future__ import annotations

from ...application.current_call import current_call
from ..embedding.unrecordable import AgentUnsupported, NotRecordable
from .model import RecordedModel
from .promised import promised
from .recorded import recorded
from .tools import RecordedInvoker

__all__ = [
    "AgentUnsupported",
    "NotRecordable",
    "RecordedInvoker",
    "RecordedModel",
    "current_call",
    "promised",
    "recorded",
]
