"""Which media this installation takes marks off."""

import importlib.util

MOST_ANIMATED_PIXELS = 300_000_000  # of all frames of an animated picture together


def has_video() -> bool:
    """Whether the stages of videos are there."""
    return importlib.util.find_spec("headrace.removal.pipeline.video_stages") is not None
