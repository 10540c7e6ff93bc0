"""Provider histories: from a provider-neutral history to the messages of each API, and the shapes that come back.

One module a format, used by the model providers, by the importers, and by embedding programs.
"""
