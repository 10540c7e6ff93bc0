"""Which calls of one model step wait for which: SPEC section 8.

Calls that are not `replay_safe` and name the same resource key run in call order; one that names none waits for all
such calls before it, and all such after it wait for it. `replay_safe` calls wait for nobody.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ports.tool_catalog import BoundCall


def predecessors(calls: Sequence[BoundCall | None]) -> tuple[tuple[int, ...], ...]:
    """For each call of a step, the positions of the calls that it must wait for.

    Args:
        calls: in call order; None for a call that was refused.
    """
    waits: list[tuple[int, ...]] = []
    last_by_key: dict[str, int] = {}
    last_keyless: int | None = None
    for position, call in enumerate(calls):
        if call is None or not call.needs_permission:
            waits.append(())
        elif call.resource_key is None:
            before = last_by_key.values() or (() if last_keyless is None else (last_keyless,))
            waits.append(tuple(sorted(before)))
            last_keyless, last_by_key = position, {}
        else:
            same = last_by_key.get(call.resource_key)
            waits.append(tuple(p for p in (same if same is not None else last_keyless,) if p is not None))
            last_by_key[call.resource_key] = position
    return tuple(waits)
