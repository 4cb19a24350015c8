"""A large mark as layers of flat ink: the ink of each pixel, chosen for a picture without steps along the outlines.

The network's mask is not exact to the pixel, and it takes words on a band for the band. The picture under an ink is
continuous across the ink's true outline, not across a wrong one. So min-sum belief propagation labels all pixels
together, and the strength of each ink is estimated again across its outlines.
"""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from headrace.removal.images.eye.inks import centres_of, nearest_to
from headrace.removal.images.eye.model import Mask, Plane

Labels = NDArray[np.uint8]  # 0 is bare, k is covered by ink number k - 1, and one more hides the picture
Numbers = NDArray[np.float64]
Inks = tuple[NDArray[np.float32], NDArray[np.float32]]  # alphas (n) and colours (n 3, in levels)

_MAX_PIXELS = 60_000  # of the copy that is labelled
_MAX_ROUNDS, _MESSAGES_COUNT = 3, 24
# The first guess of the inks, by the network: pixels that are surely marked, and how far apart colours must be.
_MIN_STRENGTH, _MIN_LIKELY_LEVELS, _MIN_INK_PIXELS, _MIN_APART_LEVELS, _MAX_INKS = 0.1, 128, 150, 60, 3
_MAX_ALPHA = 0.95  # of an ink through which something is seen
# Weights of the network's planes, in levels: of logarithmic odds, of strength, of a level of colour, and their limits.
_ODDS_LEVELS, _STRENGTH_LEVELS, _COLOUR_RATIO = 2.0, 30.0, 0.15
_MAX_WORD_LEVELS, _MAX_STRENGTH_LEVELS, _MAX_IMPOSSIBLE_LEVELS, _NEVER_LEVELS = 8.0, 5.0, 20.0, 100.0
_SWITCH_LEVELS, _MAX_STEP_LEVELS = 5.0, 40.0  # of a change of ink beside the step it leaves, and of any step
# Costs of the label for letters in another ink: per pixel, per step, and per level of the network's doubt in the inks.
_HIDDEN_LEVELS, _HIDDEN_STEP_LEVELS, _HIDDEN_DOUBT_RATIO = 4.0, 10.0, 0.6
# Letters on a plate in an ink of their own: least odds, and strength beside the plate's.
_MIN_SURE_ODDS, _MIN_STRONGER, _MAX_SURE_STRENGTH = 1.5, 0.15, 0.85
_REACH_PX, _MIN_PAIRS = 2, 40  # distance from an outline for reading ink: nearer pixels are mixed
# Variance by grain is no evidence; number and variance of pairs with the weight of the network.
_GRAIN_SQUARE_LEVELS, _PAIRS_PER_WORD, _WORD_SQUARE_LEVELS = 3.0, 20.0, 300.0
_MAX_OFF_ALPHA = 0.2  # largest error of the network
_PLAIN_LEVELS = 16.0  # a colour this near to white, black or grey is it
_PLAIN_CONTRAST_LEVELS = 60.0  # white or black against ground this far from it tells its own strength


@dataclass(frozen=True, slots=True)
class Layers:
    """The inks of a mark, and the label of each pixel."""

    labels: Labels
    alphas: NDArray[np.float32]
    colours: NDArray[np.float32]
    misfit: float  # steps that stay across the outlines, beside those of the marked picture
    scale: float  # of the copy that was labelled

    @property
    def alpha(self) -> Plane:
        """Of every pixel, 1 where no ink explains it."""
        return np.concatenate([[0], self.alphas, [1]]).astype(np.float32)[self.labels]

    @property
    def colour(self) -> Plane:
        return np.concatenate([np.zeros((1, 3)), self.colours, np.zeros((1, 3))]).astype(np.float32)[self.labels]


@dataclass(frozen=True, slots=True)
class _Word:
    """The network's planes."""

    odds: Plane
    strength: Plane
    tint: Plane
    inside: Mask


def separate(picture: Plane, likely: Plane, strength: Plane, tint: Plane, inside: Mask, prior: float) -> Layers | None:
    """The layers of the mark ``inside``, given the network's planes; None without readable inks.

    ``prior`` are the odds (their logarithm) that the probability has because the user drew a box.
    """
    scale = min(1.0, (_MAX_PIXELS / inside.size) ** 0.5)
    image, chance, some, tinted, part = (
        _scaled(plane, scale) for plane in (picture, likely, strength, tint, inside.astype(np.float32))
    )
    there = part > 0.3
    said = _first_inks(chance, some, tinted, there)
    if said is None:
        return None
    chance = np.clip(chance, 1, 254)
    word = _Word((np.log(chance / (255 - chance)) - prior).astype(np.float32), some, tinted, there)
    inks = said
    for _ in range(_MAX_ROUNDS):
        read = _read(image, _labelled(image, word, inks), said)
        if read is None:
            return None
        inks = read
    labels = _labelled(image, word, inks)
    misfit = _misfit(image, labels, inks)
    sure = there & (word.odds > _MIN_SURE_ODDS) & (some > min(float(inks[0].max()) + _MIN_STRONGER, _MAX_SURE_STRENGTH))
    labels[(labels == 0) & sure] = len(inks[0]) + 1
    if scale < 1:
        labels = cv2.resize(labels, inside.shape[::-1], interpolation=cv2.INTER_NEAREST).astype(np.uint8)
    return Layers(labels, *inks, misfit, scale)


def _scaled(plane: Plane, scale: float) -> Plane:
    if scale >= 1:
        return plane
    return cv2.resize(plane, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)  # type: ignore[return-value]


def _first_inks(chance: Plane, strength: Plane, tint: Plane, there: Mask) -> Inks | None:
    """By the network's word: colours apart from each other, and the usual strength of each."""
    sure = there & (chance >= _MIN_LIKELY_LEVELS) & (strength >= _MIN_STRENGTH)
    inner = cv2.erode(sure.view(np.uint8), np.ones((3, 3), np.uint8)).view(np.bool_)
    if sure.sum() >= 4 * _MIN_INK_PIXELS:
        sure = inner
    if sure.sum() < _MIN_INK_PIXELS:
        return None
    strong = strength[sure]
    colour = np.clip(tint[sure] / strong[:, None], 0, 255)
    centres = centres_of(colour, strong, apart=_MIN_APART_LEVELS)
    belongs = nearest_to(colour, centres)
    full = np.bincount(belongs, minlength=len(centres))
    kept = [k for k in np.argsort(-full)[:_MAX_INKS] if full[k] >= _MIN_INK_PIXELS]
    if not kept:
        return None
    alphas = np.array([np.median(strong[belongs == k]) for k in kept], np.float32)
    return np.clip(alphas, 0.05, _MAX_ALPHA), centres[kept].astype(np.float32)


def _bared(image: Plane, inks: Inks) -> list[Plane]:
    """The picture under each label, were that everywhere."""
    return [image] + [((image - a * c) / (1 - a)).astype(np.float32) for a, c in zip(*inks, strict=True)]


def _labelled(image: Plane, word: _Word, inks: Inks) -> Labels:
    """Every pixel's label, by the network's word for each and the steps between neighbours."""
    bared, alphas = _bared(image, inks), inks[0]
    cost = np.zeros((len(bared) + 1, *word.inside.shape), np.float32)
    said = np.clip(_ODDS_LEVELS * word.odds, -_MAX_WORD_LEVELS, _MAX_WORD_LEVELS)
    cost[0] = np.maximum(said, 0) + np.minimum(_STRENGTH_LEVELS * word.strength, _MAX_STRENGTH_LEVELS)
    cost[1:] = np.maximum(-said, 0) + _NEVER_LEVELS * ~word.inside
    doubts = []
    for k, (alpha, colour) in enumerate(zip(*inks, strict=True), 1):
        impossible = np.maximum(np.maximum(-bared[k], bared[k] - 255), 0).mean(2) * (1 - alpha)
        off = np.abs(word.tint - alpha * colour).mean(2) + 128 * np.abs(word.strength - alpha)
        doubts.append(np.minimum(_COLOUR_RATIO * off, _MAX_WORD_LEVELS))
        cost[k] += doubts[-1] + np.minimum(impossible, _MAX_IMPOSSIBLE_LEVELS)
    cost[-1] += _HIDDEN_LEVELS + _HIDDEN_DOUBT_RATIO * np.min(doubts, 0)
    through = np.array([1.0, *(1 - alphas)], np.float32)
    return _settled(cost, _steps(bared, through, 0), _steps(bared, through, 1))


def _steps(bared: list[Plane], through: NDArray[np.float32], axis: int) -> NDArray[np.float32]:
    """Costs of each pair of labels for neighbours along an axis (labels labels H W)."""
    here, ahead = ([np.delete(plane, gone, axis) for plane in bared] for gone in (-1, 0))
    count = len(bared)
    plain = np.minimum(np.abs(ahead[0] - here[0]).mean(2), _MAX_STEP_LEVELS)
    cost = np.full((count + 1, count + 1, *plain.shape), _HIDDEN_STEP_LEVELS + _SWITCH_LEVELS, np.float32)
    cost[count, count] = plain
    for k in range(count):
        for j in range(count):
            # Contrast is lower under ink: all steps are measured in the marked picture.
            left = plain if k == j else min(through[k], through[j]) * np.abs(here[k] - ahead[j]).mean(2)
            cost[k, j] = np.minimum(left, _MAX_STEP_LEVELS) + _SWITCH_LEVELS * (k != j)
    return cost


def _settled(cost: NDArray[np.float32], down: NDArray[np.float32], right: NDArray[np.float32]) -> Labels:
    """The labels that cost least together, by messages between neighbours."""
    from_up, from_down, from_left, from_right = (np.zeros_like(cost) for _ in range(4))

    def message_of(belief: NDArray[np.float32], steps: NDArray[np.float32]) -> NDArray[np.float32]:
        least = (belief[:, None] + steps).min(0)
        message: NDArray[np.float32] = least - least.min(0)
        return message

    upwards, leftwards = down.transpose(1, 0, 2, 3), right.transpose(1, 0, 2, 3)
    for _ in range(_MESSAGES_COUNT):
        belief = cost + from_up + from_down + from_left + from_right
        after = (
            message_of((belief - from_down)[:, :-1], down),
            message_of((belief - from_up)[:, 1:], upwards),
            message_of((belief - from_right)[:, :, :-1], right),
            message_of((belief - from_left)[:, :, 1:], leftwards),
        )
        # Half of the former message: without that they may swing for ever.
        parts = (from_up[:, 1:], from_down[:, :-1], from_left[:, :, 1:], from_right[:, :, :-1])
        for part, message in zip(parts, after, strict=True):
            part[:] = (part + message) / 2
    settled: Labels = (cost + from_up + from_down + from_left + from_right).argmin(0).astype(np.uint8)
    return settled


def _across_outlines(labels: Labels) -> tuple[NDArray[np.intp], ...]:
    """Pixels on both sides of an outline (rows, columns of either), each within its own label."""
    found = []
    for turned in (labels, labels.T):
        one, other = turned[:, : -2 * _REACH_PX], turned[:, 2 * _REACH_PX :]
        beside_one, beside_other = turned[:, 1 : 1 - 2 * _REACH_PX], turned[:, 2 * _REACH_PX - 1 : -1]
        rows, columns = np.nonzero((one != other) & (one == beside_one) & (other == beside_other))
        pair = (rows, columns, rows, columns + 2 * _REACH_PX)
        found.append(pair if turned is labels else (pair[1], pair[0], pair[3], pair[2]))
    return tuple(np.concatenate(each) for each in zip(*found, strict=True))


def _read(image: Plane, labels: Labels, said: Inks) -> Inks | None:
    """Each ink by its outlines with bare ground or with an ink read before."""
    soft = cv2.blur(image, (3, 3)).astype(np.float64)
    one_row, one_column, other_row, other_column = _across_outlines(labels)
    one, other = labels[one_row, one_column], labels[other_row, other_column]
    here, there = soft[one_row, one_column], soft[other_row, other_column]
    alphas, colours = said[0].copy(), said[1].copy()
    known, left = [0], list(range(1, len(alphas) + 1))
    while left:
        sides = {k: ((one == k) & np.isin(other, known), (other == k) & np.isin(one, known)) for k in left}
        # The ink with the longest outline along known labels comes next.
        k = max(left, key=lambda each: int(sides[each][0].sum() + sides[each][1].sum()))
        first, second = sides[k]
        if first.sum() + second.sum() >= _MIN_PAIRS:
            inked, beside = np.concatenate([here[first], there[second]]), np.concatenate([there[first], here[second]])
            beneath = np.concatenate([other[first], one[second]])
            for j in known[1:]:
                covered = beneath == j
                beside[covered] = (beside[covered] - alphas[j - 1] * colours[j - 1]) / (1 - alphas[j - 1])
            alphas[k - 1], colours[k - 1] = _ink(inked, beside, float(said[0][k - 1]))
        elif len(known) == 1:
            return None
        known.append(k)
        left.remove(k)
    return alphas, colours


def _ink(inked: Numbers, beside: Numbers, said: float) -> tuple[float, Numbers]:
    """inked = (1 - alpha) beside + alpha colour: alpha by how much less varies under the ink than beside it.

    A line through the pairs would be too flat: the ground differs between both sides of an outline.
    """
    kept = np.ones(len(inked), np.bool_)
    alpha, colour = said, np.zeros(3)
    for _ in range(4):
        level, ground = inked[kept].mean(0), beside[kept].mean(0)
        power = max(float(((beside[kept] - ground) ** 2).mean()) - _GRAIN_SQUARE_LEVELS, 0.0)
        faint = max(float(((inked[kept] - level) ** 2).mean()) - _GRAIN_SQUARE_LEVELS, 0.0)
        weight = power / _WORD_SQUARE_LEVELS * float(kept.sum()) / _PAIRS_PER_WORD
        through = ((weight * faint / max(power, 1.0) + (1 - said) ** 2) / (weight + 1)) ** 0.5
        alpha = float(np.clip(1 - through, max(0.03, said - _MAX_OFF_ALPHA), min(_MAX_ALPHA, said + _MAX_OFF_ALPHA)))
        colour = np.clip((level - (1 - alpha) * ground) / alpha, 0, 255)
        for plain in (255.0, 0.0, float(colour.mean())):
            if np.abs(colour - plain).max() <= _PLAIN_LEVELS:
                colour = np.full(3, plain)
                if plain in (255.0, 0.0):
                    away = colour - ground
                    found = float(((level - ground) * away).sum() / max(float((away**2).sum()), 1.0))
                    share = min(1.0, float(np.abs(away).mean()) / _PLAIN_CONTRAST_LEVELS)
                    alpha = float(np.clip(share * found + (1 - share) * alpha, 0.03, _MAX_ALPHA))
                break
        off = np.abs(inked - (1 - alpha) * beside - alpha * colour).mean(1)
        kept = off <= max(3 * float(np.median(off)), 4.0)
    return alpha, colour


def _misfit(image: Plane, labels: Labels, inks: Inks) -> float:
    soft = np.stack([cv2.blur(each, (3, 3)) for each in _bared(image, inks)])
    one_row, one_column, other_row, other_column = _across_outlines(labels)
    one, other = labels[one_row, one_column], labels[other_row, other_column]
    inked = np.flatnonzero((one < len(soft)) & (other < len(soft)))
    if not len(inked):
        return 1.0
    here, there = (one_row[inked], one_column[inked]), (other_row[inked], other_column[inked])
    before = np.abs(soft[0][here] - soft[0][there]).mean()
    after = np.abs(soft[(one[inked], *here)] - soft[(other[inked], *there)]).mean()
    return float(after / max(float(before), 1.0))
