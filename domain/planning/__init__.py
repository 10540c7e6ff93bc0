"""Whether a run may be continued: the gates, the plan, and its comparison with the world right before execution."""
