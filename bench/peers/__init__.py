"""One program a peer, each run by an environment of its own (`NAME.txt` pins it): nothing here imports Safepoint."""
