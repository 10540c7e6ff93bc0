"""The benchmark of SPEC section 21: `python -m bench` from a checkout. It is no part of the wheel."""
