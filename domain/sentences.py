"""Every sentence that the host shows a model: by stable id, in versions that never change. SPEC R17 and section 12.

A released version's texts are part of that projection version and have golden tests: another wording is another one.
Responses and host messages keep the text that was made with them; responses that are computed name only the id.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from .events.event import Json

LISTED_MAX = 50
"""Values of a list that are written out in a sentence; of the rest only the number is told."""


class SentenceId(StrEnum):
    """What can be said to a model, whatever its wording."""

    # Responses to calls that were not dispatched
    NOT_EXECUTED_INTERRUPTED = "not_executed_interrupted"
    NOT_EXECUTED_CANCELLED = "not_executed_cancelled"
    NOT_EXECUTED_ENDED = "not_executed_ended"
    UNKNOWN_TOOL = "unknown_tool"
    ARGS_NOT_STRICT_JSON = "args_not_strict_json"
    ARGS_SCHEMA_MISMATCH = "args_schema_mismatch"
    ARGS_TOO_LARGE = "args_too_large"
    LOOP_LIMIT = "loop_limit"
    PERMISSION_DENIED = "permission_denied"
    PERMISSION_DENIED_BECAUSE = "permission_denied_because"
    PERMISSION_UNDECIDED = "permission_undecided"
    REPEAT_OF_UNSETTLED_EFFECT = "repeat_of_unsettled_effect"
    REPEAT_OF_SETTLED_EFFECT = "repeat_of_settled_effect"
    REPEAT_OF_EFFECT_SETTLED_MEANWHILE = "repeat_of_effect_settled_meanwhile"
    # Responses of calls that were dispatched
    REFUSED_WITHOUT_EFFECT = "refused_without_effect"
    RESULT_TOO_LARGE = "result_too_large"
    RESULT_TRUNCATED = "result_truncated"
    RESULT_NOT_STRICT_JSON = "result_not_strict_json"
    TOOL_RAISED = "tool_raised"
    TOOL_RAISED_WITHOUT_EFFECT = "tool_raised_without_effect"
    TOOL_TIMED_OUT = "tool_timed_out"
    TOOL_TIMED_OUT_WITHOUT_EFFECT = "tool_timed_out_without_effect"
    TOOL_CANCELLED = "tool_cancelled"
    TOOL_CANCELLED_WITHOUT_EFFECT = "tool_cancelled_without_effect"
    DELIVERED_WITH_EARLIER_KEY = "delivered_with_earlier_key"
    # Responses that recovery and people give
    FINALIZED = "finalized"
    ALREADY_SATISFIED = "already_satisfied"
    ATTESTED_COMPLETED = "attested_completed"
    ATTESTED_NOT_EXECUTED = "attested_not_executed"
    # Responses that are computed and never stored
    OUTCOME_UNKNOWN = "outcome_unknown"
    OUTCOME_UNKNOWN_DISPATCH_UNKNOWN = "outcome_unknown_dispatch_unknown"
    OUTCOME_UNKNOWN_PARKED = "outcome_unknown_parked"
    # Host messages
    DRIFT_ACCEPTED = "drift_accepted"
    PERMISSION_DROPPED = "permission_dropped"
    PERMISSION_GRANTED = "permission_granted"
    LATE_SETTLEMENT = "late_settlement"
    LATE_ATTESTATION = "late_attestation"
    WORKSPACE_REBASELINED = "workspace_rebaselined"
    WORKSPACE_TRANSITIONED = "workspace_transitioned"
    TURN_LEFT_OUT = "turn_left_out"
    CONTEXT_CUT = "context_cut"
    BACKGROUND_SETTLED = "background_settled"
    HOST_NOTE = "host_note"


_VERSION_1: Mapping[str, str] = {
    SentenceId.NOT_EXECUTED_INTERRUPTED: "Not executed: the run was interrupted before dispatch.",
    SentenceId.NOT_EXECUTED_CANCELLED: "Not executed: {by} stopped the run before dispatch.",
    SentenceId.NOT_EXECUTED_ENDED: "Not executed: the run ended before dispatch.",
    SentenceId.UNKNOWN_TOOL: "Not executed: there is no tool named {tool}.",
    SentenceId.ARGS_NOT_STRICT_JSON: "Not executed: the arguments are not strict JSON ({detail}).",
    SentenceId.ARGS_SCHEMA_MISMATCH: "Not executed: the arguments do not fit the tool's schema ({detail}).",
    SentenceId.ARGS_TOO_LARGE: "Not executed: the arguments have {size} bytes; at most {limit} are allowed.",
    SentenceId.LOOP_LIMIT: "Not executed: the limit of {limit} was reached.",
    SentenceId.PERMISSION_DENIED: "Not executed: {by} did not permit this call.",
    SentenceId.PERMISSION_DENIED_BECAUSE: "Not executed: {by} did not permit this call: {why}",
    SentenceId.PERMISSION_UNDECIDED: (
        "Not executed: this call needs a person's permission, and nobody has answered. A person may still answer later."
    ),
    SentenceId.REPEAT_OF_UNSETTLED_EFFECT: (
        "Not executed: an earlier call of {tool} may already have had this effect, and nobody could be asked whether to"
        " repeat it. Inspect before acting."
    ),
    SentenceId.REPEAT_OF_SETTLED_EFFECT: (
        "Not executed: an equal call of {tool} in this turn had this effect already, as was settled after an"
        " interruption, and nobody could be asked whether to repeat it. Its answer stands in the history."
    ),
    SentenceId.REPEAT_OF_EFFECT_SETTLED_MEANWHILE: (
        "Not executed: an earlier call of {tool} had this effect already, as was settled while this run was under way,"
        " and nobody could be asked whether to repeat it. Inspect before acting."
    ),
    SentenceId.REFUSED_WITHOUT_EFFECT: "The tool refused before it did anything: {detail}",
    SentenceId.RESULT_TOO_LARGE: (
        "The tool has run and its effect has happened. Its result has {size} bytes and could not be kept; at most"
        " {limit} are allowed."
    ),
    SentenceId.RESULT_TRUNCATED: "Only the beginning of the result is shown; the whole result had {size} bytes.",
    SentenceId.RESULT_NOT_STRICT_JSON: (
        "The tool has run and its effect has happened. Its result could not be kept: it is not strict JSON ({detail})."
    ),
    SentenceId.TOOL_RAISED: (
        "The tool failed ({detail}). Its effect may have happened in whole or in part; inspect before repeating it."
    ),
    SentenceId.TOOL_RAISED_WITHOUT_EFFECT: "The tool failed ({detail}). It only reads, so nothing was changed.",
    SentenceId.TOOL_TIMED_OUT: (
        "The tool did not finish within {seconds} seconds and was ended. Its effect may have happened in whole or in"
        " part; inspect before repeating it."
    ),
    SentenceId.TOOL_TIMED_OUT_WITHOUT_EFFECT: (
        "The tool did not finish within {seconds} seconds. It only reads, so nothing was changed."
    ),
    SentenceId.TOOL_CANCELLED: (
        "The tool was stopped by {by} while it ran. Its effect may have happened in whole or in part; inspect before"
        " repeating it."
    ),
    SentenceId.TOOL_CANCELLED_WITHOUT_EFFECT: (
        "The tool was stopped by {by} while it ran. It only reads, so nothing was changed."
    ),
    SentenceId.DELIVERED_WITH_EARLIER_KEY: (
        "Note from the host: this call equals operation {operation}, which was interrupted and settled in this turn."
        " It was delivered with that operation's key, so a receiver that honours keys did nothing new, and gave its"
        " earlier answer. To have the effect once more, make the call in the next turn, or with other arguments."
    ),
    SentenceId.FINALIZED: (
        "Done: after an interruption the target was found exactly as this call was to leave it. It was not run again."
    ),
    SentenceId.ALREADY_SATISFIED: (
        "The target already had the requested content before this call and has it now. Whether the call itself ran is"
        " not known; it was not run again."
    ),
    SentenceId.ATTESTED_COMPLETED: "Completed, as attested by {by}; this was not observed by the program.",
    SentenceId.ATTESTED_NOT_EXECUTED: "Not executed, as attested by {by}; this was not observed by the program.",
    SentenceId.OUTCOME_UNKNOWN: (
        "Outcome unknown: interrupted after it was dispatched; it was not repeated; inspect before acting."
    ),
    SentenceId.OUTCOME_UNKNOWN_DISPATCH_UNKNOWN: (
        "Outcome unknown: the record does not prove whether this call was dispatched; it was not repeated; inspect"
        " before acting."
    ),
    SentenceId.OUTCOME_UNKNOWN_PARKED: (
        "Outcome unknown: interrupted after it was dispatched, and what was found afterwards did not prove what"
        " happened; it was not repeated; inspect before acting."
    ),
    SentenceId.DRIFT_ACCEPTED: (
        "Note from the host: this run continues after an interruption. Since then the following changed, and the user"
        " accepted it: {changes}."
    ),
    SentenceId.PERMISSION_DROPPED: (
        "Note from the host: the open question whether {tool} may run was dropped without an answer; the call was not"
        " executed."
    ),
    SentenceId.PERMISSION_GRANTED: (
        "Note from the host: {by} permits the call of {tool} that was waiting for permission, with exactly the"
        " arguments that it had. It was not executed yet."
    ),
    SentenceId.LATE_SETTLEMENT: (
        "Note from the host: a call of {tool} that was shown as unknown has since been settled: {outcome}."
    ),
    SentenceId.LATE_ATTESTATION: (
        "Note from the host: a call of {tool} that was shown as unknown is, as attested by {by}, {outcome}."
    ),
    SentenceId.WORKSPACE_REBASELINED: (
        "Note from the host: files are not as they were known to be when the work was interrupted; who changed them is"
        " not known here. {by} accepted the present content. Read these again before relying on them: {paths}."
    ),
    SentenceId.WORKSPACE_TRANSITIONED: (
        "Note from the host: as {by} decided, the work goes on in another folder, {path}, made from the state at the"
        " last checkpoint."
    ),
    SentenceId.TURN_LEFT_OUT: (
        "Note from the host: an earlier turn of this conversation is left out, because its record is damaged. What was"
        " done in it is not known here."
    ),
    SentenceId.CONTEXT_CUT: (
        "Note from the host: the beginning of this conversation is left out. Turns that are missing: {turns}."
    ),
    SentenceId.BACKGROUND_SETTLED: "Note from the host: background work that was started earlier has ended: {status}.",
    SentenceId.HOST_NOTE: "Note from the host: {text}",
}

SENTENCES: Mapping[int, Mapping[str, str]] = {1: _VERSION_1}
"""Projection version -> every sentence of it by id, with its parameters in braces."""


def render(sentence_id: str, parameters: Mapping[str, Json] | None = None, *, version: int = 1) -> str:
    """Say a sentence to the model.

    Args:
        sentence_id: a member of `SentenceId`, or its text as an event stores it.
        parameters: its values; lists are written out up to `LISTED_MAX` members.
        version: the projection version that it belongs to.

    Raises:
        UnknownSentence: the version has no such sentence, or a parameter of it is missing.
    """
    try:
        template = SENTENCES[version][sentence_id]
        return template.format_map({name: _shown(value) for name, value in (parameters or {}).items()})
    except KeyError as error:
        raise UnknownSentence(sentence_id, version, str(error.args[0])) from error


class UnknownSentence(ValueError):
    """A sentence id that the version does not have, or one without all of its parameters.

    Attributes:
        sentence_id, version: what was asked for.
        missing: the id, the version or the parameter that is not there.
    """

    def __init__(self, sentence_id: str, version: int, missing: str) -> None:
        super().__init__(f"sentence {sentence_id!r} of version {version} cannot be said: {missing!r} is missing")
        self.sentence_id = sentence_id
        self.version = version
        self.missing = missing


def _shown(value: Json) -> str:
    if isinstance(value, list):
        rest = len(value) - LISTED_MAX
        listed = ", ".join(_shown(member) for member in value[:LISTED_MAX])
        return f"{listed} and {rest} more" if rest > 0 else listed
    return value if isinstance(value, str) else str(value)
