"""Pure aggregates and the functions around them: no I/O, no clock, no randomness."""
