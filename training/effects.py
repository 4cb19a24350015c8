"""What happens to a mark's ink: it wears off, glows, throws wide shadows, runs from one colour to another."""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as fn

from training.drawing import Dice, Floats, soften

_COARSER = 4  # wide blurs are made on a copy so many times smaller


def soften_far(planes: Tensor, sigma: Floats, dice: Dice) -> Tensor:
    """A Gaussian blur of up to some 24 pixels, of its own strength for each sample."""
    size = planes.shape[2:]
    small = fn.avg_pool2d(planes, _COARSER, ceil_mode=True)
    return fn.interpolate(soften(small, sigma / _COARSER, dice), size=size, mode="bilinear", align_corners=False)


def wear(count: int, side: int, dice: Dice) -> Tensor:
    """How much of the ink is left at each pixel, 0 to 1: blotches, and a fine grain."""
    rng, device = dice.rng, dice.device
    cells = int(rng.choice([6, 12, 24]))
    blotches = torch.randn(count, 1, side // cells + 1, side // cells + 1, device=device)
    blotches = fn.interpolate(blotches, size=(side, side), mode="bicubic", align_corners=False)
    grain = soften(torch.randn(count, 1, side, side, device=device), rng.uniform(0.4, 1.6, count), dice)
    grain = grain / (grain.std((1, 2, 3), keepdim=True) + 1e-3)
    share = dice.column(rng.uniform(0.2, 0.9, count))
    strength, start = dice.column(rng.uniform(0.3, 0.9, count)), dice.column(rng.uniform(-0.5, 0.8, count))
    worn = strength * (share * blotches + (1 - share) * grain - start)
    return 1 - worn.clamp(0, 0.97)


def hues(count: int, dice: Dice) -> Floats:
    """Strong colours all round the wheel."""
    turn = dice.rng.random(count)[:, None] * 6
    pure = np.clip(np.abs((turn + np.array([[0, 4, 2]])) % 6 - 3) - 1, 0, 1)
    return np.asarray(pure * dice.rng.uniform(0.6, 1, (count, 1)) + dice.rng.uniform(0, 0.2, (count, 1))).clip(0, 1)


def warm(count: int, dice: Dice) -> Floats:
    """The orange, red and yellow of a camera's date."""
    rng = dice.rng
    return np.stack([rng.uniform(0.9, 1, count), rng.uniform(0.2, 0.8, count), rng.uniform(0, 0.35, count)], 1)


def ramps(count: int, side: int, dice: Dice) -> Tensor:
    """From 0 to 1 across each crop, or across a part of it, in any direction."""
    rng = dice.rng
    turn = rng.uniform(0, 2 * np.pi, count)
    along = torch.arange(side, device=dice.device).float() / side - 0.5
    x = along.view(1, 1, 1, side) - dice.column(rng.uniform(-0.4, 0.4, count))
    y = along.view(1, 1, side, 1) - dice.column(rng.uniform(-0.4, 0.4, count))
    steep = dice.column(dice.log_uniform(0.8, 6, count))
    return ((dice.column(np.cos(turn)) * x + dice.column(np.sin(turn)) * y) * steep + 0.5).clamp(0, 1)
