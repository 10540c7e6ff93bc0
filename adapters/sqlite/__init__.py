"""The event store and its projections on SQLite."""
