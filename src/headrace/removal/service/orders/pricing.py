"""What a removal costs: by what inspection found in the file, and by what the user's plan asks for it."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from headrace.assets.inspection.model import Format, MediaType
from headrace.assets.model import Asset
from headrace.billing.features import Features, MeteredMedia, Quality
from headrace.removal import media
from headrace.removal.errors import DocumentEncrypted, DocumentSigned
from headrace.removal.order import Span, changed_pages, paid_seconds
from headrace.removal.service.orders.errors import MediaUnsupported, OrderInvalid
from headrace.removal.service.orders.model import Priced, Size, Wanted

# What can be written, by what is read; the first is the default.
_PICTURES = ("jpeg", "png", "webp", "tiff")
_ANIMATED = ("gif", "webp", "png")


def price(asset: Asset, wanted: Wanted, features: Features) -> Priced:
    """What this file would cost; refuses what is known to be impossible before anybody pays for it."""
    facts = dict(asset.meta_json or {})
    _require_doable(asset, facts, wanted)
    pages = _pages(
        wanted.unlocked.get(asset.id) or facts.get("pages") or 1,
        changed_pages(wanted.pages, wanted.hints, named=bool(wanted.candidates)),
    )
    has_pages = asset.media_type in (MediaType.PDF, MediaType.PPT)
    length = paid_seconds((facts.get("duration_ms") or 0) / 1000, facts.get("frames") or 0)
    size = Size(
        pages=pages if has_pages else 1,
        seconds=length if asset.media_type == MediaType.VIDEO else 0,
        frames=_frames(facts),
        pixels=(facts.get("width") or 0) * (facts.get("height") or 0),
    )
    units = features.units_for(MeteredMedia(asset.media_type), Quality(wanted.quality), **asdict(size))
    animated = asset.media_type == MediaType.IMAGE and _frames(facts) > 1
    output = facts["format"] if animated else _output(Format(facts["format"]), wanted.output_format)
    return Priced(asset, output, units, size)


def _require_doable(asset: Asset, facts: dict[str, Any], wanted: Wanted) -> None:
    if asset.media_type == MediaType.OTHER:
        raise MediaUnsupported(
            f"{asset.origin_name} is {asset.mime_type}: marks are taken off pictures, videos, PDFs and presentations."
        )
    if "format" not in facts:
        raise MediaUnsupported(f"{asset.origin_name} was never looked into: upload it again.")
    if asset.media_type == MediaType.IMAGE and _frames(facts) > 1:
        _require_animation(asset, facts, wanted)
    if facts.get("encrypted") and asset.id not in wanted.unlocked:
        raise DocumentEncrypted(f"{asset.origin_name} is encrypted: order it with its `password`.")
    if facts.get("signed") and not wanted.break_signature:
        raise DocumentSigned("The document is signed, and a change breaks that: allow it with `break_signature`.")
    _require_hints_fit(asset, wanted)


def _frames(facts: dict[str, Any]) -> int:
    return int(facts.get("frames") or facts.get("pages") or 1)


def _require_animation(asset: Asset, facts: dict[str, Any], wanted: Wanted) -> None:
    """Whether it can be worked on frame by frame."""
    frames = _frames(facts)
    if facts["format"] not in _ANIMATED:
        raise MediaUnsupported(
            f"{asset.origin_name} holds {frames} pictures: save the one that you mean to a file of its own."
        )
    if frames * facts["width"] * facts["height"] > media.MAX_ANIMATED_PIXELS:
        raise MediaUnsupported(f"{asset.origin_name} holds {frames} frames, more than are worked on: make it a video.")
    if wanted.output_format not in (None, facts["format"]):
        raise OrderInvalid(f"An animation stays what it is: leave the format out, or say {facts['format']}.")


def _require_hints_fit(asset: Asset, wanted: Wanted) -> None:
    has_hints = bool(wanted.candidates or wanted.mask_asset_id) or any(
        hint.boxes or hint.polygons for hint in wanted.hints
    )
    if wanted.mode == "MANUAL" and not has_hints:
        raise OrderInvalid("MANUAL takes off what you name: candidates, a mask, boxes or polygons.")
    if wanted.mode == "AUTO" and has_hints:
        raise OrderInvalid("AUTO finds the mark by itself: order MANUAL, or leave candidates, mask and boxes out.")
    if wanted.mask_asset_id is not None and asset.media_type not in (MediaType.IMAGE, MediaType.VIDEO):
        raise OrderInvalid("A mask is for pictures and videos: of documents name candidates, or boxes on a page.")
    if wanted.pages and asset.media_type not in (MediaType.PDF, MediaType.PPT):
        raise OrderInvalid("Only documents have pages.")
    if any(hint.seconds for hint in wanted.hints) and asset.media_type != MediaType.VIDEO:
        raise OrderInvalid("Only videos last for seconds.")


def _pages(count: int, ranges: Sequence[Span]) -> int:
    if not ranges:
        return count
    named = {page for first, last in ranges for page in range(max(1, first), min(last, count) + 1)}
    if not named:
        raise OrderInvalid(f"The document has {count} pages: none of them was named.")
    return len(named)


def _output(found: Format, asked: str | None) -> str:
    default = "jpeg" if found is Format.HEIC else "png" if found is Format.GIF else found.value
    if asked is None or asked == default:
        return default
    if found.media_type is MediaType.IMAGE and asked in _PICTURES:
        return asked
    if found is Format.PPT and asked == Format.PPTX.value:
        return asked
    choices = (
        _PICTURES if found.media_type is MediaType.IMAGE else ("pptx", "ppt") if found is Format.PPT else (default,)
    )
    raise OrderInvalid(f"{found} cannot become {asked}: choose from {', '.join(dict.fromkeys((default, *choices)))}.")
