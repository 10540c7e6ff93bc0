"""Permission gates: ask on the terminal, allow list, deny."""
