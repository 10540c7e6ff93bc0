"""Looking at the outside world again, to see whether an effect happened. SPEC section 10.

A reconciler belongs to a recovery contract, by the id that T1 recorded. It is asked only about operations that are over
and have no outcome. It never repeats an effect, and never guesses: what it cannot read is `unreadable`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..domain.errors import SafepointError
from ..domain.events.event import Json
from ..domain.events.tool import Observation, RecordedContract, ToolCalled, ToolDispatched
from ..domain.identifiers import OperationId, SessionId, key_of
from ..domain.tool_results import PreparedResult


class NotSeenNow(SafepointError):
    """It could not be looked at now, and may be later: nothing is recorded, and the operation stays as it is."""


@dataclass(frozen=True, slots=True)
class AskedOperation:
    """One operation without outcome, as its run recorded it.

    Attributes:
        call: what the model asked for.
        dispatch: T1: the contract and the evidence that it was promised to be comparable with.
        workspace: the folder of the run as it is known by now, absolute, every link resolved.
        workspace_identity: of that folder as it was just observed; None where it has none. A reconciler of files
            compares it with the identity in its evidence.
        later: what the session dispatched after it, in order. What these recorded before their own effects says how
            the same thing stood then; what it looks like now says nothing of this call where one of them changed it.
    """

    call: ToolCalled
    dispatch: ToolDispatched
    workspace: Path
    workspace_identity: str | None
    later: tuple[ToolDispatched, ...] = ()

    @property
    def operation_id(self) -> OperationId:
        """Which operation it is."""
        return self.dispatch.operation_id

    @property
    def idempotency_key(self) -> str:
        """The key that the implementation was given (F20): a destination may know the call by it."""
        return self.dispatch.idempotency_key or key_of(self.dispatch.operation_id)

    @property
    def contract(self) -> RecordedContract:
        """The contract as it stood at T1."""
        return self.dispatch.contract

    @property
    def evidence(self) -> Json:
        """What T1 recorded to compare with."""
        return self.dispatch.evidence


@dataclass(frozen=True, slots=True)
class Observed:
    """What was seen.

    Attributes:
        observation: one that the contract's mode knows (SPEC section 10, `domain.recovery.bundle_rules`).
        result: the tool's answer, made from the evidence and never by running it; there exactly where the observation
            completes the operation.
        evidence_digest: of what was read, for the record; None where nothing could be read.
        detail: for people, without content: which path, what differs.
        waits_for: of `handle_running`: the session whose interrupted run has to be resumed before there is an end.
        ends_never: of `handle_running`: no end of it will be seen, however long somebody waits; a person says what came
            of it.
    """

    observation: Observation
    result: PreparedResult | None = None
    evidence_digest: str | None = None
    detail: str = ""
    waits_for: SessionId | None = None
    ends_never: bool = False


class Reconciler(Protocol):
    """Looks up the effects of one or more contracts. Methods may be called from several threads.

    Attributes:
        reconciler_id: stable, recorded beside what it saw; 1 to 200 characters.
        version: at least 1; raised when the same world would be judged differently.
    """

    reconciler_id: str
    version: int

    @property
    @abstractmethod
    def contract_ids(self) -> Collection[str]:
        """The contracts that it knows."""

    @abstractmethod
    def observe(self, asked: AskedOperation) -> Observed:
        """Look, and change nothing; the same world gives the same answer.

        Evidence that it does not understand, and a target that it cannot read for good, are `unreadable`, which parks
        until a person says more. It is given a minute by default: what it answers later is not heard. A look that was
        given up goes on in its thread, so bear being called while an earlier one still runs; `tidy` likewise.

        Raises:
            NotSeenNow: whoever knows cannot be asked now, such as a server that is down; the only thing that it raises.
        """

    @abstractmethod
    def tidy(self, asked: AskedOperation) -> None:
        """Remove what the dead call left beside its effect, such as temporary files of this operation; idempotent.

        Called right before what was observed is committed, as completed or as parked; it may be that nothing is
        committed then, and that it is called again. Never touches the effect, nor anything that `observe` looks at, and
        raises nothing that matters: what could not be removed stays.
        """
