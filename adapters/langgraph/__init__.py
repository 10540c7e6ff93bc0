"""LangGraph: a graph's tool calls go through T1 and T2, and a thread goes on only where that is safe. SPEC section 17.

Needs the extra `langgraph`. See `docs/frameworks/langgraph.md`.
"""

from __future__ import annotations

from ...application.current_call import current_call
from ..embedding.unrecordable import AgentUnsupported
from .blocking import SyncThreads, SyncTurn
from .checkpointer import SafeCheckpointer
from .promises import promised
from .refusals import InterruptInTool, NoOpenTurn, NothingToResume, StateDiffers, ThreadNotSafe
from .threads import Threads
from .turn import Turn
from .verdict import ThreadVerdict

__all__ = [
    "AgentUnsupported",
    "InterruptInTool",
    "NoOpenTurn",
    "NothingToResume",
    "SafeCheckpointer",
    "StateDiffers",
    "SyncThreads",
    "SyncTurn",
    "ThreadNotSafe",
    "ThreadVerdict",
    "Threads",
    "Turn",
    "current_call",
    "promised",
]
