"""What one runtime is made with, and the files that stand beside its store. SPEC section 17."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..application.stopping import BOUND_SECONDS, OBSERVE_SECONDS_MAX

RESUME_VARIABLE = "SAFEPOINT_RESUME"
AUTO_RESUME_VARIABLE = "SAFEPOINT_AUTO_RESUME"


@dataclass(frozen=True, slots=True)
class Settings:
    """What one runtime is made with.

    Attributes:
        store: the database file, absolute.
        read_only: look only: no byte of the store changes, nothing is owned.
        cancel_bound_seconds: how long live tools are waited for when a run is stopped, 0 or more.
        observe_seconds_max: how long a reconciler may take to look at one operation, more than 0; of one that takes
            longer the operation is left as it is.
        auto_resume: whether a host continues by itself what a crash interrupted, once; None leaves it to
            `SAFEPOINT_AUTO_RESUME`, which is off unless it is 1. What a person resumes is not concerned.
        environment: read for `SAFEPOINT_RESUME`, `SAFEPOINT_AUTO_RESUME`, `SAFEPOINT_OTEL` and, with
            `SAFEPOINT_TEST_HOOKS=1`, for failpoints.
    """

    store: Path
    read_only: bool = False
    cancel_bound_seconds: float = BOUND_SECONDS
    observe_seconds_max: float = OBSERVE_SECONDS_MAX
    auto_resume: bool | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)

    @property
    def checkpoints(self) -> Path:
        """The folder of what is remembered of workspaces, to capture them the sooner."""
        return Path(f"{os.path.realpath(self.store)}.checkpoints")

    @property
    def isolated(self) -> Path:
        """The folder of the workspaces that were made from checkpoints."""
        store = Path(os.path.realpath(self.store))
        return store.parent / f"isolated-{store.name}"

    @property
    def own_files(self) -> tuple[str, ...]:
        """The store, what stands beside it, and folders made from checkpoints: never content of a workspace around."""
        return (f"{os.path.realpath(self.store)}*", f"{self.isolated}/*")

    @property
    def locks(self) -> Path:
        """The folder of lock files; one, by whatever name the store was given."""
        return Path(f"{os.path.realpath(self.store)}.locks")

    def resume_enabled(self) -> bool:
        """The feature switch of SPEC section 17."""
        return self.environment.get(RESUME_VARIABLE) != "0"

    def auto_resume_enabled(self) -> bool:
        """A setting of its own, which means nothing where resuming is switched off (SPEC section 17)."""
        asked = self.environment.get(AUTO_RESUME_VARIABLE) == "1" if self.auto_resume is None else self.auto_resume
        return asked and self.resume_enabled()
