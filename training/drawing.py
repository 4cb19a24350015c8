"""The means to draw marks on the device: dice for the parameters, bitmaps for the shapes, frames to put them in."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as fn

from training.sizes import DIGITS, EMBLEM_SIDE, PHRASE, SIGNATURE, TEXT_HEIGHT, TEXT_WIDTH

Floats = NDArray[np.float64]
Tiling = tuple[NDArray[np.bool_], Floats, Floats, Floats]  # whether, across, down, shift of each row


class Dice:
    """Random parameters, drawn on the host so that the device never waits for them."""

    def __init__(self, seed: int, device: torch.device) -> None:
        self.rng = np.random.default_rng(seed)
        self.device = device

    def tensor(self, values: Any) -> Tensor:
        return torch.from_numpy(np.asarray(values, np.float32)).to(self.device, non_blocking=True)

    def column(self, values: Any) -> Tensor:
        return self.tensor(values).view(-1, 1, 1, 1)

    def chance(self, p: float | Floats, count: int) -> NDArray[np.bool_]:
        return self.rng.random(count) < p

    def log_uniform(self, low: float, high: float, count: int) -> Floats:
        return np.exp(self.rng.uniform(np.log(low), np.log(high), count))

    def sign(self, count: int) -> Floats:
        return np.where(self.chance(0.5, count), 1.0, -1.0)

    def colours(self, count: int, *, light: float = 0.42) -> Floats:
        """Mostly light; then dark, grey (the hardest to see) and any colour."""
        rng, kind, grey = self.rng, self.rng.random(count)[:, None], np.ones((1, 3))
        colour = np.where(
            kind < light,
            rng.uniform(0.85, 1, (count, 1)) * grey,
            np.where(
                kind < light + 0.2,
                rng.uniform(0, 0.15, (count, 1)) * grey,
                np.where(kind < light + 0.34, rng.uniform(0.2, 0.85, (count, 1)) * grey, rng.random((count, 3))),
            ),
        )
        pure = np.where(colour > 0.9, 1.0, np.where(colour < 0.08, 0.0, colour))
        return np.where(self.chance(0.5, count)[:, None], pure, colour)


def at_each(values: Any, dice: Dice) -> Tensor:
    return dice.tensor(values).view(-1, 1, 1)


def frame(side: int, x: Floats, y: Floats, angle: Floats, dice: Dice) -> tuple[Tensor, Tensor]:
    """Every pixel's coordinates (N H W, twice) in frames that lie at x, y and are turned by an angle."""
    along = torch.arange(side, device=dice.device) + 0.5
    dx, dy = along.view(1, 1, side) - at_each(x, dice), along.view(1, side, 1) - at_each(y, dice)
    cos, sin = at_each(np.cos(angle), dice), at_each(np.sin(angle), dice)
    return dx * cos + dy * sin, dy * cos - dx * sin


def tiled(u: Tensor, v: Tensor, tiling: Tiling, dice: Dice) -> tuple[Tensor, Tensor]:
    """The same frames, repeated where wanted."""
    wanted, across, down, shift = (at_each(a, dice) for a in tiling)
    row = torch.floor(v / down)
    shifted = u + row * shift
    tile_u = shifted - torch.floor(shifted / across) * across - across / 2
    return torch.where(wanted > 0, tile_u, u), torch.where(wanted > 0, v - row * down - down / 2, v)


def soften(planes: Tensor, sigma: Floats, dice: Dice) -> Tensor:
    """A Gaussian blur of its own strength for each sample."""
    reach = 6
    steps = torch.arange(-reach, reach + 1, device=dice.device).float()
    weights = torch.exp(-0.5 * (steps[None] / dice.tensor(np.maximum(sigma, 0.05)).view(-1, 1)) ** 2)
    weights = (weights / weights.sum(1, keepdim=True)).repeat_interleave(planes.shape[1], 0)
    count = len(weights)
    flat = planes.reshape(1, count, *planes.shape[2:])
    flat = fn.conv2d(flat, weights.view(count, 1, 1, -1), padding=(0, reach), groups=count)
    return fn.conv2d(flat, weights.view(count, 1, -1, 1), padding=(reach, 0), groups=count).view(planes.shape)


class _Bitmaps:
    """Bitmaps in three sizes, so that what is drawn small does not flicker."""

    def __init__(self, bitmaps: NDArray[np.uint8], device: torch.device) -> None:
        whole = torch.from_numpy(bitmaps).to(device)
        self._sizes = [whole]
        for factor in (2, 4, 8):
            parts = [fn.avg_pool2d(part.float(), factor).round().byte() for part in whole.split(64)]
            self._sizes.append(torch.cat(parts))
        self._height, self._width = bitmaps.shape[2:]

    def sample(self, index: NDArray[np.int64], u: Tensor, v: Tensor, scale: Floats, widths: Floats, dice: Dice,
               finish: Callable[[Tensor, Floats], Tensor]) -> Tensor:  # fmt: skip
        """Bitmaps drawn ``scale`` pixels a bitmap pixel, centred in the frames."""
        x = (u / at_each(scale, dice) + at_each(widths / 2, dice)) / self._width * 2 - 1
        y = v / at_each(scale * self._height / 2, dice)
        grid = torch.stack([x, y], 3)
        size = np.clip(np.round(np.log2(1 / scale)), 0, len(self._sizes) - 1).astype(int)
        drawn = torch.empty(len(index), self._sizes[0].shape[1], *u.shape[1:], device=dice.device)
        for level, bitmaps in enumerate(self._sizes):
            these = np.nonzero(size == level)[0]
            if len(these):
                where = torch.from_numpy(these).to(dice.device)
                chosen = bitmaps[torch.from_numpy(index[these]).to(dice.device)].float() / 255
                part = fn.grid_sample(chosen, grid[where], mode="bilinear", padding_mode="zeros", align_corners=False)
                drawn[where] = finish(part, scale[these] * 2**level)
        return drawn


class Lettering:
    """The texts' bitmaps."""

    def __init__(self, folder: Path, device: torch.device) -> None:
        with np.load(folder / "marks.npz") as packed:
            widths, ink, kinds = packed["widths"], packed["ink"], packed["kinds"]
        bitmaps = np.zeros((len(widths), 1, TEXT_HEIGHT, TEXT_WIDTH), np.uint8)
        ends = np.cumsum(widths.astype(np.int64) * TEXT_HEIGHT)
        for i, (end, width) in enumerate(zip(ends, widths, strict=True)):
            bitmaps[i, 0, :, :width] = ink[end - TEXT_HEIGHT * width : end].reshape(TEXT_HEIGHT, width)
        self.widths: Floats = widths.astype(np.float64)
        self.height = TEXT_HEIGHT
        self._bitmaps = _Bitmaps(bitmaps, device)
        every = np.arange(len(widths))
        # Where there are none of a kind, any text will do.
        self._of_kind = [found if len(found := every[kinds == kind]) else every for kind in (PHRASE, DIGITS, SIGNATURE)]

    def any(self, count: int, dice: Dice, *, kind: int | None = None) -> NDArray[np.int64]:
        if kind is None:
            return dice.rng.integers(0, len(self.widths), count)
        return dice.rng.choice(self._of_kind[kind], count)

    def ink(self, index: NDArray[np.int64], u: Tensor, v: Tensor, scale: Floats, dice: Dice, *,
            tiling: Tiling | None = None) -> Tensor:  # fmt: skip
        if tiling is not None:
            u, v = tiled(u, v, tiling, dice)

        def crisp(part: Tensor, enlarged: Floats) -> Tensor:
            # What is enlarged keeps edges one pixel wide.
            return ((part - 0.5) * dice.column(np.maximum(1, enlarged)) + 0.5).clamp(0, 1)

        return self._bitmaps.sample(index, u, v, scale, self.widths[index], dice, crisp)


class Emblems:
    """The logos' bitmaps: colour times coverage, coverage."""

    side = EMBLEM_SIDE

    def __init__(self, folder: Path, device: torch.device) -> None:
        with np.load(folder / "marks.npz") as packed:
            bitmaps = packed["emblems"]
        # Five bits were kept; full coverage is full again.
        bitmaps = np.minimum(255, bitmaps.astype(np.uint16) * 255 // 248).astype(np.uint8)
        self._count = len(bitmaps)
        self._bitmaps = _Bitmaps(bitmaps, device)

    def draw(self, u: Tensor, v: Tensor, scale: Floats, dice: Dice, *, tiling: Tiling) -> Tensor:
        u, v = tiled(u, v, tiling, dice)
        index = dice.rng.integers(0, self._count, len(scale))

        def crisp(part: Tensor, enlarged: Floats) -> Tensor:
            colour, cover = part[:, :3], part[:, 3:]
            sharp = ((cover - 0.5) * dice.column(np.maximum(1, enlarged)) + 0.5).clamp(0, 1)
            return torch.cat([colour / cover.clamp(min=1 / 255) * sharp, sharp], 1)

        return self._bitmaps.sample(index, u, v, scale, np.full(len(scale), float(EMBLEM_SIDE)), dice, crisp)
