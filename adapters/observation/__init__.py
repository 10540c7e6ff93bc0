"""Lifecycle sinks."""
