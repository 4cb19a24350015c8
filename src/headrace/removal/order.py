"""What is ordered, and what one stage of it receives."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Progress = Callable[[int], object]  # receives percents; an exception from it ends the work
Quality = Literal["STANDARD", "HIGH"]
Mode = Literal["AUTO", "MANUAL"]
MAX_SIDE = 1_000_000
Number = Annotated[int, Field(ge=0, le=MAX_SIDE)]
Side = Annotated[int, Field(ge=1, le=MAX_SIDE)]
Rectangle = tuple[Number, Number, Side, Side]  # left, top, width, height
Corner = tuple[Number, Number]
Polygon = Annotated[list[Corner], Field(min_length=3, max_length=500)]
Span = tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]]  # first and last, both in

# A second with more frames is priced by its frames: a clip whose timestamps were scaled down is the same work.
MAX_PRICED_FRAMES_PER_SECOND = 30
MAX_HINTS = 200
MAX_CANDIDATES = 50
END_SECONDS = 1e9  # of a hint: until the end of the clip


class Codec(StrEnum):
    """How a clip's picture is packed. AUTO is as the source, where browsers play that and an encoder is installed."""

    AUTO = "auto"
    H264 = "h264"
    AV1 = "av1"
    VP9 = "vp9"


class Stage(StrEnum):
    """The steps of every removal, in this order."""

    PREPROCESSING = "PREPROCESSING"
    DETECTING = "DETECTING"
    INPAINTING = "INPAINTING"
    PACKAGING = "PACKAGING"


class FailureCode(StrEnum):
    """Why a removal failed: ``tasks.error_code``, at most 16 characters. None of them is charged."""

    NO_MARK = "NO_MARK"
    NEEDS_REVIEW = "NEEDS_REVIEW"
    AI_LABEL = "AI_LABEL"
    MARK_REMAINS = "MARK_REMAINS"
    MARK_MOVES = "MARK_MOVES"
    MARK_WIDE = "MARK_WIDE"
    POOR_RESULT = "POOR_RESULT"
    DAMAGED = "DAMAGED"
    UNREADABLE = "UNREADABLE"
    UNSUPPORTED = "UNSUPPORTED"
    ENCRYPTED = "ENCRYPTED"
    SIGNED = "SIGNED"
    HINT_UNUSABLE = "HINT_UNUSABLE"
    NO_CANDIDATE = "NO_CANDIDATE"
    NO_CONVERTER = "NO_CONVERTER"
    TOO_LONG = "TOO_LONG"
    ASSET_GONE = "ASSET_GONE"


def paid_seconds(seconds: float, frames: int) -> float:
    """What of a clip is paid for."""
    return max(seconds, frames / MAX_PRICED_FRAMES_PER_SECOND)


class Hint(BaseModel):
    """A user's knowledge of the mark, in pixels of the upright picture or frame, or in points of the page."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    boxes: Annotated[
        list[Rectangle],
        Field(max_length=MAX_HINTS, description="The mark is in these alone: left, top, width, height."),
    ] = []
    polygons: Annotated[
        list[Polygon], Field(max_length=MAX_HINTS, description="The same by corners: across, down.")
    ] = []
    keep: Annotated[list[Rectangle], Field(max_length=MAX_HINTS, description="Nothing in these changes.")] = []
    pages: Annotated[
        Span | None, Field(description="Of documents, the pages it is for, from 1, both ends in; left out: all.")
    ] = None
    seconds: Annotated[
        tuple[Annotated[float, Field(ge=0)], Annotated[float, Field(ge=0)]] | None,
        Field(description="Of videos, from when to when it is for; left out: all the time."),
    ] = None

    @property
    def all_boxes(self) -> list[Rectangle]:
        """The boxes, and those around the polygons."""
        return [*self.boxes, *(_around(corners) for corners in self.polygons)]


class FrameHint(Hint):
    """A hint of the command, whose time may be said in frames."""

    frames: Span | None = None  # in place of seconds: the first and the last, counted from 0, both in


def _around(corners: Polygon) -> Rectangle:
    xs, ys = [x for x, _ in corners], [y for _, y in corners]
    return min(xs), min(ys), max(1, max(xs) - min(xs)), max(1, max(ys) - min(ys))


def changed_pages(pages: Sequence[Span], hints: Sequence[Hint], *, named: bool) -> list[Span]:
    """The pages of a document on which anything changes, none for all: where all boxes are for some pages, only those;
    what was ``named`` by its number goes from every page."""
    placed = [hint.pages for hint in hints if hint.boxes or hint.polygons]
    spans = [each for each in placed if each is not None]
    if named or not placed or len(spans) < len(placed):
        return list(pages)
    if not pages:
        return spans
    common = [(max(one[0], other[0]), min(one[1], other[1])) for one in pages for other in spans]
    return [span for span in common if span[0] <= span[1]] or [(0, 0)]


class RemovalOrder(BaseModel):
    """The payload of a media task."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    asset_id: str
    sha256: str
    format: str  # of the original, as inspection found it
    units: Annotated[int, Field(ge=1)]
    quality: Quality = "STANDARD"
    mode: Mode = "AUTO"
    output_format: str
    hints: list[Hint] = []
    mask_asset_id: str | None = None
    candidates: list[int] = []
    pages: list[Span] = []
    break_signature: bool = False
    accept_poor: bool = False
    ai_label_reason: str | None = None
    frames: Annotated[int, Field(ge=1)] = 1  # more than one: an animation
    batch_id: str | None = None  # of the order whose pictures all have the same mark


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be done with one file: the same for every kind of media, for the command and for the service."""

    source: str
    result: str | None = None  # where the result goes; None: detect only
    media: str | None = None  # IMAGE, PDF, PPT or VIDEO; None: by the file's content
    format: str | None = None  # of the source; None: by the file's content
    output_format: str | None = None  # None: by the result's ending, or else as the source
    frames: int = 1  # more than one: an animated picture
    quality: Quality = "STANDARD"
    mode: Mode = "AUTO"
    hints: tuple[FrameHint | Hint, ...] = ()
    mask: str | None = None  # a picture of the same size that is white where the mark is
    candidates: tuple[int, ...] = ()  # by number, from 1; none: all that are certain
    pages: tuple[Span, ...] = ()  # of a document, that are changed; none: all
    password: str | None = field(default=None, repr=False)
    break_signature: bool = False
    accept_poor: bool = False
    ai_label_reason: str | None = None  # why a label of an AI picture may be taken off
    least_score: float = 0.5  # a region that scores lower is not removed unless named
    strength: float = 1.0  # how much of the change to a picture is made
    codec: Codec = Codec.AUTO
    threads: int = 2
    force: bool = False  # replace files that are there
    # Pictures for people, where the command writes them.
    found_mask: str | None = None  # the pixels of the mark that was detected
    overlay: str | None = None  # a page or frame with a box around each candidate
    comparison: str | None = None  # before and after
    variant: str | None = None  # the same picture by another way of filling in, for a person to choose

    @property
    def has_place(self) -> bool:
        """Whether the user said where the mark is."""
        return self.mask is not None or any(hint.all_boxes for hint in self.hints)

    @property
    def keep(self) -> tuple[Rectangle, ...]:
        return tuple(box for hint in self.hints for box in hint.keep)

    @property
    def page_ranges(self) -> list[Span]:
        """The pages of a document that may change; none: all."""
        return changed_pages(self.pages, self.hints, named=bool(self.candidates))

    def takes_page(self, number: int) -> bool:
        ranges = self.page_ranges
        return not ranges or any(first <= number <= last for first, last in ranges)


@dataclass(frozen=True, slots=True)
class StageOrder:
    """One stage of an order. Files that stages leave for each other lie in ``folder`` under the names of ``Names``."""

    order: Order
    stage: Stage
    folder: str
    earlier: dict[str, Any] = field(default_factory=dict)  # what DETECTING found
    views: list[str] = field(default_factory=list)  # files with other pictures that have the same mark
    same_mark: bool = False  # whether it is learned from these, or was
    # All stages run in one process, one after the other, for a command: what one leaves for the next stays in
    # ``memory``, and nothing is drawn but what the order names.
    whole: bool = False
    memory: dict[str, Any] = field(default_factory=dict, repr=False)

    def path(self, name: str) -> str:
        return f"{self.folder}/{name}"

    @property
    def result(self) -> str:
        assert self.order.result is not None
        return self.order.result


class Names(StrEnum):
    """Files of a removal's folder."""

    SOURCE = "source"
    MASK = "mask"  # drawn by the user
    CONVERTED = "converted.pptx"  # what LibreOffice made of old slides
    CLEANED = "cleaned.pptx"  # the same without the mark, to be converted back
    DETECTION = "detection.npz"
    MATTE = "matte.npz"  # the mark that pictures have in common
    MARKS = "marks.npz"  # a clip's
    FRAMES = "frames.npz"  # an animation's, where they change
    SIDES = "sides.png"  # frames before and after
    RESTORED = "restored.png"
    PREVIEW = "preview.webp"
    COMPARISON = "comparison.jpg"
    HELD_BACK = "held_back.jpg"  # the same, small and stamped, of a poor result that the user may accept


ENDINGS = {
    "jpeg": "jpg", "png": "png", "webp": "webp", "tiff": "tif", "gif": "gif", "pdf": "pdf", "pptx": "pptx",
    "ppt": "ppt", "mp4": "mp4", "mov": "mov", "mkv": "mkv", "webm": "webm",
    # Written by the command alone.
    "bmp": "bmp", "jpeg2000": "jp2", "avif": "avif",
}  # fmt: skip
