"""Files of requests and responses: which conversation they record.

A request repeats what came before it, so the last one with its response is the whole, unless the provider keeps the
conversation: then each request brings only what is new.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from ...ports.history_format import FindingCode
from .contents import Members, members_of
from .document_places import Document, placed_objects
from .exact_json import key_of
from .lines import Reading

_HELD = ("conversation", "previous_response_id")


class Exchange(NamedTuple):
    """One request with what it sends, and its response where the file has one."""

    request: Members
    items: list[JsonValue]
    response: Members


def exchanges_in(document: Document, keys: Sequence[str], reading: Reading) -> list[Exchange]:
    """The exchanges that make up the last conversation in a document; those of others are told and left out.

    Args:
        document: an array of messages; an object that has them under one of `keys`; or requests with responses.
        keys: members under which a request has what it sends, first match first.
        reading: is told.
    """
    kept: list[Exchange] = []
    for value in _candidates(document, reading):
        exchange = _exchange(value, keys)
        if exchange is None:
            if value:
                reading.tell_once(FindingCode.OTHER_CONVERSATION, document.place_of(value), "no request of this format")
            continue
        if kept and not _goes_on(kept, exchange):
            first = document.place_of(kept[0].items[0] if kept[0].items else value)
            reading.tell(FindingCode.OTHER_CONVERSATION, first, f"{len(kept)} requests of another conversation")
            kept = []
        kept = [*kept, exchange] if _is_held(exchange) else [exchange]
    return kept


def _candidates(document: Document, reading: Reading) -> Iterator[JsonValue]:
    interactions = members_of(document.value).get("interactions")
    if not isinstance(interactions, list):
        yield document.value
        return
    for _, interaction in placed_objects(document, interactions, "interactions", reading):
        yield interaction


def _exchange(value: JsonValue, keys: Sequence[str]) -> Exchange | None:
    if isinstance(value, list):
        return Exchange({}, value, {})
    members = members_of(value)
    request = members_of(members.get("request")) if "request" in members else members
    response = members_of(members.get("response")) if "response" in members else _own_response(members, keys)
    for key in keys:
        items = request.get(key)
        if isinstance(items, list):
            return Exchange(request, items, response)
        if isinstance(items, str):
            return Exchange(request, [{"role": "user", "content": items}], response)
    return Exchange(request, [], response) if _speaks(response) else None


def _own_response(members: Members, keys: Sequence[str]) -> Members:
    """A document that is a response itself."""
    return members if _speaks(members) and not any(key in members for key in keys) else {}


def _speaks(response: Members) -> bool:
    return any(isinstance(response.get(key), list) for key in ("choices", "output", "content"))


def _is_held(exchange: Exchange) -> bool:
    return any(exchange.request.get(key) is not None for key in _HELD)


def _goes_on(kept: Sequence[Exchange], exchange: Exchange) -> bool:
    last = kept[-1]
    if _is_held(exchange):
        same = exchange.request.get("conversation") == last.request.get("conversation")
        return same and exchange.request.get("previous_response_id") in {None, last.response.get("id")}
    repeated = exchange.items[: len(last.items)]
    return repeated == last.items and key_of(repeated) == key_of(last.items)
