"""Which media this installation takes marks off."""

import importlib.util

# Of all frames of an animated picture together. When the result is held against the original, each takes some 15 bytes.
MOST_ANIMATED_PIXELS = 200_000_000


def has_video() -> bool:
    """Whether the stages of videos are there."""
    return importlib.util.find_spec("headrace.removal.video.stages") is not None
