"""Frozen event classes by subject, and the catalogue that maps stored topics to them."""
