"""Checkpoints that a Git repository carries, made by the `git` program. SPEC section 16, ADR 0060."""
