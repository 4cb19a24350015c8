"""Which media this installation takes marks off."""

import importlib.util


def has_video() -> bool:
    """Whether the stages of videos are there."""
    return importlib.util.find_spec("headrace.removal.pipeline.video_stages") is not None
