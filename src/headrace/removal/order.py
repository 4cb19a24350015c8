"""What is ordered, and what one stage of it is given and gives."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Quality = Literal["STANDARD", "HIGH"]
Mode = Literal["AUTO", "MANUAL"]
Number = Annotated[int, Field(ge=0, le=1_000_000)]
Side = Annotated[int, Field(ge=1, le=1_000_000)]
Rectangle = tuple[Number, Number, Side, Side]  # left, top, width, height
Corner = tuple[Number, Number]
Polygon = Annotated[list[Corner], Field(min_length=3, max_length=500)]
Span = tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]]  # first and last, both in

# A second with more frames is priced by its frames: a clip whose timestamps were scaled down is the same work.
MAX_PRICED_FRAMES_PER_SECOND = 30
MOST_HINTS = 200
MOST_CANDIDATES = 50


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
        Field(max_length=MOST_HINTS, description="The mark is in these alone: left, top, width, height."),
    ] = []
    polygons: Annotated[
        list[Polygon], Field(max_length=MOST_HINTS, description="The same by corners: across, down.")
    ] = []
    keep: Annotated[list[Rectangle], Field(max_length=MOST_HINTS, description="Nothing in these changes.")] = []
    pages: Annotated[
        Span | None, Field(description="Of documents, the pages it is for, from 1, both ends in; left out: all.")
    ] = None
    seconds: Annotated[
        tuple[Annotated[float, Field(ge=0)], Annotated[float, Field(ge=0)]] | None,
        Field(description="Of videos, from when to when it is for; left out: all the time."),
    ] = None


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
    frames: Annotated[int, Field(ge=1)] = 1  # more than one: an animation
    batch_id: str | None = None  # of the order whose pictures all have the same mark


@dataclass(frozen=True, slots=True)
class StageOrder:
    """The order of one stage for a child: files lie in ``folder`` under the names of ``Names``."""

    media: str
    stage: Stage
    folder: str
    order: RemovalOrder
    threads: int = 2
    earlier: dict[str, Any] = field(default_factory=dict)  # what DETECTING found
    password: str | None = field(default=None, repr=False)
    views: list[str] = field(default_factory=list)  # files with other pictures that have the same mark
    least_score: float = 0.5  # regions of less stay, unless the order names them
    strength: float = 1.0  # how much of the change is made

    def path(self, name: str) -> str:
        return f"{self.folder}/{name}"

    @property
    def result(self) -> str:
        """The name of the result's file: its ending says what is written."""
        return f"result.{ENDINGS[self.order.output_format]}"


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


@dataclass(frozen=True, slots=True)
class StageReport:
    """What a stage found and did. ``refused`` is a code: the removal ends with it."""

    facts: dict[str, Any] = field(default_factory=dict)  # for ``task_steps.detail``
    candidates: list[dict[str, Any]] = field(default_factory=list)
    keeps: list[str] = field(default_factory=list)  # files that later stages need
    refused: FailureCode | None = None
    reason: str | None = None


ENDINGS = {
    "jpeg": "jpg", "png": "png", "webp": "webp", "tiff": "tif", "gif": "gif", "pdf": "pdf", "pptx": "pptx",
    "ppt": "ppt", "mp4": "mp4", "mov": "mov", "mkv": "mkv", "webm": "webm",
    # Written by the command alone.
    "bmp": "bmp", "jpeg2000": "jp2", "avif": "avif",
}  # fmt: skip
