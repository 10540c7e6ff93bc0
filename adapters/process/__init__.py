"""Incarnations, locks and supervised child processes."""
