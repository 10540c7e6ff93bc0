"""The demonstration: an agent killed in the middle of a tool call."""
