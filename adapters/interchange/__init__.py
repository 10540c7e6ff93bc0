"""Import and export of sessions and of foreign histories."""
