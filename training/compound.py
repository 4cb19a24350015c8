"""Marks of several parts, laid out as people do: lines of text in different sizes, and a sign beside or above them.

In a corner, along an edge, in the middle or anywhere; on a plate or a band, with a shadow, a glow or an outline; some
repeated. Among them signatures and cameras' dates. What is nothing but texts or logos is drawn by ``marking``.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as fn

from training.drawing import Floats, at_each, frame, soften, tiled
from training.effects import hues, ramps, soften_far, warm, wear
from training.marking import Chosen, Layers, Marker
from training.sizes import DIGITS, SIGNATURE

COMPOUND_RATIO = 0.3  # of the crops
CORNER, EDGE, MIDDLE, ANYWHERE = range(4)
PLACE_RATIOS = (0.54, 0.13, 0.2, 0.13)
MAX_LINES = 3
LINES_RATIOS = (0.46, 0.38, 0.16)
SIGNATURE_RATIO, DATE_RATIO = 0.18, 0.13  # of those in a corner
REPEATED_RATIO = 0.16
CUT_OFF_RATIO = 0.35  # of those in a corner or along an edge do not lie at the crop's border: it is no picture's
MIN_LINE_PX, MIN_SIGN_PX = 6.5, 10.0
FAR = 9e3  # pixels: beyond any crop


@dataclass
class _Layout:
    """Where the parts lie in frames around each block's middle."""

    which: Chosen
    place: NDArray[np.int64]
    repeated: NDArray[np.bool_]
    dated: NDArray[np.bool_]
    signed: NDArray[np.bool_]
    index: list[Chosen]  # of each line's text
    has: list[NDArray[np.bool_]]  # whether there is such a line
    heights: list[Floats]
    widths: list[Floats]
    gap: Floats
    text_x: Floats  # middle of the lines
    text_y: Floats
    text_width: Floats
    text_height: Floats
    has_sign: NDArray[np.bool_]
    sign_size: Floats
    sign_x: Floats
    sign_y: Floats
    width: Floats  # of the whole block
    height: Floats
    u: Tensor
    v: Tensor

    def __len__(self) -> int:
        return len(self.which)


class CompoundMarker(Marker):
    def marks(self, count: int, side: int, spared: NDArray[np.bool_] | None = None) -> Layers:
        """Marks for so many crops; those that are ``spared`` stay clean."""
        spared = np.zeros(count, np.bool_) if spared is None else spared
        chosen = self._dice.chance(COMPOUND_RATIO, count) & ~spared
        layers = super().marks(count, side, spared | chosen)
        which = np.nonzero(chosen)[0]
        if len(which):
            layout = self._laid_out(which, side)
            self._draw(layers, layout, side)
            layers.colour = torch.minimum(layers.colour, layers.alpha)
        return layers

    def _laid_out(self, which: Chosen, side: int) -> _Layout:
        dice, rng, n, letters = self._dice, self._dice.rng, len(which), self._letters
        place = rng.choice(4, n, p=PLACE_RATIOS)
        special = np.where(place == CORNER, rng.random(n), 1.0)
        signed = special < SIGNATURE_RATIO
        dated = ~signed & (special < SIGNATURE_RATIO + DATE_RATIO)
        central = place == MIDDLE
        first = np.where(
            central,
            dice.log_uniform(0.045, 0.2, n),
            np.where(place == ANYWHERE, dice.log_uniform(0.02, 0.16, n), dice.log_uniform(0.015, 0.09, n)),
        )
        first = np.where(signed, dice.log_uniform(0.05, 0.22, n), first)
        first = np.maximum(first * side, 7.5)
        lines = np.where(signed | dated, 1, rng.choice(MAX_LINES, n, p=LINES_RATIOS) + 1)
        has_sign = dice.chance(np.where(lines == 1, 0.4, 0.45), n) & ~signed & ~dated
        above = dice.chance(np.where(central, 0.75, 0.3), n)
        most = np.where(
            central,
            rng.uniform(0.4, 0.95, n),
            np.where(place == EDGE, rng.uniform(0.3, 0.95, n), rng.uniform(0.2, 0.6, n)),
        )
        index = [letters.any(n, dice) for _ in range(MAX_LINES)]
        for wanted, kind in ((signed, SIGNATURE), (dated, DIGITS)):
            index[0] = np.where(wanted, letters.any(n, dice, kind=kind), index[0])
        ratios = (np.ones(n), dice.log_uniform(0.3, 1.05, n), dice.log_uniform(0.28, 0.9, n))
        heights, widths = [], []
        for text, ratio in zip(index, ratios, strict=True):
            high = first * ratio
            high = np.maximum(
                high * np.minimum(1, most * side * letters.height / (letters.widths[text] * high)), MIN_LINE_PX
            )
            heights.append(high)
            widths.append(letters.widths[text] * high / letters.height)
        has = [lines > i for i in range(MAX_LINES)]
        gap = first * rng.uniform(0.05, 0.6, n)
        high = sum(np.where(there, h, 0) for there, h in zip(has, heights, strict=True)) + gap * (lines - 1)
        wide = np.max([np.where(there, w, 0) for there, w in zip(has, widths, strict=True)], 0)
        large = np.where(central, dice.log_uniform(0.1, 0.4, n) * side, first * dice.log_uniform(1.2, 3.5, n))
        sign = np.where(above, large, high * rng.uniform(0.75, 1.5, n))
        sign = np.where(has_sign, np.clip(sign, MIN_SIGN_PX, 0.5 * side), 0)
        apart = np.where(has_sign, first * rng.uniform(0.15, 0.7, n), 0)
        width = np.where(above, np.maximum(wide, sign), wide + sign + apart)
        height = np.where(above, high + sign + apart, np.maximum(high, sign))
        flipped = np.where(dice.chance(0.2, n) & ~above, -1, 1)
        repeated = dice.chance(REPEATED_RATIO, n) & ~signed & ~dated
        u, v = self._frames(place, repeated, width, height, first, side)
        return _Layout(
            which, place, repeated, dated, signed, index, has, heights, widths, gap,
            text_x=np.where(above | ~has_sign, 0, flipped * (sign + apart) / 2),
            text_y=np.where(above, (sign + apart) / 2, 0.0),
            text_width=wide, text_height=np.asarray(high), has_sign=has_sign, sign_size=sign,
            sign_x=np.where(above, 0, -flipped * (wide + apart) / 2),
            sign_y=np.where(above, -(np.asarray(high) + apart) / 2, 0.0),
            width=width, height=height, u=u, v=v,
        )  # fmt: skip

    def _frames(
        self, place: Chosen, repeated: NDArray[np.bool_], width: Floats, height: Floats, first: Floats, side: int
    ) -> tuple[Tensor, Tensor]:
        """Every pixel's coordinates around the middle of its block."""
        dice, rng, n = self._dice, self._dice.rng, len(place)
        margin = rng.uniform(0.008, 0.06, n) * side
        right, low = np.where(dice.chance(0.65, n), 1, -1), np.where(dice.chance(0.8, n), 1, -1)
        central, anywhere = place == MIDDLE, place == ANYWHERE
        x = np.where(place == CORNER, right * (side / 2 - margin - width / 2), rng.normal(0, 0.02, n) * side * central)
        y = np.where(place <= EDGE, low * (side / 2 - margin - height / 2), rng.normal(0, 0.06, n) * side)
        cut_off = dice.chance(CUT_OFF_RATIO, n) & (place <= EDGE)
        loose = cut_off | anywhere
        x = np.where(loose, rng.uniform(0.05, 0.95, n) * side, x + side / 2)
        y = np.where(loose, rng.uniform(0.05, 0.95, n) * side, y + side / 2)
        angle = np.where(dice.chance(np.where(central, 0.3, 0.04), n), rng.uniform(-0.8, 0.8, n), 0)
        turned = np.where(dice.chance(0.35, n), 0, rng.uniform(-0.8, 0.8, n))
        u, v = frame(side, x, y, np.where(repeated, turned, angle), dice)
        across, down = width + first * dice.log_uniform(0.4, 4, n), height + first * dice.log_uniform(0.4, 4, n)
        return tiled(u, v, (repeated, across, down, across * np.where(dice.chance(0.5, n), 0, 0.5)), dice)

    def _draw(self, layers: Layers, layout: _Layout, side: int) -> None:
        dice, rng, n = self._dice, self._dice.rng, len(layout)
        ink, sign = self._inked(layout, side), self._signed(layout, side)
        colour = dice.colours(n, light=0.6)
        colour = np.where((layout.dated & dice.chance(0.75, n))[:, None], warm(n, dice), colour)
        colour = np.where(dice.chance(0.08, n)[:, None], hues(n, dice), colour)
        alpha = self._strength(layout)
        plated = self._plates(layers, layout, colour)
        alpha[plated] = np.maximum(alpha[plated], 0.6)
        effect = rng.random(n)
        self._shade(
            layers,
            layout,
            np.nonzero((effect < 0.34) & ~layout.repeated)[0],
            torch.maximum(ink, sign[:, 3:]),
            colour,
            alpha,
        )
        self._outline(layers, layout, np.nonzero(effect > 0.9)[0], ink, colour, alpha)
        first = dice.tensor(colour).view(n, 3, 1, 1)
        second = np.where(dice.chance(0.12, n)[:, None], hues(n, dice), colour)
        running = first + (dice.tensor(second).view(n, 3, 1, 1) - first) * ramps(n, side, dice)
        strength = dice.column(alpha)
        flat = dice.column(dice.chance(0.6, n) | layout.repeated) > 0
        cover = sign[:, 3:] * strength
        layers.put(layout.which, cover, torch.where(flat, cover * running, sign[:, :3] * strength))
        letters = ink * strength
        worn = np.nonzero(dice.chance(0.06, n))[0]
        if len(worn):
            at = torch.from_numpy(worn).to(dice.device)
            letters[at] = letters[at] * wear(len(worn), side, dice)
        layers.put(layout.which, letters, letters * running)

    def _strength(self, layout: _Layout) -> Floats:
        rng, n, faint = self._dice.rng, len(layout), self._dice.rng.random(len(layout))
        central = np.where(faint < 0.75, rng.uniform(0.18, 0.65, n), rng.uniform(0.65, 1, n))
        aside = np.where(faint < 0.55, rng.uniform(0.4, 0.97, n), np.where(faint < 0.68, rng.uniform(0.2, 0.5, n), 1))
        once = np.where(layout.place == MIDDLE, central, aside)
        return np.where(layout.repeated, rng.uniform(0.14, 0.5, n), once)

    def _inked(self, layout: _Layout, side: int) -> Tensor:
        """The lines of text: coverage."""
        dice, n = self._dice, len(layout)
        ink = torch.zeros(n, 1, side, side, device=dice.device)
        aligned = dice.rng.choice([0.0, -1.0, 1.0], n, p=[0.4, 0.35, 0.25])
        top = layout.text_y - layout.text_height / 2
        for text, there, high, wide in zip(layout.index, layout.has, layout.heights, layout.widths, strict=True):
            some = np.nonzero(there)[0]
            if len(some):
                at = torch.from_numpy(some).to(dice.device)
                x = layout.text_x + aligned * (layout.text_width - wide) / 2
                u, v = layout.u[at] - at_each(x[some], dice), layout.v[at] - at_each((top + high / 2)[some], dice)
                line = self._letters.ink(text[some], u, v, high[some] / self._letters.height, dice)
                ink[at] = torch.maximum(ink[at], line)
            top = top + np.where(there, high + layout.gap, 0)
        return ink

    def _signed(self, layout: _Layout, side: int) -> Tensor:
        """The signs: colour times coverage, coverage."""
        dice = self._dice
        drawn = torch.zeros(len(layout), 4, side, side, device=dice.device)
        some = np.nonzero(layout.has_sign)[0]
        if len(some):
            at = torch.from_numpy(some).to(dice.device)
            once = np.zeros(len(some), np.bool_), *(np.full(len(some), far) for far in (FAR, FAR, 0.0))
            u = layout.u[at] - at_each(layout.sign_x[some], dice)
            v = layout.v[at] - at_each(layout.sign_y[some], dice)
            drawn[at] = self._emblems.draw(u, v, layout.sign_size[some] / self._emblems.side, dice, tiling=once)
        return drawn

    def _plates(self, layers: Layers, layout: _Layout, colour: Floats) -> Chosen:
        """A plate below the block, or a band from edge to edge; which of the blocks have one."""
        dice, rng, n = self._dice, self._dice.rng, len(layout)
        kind = np.where(layout.repeated | layout.signed, 1.0, rng.random(n))
        banded = (kind >= 0.14) & (kind < 0.24) & (layout.place != MIDDLE)
        some = np.nonzero((kind < 0.14) | banded)[0]
        if len(some) == 0:
            return some
        count, at = len(some), torch.from_numpy(some).to(dice.device)
        first = layout.heights[0][some]
        half_width = np.where(banded[some], FAR, layout.width[some] / 2 + first * rng.uniform(0.1, 1.0, count))
        half_height = layout.height[some] / 2 + first * rng.uniform(0.08, 0.9, count)
        radius = at_each(np.where(dice.chance(0.25, count), first * rng.uniform(0.1, 0.8, count), 0), dice)
        x = layout.u[at].abs() - at_each(half_width, dice) + radius
        y = layout.v[at].abs() - at_each(half_height, dice) + radius
        outside = torch.sqrt(x.clamp(min=0) ** 2 + y.clamp(min=0) ** 2)
        shape = (0.5 - outside - torch.maximum(x, y).clamp(max=0) + radius).clamp(0, 1)[:, None]
        faded = np.nonzero(banded[some] & dice.chance(0.2, count))[0]
        if len(faded):
            where = torch.from_numpy(faded).to(dice.device)
            shape[where] = soften_far(shape[where], rng.uniform(4, 20, len(faded)), dice)
        alpha = shape * dice.column(np.where(dice.chance(0.2, count), 1, rng.uniform(0.25, 0.85, count)))
        light = colour[some].mean(1, keepdims=True) > 0.4
        face = np.where(light, rng.uniform(0, 0.4, (count, 1)), rng.uniform(0.6, 1, (count, 1))) * np.ones((1, 3))
        face = np.where(dice.chance(0.25, count)[:, None], hues(count, dice), face)
        layers.put(layout.which[some], alpha, alpha * dice.tensor(face).view(-1, 3, 1, 1))
        return some

    def _shade(self, layers: Layers, layout: _Layout, some: Chosen, ink: Tensor, colour: Floats, alpha: Floats) -> None:
        """A shadow or a glow around all parts, near or wide."""
        dice, rng, n = self._dice, self._dice.rng, len(some)
        if n == 0:
            return
        at, first = torch.from_numpy(some).to(dice.device), layout.heights[0][some]
        far = dice.chance(0.4, n)
        wide = first * np.where(far, rng.uniform(0.06, 0.3, n), rng.uniform(0.01, 0.08, n))
        step = int(rng.integers(0, 4))
        moved = torch.roll(ink[at], (step, step), (2, 3))
        near, spread = soften(moved, np.clip(wide, 0.05, 3.2), dice), soften_far(moved, np.clip(wide, 1.5, 22), dice)
        shadow = torch.where(dice.column(wide > 3) > 0, spread, near)
        own = dice.chance(0.15, n) | layout.dated[some]  # a glow of the ink's own hue
        light = colour[some].mean(1, keepdims=True) > 0.4
        dark = np.where(light, rng.uniform(0, 0.15, (n, 1)), rng.uniform(0.8, 1, (n, 1))) * np.ones((1, 3))
        hue = np.where(own[:, None], colour[some] * np.array([[1, 0.6, 0.4]]), dark)
        strength = rng.uniform(0.25, 0.8, n) * np.minimum(1, alpha[some] + 0.2)
        cover = (shadow * dice.column(rng.uniform(1, 2, n))).clamp(0, 1) * dice.column(strength)
        layers.put(layout.which[some], cover, cover * dice.tensor(hue).view(-1, 3, 1, 1))

    def _outline(
        self, layers: Layers, layout: _Layout, some: Chosen, ink: Tensor, colour: Floats, alpha: Floats
    ) -> None:
        """A line around the letters; some letters are nothing but it."""
        dice, rng, n = self._dice, self._dice.rng, len(some)
        if n == 0:
            return
        at, reach = torch.from_numpy(some).to(dice.device), 1 if rng.random() < 0.6 else 2
        line = (fn.max_pool2d(ink[at], 2 * reach + 1, 1, reach) - ink[at]).clamp(0, 1) * dice.column(alpha[some])
        hollow = dice.chance(0.5, n)
        light = colour[some].mean(1, keepdims=True) > 0.4
        other = np.where(light, rng.uniform(0, 0.3, (n, 1)), rng.uniform(0.7, 1, (n, 1))) * np.ones((1, 3))
        hue = np.where(hollow[:, None], colour[some], other)
        layers.put(layout.which[some], line, line * dice.tensor(hue).view(-1, 3, 1, 1))
        ink[at] = ink[at] * dice.column(np.where(hollow, rng.choice([0.0, 0.0, 0.3], n), 1))
