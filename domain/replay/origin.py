"""Opaque blobs, signatures and provider options, go back to whoever made them, or nowhere. SPEC F10."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..events.run import ExecutionProfile
from .items import CallItem, Item, TextItem, ThinkingItem


class Origin(NamedTuple):
    """Who made the model's part of a run; only the very same may be given its opaque blobs back."""

    provider: str
    model: str
    account: str | None


def origin_of(profile: ExecutionProfile) -> Origin:
    """The origin that a run's profile names."""
    return Origin(profile.provider, profile.model, profile.account)


def without_blobs(items: Iterable[Item]) -> list[Item]:
    """The items as another provider, model or account may see them.

    Thinking that is signed or has options goes as a whole, and so does empty text that only carried options; the
    provider's own spelling of arguments goes because only that provider needs it.
    """
    return [shown for item in items if (shown := _without_blob(item)) is not None]


def _without_blob(item: Item) -> Item | None:
    if type(item) is ThinkingItem:
        return item if item.signature is None and item.provider_options is None else None
    if type(item) is TextItem and item.provider_options is not None:
        return item._replace(provider_options=None) if item.text else None
    if type(item) is CallItem and (item.provider_options is not None or item.provider_text is not None):
        return item._replace(provider_options=None, provider_text=None)
    return item
