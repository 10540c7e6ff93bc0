"""The continuation aggregate: claimed, started, ended."""
