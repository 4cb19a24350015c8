"""Marks of every kind, as what they add to a picture: alpha, and alpha times colour."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as fn

from training.drawing import Dice, Emblems, Floats, Lettering, Tiling, at_each, frame, soften
from training.effects import hues, ramps, soften_far, warm, wear

Chosen = NDArray[np.int64]

# Shares of the crops: tiled, large, corner, logos, lines; the rest stays clean. A crop may carry two.
SHARES = (0.23, 0.17, 0.06, 0.22, 0.03)
REFINER_SHARES = (0.18, 0.22, 0.1, 0.48, 0.01)  # the refiner has next to nothing to learn from a clean crop
SECOND = 0.05
DENSE_RATIO = 0.36  # of the tiled texts are small, grey and close together: internal documents, previews
HUGE_RATIO = 0.15  # of the large texts: strokes so wide that a crop shows their insides
WORN_RATIO = 0.25  # of the logos
NETS = 0.15  # of the tiled texts: lines cross behind them, as on stock photographs


class Layers:
    """What lies over the pictures so far."""

    def __init__(self, count: int, side: int, device: torch.device) -> None:
        self.alpha = torch.zeros(count, 1, side, side, device=device)
        self.colour = torch.zeros(count, 3, side, side, device=device)  # times alpha

    def put(self, which: Chosen, alpha: Tensor, colour: Tensor) -> None:
        """Lay something over the layers of some of the pictures."""
        where = torch.from_numpy(which).to(alpha.device)
        self.alpha[where] = self.alpha[where] * (1 - alpha) + alpha
        self.colour[where] = self.colour[where] * (1 - alpha) + colour


@dataclass
class _Text:
    """Texts to be drawn, one for each of the chosen pictures."""

    which: Chosen
    index: Chosen
    u: Tensor
    v: Tensor
    height: Floats
    angle: Floats
    tiling: Tiling
    alpha: Floats
    colour: Floats
    repeated: NDArray[np.bool_]
    ink: Tensor

    def __len__(self) -> int:
        return len(self.which)

    def some(self, p: float | Floats, dice: Dice) -> Chosen:
        return np.nonzero(dice.chance(p, len(self)))[0]


class Marker:
    def __init__(self, letters: Lettering, emblems: Emblems, dice: Dice, shares: tuple[float, ...]) -> None:
        self._letters, self._emblems, self._dice, self._shares = letters, emblems, dice, shares

    def marks(self, count: int, side: int, spared: NDArray[np.bool_] | None = None) -> Layers:
        """Marks for so many crops; those that are ``spared`` stay clean."""
        dice, layers = self._dice, Layers(count, side, self._dice.device)
        kind, bounds = dice.rng.random(count), np.cumsum(self._shares)
        which = np.searchsorted(bounds, kind, side="right")
        which = np.where(spared, len(bounds), which) if spared is not None else which
        marked = which < len(bounds)
        second = np.where(marked & dice.chance(SECOND, count), dice.rng.integers(0, len(bounds), count), -1)
        chosen = [np.nonzero((which == i) | (second == i))[0] for i in range(len(bounds))]
        net = chosen[0][dice.chance(NETS, len(chosen[0]))]
        self._lines(layers, np.unique(np.concatenate([chosen[4], net])), side)
        self._texts(layers, np.concatenate(chosen[:3]), np.repeat([0, 1, 2], [len(c) for c in chosen[:3]]), side)
        self._logos(layers, chosen[3], side)
        layers.colour = torch.minimum(layers.colour, layers.alpha)
        return layers

    def _lines(self, layers: Layers, which: Chosen, side: int) -> None:
        """Nets and hatchings of thin lines."""
        dice, rng, n = self._dice, self._dice.rng, len(which)
        if n == 0:
            return
        u, v = frame(side, rng.uniform(0, side, n), rng.uniform(0, side, n), rng.uniform(-1.6, 1.6, n), dice)
        pitch, width = at_each(dice.log_uniform(50, 900, n), dice), at_each(dice.log_uniform(0.8, 6, n), dice)

        def strokes(across: Tensor) -> Tensor:
            return (width / 2 - (across - pitch * torch.floor(across / pitch) - pitch / 2).abs() + 0.5).clamp(0, 1)

        crossed = at_each(dice.chance(0.5, n), dice) > 0
        ink = torch.where(crossed, torch.maximum(strokes(u), strokes(v)), strokes(u))[:, None]
        alpha = ink * dice.column(rng.uniform(0.12, 0.7, n))
        layers.put(which, alpha, alpha * dice.tensor(dice.colours(n)).view(n, 3, 1, 1))

    def _texts(self, layers: Layers, which: Chosen, kind: Chosen, side: int) -> None:
        if len(which) == 0:
            return
        text = self._lettered(which, kind, side)
        self._bands(layers, text)
        self._glows(layers, text)
        self._shadows(layers, text)
        self._outlines(layers, text)
        self._fill(layers, text, side)

    def _lettered(self, which: Chosen, kind: Chosen, side: int) -> _Text:
        dice, rng, n, letters = self._dice, self._dice.rng, len(which), self._letters
        repeated, large = kind == 0, kind == 1
        dense = repeated & dice.chance(DENSE_RATIO, n)
        index = letters.any(n, dice)
        height = np.where(
            repeated,
            dice.log_uniform(9, 140, n),
            np.where(large, dice.log_uniform(40, 400, n), dice.log_uniform(8, 90, n)),
        )
        height = np.where(dense, dice.log_uniform(8, 40, n), height)
        height = np.where(large & dice.chance(HUGE_RATIO, n), dice.log_uniform(300, 1100, n), height)
        scale = height / letters.height
        slanted = dice.sign(n) * np.where(repeated, rng.uniform(0.12, 1.1, n), rng.uniform(0.06, 0.95, n))
        straight = dice.chance(np.where(repeated, 0.2, np.where(large, 0.4, 0.92)), n)
        angle = np.where(straight, 0, slanted)
        angle = np.where(~repeated & dice.chance(0.06, n), dice.sign(n) * np.pi / 2, angle)
        reach = rng.uniform(-0.5, 0.5, n) * letters.widths[index] * scale * 0.95
        x = rng.uniform(0, 1, n) * side + reach * np.cos(angle)
        y = rng.uniform(0, 1, n) * side + reach * np.sin(angle)
        u, v = frame(side, x, y, angle, dice)
        across = letters.widths[index] * scale + height * dice.log_uniform(0.15, 4, n)
        down = height * np.where(dense, dice.log_uniform(1.3, 4, n), dice.log_uniform(0.9, 4, n))
        shift = across * np.where(dice.chance(0.35, n), 0, np.where(dice.chance(0.5, n), 0.5, rng.random(n)))
        tiling = (repeated, across, down, shift)
        faint = rng.random(n)
        alpha = np.where(
            repeated,
            np.where(
                faint < 0.2,
                rng.uniform(0.07, 0.2, n),
                np.where(faint < 0.9, rng.uniform(0.15, 0.6, n), rng.uniform(0.6, 1, n)),
            ),
            np.where(
                large,
                np.where(faint < 0.82, rng.uniform(0.18, 0.75, n), np.where(faint < 0.9, rng.uniform(0.75, 1, n), 1)),
                np.where(faint < 0.6, rng.uniform(0.25, 0.95, n), 1),
            ),
        )
        alpha = np.where(dense, rng.uniform(0.08, 0.42, n), alpha)
        ink = letters.ink(index, u, v, scale, dice, tiling=tiling)
        weak = np.where(dice.chance(0.1, n), rng.uniform(0.4, 1.2, n), 0)
        if (weak > 0).any():
            some = np.nonzero(weak > 0)[0]
            at = torch.from_numpy(some).to(dice.device)
            ink[at] = soften(ink[at], weak[some], dice)
        some = np.nonzero(dice.chance(0.07, n))[0]
        if len(some):
            at = torch.from_numpy(some).to(dice.device)
            ink[at] = ink[at] * wear(len(some), side, dice)
        colour = dice.colours(n, light=0.45)
        grey = (repeated | large) & dice.chance(0.14, n)
        colour = np.where(grey[:, None], rng.uniform(0.35, 0.75, (n, 1)) * np.ones((1, 3)), colour)
        colour = np.where(dense[:, None], rng.uniform(0.35, 0.8, (n, 1)) * np.ones((1, 3)), colour)
        colour = np.where((kind == 2)[:, None] & dice.chance(0.15, n)[:, None], warm(n, dice), colour)
        return _Text(which, index, u, v, height, angle, tiling, alpha, colour, repeated, ink)

    def _bands(self, layers: Layers, text: _Text) -> None:
        """A band or a plate behind the letters, from edge to edge or as long as they are."""
        dice, rng = self._dice, self._dice.rng
        some = text.some(np.where(text.repeated, 0.0, 0.22), dice)
        n = len(some)
        if n == 0:
            return
        at = torch.from_numpy(some).to(dice.device)
        length = self._letters.widths[text.index[some]] * text.height[some] / self._letters.height
        half = np.where(dice.chance(0.55, n), 9e3, length * 0.5 + text.height[some] * rng.uniform(0.1, 0.6, n))
        thick = at_each(text.height[some] * rng.uniform(0.5, 1.2, n), dice)
        plate = (at_each(half, dice) - text.u[at].abs() + 0.5).clamp(0, 1)
        plate = (plate * (thick - text.v[at].abs() + 0.5).clamp(0, 1))[:, None]
        alpha = plate * dice.column(np.where(dice.chance(0.35, n), 1, rng.uniform(0.25, 0.95, n)))
        opposite = np.where(dice.chance(0.7, n)[:, None], 1 - text.colour[some], dice.colours(n, light=0.3))
        layers.put(text.which[some], alpha, alpha * dice.tensor(opposite).view(n, 3, 1, 1))
        text.alpha[some] = np.maximum(text.alpha[some], 0.5)

    def _glows(self, layers: Layers, text: _Text) -> None:
        """Light or dark that spreads wide around the letters: a shadow all round, or the ink's own hue."""
        dice, rng = self._dice, self._dice.rng
        some = text.some(np.where(text.repeated, 0.03, 0.2), dice)
        n = len(some)
        if n == 0:
            return
        at = torch.from_numpy(some).to(dice.device)
        wide = text.height[some] * rng.uniform(0.05, 0.3, n)
        spread = soften_far(text.ink[at], np.clip(wide, 1.5, 22), dice) * dice.column(rng.uniform(1, 2.2, n))
        alpha = spread.clamp(0, 1) * dice.column(rng.uniform(0.25, 0.8, n))
        light = text.colour[some].mean(1, keepdims=True) > 0.4
        own = text.colour[some] * np.stack([np.ones(n), rng.uniform(0.5, 1, n), rng.uniform(0.3, 1, n)], 1)
        shade = np.where(light, rng.uniform(0, 0.15, (n, 1)), rng.uniform(0.8, 1, (n, 1))) * np.ones((1, 3))
        coloured = np.ptp(text.colour[some], 1, keepdims=True) > 0.2
        hue = np.where(coloured | dice.chance(0.15, n)[:, None], own, shade)
        layers.put(text.which[some], alpha, alpha * dice.tensor(hue).view(n, 3, 1, 1))
        text.alpha[some] = np.maximum(text.alpha[some], 0.6)

    def _shadows(self, layers: Layers, text: _Text) -> None:
        """A soft shadow beside the letters, or the light edge and the dark one of an embossing."""
        dice, rng = self._dice, self._dice.rng
        some = text.some(np.where(text.repeated, 0.15, 0.3), dice)
        n = len(some)
        if n == 0:
            return
        at = torch.from_numpy(some).to(dice.device)
        distance = np.clip(text.height[some] * 0.03, 0.8, 6) * rng.uniform(0.5, 2, n)
        usual = dice.chance(0.8, n)
        direction = np.where(usual, rng.uniform(0.4, 1.2, n), rng.uniform(-3.1, 3.1, n)) - text.angle[some]
        moved = (
            text.u[at] - at_each(distance * np.cos(direction), dice),
            text.v[at] - at_each(distance * np.sin(direction), dice),
        )
        tiling: Tiling = tuple(part[some] for part in text.tiling)  # type: ignore[assignment]
        scale = text.height[some] / self._letters.height
        ink = self._letters.ink(text.index[some], *moved, scale, dice, tiling=tiling)
        soft = np.where(dice.chance(0.3, n), 0.05, rng.uniform(0.4, 3.5, n))
        alpha = soften(ink, soft, dice) * dice.column(text.alpha[some] * rng.uniform(0.35, 1, n))
        light = text.colour[some].mean(1, keepdims=True) > 0.4
        shade = np.where(light, rng.uniform(0, 0.15, (n, 1)), rng.uniform(0.8, 1, (n, 1))) * np.ones((1, 3))
        layers.put(text.which[some], alpha, alpha * dice.tensor(shade).view(n, 3, 1, 1))

    def _outlines(self, layers: Layers, text: _Text) -> None:
        """A line around the letters; some letters are nothing but their outline."""
        dice, rng = self._dice, self._dice.rng
        some = text.some(np.where(text.repeated, 0.15, 0.3), dice)
        n = len(some)
        if n == 0:
            return
        at = torch.from_numpy(some).to(dice.device)
        ink = text.ink[at]
        widths = np.where(
            text.height[some] > 130, rng.integers(1, 5, n), np.where(text.height[some] > 50, rng.integers(1, 3, n), 1)
        )
        grown = torch.zeros_like(ink)
        for width in np.unique(widths):
            these = torch.from_numpy(np.nonzero(widths == width)[0]).to(dice.device)
            grown[these] = fn.max_pool2d(ink[these], 2 * int(width) + 1, 1, int(width))
        hollow = dice.chance(0.55, n)
        alpha = (grown - ink).clamp(0, 1) * dice.column(text.alpha[some] * np.where(hollow, 1, rng.uniform(0.5, 1, n)))
        light = text.colour[some].mean(1, keepdims=True) > 0.4
        other = np.where(light, rng.uniform(0, 0.3, (n, 1)), rng.uniform(0.7, 1, (n, 1))) * np.ones((1, 3))
        other = np.where(dice.chance(0.3, n)[:, None], dice.colours(n), other)
        line = np.where(hollow[:, None], text.colour[some], other)
        layers.put(text.which[some], alpha, alpha * dice.tensor(line).view(n, 3, 1, 1))
        emptied = np.where(dice.chance(0.7, n), 0.0, 0.3)
        text.alpha[some] = np.where(hollow, text.alpha[some] * emptied, text.alpha[some])

    def _fill(self, layers: Layers, text: _Text, side: int) -> None:
        """The letters themselves; some fade along their way, some change colour."""
        dice, rng, n = self._dice, self._dice.rng, len(text)
        turn = rng.uniform(0, 6.3, n)
        ramp = dice.column(np.cos(turn)) * (text.u[:, None] / side) + dice.column(np.sin(turn)) * (
            text.v[:, None] / side
        )
        ramp = (ramp + 0.5).clamp(0, 1)
        fading = dice.column(np.where(dice.chance(0.12, n), rng.uniform(0.3, 0.9, n), 0))
        alpha = text.ink * dice.column(text.alpha) * (1 - fading * ramp)
        first = dice.tensor(text.colour).view(n, 3, 1, 1)
        second = np.where(dice.chance(0.12, n)[:, None], dice.colours(n, light=0.2), text.colour)
        colour = first + (dice.tensor(second).view(n, 3, 1, 1) - first) * ramp
        layers.put(text.which, alpha, alpha * colour)

    def _logos(self, layers: Layers, which: Chosen, side: int) -> None:
        dice, rng, n = self._dice, self._dice.rng, len(which)
        if n == 0:
            return
        size = dice.log_uniform(28, 260, n)
        size = np.where(dice.chance(0.12, n), dice.log_uniform(200, 420, n), size)
        angle = np.where(dice.chance(0.8, n), 0, rng.uniform(-0.7, 0.7, n))
        u, v = frame(side, rng.uniform(0, 1, n) * side, rng.uniform(0, 1, n) * side, angle, dice)
        u = u * at_each(rng.uniform(0.7, 1.4, n), dice)
        repeated = dice.chance(0.15, n)
        pitch = size * rng.uniform(1.3, 3.5, n)
        tiling = (repeated, pitch, pitch, pitch * np.where(dice.chance(0.5, n), 0, 0.5))
        drawn = self._emblems.draw(u, v, size / self._emblems.side, dice, tiling=tiling)
        strength = np.where(repeated, rng.uniform(0.15, 0.6, n), rng.uniform(0.25, 0.9, n))
        strength = np.where(~repeated & dice.chance(0.38, n), 1, strength)
        alpha = drawn[:, 3:] * dice.column(strength)
        # Other colours for some of the logos; seals are red more often than not.
        orders = [rng.permutation(3) if changed else np.arange(3) for changed in dice.chance(0.5, n)]
        order = torch.from_numpy(np.stack(orders)).to(dice.device)
        colour = torch.gather(drawn[:, :3], 1, order.view(n, 3, 1, 1).expand(-1, -1, side, side))
        plain = dice.column(dice.chance(0.3, n)) > 0
        flat = alpha * dice.tensor(dice.colours(n)).view(n, 3, 1, 1)
        colour = torch.where(plain, flat, colour * dice.column(strength))
        alpha, colour = self._run_over(alpha, colour, side)
        some = np.nonzero(dice.chance(0.2, n))[0]
        if len(some):
            at = torch.from_numpy(some).to(dice.device)
            step = int(rng.integers(1, 6))
            moved = torch.roll(drawn[at, 3:], (step, step), (2, 3))
            far = rng.random() < 0.4
            wide = rng.uniform(3, 14, len(some)) if far else rng.uniform(0.5, 3.5, len(some))
            below = soften_far(moved, wide, dice) if far else soften(moved, wide, dice)
            below = below * dice.column(strength[some] * rng.uniform(0.2, 0.8, len(some)))
            layers.put(which[some], below, below * 0.03)
        layers.put(which, alpha, colour)

    def _run_over(self, alpha: Tensor, colour: Tensor, side: int) -> tuple[Tensor, Tensor]:
        """Some logos run from one strong colour to another, their light parts left light; some are worn."""
        dice, rng, n = self._dice, self._dice.rng, len(alpha)
        some = np.nonzero(dice.chance(0.22, n))[0]
        if len(some):
            at = torch.from_numpy(some).to(dice.device)
            first, second = (dice.tensor(hues(len(some), dice)).view(-1, 3, 1, 1) for _ in range(2))
            run = first + (second - first) * ramps(len(some), side, dice)
            own = colour[at] / alpha[at].clamp(min=1e-3)
            light = (own.mean(1, keepdim=True) > 0.75).float()
            colour[at] = alpha[at] * (light * own + (1 - light) * run)
        some = np.nonzero(dice.chance(WORN_RATIO, n))[0]
        if len(some):
            at = torch.from_numpy(some).to(dice.device)
            left = wear(len(some), side, dice)
            alpha[at], colour[at] = alpha[at] * left, colour[at] * left
            if rng.random() < 0.5:  # a rubber stamp is red
                red = np.stack([rng.uniform(0.6, 0.95, len(some)), *rng.uniform(0, 0.25, (2, len(some)))], 1)
                colour[at] = alpha[at] * dice.tensor(red).view(-1, 3, 1, 1)
        return alpha, colour
