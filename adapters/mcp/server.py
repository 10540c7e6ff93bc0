"""Which MCP servers there are, and which of them the user trusts. SPEC section 8."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]|_(?!_)){0,39}")
DAY_SECONDS: Final = 24 * 3600
CALL_SECONDS_MAX: Final = 60.0
CONNECT_SECONDS_MAX: Final = 30.0


class ServerFileUnusable(ValueError):
    """A file of servers says nothing that can be used.

    Attributes:
        path: of the file.
        detail: what is wrong, without values: they may be secrets.
    """

    def __init__(self, path: Path, detail: str) -> None:
        super().__init__(f"{path} names no MCP servers that can be used: {detail}")
        self.path = path
        self.detail = detail


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One MCP server: a command that speaks over its standard streams, or the address of one that speaks HTTP.

    Attributes:
        name: stands before the names of its tools; letters, digits, `-` and single `_`, at most 40.
        command, args, env, cwd: start it; of the environment it gets what the MCP client thinks safe, and `env`.
        url, headers: of a streamable HTTP server.
        trusted: whether what it says of its tools is believed: `readOnlyHint` then means that a call may be made again,
            `idempotentHint` that the same call may be delivered again. Else its tools promise nothing.
        key_valid_seconds: how long an `idempotentHint` is believed after a call, more than 0.
        call_seconds_max: how long a call is waited for, more than 0; then nobody knows what became of it.
        connect_seconds_max: how long it may take until its tools are listed, more than 0.

    Raises:
        ValueError: it has no usable name, or not exactly one of command and address.
    """

    name: str
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] | None = field(default=None, repr=False)
    cwd: str | Path | None = None
    url: str | None = None
    headers: Mapping[str, str] | None = field(default=None, repr=False)
    trusted: bool = False
    key_valid_seconds: int = DAY_SECONDS
    call_seconds_max: float = CALL_SECONDS_MAX
    connect_seconds_max: float = CONNECT_SECONDS_MAX

    def __post_init__(self) -> None:
        """Check what was given."""
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"{self.name!r} cannot name a server: letters, digits, - and single _, at most 40")
        if (self.command is None) == (self.url is None):
            raise ValueError(f"server {self.name} needs a command or a url, and not both")
        for bound in ("key_valid_seconds", "call_seconds_max", "connect_seconds_max"):
            if not getattr(self, bound) > 0:
                raise ValueError(f"{bound} of server {self.name} must be more than 0")


class _Entry(BaseModel):
    """One server as other programs' files name it, and what is only ours."""

    model_config = ConfigDict(extra="forbid", strict=True)

    type: Literal["stdio", "http", "streamable-http"] | None = None
    command: str | None = None
    args: list[str] = []
    env: dict[str, str] | None = None
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] | None = None
    trusted: bool = False
    key_valid_seconds: Annotated[int, Field(gt=0)] = DAY_SECONDS
    call_seconds_max: Annotated[float, Field(gt=0, strict=False)] = CALL_SECONDS_MAX
    connect_seconds_max: Annotated[float, Field(gt=0, strict=False)] = CONNECT_SECONDS_MAX


class _File(BaseModel):
    mcpServers: dict[str, _Entry]  # noqa: N815 (the name in the files of others)


def servers_from(path: Path) -> tuple[Server, ...]:
    """Read servers from a file in the form that other programs use: `{"mcpServers": {"bank": {"command": ...}}}`.

    An entry may also say `trusted`, `key_valid_seconds`, `call_seconds_max` and `connect_seconds_max`. Whoever reads a
    file that came with a project believes what it says of trust.

    Raises:
        ServerFileUnusable: it cannot be read, or an entry is wrong.
    """
    try:
        named = _File.model_validate_json(path.read_bytes()).mcpServers
        return tuple(Server(name=name, **_given(entry)) for name, entry in named.items())
    except ValidationError as error:
        places = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise ServerFileUnusable(path, places) from None
    except (OSError, ValueError) as error:
        raise ServerFileUnusable(path, str(error)) from error


def _given(entry: _Entry) -> dict[str, Any]:
    given = entry.model_dump(exclude={"type"})
    return {**given, "args": tuple(entry.args)}
