"""Safepoint: continue an AI-agent run safely after its process died in the middle of a tool call."""

from __future__ import annotations

__version__ = "0.1.0"

__all__: list[str] = []
