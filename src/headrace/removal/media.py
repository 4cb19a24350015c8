"""Limits of media."""

# Of all frames of an animated picture together. When the result is held against the original, each takes some 15 bytes.
MOST_ANIMATED_PIXELS = 200_000_000
