"""Lifecycle events in the standard library's logging. SPEC section 18."""

from __future__ import annotations

import json
import logging

from ...ports.lifecycle_sink import LifecycleEvent, LifecycleKind, LifecycleSink

_WARNINGS = frozenset({LifecycleKind.PLAN_PARKED, LifecycleKind.EXECUTION_FAILED})

logging.getLogger("safepoint").addHandler(
    logging.NullHandler()
)  # a program that set no logging up reads nothing of ours


class LoggingSink(LifecycleSink):
    """Writes one line per event: parked and failed as warnings, all else as information.

    Args:
        logger: by default `safepoint.lifecycle`; handlers and level are the embedding program's.
    """

    def __init__(self, logger: logging.Logger | None = None) -> None:
        self._logger = logging.getLogger("safepoint.lifecycle") if logger is None else logger

    def record(self, event: LifecycleEvent) -> None:
        """Write the event's identities, codes and error class."""
        level = logging.WARNING if event.kind in _WARNINGS else logging.INFO
        if not self._logger.isEnabledFor(level):
            return  # a repair of many runs tells of each
        facts = {
            "session": event.session_id,
            "run": event.run_id,
            "operation": event.operation_id,
            "claim": event.claim_id,
            "codes": ",".join(event.codes) or None,
            "error": event.error_class,
        }
        shown = " ".join(f"{name}={_one_word(value)}" for name, value in facts.items() if value is not None)
        self._logger.log(level, "%s %s", event.kind.value, shown, extra={"safepoint": event})


def _one_word(value: str) -> str:
    """An id may hold spaces; in quotes it is one word all the same, and names no other fact."""
    return value if value.isprintable() and not set(value) & {" ", "=", '"'} else json.dumps(value)
