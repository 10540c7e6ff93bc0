"""Take a conversation in one provider's format, and give it to another provider in its own.

    python examples/provider_histories.py FOLDER

Nothing is written into the folder, and nobody is asked. The program prints what each provider would be sent.
"""

from __future__ import annotations

from typing import Any

from safepoint.adapters.histories.anthropic import to_anthropic
from safepoint.adapters.histories.openai_chat import to_openai_chat
from safepoint.adapters.histories.openai_responses import to_openai_responses
from safepoint.adapters.interchange.provider_messages import replay_from
from safepoint.adapters.models.answers import step_from_anthropic

ANSWER: dict[str, Any] = {
    "id": "msg_1",
    "model": "some-model",
    "role": "assistant",
    "stop_reason": "tool_use",
    "content": [
        {"type": "thinking", "thinking": "The file first.", "signature": "c2lnbmVk"},
        {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {"path": "bill.txt"}},
    ],
}


def recorded() -> None:
    """What your own client brought is one finished step, held to the rules that a streamed answer is held to."""
    step = step_from_anthropic(ANSWER)
    print([type(block).__name__ for block in step.blocks], step.finish_reason)


def shown() -> None:
    """The same history in each format."""
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "10.00"}
    messages = [
        {"role": "user", "content": "Pay the bill."},
        {"role": "assistant", "content": ANSWER["content"]},
        {"role": "user", "content": [result]},
    ]
    replay = replay_from(messages, "anthropic")
    for made in (to_anthropic(replay), to_openai_chat(replay), to_openai_responses(replay)):
        print([message.get("role", message.get("type")) for message in made])


if __name__ == "__main__":
    recorded()
    shown()
