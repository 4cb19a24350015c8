"""One picture of a command: what kind of file it is, and pictures of the mark for people."""

import contextlib
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from headrace.assets.heif import plugin
from headrace.assets.heif.items import GENERAL_BRANDS, HEVC_BRANDS
from headrace.removal.errors import HintUnusable, PictureUnreadable, TargetUnusable
from headrace.removal.images import animation, formats
from headrace.removal.images.comparison import Triptych
from headrace.removal.images.stages import mark_of
from headrace.removal.order import ENDINGS, Names, Order, StageOrder
from headrace.removal.paths import KINDS

MAX_PIXELS = 250_000_000
_ORIENTATION_TAG, _FIRST_SIDEWAYS_ORIENTATION = 274, 5


def described(order: Order) -> Order:
    """The order with the kind of its result and the number of frames. Raises ``PictureUnreadable``,
    ``TargetUnusable`` and ``HintUnusable``."""
    kind, frames = _kind_of(order)
    if frames > 1 and order.strength != 1:
        raise HintUnusable("Of animations all of the change is made: leave out --strength.")
    # That a result is poor is reported, and the caller decides.
    return replace(order, format=kind.lower(), output_format=kind.lower(), frames=frames, accept_poor=True)


def _kind_of(order: Order) -> tuple[str, int]:
    name = Path(order.source).name
    _register_heic(order.source)
    Image.MAX_IMAGE_PIXELS = None  # checked here, with a message of our own
    try:
        with Image.open(order.source) as opened:
            width, height = opened.size
            kind, frames = "JPEG" if opened.format == "MPO" else opened.format or "PNG", 1
        if width * height > MAX_PIXELS:
            raise PictureUnreadable(
                f"{name} has {width * height / 1e6:,.0f} megapixels: {MAX_PIXELS / 1e6:,.0f} are the most. Make it "
                "smaller first."
            )
        if animation.is_animated(order.source):
            film = animation.read(order.source)
            kind, frames = film.kind, len(film.frames)
    except animation.TooLong as exc:
        raise PictureUnreadable(str(exc)) from exc
    except UnidentifiedImageError as exc:
        raise PictureUnreadable(f"{name} is no picture, clip, PDF or deck of slides.") from exc
    except formats.BROKEN as exc:
        raise PictureUnreadable(f"{order.source} is not a picture that can be read: {exc}") from exc
    if order.result is None:
        return kind, frames
    wanted = KINDS.get(Path(order.result).suffix.lower(), kind)
    if frames > 1 and wanted != kind:
        raise TargetUnusable(f"An animated {kind} stays one: let --to end in .{ENDINGS[kind.lower()]}.")
    return wanted, frames


def _register_heic(source: str) -> None:
    with contextlib.suppress(OSError), Path(source).open("rb") as file:
        head = file.read(12)
        if head[4:8] == b"ftyp" and head[8:12] in HEVC_BRANDS | GENERAL_BRANDS:
            plugin.register()


def still_size(source: str) -> tuple[int, int] | None:
    """As the picture is shown; None for an animation and what cannot be read."""
    try:
        with Image.open(source) as opened:
            if getattr(opened, "n_frames", 1) > 1 and opened.format != "MPO":
                return None
            turned = opened.getexif().get(_ORIENTATION_TAG, 1) >= _FIRST_SIDEWAYS_ORIENTATION
            return opened.size[::-1] if turned else opened.size
    except (Image.DecompressionBombError, *formats.BROKEN):
        return None


def save_mask(order: StageOrder, target: str) -> None:
    """Write the pixels of the mark that was detected, if there is one."""
    if any(Path(order.path(name)).exists() for name in (Names.DETECTION, Names.MATTE)):
        Image.fromarray(mark_of(order).tight).convert("L").save(target, "PNG")


def save_comparison(order: StageOrder, target: str) -> None:
    """Write before, mask and after beside each other."""
    before, after = (_first_frame(path, animated=order.order.frames > 1) for path in (order.order.source, order.result))
    Triptych.of(before, mark_of(order).tight).save(target, after)


def save_variant(order: StageOrder, target: str) -> None:
    """Write the picture filled in another way, if there is one."""
    variant = order.memory.pop("variant", None)
    if variant is not None:
        _, original = formats.read(order.order.source)
        formats.write(variant, original, target, formats.kind_of_result(order.result, original))


def _first_frame(path: str, *, animated: bool) -> NDArray[np.uint8]:
    return animation.read(path).frames[0] if animated else formats.read(path)[0]
