"""Finding a mark: a coarse look at everything, then a fine one where something was seen."""

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
from numpy.typing import NDArray

from headrace.removal.eye import weights
from headrace.removal.eye.model import Mask, Picture, Region, Sight

Box = tuple[slice, slice]

# A run of the network takes a few hundred bytes a pixel: what is larger is looked at in tiles that overlap.
_TILE, _OVERLAP = 736, 96
_AROUND = 96  # what is seen of the surroundings of a mark
# Up to here planes have the picture's size; beyond, they are so much smaller that they have no more than so many.
_MOST_PIXELS, _MANY_PIXELS = 25_000_000, 12_500_000
# Under this a coarse look would see nothing that the fine one does not.
_SMALL = 60_000
# From here on, at half its size, a picture may carry letters larger than a tile.
_LARGE = 3_000_000

# On the probability, in 255ths: where a fine look is worth while, where a mark begins, what it must hold, and what the
# coarse look must say of it on average. Chosen so that clean photographs stay untouched (MODEL_CARD.md).
_WORTH, _LOW, _HIGH, _AGREED = 110, 100, 200, 90
_FEWEST = 60  # pixels over _HIGH that make a mark
_SHARE = 0.4  # and how many of its pixels they must be
_JOIN = 9  # strokes this near belong together
_MARGIN = 2

# The picture's score from the size of what was seen: false alarms are small. Fitted, see MODEL_CARD.md.
_SLOPE, _OFFSET = 5.9, -21.4


def look(image: NDArray[np.generic], *, threads: int = 2) -> Sight:
    """What mark the image carries, if any: grey, RGB or RGBA of 8 or 16 bits, of any size.

    The same image gives the same sight, whatever the number of threads.
    """
    picture = as_picture(image)
    height, width = picture.shape[:2]
    step = 1 if height * width <= _MOST_PIXELS else 2 ** math.ceil(math.log2(height * width / _MANY_PIXELS) / 2)
    canvas = picture if step == 1 else _shrunk(picture, step)
    frugal = step > 1
    coarse = _coarse(canvas, threads, frugal=frugal)
    if coarse is not None and np.count_nonzero(coarse >= _WORTH) < _FEWEST:
        return _nothing(height, width, step, canvas.shape[:2])
    seen = _fine(canvas, None if coarse is None else coarse >= _WORTH, threads, frugal=frugal)
    likely = seen[0]
    regions, tight = _regions(likely, likely if coarse is None else coarse)
    if not regions:
        return _nothing(height, width, step, canvas.shape[:2])
    loose = cv2.dilate(tight.view(np.uint8), np.ones((2 * _MARGIN + 1,) * 2, np.uint8)).view(np.bool_)
    return Sight(
        height,
        width,
        step,
        tight,
        loose,
        seen[1] * loose,
        np.ascontiguousarray(np.moveaxis(seen[2:5], 0, 2)) * loose[..., None],
        seen[5],
        1 / (1 + math.exp(-(_SLOPE * math.log10(np.count_nonzero(tight)) + _OFFSET))),
        tuple(_scaled(region, step, height, width) for region in regions),
    )


def as_picture(image: NDArray[np.generic]) -> Picture:
    """Any image as RGB of 8 bits; transparency is left out."""
    if image.dtype == np.uint16:
        image = (image.astype(np.uint16) >> np.uint16(8)).astype(np.uint8)
    if image.dtype != np.uint8 or image.ndim not in (2, 3) or 0 in image.shape:
        raise ValueError("an image has 8 or 16 bits and two or three dimensions")
    if image.ndim == 2 or image.shape[2] < 3:
        grey = image if image.ndim == 2 else image[..., 0]
        return np.repeat(grey[..., None], 3, 2).astype(np.uint8, copy=False)
    return np.ascontiguousarray(image[..., :3]).astype(np.uint8, copy=False)


def _shrunk(picture: Picture, step: int) -> Picture:
    height, width = picture.shape[:2]
    size = (max(1, math.ceil(width / step)), max(1, math.ceil(height / step)))
    return cv2.resize(picture, size, interpolation=cv2.INTER_AREA)  # type: ignore[return-value]


def _coarse(canvas: Picture, threads: int, *, frugal: bool) -> NDArray[np.uint8] | None:
    """The probability as seen at half the size, enlarged again; None where the canvas is small itself."""
    height, width = canvas.shape[:2]
    if height * width < _SMALL or min(height, width) < 2 * weights.STRIDE:
        return None
    half = _shrunk(canvas, 2)
    likely = _fine(half, None, threads, frugal=frugal)[0]
    if half.shape[0] * half.shape[1] > _LARGE:
        quarter = _fine(_shrunk(half, 2), None, threads, frugal=frugal)[0]
        likely = np.maximum(likely, cv2.resize(quarter, half.shape[1::-1], interpolation=cv2.INTER_LINEAR))
    enlarged: NDArray[np.uint8] = cv2.resize(likely, (width, height), interpolation=cv2.INTER_LINEAR)
    return enlarged


def _fine(canvas: Picture, wanted: Mask | None, threads: int, *, frugal: bool) -> NDArray[np.uint8]:
    """All planes (PLANES H W, in 255ths), of the tiles in which something is wanted."""
    height, width = canvas.shape[:2]
    planes = np.zeros((weights.PLANES, height, width), np.uint8)
    boxes = _tiles(height, width) if wanted is None else _tiles_around(wanted)
    written = np.zeros((height, width), np.bool_)
    ramp = (np.arange(2 * _TILE, dtype=np.float32) + 1) / (_OVERLAP + 1)
    # One thread for each tile and never several for one: sums then have one order, whatever the number of threads.
    with ThreadPoolExecutor(threads) as pool:
        for batch in _batched(boxes, threads):
            for box, tile in zip(batch, pool.map(lambda box: _run(canvas[box], frugal=frugal), batch), strict=True):
                fade = np.minimum(1, ramp[: tile.shape[1], None]) * np.minimum(1, ramp[None, : tile.shape[2]])
                weight = np.where(written[box], fade, np.float32(1))
                part = planes[:, box[0], box[1]]
                part[:] = np.rint(part * (1 - weight) + tile * weight)
                written[box] = True
    return planes


def _batched(boxes: list[Box], count: int) -> Iterator[list[Box]]:
    return (boxes[i : i + count] for i in range(0, len(boxes), count))


def _tiles(height: int, width: int, top: int = 0, left: int = 0) -> list[Box]:
    return [(rows, columns) for rows in _cuts(top, height) for columns in _cuts(left, width)]


def _tiles_around(wanted: Mask) -> list[Box]:
    """Tiles over the smallest box that holds all that is wanted, without those in which nothing is."""
    rows, columns = np.flatnonzero(wanted.any(1)), np.flatnonzero(wanted.any(0))
    top, left = max(0, int(rows[0]) - _AROUND), max(0, int(columns[0]) - _AROUND)
    bottom, right = min(wanted.shape[0], int(rows[-1]) + _AROUND), min(wanted.shape[1], int(columns[-1]) + _AROUND)
    return [box for box in _tiles(bottom - top, right - left, top, left) if wanted[box].any()]


def _cuts(start: int, length: int) -> list[slice]:
    """A length cut into equal parts of a tile's size at the most, which overlap."""
    count = max(1, math.ceil((length - _OVERLAP) / (_TILE - _OVERLAP)))
    size = math.ceil((length + (count - 1) * _OVERLAP) / count)
    return [
        slice(start + begin, start + min(length, begin + size))
        for begin in range(0, count * (size - _OVERLAP), size - _OVERLAP)
    ][:count]


def _run(tile: Picture, *, frugal: bool) -> NDArray[np.uint8]:
    height, width = tile.shape[:2]
    padded = cv2.copyMakeBorder(tile, 0, -height % weights.STRIDE, 0, -width % weights.STRIDE, cv2.BORDER_REFLECT_101)
    planes = weights.run(padded, frugal=frugal)[:, :height, :width]  # type: ignore[arg-type]
    levels: NDArray[np.uint8] = np.rint(planes * np.float32(255)).astype(np.uint8)
    return levels


def _regions(likely: NDArray[np.uint8], coarse: NDArray[np.uint8]) -> tuple[list[Region], Mask]:
    """Marks: pixels over _LOW that hang together with enough pixels over _HIGH, and that both looks agree on."""
    above = (likely >= _LOW).view(np.uint8)
    near = cv2.dilate(above, np.ones((_JOIN, _JOIN), np.uint8))
    count, labels, boxes, _ = cv2.connectedComponentsWithStats(near, connectivity=8, ltype=cv2.CV_32S)
    # Only of the pixels that count: a picture of many megapixels is mostly unmarked.
    at = np.flatnonzero(above)
    label, chance = labels.ravel()[at], likely.ravel()[at]
    pixels = np.bincount(label, minlength=count)
    strong = np.bincount(label[chance >= _HIGH], minlength=count)
    score = np.bincount(label, chance, minlength=count) / np.maximum(pixels, 1) / 255
    agreed = np.bincount(label, coarse.ravel()[at], minlength=count) / np.maximum(pixels, 1)
    good = (strong >= _FEWEST) & (strong >= _SHARE * pixels) & (agreed >= _AGREED)
    good[0] = False
    tight = np.zeros(likely.shape, np.bool_)
    tight.ravel()[at[good[label]]] = True
    regions = []
    for i in np.flatnonzero(good):
        left, top, width, height = (int(v) for v in boxes[i, :4])
        regions.append(Region(left, top, width, height, round(float(score[i]), 4), int(pixels[i])))
    regions.sort(key=lambda region: (-region.score, region.top, region.left))
    return regions, tight


def _scaled(region: Region, step: int, height: int, width: int) -> Region:
    if step == 1:
        return region
    left, top = region.left * step, region.top * step
    right, bottom = min(width, left + region.width * step), min(height, top + region.height * step)
    return Region(left, top, right - left, bottom - top, region.score, region.pixels * step * step)


def _nothing(height: int, width: int, step: int, size: tuple[int, int]) -> Sight:
    empty = np.zeros(size, np.uint8)
    mask = empty.view(np.bool_)
    return Sight(height, width, step, mask, mask, empty, np.zeros((*size, 3), np.uint8), empty, 0.0, ())
