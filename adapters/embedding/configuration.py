"""What a program is opened with, from its arguments, the environment and `pyproject.toml`. SPEC section 17.

It needs the extra `settings`; nothing else here imports it, so that a program without it starts the sooner.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self

from pydantic import Field, ValidationError, model_validator

from ...application.stopping import BOUND_SECONDS, OBSERVE_SECONDS_MAX
from ..settings import RESUME_VARIABLE, Settings
from .blocking import SyncRuntime
from .parts import ConfigurationUnusable, Model, Permission, Tools
from .runtime import Runtime

try:
    from pydantic_settings import (
        BaseSettings,
        PydanticBaseSettingsSource,
        PyprojectTomlConfigSettingsSource,
        SettingsConfigDict,
    )
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        "safepoint.Configuration needs pydantic-settings: install safepoint[settings]", name=missing.name
    ) from missing

_PATHS: Final = ("store", "workspace")
_PARENTS_MAX: Final = 32
_PREFIX: Final = "SAFEPOINT_"


class _Pyproject(PyprojectTomlConfigSettingsSource):
    """The table `[tool.safepoint]` of the nearest `pyproject.toml`, whose relative paths start at its own folder."""

    def __init__(self, settings_cls: type[BaseSettings]) -> None:
        try:
            super().__init__(settings_cls)
        except tomllib.TOMLDecodeError as error:
            raise ConfigurationUnusable(f"{self.toml_file_path} is no TOML: {error}") from None

    def __call__(self) -> dict[str, Any]:
        found, file = super().__call__(), self.toml_file_path
        assert isinstance(file, Path)  # as this kind of source makes it
        paths = {name for name in _PATHS if isinstance(found.get(name), str) and found[name]}
        return {name: str(file.parent / value) if name in paths else value for name, value in found.items()}


class Configuration(BaseSettings):
    """Settings of a program: what its code says, else `SAFEPOINT_STORE` and so on, else `[tool.safepoint]`.

    `pyproject.toml` is looked for in the present folder and those above it. A name that is not known there is an error,
    and so is a value that does not fit (`ConfigurationUnusable`). An empty variable says nothing.

    Attributes:
        store: the database file, which one of the three must name; in `pyproject.toml` its path begins at that folder.
        workspace: the folder that the tools work in, None for none.
        model: as `open` takes it by name.
        system_prompt: of the model.
        permission: as `open` takes it by name.
        checkpoints: as `open` takes them.
        resume: false turns continuing off, and deletes nothing.
        auto_resume: whether a host continues by itself what a crash interrupted, once.
        cancel_bound_seconds: how long live tools are waited for when a run is stopped, 0 or more.
        observe_seconds_max: how long a reconciler may take to look at one operation, more than 0.
    """

    model_config: ClassVar[SettingsConfigDict] = SettingsConfigDict(
        env_prefix=_PREFIX,
        env_ignore_empty=True,
        hide_input_in_errors=True,
        pyproject_toml_table_header=("tool", "safepoint"),
        pyproject_toml_depth=_PARENTS_MAX,
        extra="forbid",
        frozen=True,
    )

    store: Path | None = None
    workspace: Path | None = None
    model: str | None = None
    system_prompt: str = ""
    permission: Literal["allow", "ask", "deny"] = "allow"
    checkpoints: Literal["auto", "git", "none"] = "auto"
    resume: bool = True
    auto_resume: bool = False
    cancel_bound_seconds: float = Field(default=BOUND_SECONDS, ge=0, allow_inf_nan=False)
    observe_seconds_max: float = Field(default=OBSERVE_SECONDS_MAX, gt=0, allow_inf_nan=False)

    if not TYPE_CHECKING:  # checkers know the settings by their names

        def __init__(self, **said: Any) -> None:
            """Take what is said here, else elsewhere.

            Raises:
                ConfigurationUnusable: something of it does not fit.
            """
            try:
                super().__init__(**said)
            except ValidationError as error:
                faults = error.errors(include_input=False)
                wrong = [f"{_where(one['loc'], said)}{one['msg'].removeprefix('Value error, ')}" for one in faults]
                raise ConfigurationUnusable("; ".join(wrong)) from None

    @model_validator(mode="after")
    def _names_a_store(self) -> Self:
        if self.store is None or self.store == Path():
            raise ValueError("no store is named: give store=, SAFEPOINT_STORE, or `store` in [tool.safepoint]")
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """What the code says counts first, then the environment, then the file."""
        return init_settings, env_settings, _Pyproject(settings_cls)

    def settings(self) -> Settings:
        """The settings of the composition."""
        assert self.store is not None  # checked when it was made
        return Settings(
            self.store.absolute(),
            cancel_bound_seconds=self.cancel_bound_seconds,
            observe_seconds_max=self.observe_seconds_max,
            auto_resume=self.auto_resume,
            environment={**os.environ, RESUME_VARIABLE: "1" if self.resume else "0"},
        )

    def open(self, *, tools: Tools = (), model: Model = None, permission: Permission | None = None) -> Runtime:
        """Open a runtime: `async with safepoint.Configuration().open(tools=[pay]) as runtime`.

        Args:
            tools: as `open` takes them.
            model: a provider in place of the one that is named.
            permission: a gate in place of the word.

        Raises:
            ToolDefinitionError: a tool cannot be one as it is declared.
        """
        return Runtime(
            self.settings(),
            workspace=self.workspace,
            model=self.model if model is None else model,
            tools=tools,
            system_prompt=self.system_prompt,
            permission=self.permission if permission is None else permission,
            checkpoints=self.checkpoints,
        )

    def open_sync(self, *, tools: Tools = (), model: Model = None, permission: Permission | None = None) -> SyncRuntime:
        """As `open`, for a script without an event loop."""
        return SyncRuntime(self.open(tools=tools, model=model, permission=permission))


def _where(place: Sequence[int | str], said: Mapping[str, Any]) -> str:
    """Where the value of a setting was said, for whoever has to mend it; nothing where none was."""
    if not place:
        return ""
    name = str(place[0])
    variable = f"{_PREFIX}{name.upper()}"
    if name in said:
        return f"`{name}=` in the code: "
    if os.environ.get(variable):
        return f"{variable}: "
    return f"`{name}` in [tool.safepoint] of {_Pyproject(Configuration).toml_file_path}: "
