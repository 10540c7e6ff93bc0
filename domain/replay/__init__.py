"""Provider-neutral history, made from a boundary."""
