"""What the application needs from outside, as typed protocols, one per file."""
