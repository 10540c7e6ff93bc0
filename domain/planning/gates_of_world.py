"""Gates 5 and 6: the same workspace, and a host that runs what the source ran with."""

from __future__ import annotations

from collections.abc import Iterator

from ..events.run import ExecutionProfile, ToolProfile
from ..permission_policy import narrows
from ..reasons import ParkReason
from .catalog import SHOWN_DIGEST_CHARS, catalog_digest
from .facts import Drift
from .observations import WorkspaceUnknown
from .outcome import Note, NoteCode, Reason
from .view import View

PATHS_SHOWN_MAX = 100


def workspace_is_the_same(view: View) -> Iterator[Reason]:
    """The identity that the source recorded last; another path alone is no refusal. R5."""
    seen, now = view.source_survey, view.facts.workspace
    if seen is None:
        return
    about = {"expected": seen.workspace_identity, "expected_path": seen.cwd}
    foreign = view.source is not None and view.source.foreign
    if isinstance(now, WorkspaceUnknown):
        # Who worked in no workspace needs none; a run of another machine may name a folder that is not on this one.
        unmarked = now.code is ParkReason.WORKSPACE_IDENTITY_MISSING and not (foreign and now.no_folder)
        if seen.workspace_identity is not None or not unmarked:
            yield Reason(now.code, {**about, "what": "workspace", "paths": list(now.paths), "detail": now.detail})
        return
    about = {**about, "found": now.identity, "found_path": now.path}
    if seen.workspace_identity is None and now.identity is not None:
        if view.facts.adopt and foreign:  # that none is recorded proves nothing
            view.notes.append(Note(NoteCode.WORKSPACE_NOT_RECORDED, about))
            return
        yield Reason(ParkReason.WORKSPACE_IDENTITY_MISSING, {**about, "detail": "the source recorded none"})
    elif seen.workspace_identity != now.identity:
        yield Reason(ParkReason.WORKSPACE_IDENTITY_MISMATCH, about)
    elif now.path is not None and now.path != seen.cwd:
        view.notes.append(Note(NoteCode.WORKSPACE_MOVED, about))


def checkpoint_matches(view: View) -> Iterator[Reason]:
    """Where the lineage accepted a checkpoint: present, covering the boundary, and the content is the expected one."""
    checkpoint = view.facts.checkpoint
    if checkpoint is None:
        return
    about = {"ref": checkpoint.ref}
    if not checkpoint.carrier_available:
        yield Reason(ParkReason.MODE_MISMATCH, {**about, "mode": "checkpoint", "detail": checkpoint.detail})
    elif checkpoint.could_not_look is not None:
        about_it = {**about, "what": "checkpoint", "detail": checkpoint.could_not_look}
        yield Reason(ParkReason.SAFETY_OBSERVATION_UNAVAILABLE, about_it)
    elif not checkpoint.present:
        yield Reason(ParkReason.WORKSPACE_REF_MISSING, about)
    if not checkpoint.covers:
        yield Reason(ParkReason.CHECKPOINT_DOES_NOT_COVER, {**about, "tools": list(checkpoint.uncovered_by)})
    if not checkpoint.restored:
        yield Reason(ParkReason.CHECKPOINT_RESTORE_FAILED, about)
    if checkpoint.drifted_paths:
        shown = list(checkpoint.drifted_paths[:PATHS_SHOWN_MAX])
        drifted = max(checkpoint.drifted, len(checkpoint.drifted_paths))
        cut = {"not_listed": drifted - len(shown)} if drifted > len(shown) else {}
        yield Reason(ParkReason.WORKSPACE_DRIFT, {**about, "count": drifted, **cut, "paths": [*shown]})


def tools_are_the_same(view: View) -> Iterator[Reason]:
    """Every tool that the history uses is offered with the schema and contract that the source had."""
    recorded, now = view.recorded_profile, view.facts.tools
    if recorded is None:
        return
    if now is None:
        yield Reason(ParkReason.SAFETY_OBSERVATION_UNAVAILABLE, {"what": "catalog"})
        return
    before, after = _by_name(recorded.tools), _by_name(now)
    used = _used_tools(view)
    missing = sorted(before.keys() - after.keys())
    changed = sorted(name for name in before.keys() & after.keys() if before[name] != after[name])
    for code, names in (
        (NoteCode.TOOLS_ADDED, sorted(after.keys() - before.keys())),
        (NoteCode.TOOLS_REMOVED_UNUSED, [name for name in missing if name not in used]),
        (NoteCode.TOOLS_CHANGED_UNUSED, [name for name in changed if name not in used]),
    ):
        if names:
            view.notes.append(Note(code, {"tools": [*names]}))
    missing = [name for name in missing if name in used]
    changed = [name for name in changed if name in used]
    if not missing and not changed:
        return
    if Drift.TOOLS in view.facts.accepted_drift:
        told = [*(f"{name} is gone" for name in missing), *(f"{name} has changed" for name in changed)]
        view.drift[Drift.TOOLS] = f"tools ({', '.join(told)})"
        return
    digests = [catalog_digest(tools)[:SHOWN_DIGEST_CHARS] for tools in (recorded.tools, now)]
    yield Reason(
        ParkReason.TOOL_CATALOG_MISMATCH,
        {"missing": [*missing], "changed": [*changed], "recorded": digests[0], "now": digests[1]},
    )


def _by_name(tools: tuple[ToolProfile, ...]) -> dict[str, ToolProfile]:
    return {tool.name: tool for tool in tools}


def _used_tools(view: View) -> set[str]:
    """Tools that the history names. One that the source was never offered was unknown to it too: nothing to compare."""
    earlier = () if view.facts.earlier is None else view.facts.earlier.segments
    segments = (*earlier, *view.projected)
    used = {item.tool_name for segment in segments for item in segment.items if item.kind == "call"}
    # A blocked segment has no items, and its operations still name their tools.
    return used | {verdict.tool_name for segment in view.lineage for verdict in segment.resolution.verdicts}


def profile_is_the_same(view: View) -> Iterator[Reason]:
    """Provider, model, account, system prompt, protocol and permission policy; a policy is never widened."""
    recorded, now = view.recorded_profile, view.facts.profile
    opening = None if view.source is None else view.source.opening
    if recorded is None or opening is None:
        return
    if now is None:
        yield Reason(ParkReason.SAFETY_OBSERVATION_UNAVAILABLE, {"what": "profile"})
        return
    differences = _differences(recorded, now)
    if opening.protocol is not None and view.facts.protocol is None:  # R18: never replaced by a weaker mode
        yield Reason(ParkReason.MODE_MISMATCH, {"mode": "tool_boundary", "recorded": opening.protocol})
    elif opening.protocol != view.facts.protocol:
        differences[Drift.PROTOCOL] = (opening.protocol, view.facts.protocol)
    narrower = narrows(recorded.permission_policy, now.permission_policy)
    acceptable = view.facts.accepted_drift - (set() if narrower else {Drift.PERMISSION_POLICY})
    for drift, (before, after) in differences.items():
        if drift in acceptable:
            view.drift[drift] = drift.value.replace("_", " ") + (f" ({before} -> {after})" if before and after else "")
    refused = {drift: values for drift, values in differences.items() if drift not in acceptable}
    if refused:
        yield Reason(
            ParkReason.EXECUTION_PROFILE_MISMATCH,
            {
                "changed": [drift.value for drift in refused],
                "recorded": {drift.value: values[0] for drift, values in refused.items()},
                "now": {drift.value: values[1] for drift, values in refused.items()},
                "acceptable": [drift.value for drift in refused if narrower or drift is not Drift.PERMISSION_POLICY],
            },
        )


def _differences(recorded: ExecutionProfile, now: ExecutionProfile) -> dict[Drift, tuple[str | None, str | None]]:
    compared = {
        Drift.PROVIDER: (recorded.provider, now.provider),
        Drift.MODEL: (recorded.model, now.model),
        Drift.ACCOUNT: (recorded.account, now.account),
        Drift.SYSTEM_PROMPT: tuple(p.system_prompt_digest[:SHOWN_DIGEST_CHARS] for p in (recorded, now)),
        Drift.PERMISSION_POLICY: (recorded.permission_policy, now.permission_policy),
    }
    return {drift: (before, after) for drift, (before, after) in compared.items() if before != after}
