"""Features of plans: ``features_json``, an array of entries, and their combination for one user.

>>> features = await features_of(tx, user_id)
>>> features.units_for(MeteredMedia.VIDEO, Quality.HIGH, seconds=25)      # 6: two for each started 10 s
>>> features.max_file_bytes(MeteredMedia.PDF)

A user with several entitlements gets the best value of each feature. Defaults apply where no entry is present: one unit
for an image, a page or a slide, and for each started ten seconds of a video, doubled at HIGH. An image is charged per
started 25 million pixels or ten frames, a video per started 2.5 million pixels of a frame. Storage size and retention
default to the settings.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from headrace.database import Tx

T = TypeVar("T")
Limit = TypeVar("Limit", int, timedelta)

MIB = 1 << 20
GIB = 1 << 30


class MeteredMedia(StrEnum):
    IMAGE = "IMAGE"
    VIDEO = "VIDEO"
    PDF = "PDF"
    PPT = "PPT"


class Quality(StrEnum):
    STANDARD = "STANDARD"
    HIGH = "HIGH"


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


Whole = Annotated[int, Field(ge=1, le=2**31 - 1)]
Bytes = Annotated[int, Field(ge=1, le=2**50)]


class UnitsFeature(_Entry):
    """The price of one kind of file in units, for each started piece where it has pieces."""

    feature: Literal["units"]
    media_type: MeteredMedia
    quality: Annotated[Quality | None, Field(description="Left out: both.")] = None
    units: Whole
    per_seconds: Annotated[
        Whole | None,
        Field(description="Videos: charge for each started span of this many seconds, at most 30 frames a second."),
    ] = None
    per_pages: Annotated[
        Whole | None, Field(description="Charge for each started group of this many pages or slides.")
    ] = None
    per_frames: Annotated[
        Whole | None,
        Field(description="Animated images: charge for each started group of this many frames. Default: 10."),
    ] = None
    per_pixels: Annotated[
        Whole | None,
        Field(
            description="Charge for each started block of this many pixels: of an image all frames together, of a "
            "video one frame, times the price of its length. Default: 25,000,000 for an image, 2,500,000 for a video."
        ),
    ] = None


class MaxFileBytes(_Entry):
    """The largest file that may be uploaded."""

    feature: Literal["max_file_bytes"]
    media_type: Annotated[MeteredMedia | None, Field(description="Left out: every kind.")] = None
    bytes: Bytes


class StoredBytes(_Entry):
    """A user's storage limit in bytes."""

    feature: Literal["stored_bytes"]
    bytes: Bytes


class Concurrency(_Entry):
    """How many of a user's tasks may run at once."""

    feature: Literal["concurrency"]
    tasks: Whole


class RetentionDays(_Entry):
    """Retention of originals or results in days."""

    feature: Literal["retention_days"]
    of: Literal["originals", "results"]
    days: Annotated[int, Field(ge=1, le=3650)]


class Label(_Entry):
    """A line of text in the price list."""

    feature: Literal["label"]
    text: Annotated[str, Field(min_length=1, max_length=120)]


Feature = Annotated[
    UnitsFeature | MaxFileBytes | StoredBytes | Concurrency | RetentionDays | Label, Field(discriminator="feature")
]
FeatureList = Annotated[list[Feature], Field(max_length=100)]
_FEATURES: TypeAdapter[list[Any]] = TypeAdapter(FeatureList)

_DEFAULT_UNITS = (
    UnitsFeature(feature="units", media_type=MeteredMedia.IMAGE, units=1),
    UnitsFeature(feature="units", media_type=MeteredMedia.PDF, units=1, per_pages=1),
    UnitsFeature(feature="units", media_type=MeteredMedia.PPT, units=1, per_pages=1),
    UnitsFeature(feature="units", media_type=MeteredMedia.VIDEO, quality=Quality.STANDARD, units=1, per_seconds=10),
    UnitsFeature(feature="units", media_type=MeteredMedia.VIDEO, quality=Quality.HIGH, units=2, per_seconds=10),
)
_DEFAULT_FILE_BYTES = {
    MeteredMedia.IMAGE: 50 * MIB,
    MeteredMedia.PDF: 200 * MIB,
    MeteredMedia.PPT: 200 * MIB,
    MeteredMedia.VIDEO: 2 * GIB,
}
_DEFAULT_CONCURRENCY = 2
_FRAMES_PER_PIECE = 10  # of an animated image
_PIXELS_PER_PIECE = {MeteredMedia.IMAGE: 25_000_000, MeteredMedia.VIDEO: 2_500_000}


@dataclass(frozen=True, slots=True)
class Features:
    """The combined features of one or more plans, one tuple for each plan; the best value counts."""

    plans: tuple[Sequence[Any], ...] = ((),)

    def units_for(
        self,
        media_type: MeteredMedia,
        quality: Quality = Quality.STANDARD,
        *,
        pages: int = 1,
        seconds: float = 0,
        frames: int = 1,
        pixels: int = 0,
    ) -> int:
        """The price of one file, at least 1, by the cheapest plan. ``pixels`` are those of one frame."""
        rules = [_rule(entries, media_type, quality) for entries in self.plans]
        return min(rule.units * _pieces(rule, pages, seconds, frames, pixels) for rule in rules)

    def max_file_bytes(self, media_type: MeteredMedia) -> int:
        return max(_file_bytes(entries, media_type) for entries in self.plans)

    def stored_bytes(self, default: int | None) -> int | None:
        """The storage limit; ``default`` is that of the settings, and None is no limit."""
        found = self._each(lambda e: e.bytes if isinstance(e, StoredBytes) else None)
        return _max_limit([default if value is None else value for value in found])

    @property
    def concurrency(self) -> int:
        found = self._each(lambda e: e.tasks if isinstance(e, Concurrency) else None)
        return max(_DEFAULT_CONCURRENCY if value is None else value for value in found)

    def retention(self, of: Literal["originals", "results"], default: timedelta | None) -> timedelta | None:
        """The retention of files; ``default`` is that of the settings, and None is for ever."""
        found = self._each(lambda e: timedelta(days=e.days) if isinstance(e, RetentionDays) and e.of == of else None)
        return _max_limit([default if value is None else value for value in found])

    def _each(self, value: Callable[[Any], T | None]) -> list[T | None]:
        """The first value of each plan; None for a plan without one."""
        return [next((limit for e in entries if (limit := value(e)) is not None), None) for entries in self.plans]


def _max_limit(values: Sequence[Limit | None]) -> Limit | None:
    """The largest limit; None is no limit."""
    bounded = [value for value in values if value is not None]
    return None if len(bounded) < len(values) else max(bounded)


def _rule(entries: Sequence[Any], media_type: MeteredMedia, quality: Quality) -> UnitsFeature:
    rules = [e for e in (*entries, *_DEFAULT_UNITS) if isinstance(e, UnitsFeature) and e.media_type is media_type]
    return next(rule for rule in rules if rule.quality in (None, quality))


def _pieces(rule: UnitsFeature, pages: int, seconds: float, frames: int, pixels: int) -> int:
    """The number of charged pieces of a file. Frames and pixels count under every plan: otherwise many photographs
    could be sent as one animated image, and four clips as one of four times the size."""
    if rule.media_type is MeteredMedia.IMAGE:
        by_frames = -(-frames // (rule.per_frames or _FRAMES_PER_PIECE))
        return max(1, by_frames, -(-frames * pixels // (rule.per_pixels or _PIXELS_PER_PIECE[rule.media_type])))
    if rule.media_type is MeteredMedia.VIDEO:
        length = 1 if rule.per_seconds is None else max(1, math.ceil(seconds / rule.per_seconds))
        return length * max(1, -(-pixels // (rule.per_pixels or _PIXELS_PER_PIECE[rule.media_type])))
    return 1 if rule.per_pages is None else max(1, math.ceil(pages / rule.per_pages))


def prices(stored: object) -> list[dict[str, Any]]:
    """A plan's prices of files with all defaults: an entry for each kind, two where quality matters."""
    entries = read_features(stored)
    listed = []
    for media_type in MeteredMedia:
        rules = [_rule(entries, media_type, quality) for quality in Quality]
        same = rules[0] is rules[1]
        for quality, rule in zip(Quality, rules[:1] if same else rules, strict=False):
            filled = {
                "quality": None if same else quality,
                "per_frames": (rule.per_frames or _FRAMES_PER_PIECE) if media_type is MeteredMedia.IMAGE else None,
                "per_pixels": rule.per_pixels or _PIXELS_PER_PIECE.get(media_type),
            }
            listed.append(rule.model_copy(update=filled).model_dump(mode="json", exclude_none=True))
    return listed


def _file_bytes(entries: Sequence[Any], media_type: MeteredMedia) -> int:
    found = [e for e in entries if isinstance(e, MaxFileBytes)]
    own = [e.bytes for e in found if e.media_type is media_type]
    common = [e.bytes for e in found if e.media_type is None]
    return (own or common or [_DEFAULT_FILE_BYTES[media_type]])[0]


def read_features(stored: object) -> Sequence[Any]:
    """Parse stored entries; unknown ones, written by a newer release, are skipped."""
    entries = []
    for each in stored if isinstance(stored, list) else []:
        try:
            entries += _FEATURES.validate_python([each])
        except ValidationError:
            continue
    return entries


# Entitlements in their period, with the features as granted: later changes of the plans do not apply.
CURRENT = """
SELECT features_json FROM headrace.entitlements
WHERE user_id = $1 AND status = 'ACTIVE'
  AND period_start <= coalesce($2, now()) AND period_end > coalesce($2, now())
"""


async def features_of(tx: Tx, user_id: str, *, now: datetime | None = None) -> Features:
    """The features of this user's present entitlements; the defaults if there are none."""
    rows = await tx.fetch(CURRENT, user_id, now)
    return Features(tuple(read_features(row["features_json"]) for row in rows) or ((),))
