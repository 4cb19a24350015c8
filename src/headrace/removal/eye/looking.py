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

# On the probability, in 255ths: where a fine look is worth while, and what a mark must hold.
# Chosen so that clean photographs stay untouched (MODEL_CARD.md).
_WORTH, _HIGH = 180, 200
# Where a mark begins, how many of its pixels must be over _HIGH, and what the coarse look must say of it on average.
_LOOSELY, _FIRMLY = (80, 0.4, 30), (140, 0.7, 120)
_FEWEST = 60  # pixels over _HIGH that make a mark
_JOIN = 9  # strokes this near belong together
_MARGIN = 2

# The picture's score from the size of what was seen (its logarithm), and from what the fine and the coarse look said of
# it on average: false alarms are small, or doubtful, or only one look sees them. Fitted, see MODEL_CARD.md.
_BY_SIZE, _BY_FINE, _BY_COARSE, _OFFSET = 3.0, 10.8, 6.6, -22.8


def look(image: NDArray[np.generic], *, threads: int = 2) -> Sight:
    """What mark the image carries, if any: grey, RGB or RGBA of 8 or 16 bits, of any size.

    The same image gives the same sight, whatever the number of threads; fewer than two are two.
    """
    picture = as_picture(image)
    height, width = picture.shape[:2]
    step = 1 if height * width <= _MOST_PIXELS else 2 ** math.ceil(math.log2(height * width / _MANY_PIXELS) / 2)
    canvas = picture if step == 1 else _shrunk(picture, step)
    frugal = step > 1
    coarse = _coarse(canvas, threads, frugal=frugal)
    boxes = _tiles(*canvas.shape[:2]) if coarse is None else _tiles_around(coarse)
    seen = _fine(canvas, boxes, threads, frugal=frugal)
    likely = seen[0]
    other = likely if coarse is None else coarse
    regions, tight = _regions(likely, other)
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
        _score(likely[tight], other[tight]),
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
    likely = _fine(half, _tiles(*half.shape[:2]), threads, frugal=frugal)[0]
    if half.shape[0] * half.shape[1] > _LARGE:
        small = _shrunk(half, 2)
        quarter = _fine(small, _tiles(*small.shape[:2]), threads, frugal=frugal)[0]
        likely = np.maximum(likely, cv2.resize(quarter, half.shape[1::-1], interpolation=cv2.INTER_LINEAR))
    enlarged: NDArray[np.uint8] = cv2.resize(likely, (width, height), interpolation=cv2.INTER_LINEAR)
    return enlarged


def _fine(canvas: Picture, boxes: list[Box], threads: int, *, frugal: bool) -> NDArray[np.uint8]:
    """All planes (PLANES H W, in 255ths) of the boxes, which may overlap; zero elsewhere."""
    height, width = canvas.shape[:2]
    planes = np.zeros((weights.PLANES, height, width), np.uint8)
    written = np.zeros((height, width), np.bool_)
    ramp = (np.arange(2 * _TILE, dtype=np.float32) + 1) / (_OVERLAP + 1)
    # The network itself works on two threads, always; more are spent on more tiles at a time.
    tiles = max(1, threads // 2)
    with ThreadPoolExecutor(tiles) as pool:
        for batch in _batched(boxes, tiles):
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


def _tiles_around(coarse: NDArray[np.uint8]) -> list[Box]:
    """Tiles over all that the coarse look found worth it: around each find, or around those that lie near together."""
    height, width = coarse.shape
    worth = (coarse >= _WORTH).view(np.uint8)
    joined = cv2.dilate(worth, np.ones((_JOIN, _JOIN), np.uint8))
    _, labels, finds, _ = cv2.connectedComponentsWithStats(joined, connectivity=8, ltype=cv2.CV_32S)
    pixels = np.bincount(labels[worth.view(np.bool_)], minlength=len(finds))
    # Drawn with their surroundings, finds that share some become one.
    drawn = np.zeros((height, width), np.uint8)
    for left, top, wide, high, _ in finds[1:][pixels[1:] >= _FEWEST]:
        drawn[max(0, top - _AROUND) : top + high + _AROUND, max(0, left - _AROUND) : left + wide + _AROUND] = 1
    _, _, groups, _ = cv2.connectedComponentsWithStats(drawn, connectivity=4, ltype=cv2.CV_32S)
    tiles = [tile for left, top, wide, high, _ in groups[1:].tolist() for tile in _tiles(high, wide, top, left)]
    return [tile for tile in tiles if drawn[tile].any()]


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
    """Marks: pixels that hang together with enough pixels over _HIGH, and that both looks agree on.

    What hangs together loosely, by doubtful pixels, and is no mark as a whole comes apart and is weighed again.
    """
    tight = np.zeros(likely.shape, np.bool_)
    regions = [region for rule in (_LOOSELY, _FIRMLY) for region in _hanging_together(likely, coarse, tight, *rule)]
    regions.sort(key=lambda region: (-region.score, region.top, region.left))
    return regions, tight


def _hanging_together(
    likely: NDArray[np.uint8], coarse: NDArray[np.uint8], tight: Mask, low: int, share: float, least: int
) -> Iterator[Region]:
    """The marks among what is over ``low`` and not in ``tight`` yet; they are entered there."""
    above = ((likely >= low) & ~tight).view(np.uint8)
    near = cv2.dilate(above, np.ones((_JOIN, _JOIN), np.uint8))
    count, labels, boxes, _ = cv2.connectedComponentsWithStats(near, connectivity=8, ltype=cv2.CV_32S)
    # Only of the pixels that count: a picture of many megapixels is mostly unmarked.
    at = np.flatnonzero(above)
    label, chance = labels.ravel()[at], likely.ravel()[at]
    pixels = np.bincount(label, minlength=count)
    strong = np.bincount(label[chance >= _HIGH], minlength=count)
    score = np.bincount(label, chance, minlength=count) / np.maximum(pixels, 1) / 255
    agreed = np.bincount(label, coarse.ravel()[at], minlength=count) / np.maximum(pixels, 1)
    good = (strong >= _FEWEST) & (strong >= share * pixels) & (agreed >= least)
    good[0] = False
    tight.ravel()[at[good[label]]] = True
    for i in np.flatnonzero(good):
        left, top, width, height = (int(v) for v in boxes[i, :4])
        yield Region(left, top, width, height, round(float(score[i]), 4), int(pixels[i]))


def _score(fine: NDArray[np.uint8], coarse: NDArray[np.uint8]) -> float:
    told = _BY_FINE * fine.mean() / 255 + _BY_COARSE * coarse.mean() / 255
    return 1 / (1 + math.exp(-(_BY_SIZE * math.log10(len(fine)) + float(told) + _OFFSET)))


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
