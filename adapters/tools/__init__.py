"""The tool catalog of Python functions, and the tools that the CLI offers."""
