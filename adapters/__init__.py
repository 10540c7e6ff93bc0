"""Everything that touches the world, one folder per technology, and the composition container."""
