"""Pytest mixins that state each port's contract; every adapter must pass them."""
