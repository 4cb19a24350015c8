"""A logo that was dissolved over many views: one opacity everywhere, whatever its colours.

Its opacity is read along its sides: a pixel just inside follows the ground just outside, from view to view, by 1 -
alpha. How well any pixel follows the ground that far away is measured where there is no mark.
"""

import cv2
import numpy as np
from numpy.typing import NDArray

from headrace.removal.images.eye.inks import centres_of, nearest_to
from headrace.removal.images.eye.membrane import fill
from headrace.removal.images.eye.model import Mask, Plane
from headrace.removal.images.views.solving import Guess, Matte, shift_of
from headrace.removal.images.views.stack import Views, moments, persistent_steps, square

# Sides of the squares that leave a band of the mask inside its edge: one of strokes is thin.
_RIMS_PX = ((5, 9), (3, 7))
_SMEARED_PX = 3  # the side of the square that files smear an edge over
_MIN_CHANGE_LEVELS = 12.0  # of the ground, from view to view: less tells nothing
_CONTROL_DISTANCE_PX = 25  # the side of the square by which the mask grows, to a place without a mark
_MIN_RIM_PIXELS = 120
_MIN_FOLLOWING_RATIO = 0.8  # with less, the ground outside tells nothing of that inside
_MIN_ALPHA, _MAX_ALPHA = 0.08, 0.85
_WHOLE_PX = 3  # the side of the square that leaves what is surely covered
_EDGE_SMOOTHING_PX = 1.2
_ROUNDS_COUNT = 3  # the mask is corrected by what was solved, and solved again
_MIN_COVERED_RATIO = 0.5
_MIN_FULL_RATIO = 0.8  # a pixel covered so much is covered whole
_MIN_LEVER_LEVELS = 12.0  # by which the mark moves the mean: with less it tells nothing
_MAX_INK_DISTANCE_LEVELS = 45.0  # from one ink: a colour that is further off is its own


def solve_dissolved(views: Views, guess: Guess) -> Matte | None:
    """The matte with one alpha for all of the mark; None where its sides do not tell it."""
    seen = moments(views)
    beneath = fill(seen.mean, guess.loose)
    shift = shift_of(seen, beneath, *persistent_steps(views), guess.loose)
    tight, matte = guess.tight, None
    for _ in range(_ROUNDS_COUNT):
        alpha = opacity(views, tight)
        whole = _eroded(tight.view(np.uint8), _WHOLE_PX)
        if alpha is None or whole.sum() < _MIN_RIM_PIXELS:
            break
        colour = _inked(np.clip(beneath + shift / np.float32(alpha), 0, 255), whole)
        strength = _covered(shift, beneath, colour, alpha, whole) * guess.loose * np.float32(alpha)
        matte = Matte(strength, (colour * strength[..., None]).astype(np.float32), guess.loose, 1.0)
        tight = np.ascontiguousarray(strength > _MIN_COVERED_RATIO * alpha)
    return matte


def _inked(colour: Plane, whole: Mask) -> Plane:
    """Each pixel in the colour of its ink: of the nearest pixel that surely has one."""
    inks = centres_of(colour[whole], np.ones(int(whole.sum()), np.float32))
    near = inks[nearest_to(colour.reshape(-1, 3), inks)].reshape(colour.shape)
    is_ink = whole & (np.abs(colour - near).max(2) <= _MAX_INK_DISTANCE_LEVELS)
    if not is_ink.any():
        return colour
    others = (~is_ink).view(np.uint8)
    _, labels = cv2.distanceTransformWithLabels(others, cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL)
    at = np.flatnonzero(is_ink.ravel())
    source = np.zeros(int(labels.max()) + 1, np.intp)
    source[labels.ravel()[at]] = at
    inked: Plane = near.reshape(-1, 3)[source[labels]].astype(np.float32)
    return inked


def _covered(shift: Plane, beneath: Plane, colour: Plane, alpha: float, whole: Mask) -> Plane:
    """How much of each pixel the mark covers, as far as the mean is moved; by the mask where that tells little."""
    lever = np.float32(alpha) * (colour - beneath)
    size = (lever**2).sum(2)
    levels = (shift * lever).sum(2) / np.maximum(size, 1.0)
    near = cv2.GaussianBlur(whole.astype(np.float32), (0, 0), _EDGE_SMOOTHING_PX)
    clear = size / (size + _MIN_LEVER_LEVELS**2)
    covered = np.clip(clear * levels + (1 - clear) * near, 0, 1)
    full: Plane = np.where(covered > _MIN_FULL_RATIO, 1, covered).astype(np.float32)
    return full


def opacity(views: Views, tight: Mask) -> float | None:
    """One alpha of all of the mask."""
    grown = cv2.dilate(tight.view(np.uint8), square(_CONTROL_DISTANCE_PX)).view(np.bool_)
    for rim in _RIMS_PX:
        inside, control = _following(views, tight, tight, rim), _following(views, grown, tight, rim)
        if inside is None or control is None:
            continue
        # Half of the difference: beside the mark the control lies over other parts of the pictures.
        alpha = 1 - inside / np.sqrt(control)
        return float(alpha) if control > _MIN_FOLLOWING_RATIO and _MIN_ALPHA <= alpha <= _MAX_ALPHA else None
    return None


def _following(views: Views, mask: Mask, mark: Mask, rim: tuple[int, int]) -> float | None:
    """How much pixels inside the mask's edge change from view to view with the nearest ones outside.

    By the weighted median: an edge of a picture between the two says nothing.
    """
    plane = mask.view(np.uint8)
    band = _eroded(plane, rim[0]) & ~_eroded(plane, rim[1])
    if mask is not mark:
        band &= ~cv2.dilate(mark.view(np.uint8), square(_SMEARED_PX)).view(np.bool_)
    within = cv2.dilate(plane, square(_SMEARED_PX))
    if band.sum() < _MIN_RIM_PIXELS or within.all():
        return None
    _, labels = cv2.distanceTransformWithLabels(within, cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL)
    outside = np.flatnonzero(within.ravel() == 0)
    nearest = np.zeros(int(labels.max()) + 1, np.intp)
    nearest[labels.ravel()[outside]] = outside
    beside = np.stack([cv2.blur(view, (3, 3)).reshape(-1, 3)[nearest[labels[band]]] for view in views])
    marked = np.stack([cv2.blur(view, (3, 3))[band] for view in views])
    ground, covered = (plane.astype(np.float32) - np.median(plane, 0) for plane in (beside, marked))
    telling = np.abs(ground) > _MIN_CHANGE_LEVELS
    if telling.sum() < _MIN_RIM_PIXELS:
        return None
    return _weighted_median(covered[telling] / ground[telling], np.abs(ground[telling]))


def _weighted_median(values: "NDArray[np.floating]", weights: "NDArray[np.floating]") -> float:
    order = np.argsort(values)
    passed = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(passed, passed[-1] / 2)])


def _eroded(plane: "NDArray[np.uint8]", side: int) -> Mask:
    return cv2.erode(plane, square(side)).view(np.bool_)
