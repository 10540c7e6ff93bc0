"""The session aggregate: which runs a conversation admitted, and its inbox for later runs."""
