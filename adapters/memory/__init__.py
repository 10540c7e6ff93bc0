"""In-memory adapters that keep the same contracts as the durable ones."""
