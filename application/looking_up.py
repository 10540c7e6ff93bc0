"""Asks a reconciler, which may be a third party's code: whatever it does besides answering, nothing was learned.

One that does not answer in its time is left to its thread, and what it says later is not heard.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import replace
from functools import partial
from typing import Any, Final

from ..domain import canonical
from ..domain.events.tool import Effect, Observation
from ..domain.identifiers import parse_id
from ..domain.reasons import ResponseCode
from ..domain.tool_results import RESULT_BYTES_MAX, PreparedResult, as_stored, sayable
from ..ports.reconciler import AskedOperation, NotSeenNow, Observed, Reconciler
from .abandonable_call import AbandonableCall, Raised, Returned, joined
from .reconciliation import Left, LeftAlone
from .stopping import Stopping

TIDY_SECONDS_MAX: Final = 10.0
"""How long it is waited for to remove what a dead call left; it may finish later, since it touches no effect."""
_DIGEST: Final = re.compile("[0-9a-f]{64}")


async def looked_up_within(
    seconds_max: float, reconciler: Reconciler, asked: AskedOperation, stopping: Stopping
) -> Observed | LeftAlone:
    """What a reconciler sees, unless it takes too long, or somebody stops before it has seen it.

    Args:
        seconds_max: more than 0.
    """
    looking = AbandonableCall(partial(looked_up, reconciler, asked), "safepoint observe")
    if not looking.start():
        return LeftAlone(Left.RECONCILER_FAILED, "there is no room for another thread")
    scope = stopping.at_once(seconds_max)
    try:
        with scope:
            await looking.finished()
    finally:
        stopping.done(scope)
        looking.give_up()
    match looking.ended:
        case Returned(value=value):
            found: Observed | LeftAlone = value
            return found
        case Raised(error=error):  # not even its failure could be told: its name raises
            return LeftAlone(Left.RECONCILER_FAILED, f"a reconciler raised {type(error).__name__}")
        case None if stopping.is_set():
            return LeftAlone(Left.STOPPED)
        case _:
            detail = f"{_name_of(reconciler)} did not answer within {seconds_max:g} s"
            return LeftAlone(Left.RECONCILER_TIMED_OUT, detail)


def looked_up(reconciler: Reconciler, asked: AskedOperation) -> Observed | LeftAlone:
    """What a reconciler sees, or that it could not look."""
    try:
        observed: object = reconciler.observe(asked)
        unusable = _unusable(reconciler, observed)
    except NotSeenNow as error:
        return LeftAlone(Left.NOT_SEEN, _words_of(error))
    except BaseException as error:  # noqa: BLE001 (no interrupt arrives in a thread: a `SystemExit` is its failure, too)
        return LeftAlone(Left.RECONCILER_FAILED, f"{_name_of(reconciler)} raised {type(error).__name__}")
    if unusable is None and isinstance(observed, Observed):
        return observed if observed.result is None else replace(observed, result=as_stored(observed.result))
    return LeftAlone(Left.RECONCILER_FAILED, f"{_name_of(reconciler)} answered {unusable}, which settles nothing")


def tidied(reconciler: Reconciler, asked: AskedOperation) -> None:
    """Let it remove what the dead call left; what could not be removed stays. Not for an event loop."""
    with contextlib.suppress(RuntimeError):  # there is no room for another thread
        joined(partial(reconciler.tidy, asked), TIDY_SECONDS_MAX)


def _unusable(reconciler: Any, observed: object) -> str | None:
    """Why an answer could not even be written down, None where it can; others may not keep the types that they say."""
    if not isinstance(observed, Observed):
        return f"a {type(observed).__name__}"
    said: Any = observed
    parse_id(reconciler.reconciler_id, "reconciler id")
    if type(reconciler.version) is not int or reconciler.version < 1:
        return "with a version that is none"
    if not isinstance(said.observation, Observation) or not isinstance(said.detail, str):
        return "something that is no observation"
    if type(said.ends_never) is not bool:
        return "something that is no observation"
    if said.waits_for is not None:
        parse_id(said.waits_for, "session id")
    digest = said.evidence_digest
    if digest is not None and not (isinstance(digest, str) and _DIGEST.fullmatch(digest)):
        return "with a digest that is none"
    return None if said.result is None else _unusable_result(said.result)


def _unusable_result(result: object) -> str | None:
    prepared: Any = result
    if not isinstance(result, PreparedResult) or type(prepared.is_error) is not bool:
        return "with a result that was not prepared"
    if not isinstance(prepared.effect, Effect) or not isinstance(prepared.code, ResponseCode | None):
        return "with a result that was not prepared"
    try:
        size_bytes = len(canonical.encode(prepared.result))
    except canonical.CanonicalError:
        return "with a result that is no strict JSON"
    return "with a result that is too large" if size_bytes > RESULT_BYTES_MAX else None


def _name_of(reconciler: Reconciler) -> str:
    try:
        return sayable(str(reconciler.reconciler_id))
    except Exception:  # noqa: BLE001 (not even its name can be had)
        return "a reconciler"


def _words_of(error: NotSeenNow) -> str:
    try:
        return sayable(str(error))
    except Exception:  # noqa: BLE001 (an exception of others may not even be able to say what it is)
        return "it did not say why"
