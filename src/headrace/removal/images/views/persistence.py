"""What many different pictures have in common: edges that all of them show in one place are a mark's.

The network may miss a part of a mark in every single picture. Eight pictures show its outline by themselves: steps of
the pictures have either sign and cancel, steps of the mark add up.
"""

import cv2
import numpy as np

from headrace.removal.images.eye.membrane import fill
from headrace.removal.images.eye.model import Mask, Plane, loosened
from headrace.removal.images.views.solving import Guess, shift_of
from headrace.removal.images.views.stack import Views, moments, persistent_steps, square

MIN_VIEWS = 8  # pictures that show an outline by themselves
_NOISE_LEVELS = 1.5  # of a step that files add
_CHANCE_RATIO = 1.7  # of a picture's usual step, by the root of the views' number: what is left of it by chance
_USUAL_PX = 31  # the side of the square in which steps are usual
_SMOOTHING_PX = 1.2
_MIN_CERTAIN_RATIO, _MIN_RATIO = 1.2, 0.9  # an edge by its excess over chance: alone, and beside a certain one
_STROKE_PX = 5  # pixels across a stroke
_MIN_PART_PIXELS, _MIN_PART_SIDE_PX = 60, 14  # a part of an outline: less is chance
_MAX_GAP_PX = 41  # between parts of one mark
_MAX_AREA_RATIO = 0.25  # of the picture: what shares more is not a mark on different pictures
_MAX_SAME_SCENE_RATIO = 0.3  # how like each other's surroundings are: views of one scene, bright or dark, have more
_EDGE_BAND_PX, _SURROUNDINGS_PX = 7, 61  # sides of the squares between which the surroundings lie
_INSIDE_PX = 25  # across the inside of a letter or a disc, between its edges
_MIN_MOVED_LEVELS, _MIN_MOVED_RATIO = 4.0, 0.35  # by the mark: at least, and of what it moves at its outline
# Of outlines that make a mark without the network: their excess over chance, and their size.
_MIN_OWN_RATIO = 1.6
_MIN_OWN_PIXELS = 600
_USUAL_ALPHA = 0.4


def outlines(views: Views, allowed: Mask | None = None, *, least: float = _MIN_CERTAIN_RATIO) -> Mask:
    """The edges that all views have in common; nothing where the views are few, or are of one scene.

    ``least`` is the excess over chance that a part must have somewhere.
    """
    size = views[0].shape[:2]
    nothing = np.zeros(size, np.bool_)
    if len(views) < MIN_VIEWS:
        return nothing
    excess = _excess(views)
    certain = excess > least
    both = cv2.morphologyEx((excess > _MIN_RATIO).astype(np.uint8), cv2.MORPH_CLOSE, square(_STROKE_PX))
    count, labels, stats, _ = cv2.connectedComponentsWithStats(both, connectivity=8)
    sure = np.bincount(labels[certain], minlength=count)
    parts = [
        number
        for number in range(1, count)
        if sure[number] >= _MIN_PART_PIXELS and max(stats[number][2], stats[number][3]) >= _MIN_PART_SIDE_PX
    ]
    found: Mask = np.isin(labels, parts)
    if allowed is not None:
        found &= allowed
    if not found.any() or found.mean() > _MAX_AREA_RATIO:
        return nothing
    return nothing if _likeness(views, found) > _MAX_SAME_SCENE_RATIO else found


def completed(views: Views, guess: Guess, allowed: Mask | None = None) -> Guess:
    """The guess with the parts that the network missed. Without a guess, the outlines alone are the mark."""
    if guess.tight.any():
        edges = _touching(outlines(views, allowed), guess.tight)
    else:
        edges = outlines(views, allowed, least=_MIN_OWN_RATIO)
        if edges.sum() < _MIN_OWN_PIXELS:
            return guess
    if not (edges & ~guess.loose).any():
        return guess
    region = cv2.morphologyEx((edges | guess.tight).astype(np.uint8), cv2.MORPH_CLOSE, square(_INSIDE_PX))
    loose: Mask = loosened(loosened(region.view(np.bool_)))
    seen = moments(views)
    beneath = fill(seen.mean, loose)
    shift = shift_of(seen, beneath, *persistent_steps(views), loose)
    moved = np.abs(shift).max(2)
    least = max(_MIN_MOVED_LEVELS, _MIN_MOVED_RATIO * float(np.median(moved[edges])))
    more = region.view(np.bool_) & (moved > least) & ~guess.tight
    if allowed is not None:
        more &= allowed
    strength = float(np.median(guess.alpha[guess.tight])) if guess.tight.any() else _USUAL_ALPHA
    strength = max(strength, 0.05)
    alpha = np.where(more, np.float32(strength), guess.alpha)
    colour = np.clip(beneath + shift / np.float32(strength), 0, 255)
    tint = np.where(more[..., None], colour * np.float32(strength), guess.tint)
    tight = guess.tight | more
    around = loosened(tight)
    return Guess(tight, around if allowed is None else around & allowed, alpha, tint)


def _excess(views: Views) -> Plane:
    """How much stronger than by chance the steps are that persist."""
    right, down = persistent_steps(views)
    steep = np.hypot(right, down).max(2)
    chance = _NOISE_LEVELS + _CHANCE_RATIO / np.sqrt(len(views)) * _usual_step(views)
    excess: Plane = cv2.GaussianBlur(steep / chance, (0, 0), _SMOOTHING_PX)
    return excess


def _likeness(views: Views, found: Mask) -> float:
    """How like each other the views are around the parts, whatever their brightness: the median correlation of the
    edges of each view with the mean of all others."""
    near = cv2.dilate(found.view(np.uint8), square(_EDGE_BAND_PX)).view(np.bool_)
    around = cv2.dilate(found.view(np.uint8), square(_SURROUNDINGS_PX)).view(np.bool_) & ~near
    if not around.any():
        return 1.0
    edges = []
    for view in views:
        bright = cv2.GaussianBlur(view.mean(2, dtype=np.float32), (0, 0), _SMOOTHING_PX)
        steps = np.concatenate([cv2.Sobel(bright, cv2.CV_32F, *way)[around] for way in ((1, 0), (0, 1))])
        edges.append(steps / max(float(np.linalg.norm(steps)), 1e-3))
    total = np.sum(edges, 0)
    pairs = [(each, total - each) for each in edges]
    return float(np.median([each @ other / max(float(np.linalg.norm(other)), 1e-3) for each, other in pairs]))


def _usual_step(views: Views) -> Plane:
    """The size of a step in most views, over its surroundings."""
    steps = []
    for view in views:
        levels = view.astype(np.int16)
        across = np.abs(np.diff(levels, axis=1, append=levels[:, -1:])).max(2)
        along = np.abs(np.diff(levels, axis=0, append=levels[-1:])).max(2)
        steps.append(np.maximum(across, along).astype(np.uint8))
    usual: Plane = cv2.blur(np.median(steps, axis=0).astype(np.float32), (_USUAL_PX, _USUAL_PX))
    return usual


def _touching(edges: Mask, tight: Mask) -> Mask:
    """The edges that lie with what the network saw."""
    joined = cv2.dilate((edges | tight).astype(np.uint8), square(_MAX_GAP_PX))
    _, labels = cv2.connectedComponents(joined, connectivity=8, ltype=cv2.CV_32S)
    mine: Mask = edges & np.isin(labels, np.unique(labels[tight]))
    return mine
