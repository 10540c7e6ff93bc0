"""The script that the `scripted` provider plays: its form, and errors that say what, where, why and what next."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from ...domain import canonical
from ...domain.events.event import ToolName
from ...domain.events.model import Usage
from ...ports.model_step import Block, CallBlock, StepFinished, TextBlock, ThinkingBlock
from ...ports.provider_failures import ProviderUnusable

SCRIPT_BYTES_MAX: Final = 16 * 1024 * 1024
_MISTAKES_SHOWN_MAX: Final = 5
_EXAMPLE: Final = (
    'A script looks like {"steps": [{"text": "I write it.", "calls": [{"tool": "write_file", "args": '
    '{"path": "a.txt", "content": "hi"}}]}, {"text": "Done."}]}.'
)


class ScriptError(ProviderUnusable):
    """The script cannot be played.

    Attributes:
        path: the script.
    """

    def __init__(self, path: Path, detail: str, next_step: str) -> None:
        super().__init__(f"The script {path} {detail}.", next_step)
        self.path = path


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ScriptedCall(_Part):
    """A tool call: strict arguments, or the raw text of arguments (to play a model that sends bad ones)."""

    tool: ToolName
    args: JsonValue = {}
    args_text: str | None = None
    id: str | None = None

    @model_validator(mode="after")
    def _one_kind_of_arguments(self) -> Self:
        if self.args_text is not None and "args" in self.model_fields_set:
            raise ValueError("give args or args_text, not both")
        return self


class ScriptedStep(_Part):
    """One model step; `delay_seconds` passes before its answer begins, and `tokens` is what it says to have used."""

    text: str = ""
    thinking: str | None = None
    calls: tuple[ScriptedCall, ...] = ()
    finish: Annotated[str, Field(min_length=1)] | None = None
    delay_seconds: Annotated[float, Field(ge=0, le=3600)] = 0
    tokens: Annotated[int, Field(ge=0)] | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.text and not self.calls:
            raise ValueError("a step needs text or calls: an empty one leaves nothing to count it by")
        return self

    def finished(self, number: int, model: str) -> StepFinished:
        """The whole step; ids that the script does not give follow from its number (from 1)."""
        blocks: list[Block] = []
        if self.thinking:
            blocks.append(ThinkingBlock(self.thinking))
        if self.text:
            blocks.append(TextBlock(self.text))
        for place, call in enumerate(self.calls, start=1):
            text = canonical.encode(call.args).decode() if call.args_text is None else call.args_text
            blocks.append(CallBlock(f"call_{number}_{place}" if call.id is None else call.id, call.tool, text))
        return StepFinished(
            blocks=tuple(blocks),
            finish_reason=self.finish or ("tool_calls" if self.calls else "stop"),
            model=model,
            provider_response_id=f"scripted_{number}",
            usage=None if self.tokens is None else Usage(output_tokens=self.tokens),
        )


class Script(_Part):
    """A conversation's model steps, in order, over all its turns and continuations.

    Attributes:
        calls_log: one line per request is appended here; relative to the script's folder.
        model: the name of the model that is played.
        window_tokens: how much history it is to take; unknown when absent.
        fail_first: so many requests of this process are refused with 503 first.
        drop_after: the stream of this step (from 1) always ends without a finish.
        repeat_not_executed: a step whose calls were all answered as not executed is played again, as a model would.
    """

    steps: tuple[ScriptedStep, ...]
    calls_log: Annotated[str, Field(min_length=1)] | None = None
    model: Annotated[str, Field(min_length=1, max_length=200)] = "scripted"
    window_tokens: Annotated[int, Field(ge=1)] | None = None
    fail_first: Annotated[int, Field(ge=0, le=100)] = 0
    drop_after: Annotated[int, Field(ge=1)] | None = None
    repeat_not_executed: bool = False


def load_script(path: Path) -> Script:
    """Read a script, with `calls_log` made absolute.

    Raises:
        ScriptError: it cannot be read, is not strict JSON, or does not have the form of a script.
    """
    try:
        with path.open("rb") as file:
            data = file.read(SCRIPT_BYTES_MAX + 1)
    except OSError as error:
        raise ScriptError(
            path, f"cannot be read: {error.strerror or error}", "Check the path given with --script."
        ) from error
    if len(data) > SCRIPT_BYTES_MAX:
        raise ScriptError(path, f"has more than {SCRIPT_BYTES_MAX} bytes", "Split it.")
    try:
        value = canonical.decode(data)
    except canonical.CanonicalError as error:
        raise ScriptError(path, f"is not strict JSON: {error}", _EXAMPLE) from error
    try:
        script = Script.model_validate_json(canonical.encode(value))
    except ValidationError as error:
        raise ScriptError(path, f"is not a script: {_mistakes(error)}", _EXAMPLE) from error
    if script.calls_log is None:
        return script
    log = path.absolute().parent / script.calls_log
    if not log.parent.is_dir():
        raise ScriptError(
            path, f"has a calls_log in {log.parent}, which is not a folder", "Make the folder, or name another."
        )
    return script.model_copy(update={"calls_log": str(log)})


def _mistakes(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_input=False)
    shown = "; ".join(f"{_place(mistake['loc'])}: {_reason(mistake['msg'])}" for mistake in found[:_MISTAKES_SHOWN_MAX])
    rest = len(found) - _MISTAKES_SHOWN_MAX
    return f"{shown}; and {rest} more" if rest > 0 else shown


def _reason(message: str) -> str:
    text = message.removeprefix("Value error, ").replace(
        "Extra inputs are not permitted", "this name is not known here"
    )
    return text[:1].lower() + text[1:]


def _place(loc: tuple[int | str, ...]) -> str:
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in loc)
    return place.removeprefix(".") or "the whole file"
