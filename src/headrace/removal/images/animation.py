"""Animated pictures (GIF, WebP, PNG): their frames as they are shown, and a file like the one they came from.

Frames are read as a viewer shows them, whatever part of the screen each of them replaces, and written the same way; how
long each is shown and how often all of them are repeated stays.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageSequence

from headrace.removal.media import MAX_ANIMATED_PIXELS

Picture = NDArray[np.uint8]  # H W 3
Alpha = NDArray[np.uint8]  # H W

KINDS = ("GIF", "WEBP", "PNG")
_MAX_COLOURS = 256  # of a palette
_MIN_FRAME_MS = 10


class TooLong(ValueError):
    """There is more of it than can be held."""


@dataclass(slots=True)
class Animation:
    kind: str
    frames: list[Picture]
    alphas: list[Alpha] | None  # None: nothing shows through
    durations: list[int]  # milliseconds
    loop: int | None  # how often it is repeated; 0 is for ever, None once
    lossless: bool
    stand_in: bool = False  # the first frame is a PNG's, for who cannot show animations, and no part of it
    kept: dict[str, Any] = field(default_factory=dict)

    @property
    def size(self) -> tuple[int, int]:
        height, width = self.frames[0].shape[:2]
        return width, height


def is_animated(source: str) -> bool:
    with Image.open(source) as opened:
        return opened.format in KINDS and getattr(opened, "n_frames", 1) > 1


def read(source: str) -> Animation:
    """Raises ``TooLong``, and what Pillow raises."""
    with Image.open(source) as opened:
        count, kind = getattr(opened, "n_frames", 1), opened.format or ""
        if count * opened.width * opened.height > MAX_ANIMATED_PIXELS:
            raise TooLong(f"{count} frames of {opened.width} x {opened.height} pixels are more than can be worked on.")
        loop, stand_in = opened.info.get("loop"), bool(opened.info.get("default_image"))
        kept = {name: opened.info[name] for name in ("icc_profile", "xmp", "exif") if opened.info.get(name)}
        frames, alphas, durations = [], [], []
        for frame in ImageSequence.Iterator(opened):
            whole = np.asarray(frame.convert("RGBA"))
            frames.append(np.ascontiguousarray(whole[..., :3]))
            alphas.append(np.ascontiguousarray(whole[..., 3]))
            durations.append(max(_MIN_FRAME_MS, round(float(frame.info.get("duration") or 0))))
    clear = any((alpha < 255).any() for alpha in alphas)
    lossless = kind != "WEBP" or b"VP8L" in Path(source).read_bytes()
    return Animation(kind, frames, alphas if clear else None, durations, loop, lossless, stand_in, kept)


def write(animation: Animation, frames: list[Picture], path: str) -> None:
    """The same with other pixels. Frames that look the same one after the other may become one that lasts as long."""
    images = [_image(animation, number, frame) for number, frame in enumerate(frames)]
    options: dict[str, Any] = {"duration": animation.durations, **animation.kept}
    if animation.loop is not None:
        options["loop"] = animation.loop
    # What shows through must be wiped before the next frame; what does not is simply painted over.
    clear = animation.alphas is not None
    match animation.kind:
        case "GIF":
            options |= {"disposal": 2 if clear else 1, "optimize": False}
        case "WEBP":
            options |= {"lossless": True, "exact": True} if animation.lossless else {"quality": 95, "method": 4}
        case _:
            options |= {"disposal": 1 if clear else 0, "blend": 0, "default_image": animation.stand_in}
            options["duration"] = animation.durations[animation.stand_in :]
    images[0].save(path, animation.kind, save_all=True, append_images=images[1:], **options)


def _image(animation: Animation, number: int, frame: Picture) -> Image.Image:
    alpha = None if animation.alphas is None else animation.alphas[number]
    if animation.kind == "GIF":
        return _with_palette(animation.frames[number], frame, alpha)
    if alpha is None:
        return Image.fromarray(frame)
    return Image.fromarray(np.dstack([frame, alpha]))


def _with_palette(before: Picture, after: Picture, alpha: Alpha | None) -> Image.Image:
    """A frame of at most 256 colours: those that the frame had, exactly, and of the new ones as many as there is room
    for."""
    shown = np.ones(before.shape[:2], np.bool_) if alpha is None else alpha >= 128
    room = _MAX_COLOURS - (alpha is not None)
    changed = (before != after).any(2) & shown
    stay = _codes(before)[shown & ~changed]
    palette, times = np.unique(stay, return_counts=True)
    if len(palette) > room:  # several palettes, one over the other: the rarest go
        palette = palette[np.argsort(-times)[:room]]
    if changed.any() and len(palette) < room:
        palette = np.concatenate([palette, _fewer(_codes(after)[changed], room - len(palette))])
    table = np.stack([palette >> 16, palette >> 8 & 255, palette & 255], 1).astype(np.float32)
    numbers = np.zeros(before.shape[:2], np.uint8)
    codes, where = np.unique(_codes(after)[shown], return_inverse=True)
    numbers[shown] = _nearest(codes, table)[where]
    image = Image.fromarray(numbers, "P")
    image.putpalette(table.astype(np.uint8).tobytes())
    if alpha is not None:
        numbers[~shown] = len(table)
        image = Image.fromarray(numbers, "P")
        image.putpalette(table.astype(np.uint8).tobytes() + b"\0\0\0")
        image.info["transparency"] = len(table)
    return image


def _codes(picture: Picture) -> NDArray[np.int32]:
    wide = picture.astype(np.int32)
    return wide[..., 0] << 16 | wide[..., 1] << 8 | wide[..., 2]


def _fewer(codes: NDArray[np.int32], most: int) -> NDArray[np.int32]:
    """A palette of this many colours, by median cut."""
    unique = np.unique(codes)
    if len(unique) <= most:
        return unique
    strip = np.stack([codes >> 16, codes >> 8 & 255, codes & 255], 1).astype(np.uint8)
    few = Image.fromarray(strip[None]).quantize(most, Image.Quantize.MEDIANCUT)
    colours = np.array(few.getpalette()[: 3 * most], np.int32).reshape(-1, 3)  # type: ignore[index]
    return np.unique(colours[:, 0] << 16 | colours[:, 1] << 8 | colours[:, 2]).astype(np.int32)


def _nearest(codes: NDArray[np.int32], table: NDArray[np.float32]) -> NDArray[np.uint8]:
    colours = np.stack([codes >> 16, codes >> 8 & 255, codes & 255], 1).astype(np.float32)
    nearest = np.empty(len(colours), np.uint8)
    for start in range(0, len(colours), 4096):
        apart = ((colours[start : start + 4096, None] - table[None]) ** 2).sum(2)
        nearest[start : start + 4096] = apart.argmin(1)
    return nearest
