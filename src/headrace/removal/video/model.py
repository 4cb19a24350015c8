"""What may be a mark in a clip, and what the clip is."""

from dataclasses import dataclass
from enum import StrEnum

MAX_CANDIDATES = 20


class Kind(StrEnum):
    FIXED = "fixed"  # in one place, all the time
    PARTLY = "partly"  # in one place, some of the time: marks that jump are several of these
    FADING = "fading"  # in one place, of changing strength
    MOVING = "moving"  # over the picture


class Trouble(StrEnum):
    """Why a mark could not be taken off, where what kind of mark it is says so."""

    MOVES = "moves"  # or comes and goes, in several places
    WIDE = "wide"  # it covers much of the picture


@dataclass(frozen=True, slots=True)
class Placed:
    """When a mark is in a box: from one second of the clip to another."""

    begins: float = 0.0
    ends: float | None = None  # None: the clip's end

    @property
    def always(self) -> bool:
        return self.begins <= 0 and self.ends is None


@dataclass(frozen=True, slots=True)
class Clip:
    """What the file is, for the report."""

    format: str  # mp4, mov, mkv, webm
    codec: str
    width: int  # as it is shown
    height: int
    frames: int
    seconds: float
    rotation: int  # degrees, as the file says
    audio: int  # tracks
    subtitles: int
