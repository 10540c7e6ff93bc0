"""Time and ids as the operating system gives them."""
