"""Items of OpenAI's responses API: a list of them, a request with its response, recorded requests, or one a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...ports.history_format import FindingCode, Place
from .contents import Members, content_of, members_of, text_in
from .document_places import Document, placed_objects
from .exchanges import exchanges_in
from .lines import Reading
from .parts import Part, Setting
from .record_links import Records
from .responses_items import Steps, is_instruction, parts_of_item
from .sniffing import first_objects
from .transcript import TranscriptFormat

_ITEMS = frozenset({"function_call", "function_call_output", "reasoning", "custom_tool_call", "item_reference"})
_TEXTS = frozenset({"input_text", "output_text"})


class OpenAiResponses(TranscriptFormat):
    """The input and output items of OpenAI's responses API."""

    name = "openai-responses"
    provider = "openai"
    wrappers = frozenset({"input", "output", "interactions"})

    def recognises(self, data: bytes) -> bool:
        """See `HistoryFormat`."""
        return any(
            text_in(found, "type") in _ITEMS or found.get("object") == "response" or _is_typed_message(found)
            for found in first_objects(data)
        )

    def items_of(self, document: Document, setting: Setting, reading: Reading) -> Iterator[tuple[Place, Members]]:
        """See `TranscriptFormat`."""
        exchanges = exchanges_in(document, ("input", "items"), reading)
        if not exchanges:
            reading.tell(FindingCode.UNKNOWN_SHAPE, document.place_of(document.value), "no list of items")
        for exchange in exchanges:
            setting.model = text_in(exchange.request, "model") or setting.model
            setting.system = text_in(exchange.request, "instructions") or setting.system
            yield from placed_objects(document, exchange.items, "input", reading)
            output = exchange.response.get("output")
            if isinstance(output, list):
                yield from placed_objects(document, output, "output", reading)

    def parts(self, items: Iterable[tuple[Place, Members]], setting: Setting, reading: Reading) -> Iterator[Part]:
        """See `TranscriptFormat`."""
        steps, records, spoken = Steps(), Records(), False
        for place, item in items:
            here = place._replace(source_id=text_in(item, "id"))
            if not is_instruction(item):
                spoken = True
                if (wrong := records.take(here, item, reading)) is not None:
                    yield from wrong
                    yield from parts_of_item(item, here, steps, None, reading)
            elif spoken:
                reading.tell_once(FindingCode.NOT_CONVERSATION, here, "instructions in mid-conversation")
            elif (said := content_of(item.get("content"), here, reading)) is not None:
                setting.system += said.text


def _is_typed_message(item: Members) -> bool:
    content = item.get("content")
    blocks = content if isinstance(content, list) else []
    return item.get("role") is not None and any(text_in(members_of(one), "type") in _TEXTS for one in blocks)
