"""The command line program."""
