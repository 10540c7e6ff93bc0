"""Tools of MCP servers: of a trusted server with its promises, of any other with none. SPEC sections 8 and 17.

Needs the extra `mcp`. See `docs/frameworks/mcp.md`.
"""

from __future__ import annotations

from .connected import Connected, connect
from .server import Server, ServerFileUnusable, servers_from

__all__ = ["Connected", "Server", "ServerFileUnusable", "connect", "servers_from"]
