"""A JPEG whose pixels changed in places, packed so that the rest decodes as before.

Packing decoded colours again loses something everywhere: they were rounded to RGB, and their two colour planes, which
most files hold at half the size, were smoothed while they were enlarged. So the planes are taken as the file holds
them, changed where the picture changed, and packed with the file's own tables: other blocks get their old numbers.
"""

import numpy as np
from numpy.typing import NDArray
from PIL import Image, JpegImagePlugin

Picture = NDArray[np.uint8]
Mask = NDArray[np.bool_]

FULL, HALF_WIDTH, HALF = 0, 1, 2  # how large the colour planes are, by Pillow's numbers
_MAX_TURNS = 12
# How the stored picture is turned upright, by EXIF's number, and back.
_BACK = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}
_ORIENTATION_TAG = 274
_MIDDLE = np.array((0, 128, 128), np.float32)
_TO_PLANES = np.array(((0.299, -0.168736, 0.5), (0.587, -0.331264, -0.418688), (0.114, 0.5, -0.081312)), np.float32)


class NotAlike(ValueError):
    """The planes of this file cannot be had as it holds them."""


def changed_in_place(source: str, picture: Picture) -> Image.Image:
    """The planes (YCbCr) of the file with the changes that ``picture``, which is upright, has; turned as the file is.

    Raises ``NotAlike``, and what Pillow raises.
    """
    with Image.open(source) as opened:
        sampling = JpegImagePlugin.get_sampling(opened)
        if opened.mode != "RGB" or opened.info.get("adobe_transform") == 0 or sampling not in (FULL, HALF_WIDTH, HALF):
            raise NotAlike("it has planes of another kind")
        turned = opened.getexif().get(_ORIENTATION_TAG, 1)
        before = np.asarray(opened.convert("RGB"))
    after = Image.fromarray(picture)
    if turned in _BACK:
        after = after.transpose(_BACK[turned])
    if after.size != (before.shape[1], before.shape[0]):
        raise NotAlike("it has another size")
    changed: Mask = (np.asarray(after) != before).any(2)
    planes = _decoded(source)
    colours = _colours(source, planes, sampling)
    # Not rounded before the colours are shrunk; Pillow's own conversion is too coarse.
    fresh = np.asarray(after)[changed] @ _TO_PLANES + _MIDDLE
    planes[changed] = np.clip(np.rint(fresh), 0, 255)
    if sampling == FULL:
        return _image(planes)
    high = 2 if sampling == HALF else 1
    exact = planes[..., 1:].astype(np.float32)
    exact[changed] = fresh[:, 1:]
    touched = _pooled(changed[..., None].astype(np.float32), high)[..., 0] > 0
    colours[touched] = np.clip(np.rint(_pooled(exact, high)[touched]), 0, 255)
    wide = colours.astype(np.uint8).repeat(high, 0).repeat(2, 1)
    planes[..., 1:] = wide[: planes.shape[0], : planes.shape[1]]
    return _image(planes)


def _decoded(source: str, size: tuple[int, int] | None = None) -> Picture:
    with Image.open(source) as opened:
        opened.draft("YCbCr", size)
        if opened.mode != "YCbCr":
            raise NotAlike("it cannot be had as planes")
        return np.array(opened)


def _colours(source: str, planes: Picture, sampling: int) -> NDArray[np.float32]:
    """The two colour planes at the size that the file holds them."""
    height, width = planes.shape[:2]
    if sampling == FULL:
        return planes[..., 1:].astype(np.float32)
    if sampling == HALF:
        # Asked for half the size, the decoder gives the colours as they are, and shrinks the brightness alone.
        small = (-(-width // 2), -(-height // 2))
        half = _decoded(source, (width // 2, height // 2)) if min(width, height) > 1 else planes[:1, :1]
        if half.shape[:2] != small[::-1]:
            raise NotAlike("its half has another size")
        return half[..., 1:].astype(np.float32)
    # The decoder has enlarged them with neighbours' shares: 3 parts of 4 are a sample's own. Undone step by step.
    mean = _pooled(planes[..., 1:].astype(np.float32), 1)
    own = mean.copy()
    for _ in range(_MAX_TURNS):
        left, right = np.roll(own, 1, 1), np.roll(own, -1, 1)
        left[:, 0], right[:, -1] = own[:, 0], own[:, -1]
        own += mean - (6 * own + left + right) / 8
    return np.clip(np.rint(own), 0, 255)


def _pooled(plane: NDArray[np.float32], high: int) -> NDArray[np.float32]:
    """Means of ``high`` by 2 pixels; the last row and column stand in for what is missing."""
    height, width = plane.shape[:2]
    even = np.pad(plane, ((0, -height % high), (0, width % 2), (0, 0)), mode="edge")
    rows, columns, depth = even.shape
    means: NDArray[np.float32] = even.reshape(rows // high, high, columns // 2, 2, depth).mean((1, 3))
    return means


def _image(planes: Picture) -> Image.Image:
    return Image.fromarray(planes, "YCbCr")
