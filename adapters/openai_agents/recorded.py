"""An agent of the OpenAI Agents SDK whose run is recorded. SPEC section 17."""

from __future__ import annotations

from typing import Any

from agents import Agent, AgentHooks, Model, ModelResponse, RunContextWrapper
from agents.models import get_default_model_settings
from agents.models.multi_provider import MultiProvider

from ..embedding.recorded import RecordedRun
from ..embedding.unrecordable import AgentUnsupported, check_promised
from .model import RecordedModel
from .tools import guarded


def recorded(agent: Agent[Any], run: RecordedRun) -> Agent[Any]:
    """The same agent for one recorded run.

        async with session.record("Pay the bill.") as run:
            await Runner.run(recorded(agent, run), run.history("openai-responses"))

    What the model answers is committed before anything of it is carried out, and each call goes through T1 and T2. The
    input is the run's history, on a resume as well; a `Session` of the SDK is not given.

    Args:
        agent: with function tools, each `promised` to the runtime; its model is given by the agent.
        run: open.

    Raises:
        AgentUnsupported: it has tools that run elsewhere, or that the runtime was not opened with, or MCP servers.
            Handoffs are refused when it runs.
    """
    if agent.mcp_servers:
        raise AgentUnsupported("an MCP server of the agent", "give its tools as function tools")
    tools = [guarded(tool, run) for tool in agent.tools]
    check_promised((tool.name for tool in tools), run.tool_names)
    given = agent.model
    model = RecordedModel(given if isinstance(given, Model) else MultiProvider().get_model(given), run)
    settings = agent.model_settings
    if not isinstance(given, Model):
        settings = get_default_model_settings(given).resolve(settings)
    return agent.clone(
        model=model,
        model_settings=settings,
        tools=[*tools],
        hooks=_Watched(agent.hooks or AgentHooks(), model),
    )


class _Watched(AgentHooks[Any]):
    """The agent's hooks, and a look whether each answer is a recorded one: a run's configuration can name a model."""

    def __init__(self, hooks: AgentHooks[Any], model: RecordedModel) -> None:
        self._hooks = hooks
        self._model = model

    def __getattribute__(self, name: str) -> Any:
        """All but `on_llm_end` are the agent's own."""
        if name.startswith("on_") and name != "on_llm_end":
            return getattr(self._hooks, name)
        return super().__getattribute__(name)

    async def on_llm_end(self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse) -> None:
        """Refuse an answer that is not recorded, before anything of it is carried out."""
        if not self._model.is_recorded(response):
            raise AgentUnsupported("an answer of another model", "name the model in the agent, not in `RunConfig`")
        await self._hooks.on_llm_end(context, agent, response)
