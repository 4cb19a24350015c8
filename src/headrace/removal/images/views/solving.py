"""Strength and colour of a mark that lies over many views: marked = (1 - alpha) view + alpha colour.

Two things are known of each pixel. How much less it varies over the views than what lies beside the mark: that is 1 -
alpha, noisy at each pixel, exact over a whole ink. And how far its mean is from the mean beside the mark, which is
alpha (colour - mean): exact where the steps of its edges persist. Both are solved together, ink by ink.
"""

from collections.abc import Callable
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from headrace.removal.images.eye.inks import centres_of, nearest_to
from headrace.removal.images.eye.membrane import fill
from headrace.removal.images.eye.model import Mask, Plane
from headrace.removal.images.views.stack import Moments, Views, integrated, moments, persistent_steps

Numbers = NDArray[np.floating]
Light = tuple[tuple[float, float, float], tuple[float, float, float]]  # black and white
RGB_LIGHT: Light = ((0.0, 0.0, 0.0), (255.0, 255.0, 255.0))

_MIN_VARIANCE_LEVELS = 4.0  # the variance that compression adds by itself
_SPREAD_PX = 9  # pixels over which the spread is taken together, where inks are separated
_MIN_INK_PIXELS = 25  # pixels that an ink is read off
_DETAIL_PX = 8.0  # pixels: finer detail comes from steps, coarser from means
_MIN_TELLING_RATIO, _MIN_FULL_RATIO = 0.85, 0.92  # a pixel covered so much tells of its ink; and so much is all
# How far alpha and colour may be off by taking an ink for black, or for white
_MAX_ALPHA_SNAP = 0.05
_MAX_COLOUR_SNAP_LEVELS = (12, 50)
_MIN_LEVER_LEVELS = 12.0  # levels by which an ink moves the mean: with less it tells nothing
_MAX_ROUNDS = 3
MAX_COMPUTED_ALPHA = 0.88  # from here on too little shines through to compute with


@dataclass(frozen=True, slots=True)
class Matte:
    """A mark as it lies over every view; zero where it is not."""

    alpha: Plane  # H W
    tint: Plane  # H W 3: colour times alpha, in levels
    loose: Mask  # where anything is changed
    trust: float  # how well the views agree on it, 0 to 1

    @property
    def opaque(self) -> Mask:
        return self.alpha >= MAX_COMPUTED_ALPHA


@dataclass(frozen=True, slots=True)
class Guess:
    """What the eye said, on the mean over the views."""

    tight: Mask
    loose: Mask
    alpha: Plane
    tint: Plane

    @property
    def nothing(self) -> "Guess":
        """A guess of the same size without a mark."""
        tight, loose = np.zeros_like(self.tight), np.zeros_like(self.loose)
        return Guess(tight, loose, np.zeros_like(self.alpha), np.zeros_like(self.tint))


def solve(views: Views, guess: Guess, *, light: Light = RGB_LIGHT, heed: Callable[[], object] = lambda: None) -> Matte:
    """The mark's matte by all views together. ``light`` are the levels of black and of white."""
    seen = moments(views)
    heed()
    right, down = persistent_steps(views)
    heed()
    beneath = fill(seen.mean, guess.loose)
    heed()
    shift = shift_of(seen, beneath, right, down, guess.loose)
    heed()
    usual = fill(seen.variance + _MIN_VARIANCE_LEVELS, guess.loose)
    heed()
    ratio = _Ratio((seen.variance + _MIN_VARIANCE_LEVELS).sum(2), usual.sum(2))
    alpha, tint = _inked(guess, shift, beneath, ratio, light)
    return Matte(alpha, tint, guess.loose, 1.0)


def shift_of(seen: Moments, beneath: Plane, right: Plane, down: Plane, loose: Mask) -> Plane:
    """How far the mark moves the mean of each pixel: in detail by the steps that persist, at large by the mean."""
    detail = integrated(right, down, loose)
    off = (seen.mean - beneath - detail) * loose[..., None]
    weight = cv2.GaussianBlur(loose.astype(np.float32), (0, 0), _DETAIL_PX)
    smooth = cv2.GaussianBlur(off, (0, 0), _DETAIL_PX) / np.maximum(weight, 1e-3)[..., None]
    return ((detail + smooth) * loose[..., None]).astype(np.float32)


class _Ratio:
    """How much the marked pixels vary, and how much the views would without the mark."""

    def __init__(self, marked: Plane, usual: Plane) -> None:
        self._marked, self._usual = marked, usual

    def alpha(self, where: Mask) -> float:
        """Of one ink."""
        return 1 - float(np.sqrt(min(1.0, self._marked[where].sum() / self._usual[where].sum())))

    def local(self, where: Mask, side: int = _SPREAD_PX) -> Plane:
        weight = where.astype(np.float32)
        over = cv2.blur(self._marked * weight, (side, side))
        under = cv2.blur(self._usual * weight, (side, side))
        through: Plane = np.sqrt(np.clip(over / np.maximum(under, 1e-6), 0, 1)).astype(np.float32)
        return (1 - through) * where


def _inked(guess: Guess, shift: Plane, beneath: Plane, ratio: _Ratio, light: Light) -> tuple[Plane, Plane]:
    loose = guess.loose
    at = np.nonzero(loose)
    hue = guess.tint[at] / np.maximum(guess.alpha[at], 0.05)[:, None]
    weight = guess.alpha[at] * guess.tight[at] + 1e-6
    inks = centres_of(hue, weight)
    belongs = np.zeros(loose.shape, np.intp)
    belongs[at] = nearest_to(hue, inks)
    alpha, tint = np.zeros(loose.shape, np.float32), np.zeros((*loose.shape, 3), np.float32)
    for number, colour in enumerate(inks):
        its = loose & (belongs == number)
        alpha[its], tint[its] = _ink(its, colour, shift, beneath, ratio, guess, light)
    return alpha, tint


def _ink(
    its: Mask, colour: Numbers, shift: Plane, beneath: Plane, ratio: _Ratio, guess: Guess, light: Light
) -> tuple[Numbers, Numbers]:
    """One ink's alpha and colour, and with them each of its pixels."""
    moved, below = shift[its], beneath[its]
    said = guess.alpha[its]
    strength = float(np.quantile(said[guess.tight[its]], 0.8)) if guess.tight[its].any() else 0.0
    strength = max(strength, 0.05)
    covered = np.clip(said / strength, 0, 1)
    for _ in range(_MAX_ROUNDS):
        whole = covered > _MIN_TELLING_RATIO
        if whole.sum() < _MIN_INK_PIXELS:
            whole = covered >= np.quantile(covered, 0.8)
        core = np.zeros_like(its)
        core[its] = whole
        strength, colour = _read(core, moved[whole], below[whole], ratio, light)
        covered = _covered(moved, below, colour, strength, said)
    alpha = covered * strength
    return alpha, alpha[:, None] * colour


def _read(core: Mask, moved: Numbers, below: Numbers, ratio: _Ratio, light: Light) -> tuple[float, Numbers]:
    strength = float(np.clip(ratio.alpha(core), 0.05, 1.0))
    colour = np.median(below + moved / strength, axis=0)
    # An ink of white or black: then its mean alone tells its strength.
    for level, near in zip(light, _MAX_COLOUR_SNAP_LEVELS, strict=True):
        pure = np.array(level, np.float32)
        lever = pure - below
        fitted = float((moved * lever).sum() / max(float((lever**2).sum()), 1.0))
        if abs(fitted - strength) < _MAX_ALPHA_SNAP and np.abs(colour - pure).max() < near:
            return fitted, pure
    return strength, np.clip(colour, -10, 265)


def _covered(moved: Numbers, below: Numbers, colour: Numbers, strength: float, said: Numbers) -> Numbers:
    """How much of each pixel the ink covers, as far as its mean is moved; by the eye's word where that tells little."""
    lever = strength * (colour - below)
    size = (lever**2).sum(1)
    levels = (moved * lever).sum(1) / np.maximum(size, 1.0)
    heard = np.clip(said / max(float(np.quantile(said, 0.9)), 0.05), 0, 1)
    clear = size / (size + _MIN_LEVER_LEVELS**2)
    covered = np.clip(clear * levels + (1 - clear) * heard, 0, 1.0)
    return np.where(covered > _MIN_FULL_RATIO, 1.0, covered)
