"""A picture without a large, half-transparent mark, solved as layers of flat ink: bands, plates, logos, large words."""

from typing import NamedTuple

import cv2
import numpy as np

from headrace.removal.images.eye.drafting import missed_at, strays_of
from headrace.removal.images.eye.hinting import PIXEL_ODDS
from headrace.removal.images.eye.layers import Layers, separate
from headrace.removal.images.eye.membrane import fill
from headrace.removal.images.eye.model import Detection, Mask, Picture, Plane, loosened
from headrace.removal.images.eye.refining import Draft, refine
from headrace.removal.images.eye.smooth_ground import with_grain

_MARGIN_PX = 24  # around the mark
_MAX_PIXELS = 4_000_000  # of a mark's surroundings
_MIN_STROKE_PX, _MIN_THICK_RATIO = 7, 0.2  # so much of the mask must be strokes as thick: in thinner ones all is edge
# Limits of accepted layers: steps left along their outlines, share without edges, and alpha.
_MAX_MISFIT, _MIN_CORE_RATIO, _MAX_SOLVED_ALPHA = 0.4, 0.3, 0.9
_EDGE_PX = 2  # at an outline inks are mixed; so much further at a smaller copy
# The refiner's weight where something is computed grows from the first alpha to the second, up to this.
_FAINT_ALPHA, _STRONG_ALPHA, _MAX_HEARD = 0.5, 0.9, 0.15
_HIDDEN_PX = 7  # soft edges of opaque parts included
_DOUBT_LEVELS = 15.0


class Layered(NamedTuple):
    picture: Picture
    misfit: float
    computed: int  # pixels
    invented: int


def without_layers(picture: Picture, mark: Detection) -> Layered | None:
    """The picture without the mark; None where it is no large mark of flat ink, or its inks cannot be read."""
    if mark.repeated or mark.step > 1 or mark.finer is not None or not _is_thick(mark.tight):
        return None
    rows, columns = np.flatnonzero(mark.loose.any(1)), np.flatnonzero(mark.loose.any(0))
    here = np.s_[
        max(0, int(rows[0]) - _MARGIN_PX) : int(rows[-1]) + _MARGIN_PX + 1,
        max(0, int(columns[0]) - _MARGIN_PX) : int(columns[-1]) + _MARGIN_PX + 1,
    ]
    inside = np.ascontiguousarray(mark.loose[here])
    if inside.size > _MAX_PIXELS or inside.all():
        return None
    marked = picture[here].astype(np.float32)
    layers = separate(
        marked,
        mark.likely[here].astype(np.float32),
        mark.strength[here] * np.float32(1 / 255),
        mark.tint[here].astype(np.float32),
        inside,
        PIXEL_ODDS if mark.confirmed else 0.0,
    )
    if layers is None or layers.misfit > _MAX_MISFIT or float(layers.alphas.min()) > _MAX_SOLVED_ALPHA:
        return None
    covered = layers.labels > 0
    edge = _edges(layers)
    if not covered.any() or (covered & ~edge).sum() < _MIN_CORE_RATIO * covered.sum():
        return None
    changed = loosened(covered) & inside
    fresh = _refined(marked, layers, edge, changed)
    result = picture.copy()
    result[here][changed] = np.clip(np.rint(fresh[changed]), 0, 255).astype(np.uint8)
    invented = int((changed & edge).sum())
    return Layered(result, layers.misfit, int(changed.sum()) - invented, invented)


def _is_thick(tight: Mask) -> bool:
    core = cv2.erode(tight.view(np.uint8), np.ones((_MIN_STROKE_PX, _MIN_STROKE_PX), np.uint8))
    return int(core.sum()) > _MIN_THICK_RATIO * int(tight.sum())


def _edges(layers: Layers) -> Mask:
    """Where inks are mixed, or nothing shows through."""
    square = np.ones((3, 3), np.uint8)
    edge = cv2.dilate(layers.labels, square) != cv2.erode(layers.labels, square)
    side = 2 * (_EDGE_PX - 2 + round(1 / layers.scale)) + 1
    edge = cv2.dilate(edge.view(np.uint8), np.ones((side, side), np.uint8)).view(np.bool_)
    hidden = (layers.alpha > _MAX_SOLVED_ALPHA).view(np.uint8)
    both: Mask = edge | cv2.dilate(hidden, np.ones((_HIDDEN_PX, _HIDDEN_PX), np.uint8)).view(np.bool_)
    return both


def _refined(marked: Plane, layers: Layers, edge: Mask, changed: Mask) -> Plane:
    """The picture under the layers, filled in along their edges from both sides, by the refiner."""
    alpha, colour = layers.alpha, layers.colour
    through = np.maximum(1 - alpha, 1 - _MAX_SOLVED_ALPHA)[..., None]
    bared = np.clip((marked - alpha[..., None] * colour) / through, 0, 255).astype(np.float32)
    drafted: Plane = np.where(changed[..., None], fill(bared, edge), marked).astype(np.float32)
    strays = strays_of(marked, changed)
    depth = cv2.distanceTransform(edge.view(np.uint8), cv2.DIST_L2, 3)
    at = np.nonzero(changed)
    missed = np.zeros_like(alpha)
    missed[at] = missed_at(strays, at, depth[at].astype(np.float32))
    heard = _MAX_HEARD * np.clip((alpha - _FAINT_ALPHA) / (_STRONG_ALPHA - _FAINT_ALPHA), 0, 1)
    draft = Draft(
        marked=marked,
        filled=drafted,
        computed=drafted,
        blend=drafted,
        colour=np.where(changed[..., None], colour, marked).astype(np.float32),
        opacity=(alpha * changed).astype(np.float32),
        invented=(np.maximum(edge, heard) * changed).astype(np.float32),
        rough=strays[0],
        missed=missed,
        doubt=(np.float32(_DOUBT_LEVELS) * changed).astype(np.float32),
        likely=(np.float32(255) * changed).astype(np.float32),
        loose=changed,
    )
    return with_grain(marked, refine(draft)[0], changed, strays[0])
