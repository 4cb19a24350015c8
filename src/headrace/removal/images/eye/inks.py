"""The inks of a mark, each of one strength and one colour, read off the picture where the mark meets it.

Beside a stroke's edge the picture under the mark is known nearly: marked = out + share * alpha * (colour - out). That
is a line for every channel, and all pixels of an ink share it. The network's own alpha and colour are the prior: it
tells their product well, but not one from the other (white comes out as light grey of more strength).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.floating]

# How far the network is off: in alpha, and in levels of colour.
_ALPHA_ERROR, _COLOUR_ERROR_LEVELS = 0.12, 35.0
# Neighbouring pixels are correlated: this many count as one.
_CORRELATED_PIXELS = 60.0
# A line through points that are noisy in both directions comes out too flat; so much of that noise is taken off again.
_NOISE_CORRECTION_RATIO = 0.7
# What an ink may be, in terms of alpha and of alpha times a colour, and how much likelier than any colour.
_KINDS: tuple[tuple[Numbers, float], ...] = (
    (np.eye(4), 0.0),
    (np.array([[1, 0], [1, 0], [1, 0], [0, 1.0]]), 0.5),  # grey
    (np.array([[255], [255], [255], [1.0]]), 2.0),  # white
    (np.array([[0], [0], [0], [1.0]]), 1.0),  # black
)
_MAX_ROUNDS = 4
# Colours further apart than this are separate inks, if each makes up at least this share of the mark.
_MIN_COLOUR_DISTANCE_LEVELS, _MIN_INK_RATIO, _MAX_INKS = 90, 0.05, 5
_MIN_INK_PIXELS, _MAX_INK_PIXELS = 30, 20_000  # pixels that an ink is read off


@dataclass(frozen=True, slots=True)
class Points:
    """Pixels of a mark (n) with what is known of each."""

    marked: Numbers  # n 3
    out: Numbers  # n 3: the picture as its surroundings let it expect
    noise: Numbers  # how far off that is, in levels
    share: Numbers  # covered
    alpha: Numbers  # by the network, of the whole stroke
    colour: Numbers  # n 3, by the network


@dataclass(frozen=True, slots=True)
class Ink:
    alpha: float
    colour: Numbers
    strongest: float  # what alpha may be: by the picture or by the network, whichever says more


def read(points: Points, usable: NDArray[np.bool_]) -> tuple[list[Ink], NDArray[np.intp]]:
    """The inks, read off the usable points, and which of them each point has."""
    weight = np.where(points.share > 0.5, points.share * points.alpha, 0) + 1e-6
    centres = centres_of(points.colour, weight)
    belongs = nearest_to(points.colour, centres)
    return [_ink(points, belongs == k, usable, centre) for k, centre in enumerate(centres)], belongs


def centres_of(colour: Numbers, weight: Numbers, *, apart: float = _MIN_COLOUR_DISTANCE_LEVELS) -> Numbers:
    """The colours that make up the mark: cells of a coarse histogram, the fullest first, settled by their means."""
    cells = np.clip(colour, 0, 255).astype(np.intp) >> 6
    cell = (cells[:, 0] * 4 + cells[:, 1]) * 4 + cells[:, 2]
    full = np.bincount(cell, weight, 64)
    chosen: list[Numbers] = []
    for k in np.argsort(-full, kind="stable")[:8]:
        if full[k] >= _MIN_INK_RATIO * full.sum() and len(chosen) < _MAX_INKS:
            mean = np.average(colour[cell == k], axis=0, weights=weight[cell == k])
            if all(np.abs(mean - other).max() > apart for other in chosen):
                chosen.append(mean)
    centres = np.array(chosen) if chosen else np.average(colour, axis=0, weights=weight)[None]
    belongs = nearest_to(colour, centres)
    for k in range(len(centres)):
        if (belongs == k).any():
            centres[k] = np.average(colour[belongs == k], axis=0, weights=weight[belongs == k])
    return centres


def nearest_to(colour: Numbers, centres: Numbers) -> NDArray[np.intp]:
    nearest: NDArray[np.intp] = np.argmin(
        [((colour - centre.astype(colour.dtype)) ** 2).sum(1) for centre in centres], 0
    )
    return nearest


def _ink(points: Points, its: NDArray[np.bool_], usable: NDArray[np.bool_], centre: Numbers) -> Ink:
    at = np.flatnonzero(its & usable)
    if len(at) < _MIN_INK_PIXELS:
        return Ink(float(np.median(points.alpha[its])) if its.any() else 0.0, centre, 1.0)
    at = at[:: max(1, len(at) // _MAX_INK_PIXELS)]
    few = Points(*(getattr(points, name)[at].astype(np.float64) for name in Points.__slots__))
    alpha, colour = float(np.median(few.alpha)), np.median(few.colour, axis=0)
    fits = list(_fits(few, alpha, colour))
    _, best, hue = min(fits, key=lambda fit: fit[0])
    free = hue is fits[0][2]
    # The alpha of a coloured ink is less certain than that of white, black and grey.
    return Ink(best, hue, max(best, alpha + 0.1 * free))


def _fits(points: Points, alpha: float, colour: Numbers) -> Iterator[tuple[float, float, Numbers]]:
    """For each kind of ink how little it fits, its alpha and its colour; unlike points count less every round."""
    shift = points.marked - points.out
    likely, wanted = _prior(alpha, colour)
    columns, noise = _columns(points, shift), points.noise**2
    for kind, bonus in _KINDS:
        best, hue, trust = alpha, colour, np.ones(len(shift))
        misfit = np.zeros(len(shift))
        for _ in range(_MAX_ROUNDS):
            matrix, vector = _moments((trust / noise) @ columns / _CORRELATED_PIXELS)
            found = kind @ np.linalg.solve(
                kind.T @ (matrix + likely) @ kind + 1e-9 * np.eye(kind.shape[1]), kind.T @ (vector + wanted)
            )
            best = float(np.clip(found[3], 0.5 * alpha, 1))
            hue = np.clip(found[:3] / max(found[3], 1e-3), 0, 255)
            left = shift - best * points.share[:, None] * (hue - points.out)
            misfit = np.einsum("ij,ij->i", left, left) / (12 * noise)
            trust = 1 / (1 + misfit)
        far = ((best - alpha) / _ALPHA_ERROR) ** 2 + 1.5 * ((hue - colour) ** 2).mean() / _COLOUR_ERROR_LEVELS**2
        yield 6 * np.log1p(misfit).sum() / _CORRELATED_PIXELS + far / 2 - bonus, best, hue


def _prior(alpha: float, colour: Numbers) -> tuple[Numbers, Numbers]:
    """The network's word, as if it were measured: alpha is what it says, alpha times colour goes with it."""
    matrix, vector = np.zeros((4, 4)), np.zeros(4)
    sure = 1 / (_COLOUR_ERROR_LEVELS * max(alpha, 0.1)) ** 2
    matrix[:3, :3] = sure * np.eye(3)
    matrix[:3, 3] = matrix[3, :3] = -sure * colour
    matrix[3, 3] = sure * (colour**2).sum() + _ALPHA_ERROR**-2
    vector[3] = alpha * _ALPHA_ERROR**-2
    return matrix, vector


def _columns(points: Points, shift: Numbers) -> Numbers:
    """Each point's unweighted terms of the normal equations: n rows, 9 columns."""
    share, noise = points.share[:, None], 3 * _NOISE_CORRECTION_RATIO * points.noise[:, None] ** 2
    out = points.out
    return np.hstack([
        share**2,
        share**2 * out,
        share**2 * ((out**2).sum(1, keepdims=True) - noise),
        share * shift,
        -share * ((out * shift).sum(1, keepdims=True) + noise),
    ])  # fmt: skip


def _moments(sums: Numbers) -> tuple[Numbers, Numbers]:
    """The normal equations for alpha times colour (three) and alpha: shift = share (alpha colour - alpha out)."""
    matrix = np.zeros((4, 4))
    matrix[:3, :3] = sums[0] * np.eye(3)
    matrix[:3, 3] = matrix[3, :3] = -sums[1:4]
    matrix[3, 3] = sums[4]
    return matrix, sums[5:]
