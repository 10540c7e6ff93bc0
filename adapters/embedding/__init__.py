"""What a program works with that has Safepoint inside: one runtime over one store, in a few names. SPEC section 17."""
