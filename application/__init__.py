"""Use cases, one per file, that do their work by calling ports."""
