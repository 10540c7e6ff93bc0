"""Whether an idempotency key still is known to mean the same delivery. SPEC section 8.

A key's age goes by the machine's clock, which people and networks set. A time before the one at which the key was known
to be in use proves that the clock was set back, so that nobody knows how old the key is.
"""

from __future__ import annotations

from ..events.event import Timestamp


def why_invalid(since: Timestamp, until: Timestamp | None, now: Timestamp) -> str | None:
    """Why a key may not be delivered again, None where it may.

    Args:
        since: when it was known to be in use.
        until: up to when it means the same delivery; None where that has no bound.
        now: the present time.
    """
    if until is None:
        return None
    if now > until:
        return f"the key was valid until {until}"
    if now < since:
        return f"the clock stands before {since}, when the key was in use: how old it is cannot be known"
    return None
