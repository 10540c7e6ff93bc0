"""Failpoints for crash tests, inert unless test hooks are switched on."""
