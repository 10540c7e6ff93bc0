"""What is recorded of a tool's answer: the result as strict JSON within bounds, or the truth about why not.

SPEC section 8, R3.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from . import canonical
from .events.event import Json
from .events.tool import Effect
from .reasons import ResponseCode
from .sentences import SentenceId, render

RESULT_BYTES_MAX = 512 * 1024
"""Bound on a stored result, in canonical bytes."""
DETAIL_CHARS_MAX = 2_000
"""Bound on what a sentence quotes of an error message."""


@dataclass(frozen=True, slots=True)
class PreparedResult:
    """The part of a response that says how the call went.

    Attributes:
        result: strict JSON of at most `RESULT_BYTES_MAX` canonical bytes, unless another bound was given.
        original_length: bytes of the whole result when `result` is only its beginning: of the text in UTF-8 where the
            result was a text, else of its canonical form.
        original_digest: SHA-256 of those bytes.
    """

    result: Json
    is_error: bool
    effect: Effect
    code: ResponseCode | None = None
    original_length: int | None = None
    original_digest: str | None = None


def prepare_result(value: object, *, effect: Effect = Effect.DONE, bytes_max: int = RESULT_BYTES_MAX) -> PreparedResult:
    """Prepare what a tool returned.

    A longer text is cut on a code-point border, so that what is kept is its beginning; of any other longer value the
    beginning of its canonical form is kept, as text. Both say `result_too_large` and are no errors. What is not strict
    JSON is an error result that says that the effect did happen.

    Args:
        value: anything; only dict, list, str, int, float, bool and None are strict JSON, and no subclass of them.
        effect: `done`, or `none` for a tool that has no effect.
        bytes_max: bound in canonical bytes, at least 2.
    """
    try:
        encoded = canonical.encode(value)
    except canonical.CanonicalError as error:
        return unkept_result(str(error), effect=effect)
    if len(encoded) <= bytes_max:
        return PreparedResult(canonical.decode_canonical(encoded), is_error=False, effect=effect)
    text = value if isinstance(value, str) else encoded.decode()
    whole = text.encode()
    return PreparedResult(
        cut_text(text, bytes_max),
        is_error=False,
        effect=effect,
        code=ResponseCode.RESULT_TOO_LARGE,
        original_length=len(whole),
        original_digest=canonical.sha256_hex(whole),
    )


def as_stored(prepared: PreparedResult) -> PreparedResult:
    """The same where somebody else prepared it: its result as it is read from the store, and nobody else's.

    Raises:
        CanonicalError: the result is no strict JSON.
    """
    return replace(prepared, result=canonical.decode_canonical(canonical.encode(prepared.result)))


def unkept_result(detail: str, *, effect: Effect = Effect.DONE) -> PreparedResult:
    """Prepare the answer for a result that has no strict JSON form, or whose formatting failed or did not end."""
    said = render(SentenceId.RESULT_NOT_STRICT_JSON, {"detail": sayable(detail)})
    return PreparedResult(said, is_error=True, effect=effect, code=ResponseCode.RESULT_NOT_STRICT_JSON)


def oversized_result(*, effect: Effect = Effect.DONE) -> PreparedResult:
    """Prepare the answer for a result so large that not even its beginning could be had."""
    facts: dict[str, Json] = {"size": f"more than {RESULT_BYTES_MAX}", "limit": RESULT_BYTES_MAX}
    said = render(SentenceId.RESULT_TOO_LARGE, facts)
    return PreparedResult(said, is_error=True, effect=effect, code=ResponseCode.RESULT_TOO_LARGE)


def raised(error_class: str, message: str, *, effect: Effect) -> PreparedResult:
    """Prepare the answer for an exception; its text depends on class and message alone, never on a stack (field report
    r3-049).
    """
    said = SentenceId.TOOL_RAISED if effect is Effect.UNKNOWN else SentenceId.TOOL_RAISED_WITHOUT_EFFECT
    detail = sayable(f"{error_class}: {message}" if message else error_class)
    return PreparedResult(render(said, {"detail": detail}), is_error=True, effect=effect, code=ResponseCode.TOOL_RAISED)


def refused(message: str) -> PreparedResult:
    """Prepare the answer for a typed refusal before any effect. F7."""
    said = render(SentenceId.REFUSED_WITHOUT_EFFECT, {"detail": sayable(message)})
    return PreparedResult(said, is_error=True, effect=Effect.NONE, code=ResponseCode.REFUSED_WITHOUT_EFFECT)


def of_this_delivery_alone(prepared: PreparedResult) -> PreparedResult:
    """Prepare the answer where one more delivery of a key did nothing, and an earlier one may have had its effect."""
    said = str(prepared.result)
    detail = sayable(f"an earlier delivery with the same key may have had the effect; this one: {said}")
    shown = render(SentenceId.TOOL_RAISED, {"detail": detail})
    return PreparedResult(shown, is_error=True, effect=Effect.UNKNOWN, code=prepared.code)


def with_note(prepared: PreparedResult, note: str) -> PreparedResult:
    """Prepare the answer with a note of the host beside it, within the bound of a result."""
    both = prepare_result({"note": note, "result": prepared.result})
    return replace(
        prepared,
        result=both.result,
        code=prepared.code or both.code,
        original_length=both.original_length or prepared.original_length,
        original_digest=both.original_digest or prepared.original_digest,
    )


def timed_out(seconds: float, *, effect: Effect) -> PreparedResult:
    """Prepare the answer for a tool that did not finish within its time."""
    said = SentenceId.TOOL_TIMED_OUT if effect is Effect.UNKNOWN else SentenceId.TOOL_TIMED_OUT_WITHOUT_EFFECT
    shown = render(said, {"seconds": f"{seconds:g}"})
    return PreparedResult(shown, is_error=True, effect=effect, code=ResponseCode.TOOL_TIMED_OUT)


def cut_text(text: str, bytes_max: int) -> str:
    """Return the longest beginning of a text, on a code-point border, whose canonical form has at most `bytes_max`
    bytes.

    Args:
        text: without lone surrogates.
        bytes_max: at least 2, for the quotation marks.
    """
    low, high = 0, min(len(text), bytes_max)
    while low < high:
        middle = (low + high + 1) // 2
        if len(canonical.encode(text[:middle])) <= bytes_max:
            low = middle
        else:
            high = middle - 1
    return text[:low]


def sayable(detail: str) -> str:
    """Cut a foreign message to `DETAIL_CHARS_MAX`, and make it storable: what has no UTF-8 form becomes escapes."""
    shown = detail[:DETAIL_CHARS_MAX].encode("utf-8", "backslashreplace").decode()
    return shown if len(detail) <= DETAIL_CHARS_MAX else f"{shown}…"
