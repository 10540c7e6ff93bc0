"""Carries a file operation out, exactly as its evidence says, or refuses. SPEC section 10."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from ....domain.events.event import Json
from ....ports.tool_catalog import ToolContext
from .atomic_write import changed_meanwhile, move_file_to, remove_file, replace_file, temporary_name
from .confined import opened_folder
from .file_plans import FilePlan


def carry_out(context: ToolContext, tool_name: str, plan: FilePlan) -> dict[str, Json]:
    """Do what was worked out just now, where that is what T1 recorded.

    Args:
        context: with the recorded evidence; without one (outside of a run) there is nothing to hold to.
        plan: worked out from the files as they are by now.

    Raises:
        RefusedWithoutEffect: somebody else changed a file since; nothing was done.
        OSError: it was done, and it is not known whether durably.
    """
    _check_recorded(context, plan)

    def reached(instant: str) -> Callable[[], None]:
        return lambda: context.failpoint(f"tool.{tool_name}.{instant}")

    reached("before_effect")()
    match plan.transform:
        case "delete":
            _remove(context, plan, reached("after_effect"))
        case "move":
            _move(context, plan, reached("after_effect"))
        case _:
            _replace(context, plan, reached("temporary_written"), reached("after_effect"))
    return plan.result


def _check_recorded(context: ToolContext, plan: FilePlan) -> None:
    recorded = context.evidence
    if recorded is None:
        return
    identity = recorded.get("workspace") if isinstance(recorded, dict) else None
    if plan.evidence(identity if isinstance(identity, str) else None).recorded() != recorded:
        raise changed_meanwhile(plan.targets[0])


def _replace(context: ToolContext, plan: FilePlan, written: Callable[[], None], renamed: Callable[[], None]) -> None:
    (target,), (change,), content = plan.targets, plan.changes, plan.content
    assert content is not None
    with opened_folder(context.workspace, target.names[:-1], make=True) as folder:
        replace_file(
            folder,
            target,
            content,
            prior=change.before,
            temporary=temporary_name(context.operation_id),
            written=written,
            renamed=renamed,
        )


def _remove(context: ToolContext, plan: FilePlan, removed: Callable[[], None]) -> None:
    (target,), (change,) = plan.targets, plan.changes
    with opened_folder(context.workspace, target.names[:-1]) as folder:
        remove_file(folder, target, prior=change.before, removed=removed)


def _move(context: ToolContext, plan: FilePlan, moved: Callable[[], None]) -> None:
    source, target = plan.targets
    before = (plan.changes[0].before, plan.changes[1].before)
    with ExitStack() as opened:
        here = opened.enter_context(opened_folder(context.workspace, source.names[:-1]))
        there = opened.enter_context(opened_folder(context.workspace, target.names[:-1], make=True))
        move_file_to(here, source, there, target, prior=before, moved=moved)
