"""Crops of photographs, and signs that belong to the scene: what a picture is before it is marked."""

import io
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.nn import functional as fn

from training.drawing import Dice, Floats, Lettering, at_each, frame, soften

WITH_TEXT = ("screen", "text")  # roles of pictures that carry text or graphics of their own
WITH_TEXT_RATIO = 0.3  # of the crops
MIN_SIDE = 96  # smaller pictures are passed over
WHOLE_RATIO = 0.22  # of the crops are whole pictures, squeezed into the square
# Picture pixels for one crop pixel: below 1 the picture is enlarged.
SCALES = (0.42, 1.15)
MAX_STEP = 1.75  # larger steps are taken on the copy of half the size
BARRED_RATIO = 0.05  # of the crops have bars at their borders
STRUNG_RATIO = 0.08  # of the crops have wires, branches or a road across them


class Photographs:
    """Every picture at full and half size, on the device, to take crops of any scale from.

    The detector sees marks better where it was taught, and a refiner that learned there would trust it too much: each
    has photographs of its own.
    """

    def __init__(
        self, folder: Path, device: torch.device, *, for_refiner: bool = False, limit: int | None = None
    ) -> None:
        self._device = device
        chosen = [
            (entry, content) for entry, content in _packed(folder) if (entry["role"] == "refiner") == for_refiner
        ][:limit]
        if not chosen:
            raise ValueError(
                f"{folder} holds no photographs for the {'refiner' if for_refiner else 'eye'}: pack it anew"
            )
        with ThreadPoolExecutor() as pool:
            pictures = list(pool.map(_decoded, (content for _, content in chosen)))
        pixels: list[Tensor] = []
        rows: list[tuple[float, ...]] = []  # weight, text of its own; offset, height, width of both copies
        offset = 0
        for (entry, _), picture in zip(chosen, pictures, strict=True):
            height, width = picture.shape[1:]
            if min(height, width) < MIN_SIDE:
                continue
            whole = picture.to(device)
            half = fn.interpolate(
                whole[None].float(),
                size=(height // 2, width // 2),
                mode="bilinear",
                antialias=True,
                align_corners=False,
            )
            half = half.round().clamp(0, 255).byte()[0]
            places: list[int] = []
            for copy in (whole, half):
                places += [offset, *copy.shape[1:]]
                offset += copy.shape[1] * copy.shape[2]
                pixels.append(copy.permute(1, 2, 0).reshape(-1, 3))
            rows.append((entry["weight"], entry["role"] in WITH_TEXT, *places))
        self._pixels = torch.cat(pixels)
        self._rows = np.array(rows)
        self._chances = _chances(self._rows[:, 0], self._rows[:, 1] > 0)

    def crops(self, count: int, side: int, dice: Dice) -> tuple[Tensor, NDArray[np.bool_]]:
        """Crops, and which of them are of pictures with text of their own."""
        rng = dice.rng
        rows = self._rows[rng.choice(len(self._rows), count, p=self._chances)]
        with_text = rows[:, 1] > 0
        height, width = rows[:, 3], rows[:, 4]
        # A crop is never larger than its picture, which would have to be mirrored into a kaleidoscope.
        most = np.minimum(SCALES[1], np.minimum(height, width) / side)
        step = np.exp(rng.uniform(np.log(np.minimum(SCALES[0], 0.9 * most)), np.log(most)))
        whole = dice.chance(WHOLE_RATIO, count)
        step_y, step_x = np.where(whole, height / side, step), np.where(whole, width / side, step)
        reduced = np.maximum(step_y, step_x) > MAX_STEP
        offset, high, wide = (np.where(reduced, rows[:, 5 + i], rows[:, 2 + i]) for i in range(3))
        step_y, step_x = step_y * high / height, step_x * wide / width
        top = rng.random(count) * np.maximum(0, high - step_y * side)
        left = rng.random(count) * np.maximum(0, wide - step_x * side)
        upside, mirrored, turned = (
            self._each(dice.chance(np.where(with_text, rare, usual), count)) > 0
            for rare, usual in ((0.04, 0.12), (0.12, 0.5), (0.1, 0.15))
        )
        along = torch.arange(side, device=self._device).view(1, side) + 0.5
        y = self._each(top) + torch.where(upside, side - along, along) * self._each(step_y) - 0.5
        x = self._each(left) + torch.where(mirrored, side - along, along) * self._each(step_x) - 0.5
        picture = self._sampled(offset, high, wide, y, x)
        picture = torch.where(turned.view(-1, 1, 1, 1), picture.transpose(2, 3), picture)
        return _barred(self._developed(picture.contiguous(), dice), dice), with_text

    def _each(self, values: Any) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values, np.float32)).to(self._device).view(-1, 1)

    def _sampled(self, offset: Floats, high: Floats, wide: Floats, y: Tensor, x: Tensor) -> Tensor:
        """Bilinear samples of the copies that begin at the offsets, on grids of rows and columns: N 3 H W."""
        y = torch.minimum(y.clamp(min=0), self._each(high) - 1.001)
        x = torch.minimum(x.clamp(min=0), self._each(wide) - 1.001)
        row, column = y.floor(), x.floor()
        down, across = (y - row)[:, :, None, None], (x - column)[:, None, :, None]
        start = torch.from_numpy(offset.astype(np.int64)).to(self._device).view(-1, 1)
        stride = torch.from_numpy(wide.astype(np.int64)).to(self._device).view(-1, 1)

        def at(below: int, beside: int) -> Tensor:
            index = (start + (row.long() + below) * stride)[:, :, None] + (column.long() + beside)[:, None, :]
            return self._pixels[index].float()

        upper = at(0, 0) * (1 - across) + at(0, 1) * across
        lower = at(1, 0) * (1 - across) + at(1, 1) * across
        return (upper * (1 - down) + lower * down).permute(0, 3, 1, 2) / 255

    def _developed(self, picture: Tensor, dice: Dice) -> Tensor:
        """Other exposures, colours and grains of the same photograph."""
        n = len(picture)
        some = dice.chance(0.6, n)
        gamma = np.where(some, dice.log_uniform(0.6, 1.6, n), 1)
        gain = np.where(some, dice.rng.uniform(0.55, 1.2, n), 1)
        picture = picture.clamp(1e-4, 1) ** dice.column(gamma) * dice.column(gain)
        tint = np.where(dice.chance(0.35, n)[:, None], dice.rng.uniform(0.75, 1.15, (n, 3)), 1)
        picture = picture * dice.tensor(tint).view(n, 3, 1, 1)
        grey = picture.mean(1, keepdim=True)
        colourful = np.where(dice.chance(0.35, n), dice.rng.uniform(0.3, 1.5, n), 1)
        colourful = np.where(dice.chance(0.07, n), 0, colourful)
        picture = grey + (picture - grey) * dice.column(colourful)
        swapped = np.nonzero(dice.chance(0.15, n))[0]
        if len(swapped):
            order = torch.from_numpy(np.stack([dice.rng.permutation(3) for _ in swapped])).to(self._device)
            where = torch.from_numpy(swapped).to(self._device)
            size = (-1, -1, *picture.shape[2:])
            picture[where] = torch.gather(picture[where], 1, order.view(-1, 3, 1, 1).expand(*size))
        grain = np.where(dice.chance(0.35, n), dice.rng.uniform(0, 0.025, n), 0)
        return (picture + torch.randn_like(picture) * dice.column(grain)).clamp(0, 1)


def _packed(folder: Path) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Every packed picture with what is listed of it."""
    for listing in sorted(folder.glob("photographs*.json")):
        packed = listing.with_suffix(".bin").read_bytes()
        for entry in json.loads(listing.read_text()):
            yield entry, packed[entry["offset"] : entry["offset"] + entry["length"]]


def _chances(weights: Floats, with_text: NDArray[np.bool_]) -> Floats:
    """How likely each picture is chosen, so that WITH_TEXT_RATIO of the crops have text of their own."""
    if with_text.any() and not with_text.all():
        share = WITH_TEXT_RATIO / (1 - WITH_TEXT_RATIO) * weights[~with_text].sum() / weights[with_text].sum()
        weights = np.where(with_text, weights * share, weights)
    return np.asarray(weights / weights.sum())


def _barred(pictures: Tensor, dice: Dice) -> Tensor:
    """Some pictures with bars or a frame at their borders, in one colour or a blurred copy: they are no mark."""
    rng, side = dice.rng, pictures.shape[2]
    for i in np.nonzero(dice.chance(BARRED_RATIO, len(pictures)))[0]:
        bar = int(side * rng.uniform(0.03, 0.25))
        copy, kind = pictures[i], rng.random()
        if kind < 0.25:
            small = fn.avg_pool2d(copy[None], side // 16)
            ground = fn.interpolate(small, size=(side, side), mode="bicubic", align_corners=False)[0].clamp(0, 1)
        else:
            level = 0.0 if kind < 0.6 else 1.0 if kind < 0.85 else rng.random()
            ground = torch.full_like(copy, level)
        edges = ((True, False), (False, True), (True, True))[int(rng.choice(3, p=(0.5, 0.35, 0.15)))]
        rows, columns = (slice(bar, side - bar) if barred else slice(None) for barred in edges)
        framed = ground.clone()
        framed[:, rows, columns] = copy[:, rows, columns]
        pictures[i] = framed
    return pictures


def _decoded(content: bytes) -> Tensor:
    """The picture as 3 H W."""
    with Image.open(io.BytesIO(content)) as opened:
        return torch.from_numpy(np.array(opened.convert("RGB"))).permute(2, 0, 1)


def string_wires(scene: Tensor, dice: Dice) -> Tensor:
    """Some of the scenes with wires, branches or a road from border to border: long thin curves that are no mark.

    What tells them from a signature: they do not end within the picture, their light and width change on the way, and
    the lens has softened them.
    """
    rng, side = dice.rng, scene.shape[2]
    chosen = np.nonzero(dice.chance(STRUNG_RATIO, len(scene)))[0]
    n = len(chosen)
    if n == 0:
        return scene
    where = torch.from_numpy(chosen).to(scene.device)
    painted = scene[where]
    turn, bends = rng.uniform(-1.6, 1.6, n), rng.uniform(0.015, 0.12, n) * side
    for _ in range(int(rng.integers(1, 5))):
        near = turn + rng.normal(0, 0.15, n)
        u, v = frame(side, rng.uniform(0, side, n), rng.uniform(0, side, n), near, dice)
        off = slope = torch.zeros_like(u)
        for bend in (1.0, 0.4, 0.15):
            rate = at_each(dice.log_uniform(2, 9, n) / bend**0.5 / side, dice)
            reach = at_each(bends * bend * rng.uniform(0.2, 1, n), dice)
            along = u * rate + at_each(rng.uniform(0, 6.3, n), dice)
            off, slope = off + reach * torch.sin(along), slope + reach * rate * torch.cos(along)
        away = (v - off).abs() * torch.rsqrt(1 + slope**2)
        width = at_each(dice.log_uniform(0.8, 9, n), dice) * (1 + at_each(rng.normal(0, 0.5, n), dice) * u / side)
        cover = (width.clamp(min=0.4) / 2 - away + 0.5).clamp(0, 1)[:, None]
        cover = soften(cover, rng.uniform(0.6, 2.2, n), dice) * dice.column(rng.uniform(0.6, 1, n))
        hue = dice.tensor(dice.colours(n, light=0.3)).view(n, 3, 1, 1)
        light = 1 + dice.column(rng.normal(0, 0.5, n)) * u[:, None] / side
        rough = 1 + torch.randn_like(cover) * dice.column(rng.uniform(0, 0.15, n))
        painted = painted * (1 - cover) + cover * (hue * light * rough).clamp(0, 1)
    scene = scene.clone()
    scene[where] = painted.clamp(0, 1)
    return scene


def put_up_signs(scene: Tensor, letters: Lettering, dice: Dice, *, share: float = 0.16) -> Tensor:
    """Some of the scenes with a sign, a cover or a screen in them: text seen by the camera, so it must stay.

    What tells it from a mark: it is seen from the side, lit, softened by the lens and grainy, ground and all.
    """
    side = scene.shape[2]
    chosen = np.nonzero(dice.chance(share, len(scene)))[0]
    n = len(chosen)
    if n == 0:
        return scene
    rng = dice.rng
    index = letters.any(n, dice)
    height = dice.log_uniform(14, 150, n)
    scale = height / letters.height
    angle = np.where(dice.chance(0.5, n), rng.normal(0, 0.06, n), rng.uniform(-0.6, 0.6, n))
    u, v = frame(side, rng.uniform(0, side, n), rng.uniform(0, side, n), angle, dice)
    lean, rise = at_each(rng.normal(0, 0.28, n), dice), at_each(rng.normal(0, 0.22, n), dice)
    u, v = u * (1 + lean * v / side), v * (1 + rise * u / side)
    lines = dice.chance(0.45, n)  # several lines, as on a page or a screen
    pitch = (letters.widths[index] * scale + height, height * rng.uniform(1.1, 1.8, n), rng.uniform(0, 99, n))
    ink = letters.ink(index, u, v, scale, dice, tiling=(lines, *pitch))
    half_width = at_each(letters.widths[index] * scale * 0.5 * rng.uniform(1.02, 1.6, n), dice)
    half_height = at_each(height * np.where(lines, rng.uniform(1, 4, n), rng.uniform(0.5, 1.0, n)), dice)
    ground = (half_width - u.abs() + 0.5).clamp(0, 1) * (half_height - v.abs() + 0.5).clamp(0, 1)
    bare = at_each(dice.chance(0.25, n), dice) > 0  # letters painted on the scene itself
    ground = ground[:, None]
    cover = torch.where(bare[:, None], ink * ground, ground)
    face = dice.tensor(dice.colours(n, light=0.3)).view(n, 3, 1, 1)
    letter = dice.tensor(dice.colours(n, light=0.4)).view(n, 3, 1, 1)
    light = 1 + dice.column(rng.normal(0, 0.25, n)) * u[:, None] / side
    light = (light + dice.column(rng.normal(0, 0.25, n)) * v[:, None] / side) * dice.column(rng.uniform(0.4, 1, n))
    board = (face * (1 - ink) + letter * ink) * light
    board = torch.where(bare[:, None], letter * light, board)
    painted = soften(torch.cat([board * cover, cover], 1), dice.log_uniform(1.1, 2.6, n), dice)
    where = torch.from_numpy(chosen).to(scene.device)
    seen = scene[where] * (1 - painted[:, 3:]) + painted[:, :3]
    # Paint takes the light of what it lies on.
    texture = scene[where].mean(1, keepdim=True)
    seen = torch.where(bare[:, None], seen + (texture - 0.5) * 0.35 * painted[:, 3:], seen)
    seen = seen + torch.randn_like(seen) * dice.column(rng.uniform(0.004, 0.03, n)) * (painted[:, 3:] > 0.1)
    scene = scene.clone()
    scene[where] = seen.clamp(0, 1)
    return scene
