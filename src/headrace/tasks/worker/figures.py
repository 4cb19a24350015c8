"""What a worker has done."""

from dataclasses import dataclass


@dataclass(slots=True)
class Figures:
    """For a worker's line on the screen and for metrics."""

    finished: int = 0
    failed: int = 0
    lost: int = 0
