"""A band or a plate that lies over many views, with words on it: first the plate is lifted, then the words are solved.

What lies under a wide plate cannot be filled in from around it, and so its inside does not reveal its strength. But
along its sides the same scene lies under it and beside it, in every view: from there both strength and colour are read.
"""

from collections.abc import Sequence
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from headrace.removal.images.eye.membrane import fill
from headrace.removal.images.eye.model import Mask, Plane, loosened
from headrace.removal.images.eye.plates import Box
from headrace.removal.images.views.solving import Guess, Matte, solve
from headrace.removal.images.views.stack import Views, moments

_SIDE_BAND_PX = (3, 7)  # pixels from a side, on either side of it: nearer ones are smeared
_MIN_COLUMNS = 40  # columns that are read
_MIN_LIKENESS_RATIO = (
    0.8  # how well what lies beside the plate tells what lies under its rim: with less, it is no plate
)
_MIN_ALPHA, _MAX_ALPHA = 0.05, 0.85
_MAX_SNAP_RATIO = 0.06  # as in ``solving``: so much stronger or weaker, and a plate is taken for black or for white
_MIN_COLOUR_DISTANCE_LEVELS = 90.0  # levels by which the colour of words differs from the plate's
_MIN_STROKE_PX = 5.0  # pixels from the inside of a stroke: thinner ones stay as they were solved
_SMEARED_EDGE_PX = 2  # pixels at the plate's sides that files smear


class Ink(NamedTuple):
    alpha: float
    colour: NDArray[np.float32]


def solve_plated(views: Views, guess: Guess, plates: Sequence[Box]) -> Matte:
    """As ``solve``, with the plates separated from the words on them."""
    lifted: list[NDArray[np.uint8]] = list(views)
    alpha, tint = np.zeros(guess.tight.shape, np.float32), np.zeros((*guess.tight.shape, 3), np.float32)
    rest = guess.tight.copy()
    plain = np.zeros_like(rest)
    written: list[tuple[Mask, Ink]] = []
    for plate in plates:
        words = _words(guess, plate)
        ink = read(views, plate, words)
        if ink is None:
            continue
        inner = _inner(plate, rest.shape)
        clear = np.zeros_like(rest)
        clear[inner.part] = True
        clear &= ~loosened(words) & guess.loose
        lifted = [_lift(view, clear, ink) for view in lifted]
        alpha[clear] = ink.alpha
        tint[clear] = ink.alpha * ink.colour
        rest[plate.part] &= ~clear[plate.part]
        plain |= clear
        written.append((words, ink))
    if not plain.any():
        return solve(views, guess)
    loose = guess.loose & ~plain
    solved = solve(lifted, Guess(rest, loose, guess.alpha, guess.tint))
    alpha, tint = np.where(plain, alpha, solved.alpha), np.where(plain[..., None], tint, solved.tint)
    for words, ink in written:
        _mix_rims(alpha, tint, lifted, words, ink, loose)
    return Matte(alpha, tint, guess.loose, solved.trust)


def _mix_rims(alpha: Plane, tint: Plane, lifted: Views, words: Mask, ink: Ink, loose: Mask) -> None:
    """At the rims of its words the plate shows between them, where ``solve`` expects nothing but the scene."""
    core = cv2.erode(words.view(np.uint8), np.ones((3, 3), np.uint8)).view(np.bool_)
    rims = loosened(words) & loose & ~core
    if not core.any():
        return
    away, label = cv2.distanceTransformWithLabels(
        (~core).view(np.uint8), cv2.DIST_L2, 3, labelType=cv2.DIST_LABEL_PIXEL
    )
    rims &= away <= _MIN_STROKE_PX
    nearest = np.zeros(int(label.max()) + 1, np.intp)
    nearest[label[core]] = np.flatnonzero(core)
    of_word = nearest[label[rims]]
    strong, inked = alpha.reshape(-1)[of_word][:, None], tint.reshape(-1, 3)[of_word]
    mean = moments(lifted).mean
    beneath = fill(mean, loose)[rims]
    plate = (1 - ink.alpha) * beneath + ink.alpha * ink.colour
    step = (1 - strong) * beneath + inked - plate
    share = ((mean[rims] - plate) * step).sum(1) / np.maximum((step**2).sum(1), 1.0)
    share = np.clip(share, 0, 1)[:, None]
    alpha[rims] = (share * strong + (1 - share) * ink.alpha)[:, 0]
    tint[rims] = share * inked + (1 - share) * ink.alpha * ink.colour


def read(views: Views, plate: Box, words: Mask) -> Ink | None:
    """Strength and colour of a plate, by what lies along its long sides; None where they do not tell."""
    near, far = _SIDE_BAND_PX
    height = len(words)
    under, beside = [], []
    for side, inward in ((plate.top, 1), (plate.bottom, -1)):
        rows_in = slice(*sorted((side + inward * near, side + inward * far)))
        rows_out = slice(*sorted((side - inward * near, side - inward * far)))
        if rows_out.start < 0 or rows_out.stop > height:
            continue
        free = ~words[rows_in, plate.left : plate.right].any(0)
        for view in views:
            strip = view[:, plate.left : plate.right].astype(np.float32)
            under.append(strip[rows_in].mean(0)[free])
            beside.append(strip[rows_out].mean(0)[free])
    if not under or len(under[0]) < _MIN_COLUMNS:
        return None
    inside, outside = np.concatenate(under), np.concatenate(beside)
    return _fitted(inside, outside)


def _fitted(inside: Plane, outside: Plane) -> Ink | None:
    off_in, off_out = inside - inside.mean(0), outside - outside.mean(0)
    spread_in, spread_out = float((off_in**2).sum()), float((off_out**2).sum())
    alike = float((off_in * off_out).sum()) / max(float(np.sqrt(spread_in * spread_out)), 1e-6)
    # Both sides stray alike, so neither is taken as given: the ratio of their spreads is not biased.
    alpha = 1 - float(np.sqrt(spread_in / max(spread_out, 1e-6)))
    if alike < _MIN_LIKENESS_RATIO or not _MIN_ALPHA < alpha < _MAX_ALPHA:
        return None
    colour = (inside.mean(0) - (1 - alpha) * outside.mean(0)) / alpha
    for level in (0.0, 255.0):
        lever = level - outside
        fitted = float(((inside - outside) * lever).sum() / max(float((lever**2).sum()), 1.0))
        if abs(fitted - alpha) < _MAX_SNAP_RATIO:
            return Ink(fitted, np.full(3, level, np.float32))
    return Ink(alpha, np.clip(colour, 0, 255).astype(np.float32))


def _words(guess: Guess, plate: Box) -> Mask:
    """What on a plate has another colour than most of it."""
    hue = guess.tint[plate.part] / np.maximum(guess.alpha[plate.part], 0.05)[..., None]
    words = np.zeros_like(guess.tight)
    usual = np.median(hue[guess.tight[plate.part]], 0)
    words[plate.part] = np.abs(hue - usual).max(2) > _MIN_COLOUR_DISTANCE_LEVELS
    return words


def _inner(plate: Box, size: tuple[int, ...]) -> Box:
    """Without what is smeared at its sides; at the picture's border nothing is."""
    height, width = size
    return Box(
        plate.top + _SMEARED_EDGE_PX * (plate.top > 0), plate.bottom - _SMEARED_EDGE_PX * (plate.bottom < height),
        plate.left + _SMEARED_EDGE_PX * (plate.left > 0), plate.right - _SMEARED_EDGE_PX * (plate.right < width),
    )  # fmt: skip


def _lift(view: NDArray[np.uint8], where: Mask, ink: Ink) -> NDArray[np.uint8]:
    result = view.copy()
    plain = (view[where].astype(np.float32) - ink.alpha * ink.colour) / (1 - ink.alpha)
    result[where] = np.clip(np.rint(plain), 0, 255).astype(np.uint8)
    return result
