"""What is asked for one clip, what may be a mark in it, and what was done."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from headrace.removal.candidates import Mode, Outcome
from headrace.removal.report import Rectangle

# AUTO acts from the first score on; what has less than the second is not worth a person's look.
AUTO_SCORE, LISTED_SCORE = 0.7, 0.5
MOST_CANDIDATES = 20


class Quality(StrEnum):
    STANDARD = "standard"
    HIGH = "high"


class Codec(StrEnum):
    """How the picture is packed. AUTO is as the source, where browsers play that and an encoder is installed."""

    AUTO = "auto"
    H264 = "h264"
    AV1 = "av1"
    VP9 = "vp9"


class Kind(StrEnum):
    FIXED = "fixed"  # in one place, all the time
    PARTLY = "partly"  # in one place, some of the time: marks that jump are several of these
    FADING = "fading"  # in one place, of changing strength
    MOVING = "moving"  # over the picture


class Trouble(StrEnum):
    """Why a mark could not be taken off, where what kind of mark it is says so."""

    MOVES = "moves"  # or comes and goes, in several places
    WIDE = "wide"  # it covers much of the picture


class Method(StrEnum):
    """Where the pixels under the mark come from."""

    COMPUTED = "computed"  # from what shines through, with strength and colour by many frames
    INVENTED = "invented"  # filled in from around it
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Placed:
    """A box, in pixels of the clip as it is shown, that holds a mark from one second to another, or in some frames."""

    box: Rectangle
    begins: float = 0.0
    ends: float | None = None
    frames: tuple[int, int] | None = None  # in place of seconds: the first and the last, counted from 0, both in

    @property
    def always(self) -> bool:
        return self.begins <= 0 and self.ends is None and self.frames is None


@dataclass(frozen=True, slots=True)
class VideoOrder:
    source: str
    result: str | None = None  # None: detect only
    marks: str | None = None  # a file (.npz) for the masks: detect writes it, remove reads it instead of looking again
    mode: Mode = Mode.AUTO
    only: tuple[int, ...] = ()  # candidates, by number; none is all that are certain
    boxes: tuple[Placed, ...] = ()  # a mark is in each of these
    keep: tuple[Rectangle, ...] = ()  # nothing in these changes
    drawn: str | None = None  # a picture of the clip's size that is white where the mark is
    quality: Quality = Quality.STANDARD
    codec: Codec = Codec.AUTO
    overlay: str | None = None  # a PNG file with a frame and a box around each candidate
    preview: str | None = None  # a PNG file with frames before and after
    threads: int = 2
    force: bool = False  # replace files that are there
    accept_poor: bool = False  # hand it out also where a second look still sees something

    @property
    def has_hint(self) -> bool:
        """Whether the user said where the mark is."""
        return bool(self.boxes or self.drawn)


@dataclass(frozen=True, slots=True)
class Candidate:
    id: int  # from 1, the surest first; what ``only`` names
    box: Rectangle  # in pixels, as the clip is shown; of one that moves, where it is seen first
    kind: Kind
    score: float
    spans: tuple[tuple[float, float], ...]  # seconds in which it was seen, to the nearest frames that were looked at
    backgrounds: int  # different pictures that it was seen over
    opacity: float  # the mean strength, 0 to 1
    reasons: tuple[str, ...]

    @property
    def certain(self) -> bool:
        return self.score >= AUTO_SCORE

    def share(self, width: int, height: int) -> float:
        """Of a frame of this size that its box covers."""
        return self.box[2] * self.box[3] / (width * height)


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


@dataclass(frozen=True, slots=True)
class Check:
    """The result held against the original."""

    passed: bool
    reason: str | None
    residue_before: float  # how much of the mark is in the frames: 1 is all of it
    residue_after: float
    changed_area: float  # the share of the frame
    frames: int  # that were compared
    remains: bool = False  # the mark, or some of it
    seen_again: Rectangle | None = None  # where a second look at the result finds some of it, as the clip is shown
    seen_within: bool = False  # whether that is where the mark was, and not beside it
    held_back: bool = False  # failed only a check that `accept_poor` waives: an order with it gets this file
    worst_shot: float = 0.0  # how much of the mark is in the shot that has most of it


@dataclass(frozen=True, slots=True)
class VideoReport:
    clip: Clip
    candidates: tuple[Candidate, ...]
    outcome: Outcome | None  # None: only looked for
    reason: str | None
    removed: tuple[int, ...]  # the candidates that were taken off
    method: Method | None
    check: Check | None
    codec: str | None  # of the result
    bit_rate: int | None  # of the result's picture
    warnings: tuple[str, ...]
    seconds: float
    frames_a_second: float | None = None
    trouble: Trouble | None = None  # why a mark remains, of a failure

    def as_json(self) -> dict[str, Any]:
        return asdict(self)
