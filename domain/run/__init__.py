"""The run aggregate: everything that happened in one execution attempt."""
