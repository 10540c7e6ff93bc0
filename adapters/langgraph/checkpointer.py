"""Checkpointers of LangGraph that let no thread go on which is not safe. SPEC sections 13 and 17."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)

from .blocking import SyncThreads
from .refusals import ThreadNotSafe
from .threads import Threads
from .verdict import ThreadVerdict


class SafeCheckpointer(BaseCheckpointSaver[Any]):
    """Stands in front of a checkpointer, and keeps its format: the same file can be used without it.

    A graph that is invoked outside of a turn, on a thread with an effect that is not settled, is refused before any
    node runs. Reading states is never refused.

    Args:
        saver: keeps the checkpoints, such as an `AsyncSqliteSaver`, or a `SqliteSaver` for `SyncThreads`.
        threads: know what is recorded.
    """

    def __init__(self, saver: BaseCheckpointSaver[Any], threads: Threads | SyncThreads) -> None:
        super().__init__(serde=saver.serde)
        self._saver = saver
        self._threads = threads

    async def averdict(self, thread_id: str) -> ThreadVerdict:
        """Say whether a thread is safe to go on; see `Threads.verdict`.

        Raises:
            RuntimeError: its threads are those of a `SyncRuntime`: `invoke` and `stream` run such a graph.
        """
        if isinstance(self._threads, SyncThreads):
            raise RuntimeError("SyncThreads are asked by `verdict`, and their graphs run by `invoke` or `stream`")
        return await self._threads.verdict(thread_id)

    def verdict(self, thread_id: str) -> ThreadVerdict:
        """Say whether a thread is safe to go on; see `SyncThreads.verdict`.

        Raises:
            RuntimeError: its threads are those of a `Runtime`: `ainvoke` and `astream` run such a graph.
        """
        if isinstance(self._threads, Threads):
            raise RuntimeError("Threads are asked by `averdict`, and their graphs run by `ainvoke` or `astream`")
        return self._threads.verdict(thread_id)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As the saver has it.

        Raises:
            ThreadNotSafe: a graph is about to run on it, outside of a turn, and it must not.
            RuntimeError: as `averdict`.
        """
        if (thread_id := self._about_to_run(config)) is not None:
            _require_safe(await self.averdict(thread_id))
        return await self._saver.aget_tuple(config)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As the saver has it.

        Raises:
            ThreadNotSafe: a graph is about to run on it, outside of a turn, and it must not.
            RuntimeError: as `verdict`.
        """
        if (thread_id := self._about_to_run(config)) is not None:
            _require_safe(self.verdict(thread_id))
        return self._saver.get_tuple(config)

    def _about_to_run(self, config: RunnableConfig) -> str | None:
        """The thread that a graph's loop asks for outside of a turn; whoever only reads brings no keys of the loop."""
        named = config.get("configurable", {})
        thread_id = str(named.get("thread_id", ""))
        asks = any(key.startswith("__pregel_") for key in named)
        return thread_id if asks and not self._threads.is_open(thread_id) else None

    # ---- as the saver does it ---------------------------------------------------------------------------------------

    @property
    def config_specs(self) -> list[Any]:
        """See the saver."""
        return self._saver.config_specs

    def get_next_version(self, current: Any, channel: None) -> Any:
        """See the saver."""
        return self._saver.get_next_version(current, channel)

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> BaseCheckpointSaver[Any]:
        """See the saver."""
        return type(self)(self._saver.with_allowlist(extra_allowlist), self._threads)

    def alist(self, config: RunnableConfig | None, **chosen: Any) -> AsyncIterator[CheckpointTuple]:
        """See the saver."""
        return self._saver.alist(config, **chosen)

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

    async def aget_delta_channel_history(self, *, config: RunnableConfig, channels: Sequence[str]) -> Mapping[str, Any]:
        """See the saver."""
        return await self._saver.aget_delta_channel_history(config=config, channels=channels)

    def list(self, config: RunnableConfig | None, **chosen: Any) -> Iterator[CheckpointTuple]:
        """See the saver."""
        return self._saver.list(config, **chosen)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """See the saver."""
        return self._saver.put(config, checkpoint, metadata, new_versions)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """See the saver."""
        self._saver.put_writes(config, writes, task_id, task_path)

    def delete_thread(self, thread_id: str) -> None:
        """See the saver; what is recorded of the thread stays."""
        self._saver.delete_thread(thread_id)

    def get_delta_channel_history(self, *, config: RunnableConfig, channels: Sequence[str]) -> Mapping[str, Any]:
        """See the saver."""
        return self._saver.get_delta_channel_history(config=config, channels=channels)


def _require_safe(verdict: ThreadVerdict) -> None:
    if not verdict.safe:
        raise ThreadNotSafe(verdict)
