"""Workspace identity on a file system."""
