"""Tools of MCP servers as a catalog. SPEC sections 8 and 17.

Needs the extra `mcp`. See `docs/frameworks/mcp.md`.
"""
