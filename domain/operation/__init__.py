"""The operation aggregate: one tool side-effect attempt and the facts that may follow."""
