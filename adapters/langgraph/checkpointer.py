"""A checkpointer of LangGraph that lets no thread go on which is not safe. SPEC sections 13 and 17."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)

from .refusals import ThreadNotSafe
from .threads import Threads
from .verdict import ThreadVerdict


class SafeCheckpointer(BaseCheckpointSaver[Any]):
    """Stands in front of a checkpointer, and keeps its format: the same file can be used without it.

    A graph that is invoked outside of a turn, on a thread with an effect that is not settled, is refused before any
    node runs. Reading states (`aget_state`) is never refused.

    Args:
        saver: keeps the checkpoints, such as an `AsyncSqliteSaver`.
        threads: know what is recorded.
    """

    def __init__(self, saver: BaseCheckpointSaver[Any], threads: Threads) -> None:
        super().__init__(serde=saver.serde)
        self._saver = saver
        self._threads = threads

    async def verdict(self, thread_id: str) -> ThreadVerdict:
        """Say whether a thread is safe to go on; see `Threads.verdict`."""
        return await self._threads.verdict(thread_id)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As the saver has it.

        Raises:
            ThreadNotSafe: a graph is about to run on it, outside of a turn, and it must not.
        """
        named = config.get("configurable", {})
        thread_id = str(named.get("thread_id", ""))
        if _is_of_a_run(named) and not self._threads.is_open(thread_id):
            verdict = await self._threads.verdict(thread_id)
            if not verdict.safe:
                raise ThreadNotSafe(verdict)
        return await self._saver.aget_tuple(config)

    # ---- as the saver does it ---------------------------------------------------------------------------------------

    @property
    def config_specs(self) -> list[Any]:
        """See the saver."""
        return self._saver.config_specs

    def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 (the saver's word)
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """See the saver."""
        return self._saver.alist(config, filter=filter, before=before, limit=limit)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """See the saver."""
        return await self._saver.aput(config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """See the saver."""
        await self._saver.aput_writes(config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """See the saver; what is recorded of the thread stays."""
        await self._saver.adelete_thread(thread_id)

    async def aget_delta_channel_history(self, *, config: RunnableConfig, channels: Sequence[str]) -> Any:
        """See the saver."""
        return await self._saver.aget_delta_channel_history(config=config, channels=channels)

    def get_next_version(self, current: Any, channel: None) -> Any:
        """See the saver."""
        return self._saver.get_next_version(current, channel)

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> BaseCheckpointSaver[Any]:
        """See the saver."""
        return SafeCheckpointer(self._saver.with_allowlist(extra_allowlist), self._threads)

    # ---- without an event loop --------------------------------------------------------------------------------------

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """See the saver, for reading.

        Raises:
            RuntimeError: a graph is about to run on it: `ainvoke` and `astream` do.
        """
        if _is_of_a_run(config.get("configurable", {})):
            raise RuntimeError("a graph with this checkpointer is run by `ainvoke` or `astream`")
        return self._saver.get_tuple(config)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 (the saver's word)
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """See the saver."""
        return self._saver.list(config, filter=filter, before=before, limit=limit)


def _is_of_a_run(named: dict[str, Any]) -> bool:
    """True where a graph's loop asks, which brings what is its own; whoever only reads a state does not."""
    return any(key.startswith("__pregel_") for key in named)
