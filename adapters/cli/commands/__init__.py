"""One module per command: its options, and nothing that is slow to import."""
