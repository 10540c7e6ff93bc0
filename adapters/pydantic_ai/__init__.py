"""pydantic-ai: an agent's steps are recorded as they happen, its tool calls go through T1 and T2. SPEC section 17.

Needs the extra `pydantic-ai`. See `docs/frameworks/pydantic-ai.md`.
"""

from __future__ import annotations

from ...application.current_call import current_call
from ..embedding.unrecordable import AgentUnsupported, NotRecordable
from .messages import history
from .promised import promised
from .recording import Recording
from .toolset import RecordedToolset

__all__ = [
    "AgentUnsupported",
    "NotRecordable",
    "RecordedToolset",
    "Recording",
    "current_call",
    "history",
    "promised",
]
